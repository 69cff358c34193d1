package policy

import (
	"os"
	"strings"
	"testing"
)

func chmod(w *world, path string, mode os.FileMode) {
	w.t.Helper()
	if err := os.Chmod(w.at(path), mode); err != nil {
		w.t.Fatal(err)
	}
}

func TestExplain(t *testing.T) {
	w := newWorld(t)
	w.tool("usr/bin/git")
	w.tool("data/tool/run")
	w.write("home/u/.ssh/id_rsa", "", 0o600)
	w.write("home/u/ws/README", "", 0o644)
	w.write("home/u/ws/.envrc", "", 0o644)
	w.mkdir("home/u/.cache/go-build")
	w.link("/home/u/.ssh/id_rsa", "home/u/ws/innocent")
	w.write(userFile, "version: 1\nfilesystem:\n  read:\n    - "+w.at("data/tool")+"\n", 0o644)
	p := w.plan(w.options("network.allow", "named.example.org:443", "network.allow", "*.below.example.org:22/tcp", "network.host-ports", "5432"))
	p.Protect = []Protected{{Path: ".envrc", Rule: ".envrc", Reason: "direnv runs it"}}
	names := []Reserved{
		{Pattern: "hooks", InGit: true, Reason: "git runs it", Outcome: "held back"},
		{Pattern: ".vscode", Reason: "an editor runs it", Outcome: "held back"},
		{Pattern: "Makefile", AtRoot: true, Reason: "make runs it", Outcome: "listed"},
	}
	rule := w.at(userFile) + ":4"
	for _, row := range []struct {
		query, kind          string
		read, write, execute string // "yes" or "no" and a part of the reason, the rule or the advice
	}{
		{"README", "path", "yes workspace", "yes on the host", "no its mode"},
		{"./README", "path", "yes workspace", "yes workspace", "no its mode"},
		{w.at("home/u/ws/.envrc"), "path", "yes workspace", "no direnv runs it", "no its mode"},
		{"new/file", "path", "yes workspace", "yes workspace", "no does not exist"},
		{"sub/.git/hooks/pre-commit", "path", "yes workspace", "yes held back: git runs it", "no does not exist"},
		{"hooks/x", "path", "yes workspace", "yes on the host", "no does not exist"},
		{"a/.VSCode/tasks.json", "path", "yes workspace", "yes held back: an editor", "no does not exist"},
		{"./Makefile", "path", "yes workspace", "yes listed: make", "no does not exist"},
		{"sub/Makefile", "path", "yes workspace", "yes on the host", "no does not exist"},
		{"~/.ssh/id_rsa", "path", "no --ro", "no executes or obeys", "no not in view"},
		{"innocent", "path", "no private inside", "no not in view", "no not in view"},
		{"..", "path", "no whole home", "no whole home", "no not in view"},
		{"~/.cache/go-build/x", "path", "yes toolchain go-build", "yes dropped at the end", "no does not exist"},
		{w.at("data/tool/run"), "path", "yes " + rule, "no --rw", "yes " + rule},
		{"/proc/1/environ", "path", "no /proc is private inside", "no", "no"},
		{"git", "command", "yes system", "no", "yes system"},
		{"run", "command", "", "", "no no directory of PATH"},
	} {
		t.Run(row.query, func(t *testing.T) {
			a, err := Explain(p, w.host, names, row.query)
			if err != nil || a.Kind != row.kind {
				t.Fatalf("kind %q, %v", a.Kind, err)
			}
			for _, v := range []struct {
				verb, want string
				got        *Verdict
			}{{"read", row.read, a.Read}, {"write", row.write, a.Write}, {"execute", row.execute, a.Execute}} {
				if v.want == "" {
					continue
				}
				word, part, _ := strings.Cut(v.want, " ")
				if v.got == nil || v.got.Allowed != (word == "yes") || !strings.Contains(v.got.Why+v.got.Rule+v.got.Add, part) {
					t.Errorf("%s: got %+v, want %s", v.verb, v.got, v.want)
				}
			}
		})
	}
	for query, allowed := range map[string]bool{"example.org": false, "example.org:443": false, "localhost": true, "127.0.0.1:80": true, "10.0.0.1": false,
		"named.example.org": true, "Named.example.org.:443": true, "named.example.org:80": false, "a.b.below.example.org:22": true, "below.example.org": false} {
		a, err := Explain(p, w.host, names, query)
		if err != nil || a.Kind != "host" || a.Allowed() != allowed {
			t.Errorf("%s: %+v, %v", query, a, err)
		}
	}
	if a, err := Explain(p, w.host, names, "10.0.0.1"); err != nil || !strings.Contains(a.Connect.Add, "internal: true") {
		t.Errorf("got %+v, %v", a.Connect, err)
	}
	for _, query := range []string{"metadata.google.internal", "Metadata.Google.Internal.:80", "169.254.169.254", "100.100.100.200:80", "fd00:ec2::254"} {
		if a, err := Explain(p, w.host, names, query); err != nil || a.Connect.Add != "" || !strings.HasPrefix(a.Connect.Why, NoMetadata) {
			t.Errorf("%s: got %+v, %v", query, a.Connect, err)
		}
	}
	for _, query := range []string{"", "a\x00b", "a\nb"} {
		if _, err := Explain(p, w.host, names, query); err == nil {
			t.Errorf("%q was answered", query)
		}
	}
}

// TestScratchIsExplained: the scratch directory can be written where the policy has
// one, and is nothing of the run's where it has none.
func TestScratchIsExplained(t *testing.T) {
	for _, scratch := range []bool{true, false} {
		x := explainer{plan: Plan{Workspace: "/w", Scratch: scratch}}
		want := Hidden
		if scratch {
			want = Copy
		}
		if r := x.rule(ScratchDir + "/x"); r.Access != want {
			t.Errorf("with scratch %v: %+v", scratch, r)
		}
	}
}
