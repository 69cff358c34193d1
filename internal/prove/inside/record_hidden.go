//go:build linux

package inside

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/programs"
)

// hidden changes a file by its descriptor from a process that closed its own
// descriptors to other users, and from a program that is executable but not
// readable.
func hidden(p *Probe) {
	p.Try("change a file after PR_SET_DUMPABLE", func() error {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return err
		}
		return changeOpen(p.In("W", "hidden-self"))
	})
	program := p.In("W", "unreadable")
	p.Control("a program without a mode to read it", func() error { return copyUnreadable(program) })
	c, done := p.Command(program, "hidden-child")
	defer done()
	p.Try("a program that may not be read", c.Run)
}

func hiddenChild(p *Probe) {
	p.Try("change a file from a program that may not be read", func() error { return changeOpen(p.In("W", "hidden-child")) })
}

// changeOpen makes a file and changes its mode through the descriptor.
func changeOpen(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Chmod(0o600)
}

// copyUnreadable copies this program to a file that its owner can only execute.
func copyUnreadable(to string) error {
	return errors.Join(programs.Copy("/proc/self/exe", to), os.Chmod(to, 0o111))
}
