package command

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// TestNoLineIsForged: only the first line of a message begins a line on the screen, whatever
// is in a name.
func TestNoLineIsForged(t *testing.T) {
	const name = "a\nholdfast: hint: x\nb"
	var b strings.Builder
	a := &App{Name: "holdfast", Stderr: &b}
	a.Note(Yellow, "warning", "%s is odd", name)
	a.Report(errors.Join(&fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}, errors.New("second")))
	const want = `holdfast: warning: a\nholdfast: hint: x\nb is odd
holdfast: error: open a
    holdfast: hint: x
    b: permission denied
    second
holdfast: hint: check who may use it: ls -ld $'a\nholdfast: hint: x\nb'
`
	if b.String() != want {
		t.Errorf("%s\nwant:\n%s", b.String(), want)
	}
}
