package policy

import (
	"strings"
	"testing"
	"time"
)

func TestConsentRulesAreRefused(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"a set that is not there, with the nearest one", "ask: [git-psuh]", `unknown rule set "git-psuh", did you mean "git-push"?`},
		{"a set that is like none", "ask: [everything]", "known: install, git-remotes, git-push"},
		{"a set in a mapping", "deny: [{set: publsh}]", `did you mean "publish"?`},
		{"a condition that names no field", "ask: [{when: 'progam == \"git\"'}]", `no field and no function "progam"; did you mean "program"?`},
		{"an action that is none", "ask: [{when: 'action == \"exce\"'}]", `action is never "exce"; did you mean "exec"?`},
		{"a condition that is no truth", "deny: [{when: argv}]", "a condition is true or false"},
		{"a condition as an entry", "ask: ['action == \"exec\"']", "unknown rule set"},
		{"an empty condition", "ask: [{when: ''}]", "text is expected"},
		{"nothing", "ask: [{reason: because}]", "neither set nor when"},
		{"an unknown key", "ask: [{set: install, reson: x}]", `unknown key "reson" in a rule of consent, did you mean "reason"?`},
		{"a reason with an escape", `ask: [{set: install, reason: "a\x1b[2Jb"}]`, "an invisible character"},
		{"a reason that turns round", `ask: [{set: install, reason: "a\u202eb"}]`, "an invisible character"},
		{"a reason with a filler", `ask: [{set: install, reason: "a\u3164b"}]`, "an invisible character"},
		{"a reason of two lines", `ask: [{set: install, reason: "a\nb"}]`, "a line break"},
		{"deny while attended", "deny: [{set: install, attended: true}]", "attended applies to ask only"},
		{"attended as text", "ask: [{set: install, attended: sometimes}]", "true or false is expected"},
		{"no list", "ask: install", "ask is the text"},
		{"no timeout", "approvals: {timeout: none}", `"none" is not a duration from 1s to 24h`},
		{"a timeout below nothing", "approvals: {timeout: -1s}", "not a duration"},
		{"a timeout without end", "approvals: {timeout: 48h}", "not a duration"},
		{"a timeout that nobody can meet", "approvals: {timeout: 5ms}", "not a duration"},
		{"a timeout without a unit", "approvals: {timeout: 15}", "not a duration"},
		{"an unknown key of approvals", "approvals: {timout: 15m}", `unknown key "timout" in approvals, did you mean "timeout"?`},
		{"an unknown way to tell", "approvals: {notify: [tmx]}", `unknown kind "tmx", did you mean "tmux"?`},
		{"a webhook without an address", "approvals: {notify: [webhook]}", "known: tmux, desktop; or {webhook: URL"},
		{"a webhook without a secret", "approvals: {notify: [{webhook: 'https://a.example.org'}]}", "a webhook needs a secret"},
		{"a webhook in the clear", "approvals: {notify: [{webhook: 'http://a.example.org', secret: /k}]}", "not loopback"},
		{"a webhook with a password", "approvals: {notify: [{webhook: 'https://u:pass-word@a.example.org', secret: /k}]}", "a user or a password"},
		{"a secret that may be missing", "approvals: {notify: [{webhook: 'https://a.example.org', secret: '/k?'}]}", "cannot be optional"},
		{"a webhook that waits for ever", "approvals: {notify: [{webhook: 'https://a.example.org', secret: /k, timeout: 2m}]}", "not a duration from 100ms to 1m"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Parse("p.yaml", "/", []byte("version: 1\n"+row.text+"\n"))
			if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "p.yaml:2: ") {
				t.Fatalf("got %v, want %q", err, row.want)
			}
			if strings.Contains(err.Error(), "pass-word") {
				t.Errorf("a password is shown: %v", err)
			}
		})
	}
}

func TestConsentFlags(t *testing.T) {
	w := newWorld(t)
	p := w.plan(w.options("ask", "git-push", "ask", `program == "terraform"`, "deny", "publish"))
	last := p.Ask[len(p.Ask)-2:]
	if last[0].Set != "git-push" || last[1].When != `program == "terraform"` || last[1].Origin != "--ask" || p.Deny[0].Set != "publish" {
		t.Errorf("got %v and %v", p.Ask, p.Deny)
	}
	for _, row := range [][2]string{
		{"gitpush", `did you mean "git-push"?`},
		{"known", "unknown rule set"},
		{"progam == 1", `no field and no function "progam"`},
		{"", "unknown rule set"},
	} {
		if _, err := w.compile(w.options("ask", row[0])); err == nil || !strings.Contains(err.Error(), row[1]) || !strings.HasPrefix(err.Error(), "--ask: ") {
			t.Errorf("--ask %q: %v, want %q", row[0], err, row[1])
		}
	}
}

// TestConsentOfAProject: a project's file adds rules and lowers the time; it removes
// nothing, and adds no notifications.
func TestConsentOfAProject(t *testing.T) {
	for _, row := range []struct {
		name, user, project string
		widens              string // "" for nothing
	}{
		{"more to ask", "", "ask: [git-push]", ""},
		{"more to deny", "", "deny: [{when: 'port == 25'}]", ""},
		{"nothing to ask", "ask: [git-push]", "ask: []", "ask: [] would widen"},
		{"nothing to deny", "", "deny: []", "deny: [] would widen"},
		{"less time", "", "approvals: {timeout: 1m}", ""},
		{"no time", "", "approvals: {timeout: 0s}", ""},
		{"as much time", "approvals: {timeout: 5m}", "approvals: {timeout: 5m}", ""},
		{"more time", "approvals: {timeout: 5m}", "approvals: {timeout: 6m}", "approvals.timeout: 6m would widen"},
		{"time where there is none", "approvals: {timeout: 0s}", "approvals: {timeout: 1s}", "approvals.timeout: 1s would widen"},
		{"somebody to tell", "", "approvals: {notify: [desktop]}", "approvals.notify: desktop would widen"},
		{"nobody to tell", "approvals: {notify: [desktop]}", "approvals: {notify: []}", "approvals.notify: [] would widen"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(userFile, "version: 1\n"+row.user+"\n", 0o644)
			w.write("home/u/ws/holdfast.yaml", "version: 1\n"+row.project+"\n", 0o644)
			_, err := w.compile(w.options())
			if row.widens == "" && err != nil || row.widens != "" && (err == nil || !strings.Contains(err.Error(), row.widens)) {
				t.Errorf("got %v, want %q", err, row.widens)
			}
		})
	}
}

func TestApprovals(t *testing.T) {
	w := newWorld(t)
	w.write("home/u/.config/key", "k", 0o600)
	w.write(userFile, "version: 1\napprovals: {timeout: 0s, notify: [tmux, {webhook: 'https://a.example.org/x/secret-part', secret: ../key?}]}\n", 0o644)
	if _, err := w.compile(w.options()); err == nil {
		t.Error("a file that goes up is taken")
	}
	w.write(userFile, "version: 1\napprovals: {timeout: 0s, notify: [tmux, {webhook: 'https://a.example.org/x/secret-part', secret: key}]}\n", 0o644)
	w.write("home/u/.config/holdfast/key", "k", 0o600)
	o := w.options()
	e, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(e, o.Host)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Approvals.Notify) != 2 || p.Approvals.Notify[1].Secret != w.at("home/u/.config/holdfast/key") || p.Approvals.Timeout != 0 {
		t.Errorf("got %+v", p.Approvals)
	}
	text := Text(Rows(e, p))
	if !strings.Contains(text, "approvals.timeout") || !strings.Contains(text, " 0s ") || strings.Contains(text, "secret-part") {
		t.Errorf("it is shown as\n%s", text)
	}
	w.write(userFile, "version: 1\napprovals: {notify: [{webhook: 'https://a.example.org/x', secret: "+w.write("home/u/ws/key", "k", 0o600)+"}]}\n", 0o644)
	if _, err := w.compile(w.options()); err == nil || !strings.Contains(err.Error(), "is in view inside") {
		t.Errorf("a secret in the workspace: %v", err)
	}
	w.write(userFile, "version: 1\napprovals: {timeout: 90s, notify: [desktop]}\n", 0o644)
	if p := w.plan(w.options()); p.Approvals.Timeout != 90*time.Second {
		t.Errorf("got %+v", p.Approvals)
	}
}

// TestFixed: whatever something inside can have put there is not fixed, be it below a
// tree of the system.
func TestFixed(t *testing.T) {
	x := explainer{plan: Plan{Workspace: "/usr/local/src/project", Paths: []PathRule{{Path: "/etc/written", Access: Write}, {Path: "/home/you/bin", Access: Read}}}}
	for path, want := range map[string]bool{
		"/usr/local/src/project/ls": false, "/etc/written/ls": false, "/dev/shm/ls": false, "/run/ls": false, "/proc/1/fd/3": false, "/tmp/ls": false,
		"/usr/bin/ls": true, "/home/you/bin/ls": true,
	} {
		if x.fixed(path) != want {
			t.Errorf("%s is fixed: %v", path, !want)
		}
	}
}
