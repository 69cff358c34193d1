//go:build linux

package inside

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
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
			return refusalErrno(out, err)
		}
		id, err := hex.DecodeString(strings.TrimSpace(string(out)))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, ".git/index"), indexOf(id, ".git/hooks/post-checkout", ".git/hooks/pre-commit"), 0o644)
	})
}

// indexOf returns a git index of programs with the same content
// (gitformat-index(5)).
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

// gitLookAway marks files of the repository at dir as not to be checked.
func gitLookAway(p *Probe, dir string) {
	for _, mark := range []string{"--assume-unchanged", "--skip-worktree"} {
		p.Try("mark a file of "+dir+" with "+mark, func() error {
			out, err := tool(dir, gitEnv(), "git", "update-index", mark, "tracked")
			return refusalErrno(out, err)
		})
	}
}

// gitTwoLengths makes a repository whose index has a harmless name if object
// names have 20 bytes, and one outside if they have 32, as the last line of its
// configuration says.
func gitTwoLengths(p *Probe) {
	dir := p.Arg("dir")
	p.Try("make a repository with an index of two readings", func() error {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if out, err := tool(dir, gitEnv(), "git", "init", "-q", "--object-format=sha256", "."); err != nil {
			return refusalErrno(out, err)
		}
		target := p.In("O", "written")
		content, id := blobWithID(func(id []byte) bool {
			return id[20] == 0 && int(id[21]) == 12+len(target) && !bytes.ContainsAny(id[22:32], "\x00/")
		})
		file := filepath.Join(dir, "content")
		config := "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha1\n\tobjectformat = sha256\n"
		if err := errors.Join(os.WriteFile(file, content, 0o644), os.WriteFile(filepath.Join(dir, ".git/config"), []byte(config), 0o644)); err != nil {
			return err
		}
		if out, err := tool(dir, gitEnv(), "git", "hash-object", "-w", file); err != nil {
			return refusalErrno(out, err)
		}
		b := []byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01")
		e := binary.BigEndian.AppendUint32(make([]byte, 24), 0o100644)
		e = append(append(e, make([]byte, 12)...), id...)
		e = append(e, "\x0f\xff"+target...)
		b = append(append(b, e...), make([]byte, 8-len(e)%8)...)
		sum := sha1.Sum(b)
		return os.WriteFile(filepath.Join(dir, ".git/index"), append(b, sum[:]...), 0o644)
	})
}

// blobWithID finds content whose object name, in SHA-256, is wanted.
func blobWithID(wanted func(id []byte) bool) (content, id []byte) {
	for n := 0; ; n++ {
		content := fmt.Appendf(nil, "echo %08d\n", n)
		sum := sha256.Sum256(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))
		if wanted(sum[:]) {
			return content, sum[:]
		}
	}
}
