//go:build linux

package inside

import (
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// hiddenCommands starts a program under each name of the argument "names", in
// hex, and also with each as an argument, so that a display of commands has to
// show them; the program asks for a secret, so that there is something to show.
// It also leaves a file that a launcher has to name, below a directory of that
// name.
func hiddenCommands(p *Probe) {
	for i, line := range strings.Split(p.Arg("names"), "\n") {
		b, err := hex.DecodeString(line)
		if err != nil {
			continue
		}
		name := string(b)
		dir := p.In("W", "d"+itoa(i)+name)
		path := filepath.Join(dir, "p"+name)
		p.Control("put a program there", func() error {
			return errors.Join(os.MkdirAll(dir, 0o755), copyFile(os.Args[0], path), os.Chmod(path, 0o755))
		})
		p.Try("start it", func() error {
			c := exec.Command(path, "-child", p.nonce, "read", "path="+p.In("H", ".ssh", "id_other"), "line="+name)
			c.Stdout, c.Stderr = os.Stdout, os.Stderr
			return c.Run()
		})
		p.Try("leave a file that is executed later", func() error { return create(filepath.Join(dir, ".vscode", "tasks.json")) })
	}
}

// escaped returns the relative path from dir to path, with every dot and slash
// escaped.
func escaped(dir, path string, times int) string {
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return path
	}
	s := strings.NewReplacer(".", "%2e", "/", "%2f").Replace(rel)
	for range times - 1 {
		s = strings.ReplaceAll(s, "%", "%25")
	}
	return s
}
