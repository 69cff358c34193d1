//go:build linux

package probe

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/programs"
)

// World is where a row is played, made for it and removed after it.
type World struct {
	B string // parent of everything below
	S string // directory that contains the workspace, beside what is outside
	W string // workspace, the only place that the command may write; contains ok.txt
	O string // outside, on the same file system; O/canary holds a token
	H string // home that the launcher is given, with credentials that hold tokens
	R string // outside; only rows with Options.Read put it in view

	Env   []string   // added to the environment of the launcher
	Files []*os.File // inherited by the launcher as descriptors 3, 4, …
	Under []string   // a command line that starts the launcher, such as another sandbox

	link    string    // symbolic link to the home that names it; "" for none
	target  Target    // the row is played against it
	outside *Outside  // the network, if there is one
	reach   []Reach   // what the row asks to allow
	net     *internet // the servers in that network; nil for rows that need none

	args   []string          // added to those of every command
	prober string            // inside W
	origin string            // the original of that copy; the inside cannot write it
	armed  armed             // what the human does with it afterwards
	tokens map[string]string // name to token
	homes  map[string]bool   // files of W in which the set-up put a token
	kept   map[string]string // path to print
	known  map[string]bool   // everything that we made in O, H and R
	absent []string
	shared []string // see [Row.Shared]
	// remembered is what a set-up keeps for the oracle of its row.
	remembered string
	coverage   map[string]Coverage // by kind of deed, see [Result.Coverage]
	outer      outer               // how much a command may use, if a test sets another limit
	recordless bool                // the oracle asked for a record, and the target keeps none
	seen       []sink              // what may have received tokens
	cleanup    []func() error
}

// sink is a listener or a victim: it reports what reached it.
type sink interface {
	effects() []string
	received() []byte
}

// newWorld makes a world for a row, with the prober in the workspace.
func (n Runner) newWorld(workspace string) (*World, error) {
	base, err := os.MkdirTemp(n.Dir, ".probe-world-")
	if err != nil {
		return nil, err
	}
	w := &World{B: base, origin: n.Prober, tokens: map[string]string{}, homes: map[string]bool{}, kept: map[string]string{}, known: map[string]bool{}}
	// Others must be able to pass through, as in a real home.
	err = os.Chmod(w.B, 0o755)
	if err == nil {
		err = w.lay(n.Layout, n.Apart, workspace)
	}
	if err == nil {
		err = w.surround(n.Layout)
	}
	if err == nil {
		err = w.furnish(n.Prober)
	}
	if err != nil {
		return nil, errors.Join(err, w.remove())
	}
	return w, nil
}

func (w *World) furnish(prober string) error {
	if err := w.write(filepath.Join(w.W, "ok.txt"), "ok"); err != nil {
		return err
	}
	for _, p := range []string{"O/canary", "O/sub/canary", "H/.ssh/id_probe", "H/.aws/credentials", "H/.netrc"} {
		if err := w.Plant(p); err != nil {
			return err
		}
	}
	if err := w.write(filepath.Join(w.R, "canary"), "readable, not writable\n"); err != nil {
		return err
	}
	if err := w.write(filepath.Join(w.H, ".bashrc"), "# a user's file\n"); err != nil {
		return err
	}
	w.prober = filepath.Join(w.W, ".probe-"+hexes(4), "prober")
	w.made(w.prober)
	return copyProgram(prober, w.prober)
}

// made marks path and its parents as ours.
func (w *World) made(path string) {
	for p := filepath.Clean(path); len(p) > 1; p = filepath.Dir(p) {
		w.known[p] = true
	}
}

func (w *World) write(path, content string) error {
	w.made(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return programs.Write(path, []byte(content), 0o644) // some become programs
}

// Path expands a template.
func (w *World) Path(template string) string {
	head, tail, _ := strings.Cut(template, "/")
	root, ok := map[string]string{"W": w.W, "O": w.O, "H": w.H, "R": w.R, "S": w.S, "B": w.B}[head]
	if !ok {
		return template
	}
	if tail == "" {
		return root
	}
	return root + "/" + tail // not cleaned: dots and slashes may be the point
}

// Token returns the token of that name, created at the first call. A token that
// is seen in any output, in a file of W or at a listener is an escape.
func (w *World) Token(name string) string {
	if w.tokens[name] == "" {
		w.tokens[name] = "tok-" + hexes(16)
	}
	return w.tokens[name]
}

// Plant makes a file with a token in it, at a template, and keeps it.
func (w *World) Plant(template string) error {
	path := w.Path(template)
	if err := w.write(path, w.Token(template)+"\n"); err != nil {
		return err
	}
	w.Holds(path)
	return w.Keep(path)
}

// Holds marks a file of the workspace that contains a token on purpose.
func (w *World) Holds(path string) { w.homes[filepath.Clean(path)] = true }

// File makes a file at a template.
func (w *World) File(template, content string) error { return w.write(w.Path(template), content) }

// Keep demands that what is at path now is unchanged after the run.
func (w *World) Keep(path string) error {
	p, err := printOf(path)
	if err != nil {
		return err
	}
	w.kept[path] = p
	return nil
}

// Absent demands that nothing is at path after the run.
func (w *World) Absent(path string) { w.absent = append(w.absent, path) }

// Arg adds KEY=VALUE to the arguments of every command, for what only the set-up
// knows, such as a port.
func (w *World) Arg(keyValue string) { w.args = append(w.args, keyValue) }

// appears waits until the inside makes something at a template, and reports
// whether that came in time.
func (w *World) appears(template string) bool {
	for end := time.Now().Add(10 * time.Second); !exists(w.Path(template)); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Defer registers f to run when the world is removed, last first.
func (w *World) Defer(f func() error) { w.cleanup = append(w.cleanup, f) }

// arrange makes what the data of a row asks for.
func (w *World) arrange(r Row) error {
	for p, content := range r.Files {
		if err := w.write(w.Path(p), content); err != nil {
			return err
		}
	}
	for p, target := range r.Links {
		if err := os.MkdirAll(filepath.Dir(w.Path(p)), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(w.Path(target), w.Path(p)); err != nil {
			return err
		}
	}
	for _, p := range r.Plant {
		if err := w.Plant(p); err != nil {
			return err
		}
	}
	if r.Setup != nil {
		if err := r.Setup(w); err != nil {
			return err
		}
	}
	for _, p := range r.Keep {
		if err := w.Keep(w.Path(p)); err != nil {
			return err
		}
	}
	for _, p := range r.Shared {
		w.shared = append(w.shared, w.Path(p))
	}
	for _, p := range r.Absent {
		w.Absent(w.Path(p))
	}
	return nil
}

// remove ends everything that the world started and deletes it.
func (w *World) remove() error {
	var errs []error
	for i := len(w.cleanup) - 1; i >= 0; i-- {
		errs = append(errs, w.cleanup[i]())
	}
	return errors.Join(append(errs, RemoveAll(w.B))...)
}

// RemoveAll deletes a directory of worlds, including whatever rows have mounted
// or locked in it.
func RemoveAll(dir string) error {
	var errs []error
	for _, m := range mountsBelow(dir) {
		errs = append(errs, unix.Unmount(m, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW))
	}
	if left := mountsBelow(dir); len(left) > 0 {
		// Deleting through a mount would delete files of others.
		return errors.Join(append(errs, fmt.Errorf("mounts left behind: %q", left))...)
	}
	return errors.Join(append(errs, removeBelow(dir))...)
}

// removeBelow deletes dir. A process that is still ending may make a file between
// the reading of a directory and its deletion, so it retries for a moment.
func removeBelow(dir string) error {
	for tries := 0; ; tries++ {
		unlock(dir)
		err := os.RemoveAll(dir)
		if tries == 20 || !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// unlock makes directories that a row closed removable again.
func unlock(dir string) {
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			if info, err := d.Info(); err == nil && info.Mode().Perm()&0o700 != 0o700 {
				_ = os.Chmod(p, 0o700)
			}
		}
		return nil
	})
}

// mountsBelow lists mount points strictly below dir, last made first.
func mountsBelow(dir string) []string {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var found []string
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 4 && paths.Below(dir, unescape.Replace(f[4])) {
			found = append([]string{unescape.Replace(f[4])}, found...)
		}
	}
	return found
}

func hexes(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails since Go 1.24
	return fmt.Sprintf("%x", b)
}
