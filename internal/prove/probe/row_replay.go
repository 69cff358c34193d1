//go:build linux

package probe

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"holdfast.dev/holdfast/internal/prove/replay"
)

// allowed makes an .envrc and the file by which direnv knows that its user has
// agreed to that content: direnv(1); its name is the SHA-256 of path and content.
func allowed(w *World, content string) error {
	path := filepath.Join(w.W, ".envrc")
	sum := sha256.Sum256([]byte(path + "\n" + content))
	if err := w.File("W/.envrc", content); err != nil {
		return err
	}
	return w.File(fmt.Sprintf("H/.local/share/direnv/allow/%x", sum), path+"\n")
}

// compiled makes compiled start-up files whose payload is known only now: the
// source files have the names that zsh looks for.
func compiled(w *World) error {
	for _, name := range []string{".zshrc", ".zshenv"} {
		at := w.Path("O/" + name)
		if err := w.write(at, replay.Trip(w.O, w.armed.token, "W/"+name+".zwc")+"\n"); err != nil {
			return err
		}
		out := w.Path("W/tools/" + name + ".zwc")
		if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
			return err
		}
		if b, err := exec.Command("zsh", "-f", "-c", `zcompile "$1" "$2"`, "zsh", out, at).CombinedOutput(); err != nil {
			return fmt.Errorf("compiling a file of zsh: %w: %s", err, b)
		}
	}
	return nil
}

// pythonName returns the directory of the system's python modules, such as
// python3.11.
func pythonName() string {
	dirs, _ := filepath.Glob("/usr/lib/python3.[0-9]*")
	for _, d := range dirs {
		if exists(d + "/site.py") {
			return filepath.Base(d)
		}
	}
	return "python3"
}

// virtualEnvironment makes what python3 -m venv does, as far as it matters.
func virtualEnvironment(w *World) error {
	if err := w.File("W/.venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n"); err != nil {
		return err
	}
	if err := w.File("W/.venv/lib/"+pythonName()+"/site-packages/README", ""); err != nil {
		return err
	}
	if err := os.MkdirAll(w.Path("W/.venv/bin"), 0o755); err != nil {
		return err
	}
	return os.Symlink("/usr/bin/python3", w.Path("W/.venv/bin/python"))
}

// direnvAllowed makes an .envrc that direnv's user has agreed to.
func direnvAllowed(content string) func(*World) error {
	return func(w *World) error { return allowed(w, content) }
}

// manyNames makes a directory of installed code with more names than a launcher looks
// through without remembering what it saw, and none that was made just now.
func manyNames(w *World) error {
	for i := range 1000 {
		if err := w.File(fmt.Sprintf("W/node_modules/dep/%d.js", i), ""); err != nil {
			return err
		}
	}
	time.Sleep(100 * time.Millisecond)
	return nil
}

// namedSetID demands that each file that runs as its owner is named.
func namedSetID(w *World, o Observation) []string {
	var out []string
	for _, t := range []string{"W/suid", "W/sgid"} {
		if info, err := os.Lstat(w.Path(t)); err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			out = append(out, named(nil, t)(w, o)...)
		}
	}
	return out
}
