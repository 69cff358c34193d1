package policy

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWorkspaceIsRefused(t *testing.T) {
	for _, row := range []struct {
		name string
		dir  func(w *world) string
		want string
	}{
		{"the root", func(*world) string { return "/" }, "everything would be writable"},
		{"the root in another spelling", func(*world) string { return "/.././/" }, "everything would be writable"},
		{"the root through /proc", func(*world) string { return "/proc/self/root" }, "everything would be writable"},
		{"the home", func(w *world) string { return w.host.Home }, "is your home"},
		{"the home by a link", func(w *world) string { w.link("/home/u", "data/h"); return w.at("data/h") }, "is your home"},
		{"the home from below", func(w *world) string { return w.host.Home + "/ws/.." }, "is your home"},
		{"what contains the home", func(w *world) string { return w.at("home") }, "contains your home"},
		{"a system directory", func(*world) string { return "/usr/lib" }, "belongs to the system"},
		{"a system directory by its link", func(*world) string { return "/bin" }, "belongs to the system"},
		{"a directory of processes", func(*world) string { return "/proc/self" }, "belongs to the system"},
		{"a directory of everybody's", func(*world) string { return "/opt" }, "shared by the whole machine"},
		{"a directory that does not exist", func(w *world) string { return w.at("none") }, "no such file"},
		{"a file", func(w *world) string { return w.write("data/f", "", 0o644) }, "is not a directory"},
		{"a link loop", func(w *world) string { w.link("b", "data/a"); w.link("a", "data/b"); return w.at("data/a") }, "too many"},
		{"a path with a line break", func(w *world) string { return w.mkdir("data/a\nb") }, "line break"},
		{"a path with a NUL", func(*world) string { return "/tmp/a\x00b" }, "NUL"},
		{"a link to a path with a line break", func(w *world) string {
			w.mkdir("data/a\nb")
			w.link("/data/a\nb", "data/plain")
			return w.at("data/plain")
		}, "cannot be used"},
		{"what contains the state directory", func(w *world) string { return w.mkdir("home/u/.local/state") }, "contains the state directory"},
		{"the policy directory", func(w *world) string { return w.host.Config }, "contains the policy directory"},
		{"what is in the policy directory", func(w *world) string { return w.mkdir("home/u/.config/holdfast/sub") }, "is inside the policy directory"},
		{"what the account executes", func(w *world) string { return w.mkdir("home/u/.config/nvim/lua") }, "executes or obeys later"},
		{"what contains that", func(w *world) string { return w.mkdir("home/u/go") }, "executes or obeys later"},
		{"what contains the program", func(w *world) string { return w.at("usr") }, "contains the holdfast program"},
		{"where its examiner is looked for", func(w *world) string { return w.mkdir("usr/libexec/holdfast") }, "the directory for programs of holdfast"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			o := w.options()
			o.Workspace = row.dir(w)
			_, err := Load(o)
			var h interface{ Hint() string }
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("got %v, want %q", err, row.want)
			}
			if row.want != "cannot be used" && (!errors.As(err, &h) || h.Hint() == "") {
				t.Errorf("no hint for %v", err)
			}
		})
	}
}

func TestPathsAreRefused(t *testing.T) {
	for _, row := range []struct {
		name, key, path string
		want            string
	}{
		{"the root", "filesystem.read", "/", "/ is the whole file system"},
		{"the home", "filesystem.read", "~", "whole home"},
		{"what contains the home", "filesystem.read", "ROOT/home", "whole home"},
		{"the home by a link", "filesystem.copy", "ROOT/data/home-link", "whole home"},
		{"processes", "filesystem.read", "/proc", "private inside"},
		{"one process", "filesystem.read", "/proc/1", "private inside"},
		{"devices", "filesystem.read", "/dev/null", "a way out"},
		{"sockets of daemons", "filesystem.read", "/run", "private inside"},
		{"the state directory", "filesystem.read", "~/.local/state/holdfast", "the state directory"},
		{"what contains the state directory", "filesystem.read", "~/.local/state", "the state directory"},
		{"the policy directory", "filesystem.write", "~/.config/holdfast", "the policy directory"},
		{"writing to the system", "filesystem.write", "/etc", "belongs to the system"},
		{"writing to a directory of everybody's", "filesystem.write", "/mnt", "whole machine"},
		{"writing where programs are", "filesystem.write", "~/.local/bin", "executes or obeys later"},
		{"writing to keys", "filesystem.write", "~/.ssh", "executes or obeys later"},
		{"writing to the program", "filesystem.write", "ROOT/usr/bin", "the holdfast program"},
		{"a file as a copy", "filesystem.copy", "ROOT/data/file", "only a directory"},
		{"what does not exist", "filesystem.read", "ROOT/none", "no such file"},
		{"what has no place in the workspace", "workspace.readonly", "ROOT/data", "outside the workspace"},
		{"a link out of the workspace", "workspace.readonly", "out", "in the workspace, where what runs inside could have made it"},
		{"a relative link out of the directory", "filesystem.read", "out", "goes through the link"},
		{"a link loop", "filesystem.read", "ROOT/data/loop", "too many"},
		{"secrets of the system", "filesystem.read", "/etc/shadow", "secrets of the system"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			for _, dir := range []string{"home/u/.local/state/holdfast", "home/u/.local/bin", "home/u/.ssh"} {
				w.mkdir(dir)
			}
			w.write("data/file", "", 0o644)
			w.link("/home/u", "data/home-link")
			w.link("loop", "data/loop")
			w.link("/data", "home/u/ws/out")
			path := strings.ReplaceAll(row.path, "ROOT", w.root)
			_, err := w.compile(w.options(row.key, path))
			if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "--"+row.key) {
				t.Fatalf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestSocketsAreRefused(t *testing.T) {
	w := newWorld(t)
	w.write(userFile, "version: 1\nfilesystem:\n  read:\n    - /dev/null\n    - "+w.at("none")+"\n", 0o644)
	_, err := w.compile(w.options())
	for _, want := range []string{w.at(userFile) + ":4: ", w.at(userFile) + ":5: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want both lines", err)
		}
	}
}

func TestPathsThatMeet(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{"data/a/b/c", "home/u/ws/vendor/x", "home/u/ws/out"} {
		w.mkdir(dir)
	}
	w.link("/data/a", "home/u/tools")
	read := func(p string) []string { return []string{"filesystem.read", w.at(p)} }
	write := func(p string) []string { return []string{"filesystem.write", w.at(p)} }
	for _, row := range []struct {
		name string
		args []string
		want []string // access path, in order
	}{
		{"the same path twice is one rule", slices.Concat(read("data/a"), read("data/a/")), []string{"read data/a"}},
		{"in one source the narrower wins", slices.Concat(write("data/a"), read("data/a")), []string{"read data/a"}},
		{"the most specific path decides", slices.Concat(read("data/a"), write("data/a/b")), []string{"read data/a", "write data/a/b"}},
		{"what a rule above says is dropped", slices.Concat(read("data/a"), read("data/a/b/c")), []string{"read data/a"}},
		{"a rule between keeps both", slices.Concat(read("data/a"), write("data/a/b"), read("data/a/b/c")), []string{"read data/a", "write data/a/b", "read data/a/b/c"}},
		{"a tree of the workspace can be read-only", []string{"workspace.readonly", "vendor"}, []string{"read home/u/ws/vendor"}},
		{"the workspace is writable already", write("home/u/ws/out"), nil},
		{"the system is readable already", read("usr/bin"), nil},
		{"all of the workspace can be read-only, and outputs not", []string{"workspace.readonly", ".", "filesystem.write", "out"}, []string{"read home/u/ws", "write home/u/ws/out"}},
		{"what may be missing is passed over", []string{"filesystem.read", "~/none?"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got []string
			for _, r := range w.plan(w.options(row.args...)).Paths {
				rel, _ := filepath.Rel(w.root, r.Path)
				got = append(got, r.Access.String()+" "+rel)
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
	t.Run("a link keeps its name", func(t *testing.T) {
		p := w.plan(w.options("filesystem.read", "~/tools"))
		if r := w.rule(p, "data/a"); r.At != w.at("home/u/tools") {
			t.Errorf("got %+v", p.Paths)
		}
	})
	t.Run("a later source wins over an earlier one", func(t *testing.T) {
		w.write(userFile, "version: 1\nfilesystem: {read: ["+w.at("data/a")+"]}\n", 0o644)
		p := w.plan(w.options("filesystem.write", w.at("data/a")))
		if r := w.rule(p, "data/a"); r.Access != Write {
			t.Errorf("got %+v", r)
		}
	})
}

// TestEnvFlag: a user who names a variable on the command line wants it; a policy names
// what may be there.
func TestEnvFlag(t *testing.T) {
	w := newWorld(t)
	w.host.Env = []string{"PLAIN=v"}
	flag := func(name string) Options {
		return Options{Host: w.host, Settings: []Setting{{Flag: "--env", Key: "environment.pass", Value: name}}}
	}
	if got, _ := variableOf(w.plan(flag("PLAIN")), "PLAIN"); got != "v" {
		t.Errorf("PLAIN is %q", got)
	}
	if _, err := w.compile(flag("ABSENT")); err == nil || !strings.Contains(err.Error(), "ABSENT is not set here") {
		t.Errorf("a flag for what is not set: %v", err)
	}
	w.write(userFile, "version: 1\nenvironment: {pass: [ABSENT, PLAIN]}\n", 0o644)
	p := w.plan(Options{Host: w.host})
	if _, found := variableOf(p, "ABSENT"); found {
		t.Error("ABSENT is there")
	}
	if got, _ := variableOf(p, "PLAIN"); got != "v" {
		t.Errorf("by a policy PLAIN is %q", got)
	}
}

func TestEnvironment(t *testing.T) {
	w := newWorld(t)
	w.host.Env = []string{
		"PATH=relative:.:" + w.at("usr/bin") + ":" + w.at("home/u/ws/bin"), "HOME=/evil", "LANG=first", "LANG=second",
		"LC_ALL=C", "LC_TOKEN=x", "LC_X=ghp_0123456789abcdef0123", "AWS_PROFILE=p", "GIT_DIR=/evil", "PLAIN=v",
		"HIDDEN=sk-0123456789abcdefghij", "BROKEN", "=C:=x", "LC_\n=x",
	}
	p := w.plan(w.options("environment.pass", "PLAIN", "environment.set", "MY_TOKEN=in-full", "environment.set", "LD_PRELOAD=/x.so"))
	for name, want := range map[string]string{
		"HOME": w.host.Home, "USER": "u", "LOGNAME": "u", "PWD": w.host.Dir, "TMPDIR": "/tmp",
		"LANG": "second", "LC_ALL": "C", "PLAIN": "v", "MY_TOKEN": "in-full", "LD_PRELOAD": "/x.so",
		"PYTHONDONTWRITEBYTECODE": "1",
	} {
		if got, _ := variableOf(p, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"LC_TOKEN", "LC_X", "AWS_PROFILE", "GIT_DIR", "HIDDEN", "LC_\n", "BROKEN"} {
		if got, found := variableOf(p, name); found {
			t.Errorf("%q came in as %q", name, got)
		}
	}
	path, _ := variableOf(p, "PATH")
	if strings.Contains(path, "relative") || strings.Contains(path, "ws/bin") || !strings.HasPrefix(path, w.at("usr/bin")) {
		t.Errorf("PATH is %q", path)
	}
	if !slices.IsSortedFunc(p.Env, func(a, b Env) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not sorted")
	}
	for _, row := range [][2]string{{"HIDDEN", "looks like a secret"}} {
		if _, err := w.compile(w.options("environment.pass", row[0])); err == nil || !strings.Contains(err.Error(), row[1]) {
			t.Errorf("%s: got %v", row[0], err)
		}
	}
}

func TestSecretsAreRecognised(t *testing.T) {
	for _, name := range []string{
		"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "HF_TOKEN", "OPENROUTER_API_KEY", "AWS_ACCESS_KEY_ID",
		"AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_SECRET",
		"ARM_CLIENT_ID", "DIGITALOCEAN_ACCESS_TOKEN", "CLOUDFLARE_API_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "npm_config__auth",
		"NPM_TOKEN", "DATABASE_URL", "PGPASSWORD", "MYSQL_PWD", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO",
		"DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "TMUX", "STY",
		"VSCODE_GIT_IPC_HANDLE", "GIT_ASKPASS", "SUDO_ASKPASS", "KRB5CCNAME", "DOCKER_HOST", "CONTAINER_HOST", "KUBECONFIG",
		"NODE_OPTIONS", "PYTHONSTARTUP", "PYTHONPATH", "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
		"DOTNET_STARTUP_HOOKS", "BASH_ENV", "ENV", "ZDOTDIR", "PROMPT_COMMAND", "PS4", "GEM_HOME", "LD_PRELOAD",
		"PAGER", "GIT_PAGER", "MANPAGER", "LESSOPEN", "EDITOR", "VISUAL", "BROWSER", "GIT_SSH_COMMAND", "GIT_DIR",
		"CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "ANTHROPIC_BASE_URL", "HTTPS_PROXY", "https_proxy", "SSH_CONNECTION",
	} {
		if refusedName(name) == nil {
			t.Errorf("%s would be passed", name)
		}
	}
	for _, name := range []string{"LANG", "TERM", "TZ", "NO_COLOR", "GOFLAGS", "CI", "DEBUG", "PORT", "NODE_ENV", "KEYBOARD"} {
		if err := refusedName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, value := range []string{
		"ghp_0123456789abcdef0123", "github_pat_x", "sk-ant-REDACTED", "AKIAIOSFODNN7EXAMPLE",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2ln", "-----BEGIN OPENSSH PRIVATE KEY-----", "https://u:p@example.org", "Bearer abcdefghijklmnop",
	} {
		if !secretValue(value) {
			t.Errorf("%q is not recognised", value)
		}
	}
	for _, value := range []string{"C.UTF-8", "xterm-256color", "https://example.org/x", "skill", "-trimpath"} {
		if secretValue(value) {
			t.Errorf("%q is taken for a secret", value)
		}
	}
}

func TestMemoryIsLoweredToTheMachine(t *testing.T) {
	w := newWorld(t)
	w.host.Memory = 1 << 30
	p := w.plan(w.options())
	if p.Limits.Memory != 1<<30 || len(p.Notes) == 0 {
		t.Errorf("%+v %q", p.Limits, p.Notes)
	}
}

func TestLocateSeesThroughRaces(t *testing.T) {
	w := newWorld(t)
	w.link("/data", "home/u/ws/swap")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Remove(w.at("home/u/ws/tmp"))
			os.Symlink(w.at("outside"), w.at("home/u/ws/tmp"))
			os.Rename(w.at("home/u/ws/tmp"), w.at("home/u/ws/swap"))
			os.Symlink(w.at("data"), w.at("home/u/ws/tmp"))
			os.Rename(w.at("home/u/ws/tmp"), w.at("home/u/ws/swap"))
		}
	}()
	for range 2000 {
		at, err := locate(w.at("home/u/ws/swap"))
		if err == nil && at.path != w.at("data") && at.path != w.at("outside") {
			t.Errorf("got %q", at.path)
		}
	}
	close(stop)
	<-done
}

func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"~", "~/x", "/", "/..", ".", "ws", "a//b/./c", "/proc/self/root/etc", "x?", "\x00", "a\nb", "link/x", "~root/x", strings.Repeat("a/", 3000)} {
		f.Add(seed)
	}
	w := newWorld(f)
	w.link("/data", "home/u/ws/link")
	f.Fuzz(func(t *testing.T, path string) {
		p, err := w.compile(w.options("filesystem.write", path))
		if err != nil {
			return
		}
		for _, r := range p.Paths {
			if r.Access != Write {
				continue
			}
			real, err := filepath.EvalSymlinks(r.Path)
			if err != nil || real != r.Path || within(w.host.Home, r.Path) || within("/etc", r.Path) || within(w.host.State, r.Path) {
				t.Errorf("%q became writable: %q", path, r.Path)
			}
		}
	})
}
