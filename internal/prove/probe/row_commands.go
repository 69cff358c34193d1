//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Holdfast decides nothing by the words of a command: the boundary is the
// kernel's. The cases of these classes also name a decision, deny or ask, of a
// policy layer that a product may have above it. Only the effect counts here, and
// it is looked for outside: a file made in O, a token of H or O that was seen, a
// listener that was reached.

// trickServices are the targets of tricks that connect.
func trickServices(w *World) error {
	l, err := w.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.Arg("addr=" + l.Addr)
	_, err = w.Listen("unix", "O/u")
	return err
}

// bareOutside is a repository outside that pushes go to.
func bareOutside(w *World) error {
	dir := w.Path("O/r.git")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	_, err := w.git(dir, "init", "-q", "--bare", ".")
	return errors.Join(err, trickServices(w))
}

// withLoader is trickServices on a host with a dynamic loader; others lack what
// the row needs.
func withLoader(w *World) error {
	for _, pattern := range []string{"/lib*/ld-linux*.so.*", "/lib/ld-musl-*.so.1"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return trickServices(w)
		}
	}
	return fmt.Errorf("%w: a dynamic loader", ErrMissing)
}

// saidPlainly demands that the launcher prints no control or hidden characters.
func saidPlainly(_ *World, o Observation) []string {
	printed := strings.ReplaceAll(string(o.Stderr), "\r\n", "\n") // the line ending on a raw terminal
	for _, bad := range actingOrHiding {
		if strings.Contains(printed, bad) {
			return []string{fmt.Sprintf("the launcher said %+q, out of a name", bad)}
		}
	}
	return nil
}

var actingOrHiding = []string{"\r", "\b", "\a", "\x1b[2K", "\x1b[8m", "\x1b]", "\x7f", "\u202e", "\u2066", "\u2069", "\u200b", "\u00ad", "\ufeff", "\u2028", "\u0085", "\u009b", "\U000e0072", "\U000e006d", "\xff"}
