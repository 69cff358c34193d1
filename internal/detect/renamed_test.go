package detect

import (
	"slices"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// TestRenamed has a program do what its name excuses: from where nothing inside
// can write, from where installers put it, and as a copy that got the name inside.
func TestRenamed(t *testing.T) {
	file := func(action, object string, verdict event.Verdict, layer string) event.Event {
		return event.Event{Action: action, Object: object, Verdict: verdict, Layer: layer}
	}
	lookup := file(event.FileLookup, "/home/you/.git-credentials", event.Denied, event.LayerView)
	for i, tt := range []struct {
		rule, name string
		e          event.Event
		named      string // the low rule that applies where installers put it; "" if it is rule itself
	}{
		{"credential-denied", "git", lookup, "credential-usual"},
		{"credential-write", "git", file(event.FileWrite, "/home/you/.ssh/id_rsa", event.Denied, event.LayerView), "excused"},
		{"credential-read", "ssh", file(event.FileOpen, "/home/you/.ssh/id_rsa", event.Allowed, ""), "excused"},
		{"system-secret", "su", file(event.FileOpen, "/etc/shadow", event.Denied, event.LayerView), ""},
		{"alias", "chrome", file(event.FileOpen, "/proc/self/root/etc/x", event.Denied, event.LayerView), "excused"},
		{"process-memory", "gdb", file(event.FileWrite, "/proc/12/mem", event.Allowed, ""), "excused"},
		{"hook-denied", "git", file(event.FileWrite, "/home/you/project/.git/config", event.Denied, event.LayerProtected), "protected-git"},
		{"protected-denied", "git", file(event.FileWrite, "/home/you/project/lint.sh", event.Denied, event.LayerProtected), "protected-git"},
		{"repository-removed", "git", file(event.FileRename, "/home/you/project/.git", event.Allowed, ""), "excused"},
		{"own-log", "holdfast", file(event.FileOpen, "/home/you/.local/state/holdfast/log/x", event.Denied, event.LayerView), ""},
		{"control-socket", "holdfast", file(event.SockConnect, "unix:/home/you/.local/state/holdfast/sessions/x/control", event.Denied, event.LayerView), ""},
		{"agent-socket", "gpg", file(event.SockConnect, "unix:/run/user/1000/gnupg/S.gpg-agent", event.Denied, event.LayerView), "excused"},
		{"namespace", "chrome", file(event.SysCall, "unshare", event.Denied, event.LayerFilter), "namespace-browser"},
		{"mount", "chrome", file(event.SysCall, "chroot", event.Denied, event.LayerFilter), "namespace-browser"},
		{"trace", "gdb", file(event.SysCall, "ptrace", event.Denied, event.LayerFilter), "trace-debugger"},
		{"memory-access", "gdb", file(event.SysCall, "pidfd_getfd", event.Denied, event.LayerFilter), "trace-debugger"},
		{"kernel-surface", "perf", file(event.SysCall, "bpf", event.Denied, event.LayerFilter), "kernel-browser"},
	} {
		places := []struct{ dir, want string }{
			{"/usr/bin/", "-"},
			{"/home/you/.local/bin/", tt.named},
			{"/home/you/project/", ""},
			{"/home/you/fixed/", "-"},
			{"/home/you/project/sub/.local/bin/", ""},
			{"/home/you/", ""},
			{"/home/bob/", ""},
			{"/tmp/", ""},
			{"/tmp/.local/bin/", ""},
			{"/var/tmp/x/", ""},
			{"/dev/shm/", ""},
			{"/srv/mine/", ""},
			{"/memfd:", ""},
			{"", ""},
		}
		if i > 0 {
			places = places[:3]
		}
		for _, at := range places {
			place := here
			place.Fixed, place.Writable = []string{"/usr", "/home/you/fixed"}, []string{"/srv/mine"}
			got := raisedBy(t, place, at.dir+tt.name, tt.e)
			want := at.want
			if want == "" {
				want = tt.rule
			}
			loud := slices.DeleteFunc(slices.Clone(got), func(a Alert) bool { return a.Severity.Level() <= Low.Level() })
			switch is := func(a Alert) bool { return a.Rule == want }; {
			case want == tt.rule && !slices.ContainsFunc(loud, is):
				t.Errorf("%s%s: %s did not speak, but %s", at.dir, tt.name, want, short(got))
			case want != tt.rule && len(loud) > 0:
				t.Errorf("%s%s: %s", at.dir, tt.name, short(loud))
			case want != tt.rule && want != "-" && !slices.ContainsFunc(got, is):
				t.Errorf("%s%s: %s did not speak, but %s", at.dir, tt.name, want, short(got))
			}
		}
	}
}

// raisedBy is what an event of a program raises.
func raisedBy(t *testing.T, place Place, executable string, e event.Event) []Alert {
	t.Helper()
	var got []Alert
	eng, err := New(Config{Place: place, Raise: func(a Alert) { got = append(got, a) }})
	if err != nil {
		t.Fatal(err)
	}
	by := event.Process{PID: 7, Exec: 9, Executable: executable, Argv: []string{"x"}}
	eng.Observe(event.Event{Action: event.ProcExec, Object: executable, Verdict: event.Allowed, Process: by})
	got = nil
	e.Process = event.Process{PID: 7, Exec: 9}
	eng.Observe(e)
	return got
}
