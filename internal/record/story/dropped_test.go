package story

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/event"
)

// private is a change that went into a private directory.
func private(action, object, to string) event.Event {
	e := event.Event{Action: action, Object: object, Verdict: event.Allowed, Process: event.Process{PID: 7}, Detail: map[string]string{event.DetailKept: event.KeptPrivate}}
	if to != "" {
		e.Detail["to"] = to
	}
	return e
}

func listed(events ...event.Event) (string, uint64) {
	d := NewDrops(detect.Place{Home: "/home/you", Workspace: "/home/you/project"})
	for i := range events {
		d.Add(&events[i])
	}
	all, more := d.List()
	var words []string
	for _, one := range all {
		w := one.Path
		if one.Directory {
			w += "/"
		}
		words = append(words, strings.TrimSpace(w+" "+one.Git+" "+one.Metadata))
	}
	return strings.Join(words, ", "), more
}

func TestDropsAreWhatIsLeft(t *testing.T) {
	failed := private(event.FileWrite, "/home/you/failed", "")
	failed.Error = "ENOENT"
	exchange := private(event.FileRename, "/home/you/a", "/home/you/b")
	exchange.Detail["how"] = "exchange"
	host := event.Event{Action: event.FileWrite, Object: "/home/you/carried", Verdict: event.Allowed, Detail: map[string]string{"by": "holdfast"}}
	meta := event.Event{Action: event.FileMkdir, Object: "/home/you/project/.git/worktrees/wt1", Verdict: event.Allowed, Process: event.Process{PID: 7}}
	for _, tt := range []struct {
		what   string
		events []event.Event
		want   string
	}{
		{"nothing", []event.Event{failed, host, private(event.FileWrite, "/home/you/.cache/x", ""), private(event.FileChmod, "/home/you/x", "")}, ""},
		{"a file that is removed again", []event.Event{private(event.FileWrite, "/home/you/x", ""), private(event.FileUnlink, "/home/you/x", "")}, ""},
		{"a directory stands for what is in it", []event.Event{
			private(event.FileMkdir, "/home/you/d", ""), private(event.FileWrite, "/home/you/d/x", ""), private(event.FileMkdir, "/home/you/d/e", "")}, "/home/you/d/"},
		{"a directory that is removed", []event.Event{
			private(event.FileMkdir, "/home/you/d", ""), private(event.FileWrite, "/home/you/d/x", ""), private(event.FileUnlink, "/home/you/d/x", ""), private(event.FileUnlink, "/home/you/d", "")}, ""},
		{"a name that only leads to another", []event.Event{
			private(event.FileWrite, "/home/you/.gitconfig.lock", ""), private(event.FileRename, "/home/you/.gitconfig.lock", "/home/you/.gitconfig")}, "/home/you/.gitconfig"},
		{"a directory that is moved", []event.Event{private(event.FileMkdir, "/home/you/d", ""), private(event.FileRename, "/home/you/d", "/home/you/e")}, "/home/you/e/"},
		{"names that are exchanged", []event.Event{private(event.FileWrite, "/home/you/a", ""), private(event.FileMkdir, "/home/you/b", ""), exchange}, "/home/you/a, /home/you/b/"},
		{"a worktree", []event.Event{meta, private(event.FileMkdir, "/home/you/wt", ""), private(event.FileWrite, "/home/you/wt/.git", ""), private(event.FileWrite, "/home/you/wt/x", "")},
			"/home/you/wt/ worktree /home/you/project/.git/worktrees/wt1"},
		{"a clone", []event.Event{private(event.FileMkdir, "/home/you/c", ""), private(event.FileMkdir, "/home/you/c/.git", "")}, "/home/you/c/ repository"},
	} {
		if got, more := listed(tt.events...); got != tt.want || more != 0 {
			t.Errorf("%s: %q and %d, want %q", tt.what, got, more, tt.want)
		}
	}
}

func TestDropsAreBounded(t *testing.T) {
	var events []event.Event
	for i := range maxDropped + 20 {
		events = append(events, private(event.FileWrite, fmt.Sprintf("/home/you/f%d", i), ""))
	}
	got, more := listed(events...)
	if n := strings.Count(got, ",") + 1; n != maxDropped || more != 20 {
		t.Errorf("%d are listed, and %d more", n, more)
	}
}

func TestStorySaysWhatIsPrivate(t *testing.T) {
	b := New(Default)
	b.Add(event.Event{Action: event.SessionStart, Object: "/home/you/project", Detail: map[string]string{"home": "/home/you"}})
	b.Add(event.Event{Action: event.ProcExec, Verdict: event.Allowed, Object: "/bin/sh", Process: event.Process{PID: 7, Exec: 1}})
	e := private(event.FileWrite, "/home/you/.bashrc", "")
	e.Process.Exec = 1
	b.Add(e)
	s := b.Story()
	if !reflect.DeepEqual(s.Dropped, []Dropped{{Path: "/home/you/.bashrc"}}) {
		t.Errorf("dropped: %+v", s.Dropped)
	}
	if f := s.Files[0]; !f.Private || f.Written != 1 {
		t.Errorf("%+v", f)
	}
	if o := s.Programs[0].Wrote.Objects[0]; o.What != KeptPrivate {
		t.Errorf("%+v", o)
	}
}
