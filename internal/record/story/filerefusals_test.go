package story

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// What a program met at a file that is there is reported, once a path; look-ups of what
// is out of view are not, for honest programs make many.
func TestFileRefusalsAreWhatProgramsMet(t *testing.T) {
	denied := func(action, object, layer, code string) event.Event {
		return event.Event{Action: action, Object: object, Layer: layer, Error: code, Verdict: event.Denied}
	}
	var r FileRefusals
	for _, e := range []event.Event{
		denied(event.FileWrite, "/w/CLAUDE.md", event.LayerProtected, "EROFS"),
		denied(event.FileUnlink, "/w/CLAUDE.md", event.LayerProtected, "EBUSY"),
		denied(event.FileUnlink, "/w/CLAUDE.md", event.LayerProtected, "EBUSY"),
		denied(event.FileOpen, "/w/.env", event.LayerHidden, "EACCES"),
		denied(event.FileWrite, "/usr/x", event.LayerView, "EROFS"),
		denied(event.FileLookup, "/home/you/.npmrc", event.LayerView, "ENOENT"),
		denied(event.FileLookup, "/w/.env", event.LayerHidden, "EACCES"),
		denied(event.FileMkdir, "/opt/x", event.LayerView, "ENOENT"),
		denied(event.FileWrite, "/w/.git/x", event.LayerPermissions, "EACCES"),
		denied(event.FileQuarantine, "/w/.vscode", event.LayerProtected, ""),
		{Action: event.FileMkdir, Object: "/trees", Layer: event.LayerConsent, Rule: event.KeptWorktrees, Error: "EACCES", Verdict: event.Denied},
		{Action: event.FileMkdir, Object: "/asked", Layer: event.LayerConsent, Rule: "policy.yaml:9", Error: "EACCES", Verdict: event.Denied},
		{Action: event.FileWrite, Object: "/w/a", Verdict: event.Allowed},
	} {
		r.Add(&e)
	}
	all, more := r.List()
	var got []string
	for _, one := range all {
		got = append(got, fmt.Sprint(one.Path, " ", one.Layer, " ", one.Count))
	}
	const want = "/w/CLAUDE.md protected 3, /w/.env hidden 1, /usr/x readonly 1, /trees consent 1"
	if strings.Join(got, ", ") != want || more != 0 {
		t.Errorf("%s and %d, want %s", strings.Join(got, ", "), more, want)
	}
	for i := range maxRefused + 5 {
		e := denied(event.FileWrite, fmt.Sprint("/w/", i, "/CLAUDE.md"), event.LayerProtected, "EROFS")
		r.Add(&e)
	}
	if all, more := r.List(); len(all) != maxRefused || more != 9 {
		t.Errorf("%d and %d more", len(all), more)
	}
}
