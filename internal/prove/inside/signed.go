//go:build linux

package inside

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
)

// KeySize is the length of the key of a run, in characters.
const KeySize = 32

const macField = `,"mac":"`

// Seal encodes a report as a line that ends with an authentication code of the
// rest (RFC 2104). Other programs inside may know the nonce; the key is gone from
// the file system before the action begins.
func Seal(r Report, key []byte) ([]byte, error) {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false) // what was read must stay searchable
	if err := out.Encode(r); err != nil {
		return nil, err
	}
	line := bytes.TrimSuffix(b.Bytes(), []byte("}\n"))
	if len(key) > 0 {
		line = append(line, macField+code(line, key)+`"`...)
	}
	return append(line, '}', '\n'), nil
}

// Sealed reports whether a line was made by Seal with that key.
func Sealed(line, key []byte) bool {
	i := bytes.LastIndex(line, []byte(macField))
	if i < 0 || len(key) == 0 {
		return false
	}
	want := macField + code(line[:i], key) + `"}`
	return hmac.Equal([]byte(want), bytes.TrimSpace(line[i:]))
}

func code(line, key []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write(line)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// takeKey reads the key and removes it, before any program that could read it is
// started.
func takeKey(path string) []byte {
	key, err := os.ReadFile(path)
	if err != nil {
		return nil // no report will count
	}
	_ = os.Remove(path)
	return key
}

// Command returns a start of the prober at path, for another action, whose
// reports count: it gets the key on its standard input, which is then empty.
// Extra arguments are KEY=VALUE. Call done once it has been started.
func (p *Probe) Command(path, action string, extra ...string) (c *exec.Cmd, done func()) {
	args := []string{"-child", p.nonce, action}
	for k, v := range p.args {
		if k != "writer" && k != "key" {
			args = append(args, k+"="+v)
		}
	}
	p.mu.Lock()
	p.children++
	args = append(args, "writer="+p.writer+"."+strconv.Itoa(p.children))
	p.mu.Unlock()
	c = exec.Command(path, append(args, extra...)...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		return c, func() {}
	}
	_, _ = w.Write(p.key)
	w.Close()
	c.Stdin = r
	return c, func() { r.Close() }
}

// inherit takes the key that Command passed on.
func inherit() []byte {
	key := make([]byte, KeySize)
	if _, err := io.ReadFull(os.Stdin, key); err != nil {
		return nil
	}
	return key
}
