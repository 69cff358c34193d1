package detect

import (
	"slices"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// TestKeptPlaces makes each change alone in a session of its own.
func TestKeptPlaces(t *testing.T) {
	kept := map[string]string{event.DetailKept: event.KeptPrivate}
	to := func(path string) map[string]string {
		return map[string]string{event.DetailKept: event.KeptPrivate, "to": path}
	}
	agent := event.Process{Exec: 1, Executable: "/home/you/.local/bin/claude"}
	shell := event.Process{Exec: 2, Executable: "/usr/bin/dash"}
	for _, tt := range []struct {
		what string
		by   event.Process
		e    event.Event
		want string // "" for no alert above info
	}{
		{"a key for logins", shell, event.Event{Action: event.FileWrite, Object: "/home/you/.ssh/authorized_keys", Detail: kept}, "startup-denied"},
		{"one that found no directory", shell, event.Event{Action: event.FileWrite, Object: "/home/you/.ssh/authorized_keys", Verdict: event.Denied, Layer: event.LayerView, Error: "ENOENT"}, "startup-denied"},
		{"an archive's file by a link", shell, event.Event{Action: event.FileWrite, Object: "x", Resolved: "/home/you/.bashrc", Detail: kept}, "startup-denied"},
		{"a unit that is renamed", shell, event.Event{Action: event.FileRename, Object: "/home/you/u", Detail: to("/home/you/.config/systemd/user/u.service")}, "startup-denied"},
		{"a link in autostart", shell, event.Event{Action: event.FileSymlink, Object: "/home/you/.config/autostart/a.desktop", Detail: to("/home/you/x")}, "startup-denied"},
		{"what python executes at each start", shell, event.Event{Action: event.FileWrite, Object: "/home/you/.local/lib/python3.12/site-packages/usercustomize.py", Detail: kept}, "startup-denied"},
		{"a package of the user", shell, event.Event{Action: event.FileWrite, Object: "/home/you/.local/lib/python3.12/site-packages/six.py", Detail: kept}, ""},
		{"git's settings by a shell", shell, event.Event{Action: event.FileWrite, Object: "/home/you/.config/git/config", Detail: kept}, "hook-denied"},
		{"a repository's settings by a shell", shell, event.Event{Action: event.FileWrite, Object: "/home/you/project/.git/config", Resolved: "/run/holdfast-git/0/config", Detail: kept}, "hook-denied"},
		{"npm's settings by a shell", shell, event.Event{Action: event.FileWrite, Object: "/home/you/.npmrc", Detail: kept}, "credential-laid"},
		{"an agent's settings by a shell", shell, event.Event{Action: event.FileWrite, Object: "/home/you/.claude/settings.json", Detail: kept}, "guardrail-denied"},
		{"an editor's settings", shell, event.Event{Action: event.FileWrite, Object: "/home/you/.vimrc", Detail: kept}, "editor-denied"},
		{"an agent's handler of links", agent, event.Event{Action: event.FileWrite, Object: "/home/you/.local/share/applications/claude-code-url-handler.desktop", Detail: kept}, ""},
		{"one that is called so, by its shell", shell, event.Event{Action: event.FileWrite, Object: "/home/you/.local/share/applications/claude-code-url-handler.desktop", Detail: kept}, "startup-denied"},
		{"another entry by an agent", agent, event.Event{Action: event.FileWrite, Object: "/home/you/.local/share/applications/x.desktop", Detail: kept}, "startup-denied"},
		{"a link to one by an agent", agent, event.Event{Action: event.FileSymlink, Object: "/home/you/.local/share/applications/claude-code-url-handler.desktop", Detail: to("/home/you/project/x")}, "startup-denied"},
		{"an agent's plug-ins by git", event.Process{Exec: 4, Executable: "/usr/bin/git"}, event.Event{Action: event.FileWrite, Object: "/home/you/.claude/plugins/marketplaces/x/CLAUDE.md", Detail: kept}, ""},
		{"an agent's plug-ins by a git of its own", event.Process{Exec: 4, Executable: "/home/you/.local/bin/git"}, event.Event{Action: event.FileWrite, Object: "/home/you/.claude/plugins/marketplaces/x/CLAUDE.md", Detail: kept}, "guardrail-denied"},
		{"an agent's plug-ins by a shell", shell, event.Event{Action: event.FileWrite, Object: "/home/you/.claude/plugins/marketplaces/x/CLAUDE.md", Detail: kept}, "guardrail-denied"},
		{"an agent's commands by git", event.Process{Exec: 4, Executable: "/usr/bin/git"}, event.Event{Action: event.FileWrite, Object: "/home/you/.claude/commands/x.md", Detail: kept}, "guardrail-denied"},
		{"an agent's own settings", agent, event.Event{Action: event.FileWrite, Object: "/home/you/.claude/settings.json", Detail: kept}, ""},
		{"an agent's own state", agent, event.Event{Action: event.FileWrite, Object: "/home/you/.claude.json", Detail: kept}, ""},
		{"the state of an agent, by its shell", shell, event.Event{Action: event.FileWrite, Object: "/home/you/.claude/shell-snapshots/snapshot-bash-7.sh", Detail: kept}, ""},
		{"a repository with such files", shell, event.Event{Action: event.FileWrite, Object: "/home/you/dotfiles/.bashrc", Detail: kept}, ""},
		{"a skeleton in /tmp", shell, event.Event{Action: event.FileWrite, Object: "/tmp/skel/.bashrc", Detail: kept}, ""},
		{"a directory for keys", shell, event.Event{Action: event.FileMkdir, Object: "/home/you/.ssh", Detail: kept}, ""},
		{"a browser's profile", shell, event.Event{Action: event.FileWrite, Object: "/home/you/.config/chromium/Default/Login Data", Detail: kept}, ""},
		{"a host key that ssh noted", event.Process{Exec: 3, Executable: "/usr/bin/ssh"}, event.Event{Action: event.FileWrite, Object: "/home/you/.ssh/known_hosts", Detail: kept}, ""},
		{"a cache", shell, event.Event{Action: event.FileWrite, Object: "/home/you/.cache/pip/x", Detail: kept}, ""},
	} {
		if tt.e.Verdict == event.Unknown {
			tt.e.Verdict = event.Allowed
		}
		tt.e.Process.Exec = tt.by.Exec
		alerts, err := Replay(Config{Place: here}, []event.Event{{Action: event.ProcExec, Verdict: event.Allowed, Object: tt.by.Executable, Process: tt.by}, tt.e})
		if err != nil {
			t.Fatal(err)
		}
		loud := slices.DeleteFunc(slices.Clone(alerts), func(a Alert) bool { return a.Severity.Level() <= Low.Level() })
		if tt.want == "" && len(loud) > 0 || tt.want != "" && !slices.ContainsFunc(alerts, func(a Alert) bool { return a.Rule == tt.want }) {
			t.Errorf("%s: %s, want %q", tt.what, short(alerts), tt.want)
		}
	}
}

func TestPersonal(t *testing.T) {
	for path, want := range map[string]bool{
		"/home/you/notes.txt": true, "/home/you/wt/.git": true, "/home/you/.bashrc": true, "/home/you/.ssh/authorized_keys": true,
		"/home/you/.ssh/id_new": true, "/home/you/.gitconfig": true, "/home/you/.npmrc": true, "/home/you/.vimrc": true,
		"/home/you/.config/systemd/user/x.service": true,
		"/home/you": false, "/home/you/project/x": false, "/home/yours/x": false, "/tmp/x": false,
		"/home/you/.cache/pip/x": false, "/home/you/.npm/_logs/x": false, "/home/you/go/pkg/mod/x": false, "/home/you/.config/tool/x": false,
		"/home/you/.claude/.credentials.json": false, "/home/you/.claude.json": false, "/home/you/.claude/settings.json": false,
		"/home/you/.ssh": false, "/home/you/.ssh/known_hosts": false, "/home/you/.bash_history": false, "/home/you/node_modules/x": false,
	} {
		if here.Personal(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
	if (Place{}).Personal("/home/you/notes.txt") {
		t.Error("a home that is not known has a path")
	}
}
