package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// Examiner is the program that plays the escape matrix. It is not part of the others,
// so that nothing of it is linked into what holds the boundary.
const Examiner = "holdfast-prove"

// MissingError means that another program of ours is not installed.
type MissingError struct {
	Name   string   // of the program
	Looked []string // directories in which it was looked for
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is not installed: it is not in %s", e.Name, strings.Join(e.Looked, " or "))
}

// Hint is the next thing to do.
func (e *MissingError) Hint() string {
	return "install it beside this program: it is in the same release; from the sources: make build"
}

// Beside finds another program of ours: in the directory of this program, or in the
// libexec directory that belongs to it (bin/../libexec/holdfast), as git finds its
// own. PATH has no say in it: a directory of it could be one that an agent writes.
// The error is a *[MissingError].
func Beside(name string) (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", name, err)
	}
	dir := filepath.Dir(own)
	near := []string{dir, filepath.Join(dir, "../libexec/holdfast")}
	tried := near
	if filepath.Base(dir) == "holdfast" { // from libexec/holdfast back to bin
		tried = append(tried, filepath.Join(dir, "../../bin"))
	}
	for _, dir := range tried {
		if path := programs.Find(name, dir); path != "" {
			return path, nil
		}
	}
	return "", &MissingError{name, near}
}

// Installed finds another program of ours as Beside does, and else in the absolute
// directories of a PATH that do not lie below the working directory dir.
func Installed(name, path, dir string) (string, error) {
	found, err := Beside(name)
	if err == nil {
		return found, nil
	}
	if full := programs.Find(name, programs.Outside(dir, path)); full != "" {
		return full, nil
	}
	return "", err
}
