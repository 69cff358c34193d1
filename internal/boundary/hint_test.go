package boundary

import (
	"strings"
	"testing"
)

// The hint for a line that was quoted as a whole, or for an option in the place
// of the command, must not name a command that fails in the same way.
func TestHintOfACommandThatIsNone(t *testing.T) {
	for name, want := range map[string]string{
		"echo hi":     "leave the quotes out",
		"/bin/ls -la": "leave the quotes out",
		"a|b":         "leave the quotes out",
		"-x":          "before the command",
		"./job":       "'holdfast why ./job'",
		"job":         "'holdfast policy explain job'",
	} {
		if got := (&CommandError{Name: name, Err: ErrNotFound}).Hint(); !strings.Contains(got, want) {
			t.Errorf("%q: %s", name, got)
		}
	}
}
