//go:build linux

package targets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/prove/probe"
)

func world() *probe.World {
	return &probe.World{B: "/b", W: "/b/w", O: "/b/o", H: "/b/h", R: "/b/r", Env: []string{"GIVEN=from outside"}}
}

func lineOf(t *testing.T, kind string, o probe.Options) (call, error) {
	t.Helper()
	p := Peer{Kind: kind, Path: "/opt/" + kind, Owner: "1-2"}
	s, err := p.spec()
	if err != nil {
		t.Fatal(err)
	}
	return s.call(p, world(), probe.Command{Options: o}, invocation{"n1", []string{"/b/w/prober", "a b", ""}})
}

// callText is everything in a call that a launcher reads, one word or line each.
func callText(c call) string {
	out := strings.Join(c.argv, "\n") + "\n"
	for _, content := range c.files {
		out += content + "\n"
	}
	return out
}

// TestTranslation checks that each peer expresses a row's options, or reports
// that it cannot.
func TestTranslation(t *testing.T) {
	const cannot = "cannot"
	asks := map[string]probe.Options{
		"read": {Read: []string{"R"}}, "write": {Write: []string{"B/tmp"}}, "hide": {Hide: []string{"W/.env"}}, "env": {Env: []string{"A=b c", "GIVEN"}},
		"memory": {Memory: 4096}, "processes": {Processes: 64}, "files": {Files: 32}, "filesize": {FileSize: 512}, "disk": {Disk: 8192},
		"time": {Time: 90 * time.Second}, "terminal": {Terminal: true}, "ports": {HostPorts: []int{5432}},
		"reach":   {Reach: []probe.Reach{{Host: "a.test", Ports: []int{443}}, {Host: "2001:db8::1", Ports: []int{80}}}},
		"method":  {Reach: []probe.Reach{{Host: "a.test", Ports: []int{443}, Methods: []string{"GET"}}}},
		"secrets": {Secrets: []probe.Secret{{Env: "S", Host: "a.test", Header: "X: {}"}}},
	}
	root := os.Getuid() == 0
	ifRoot := func(s string) string {
		if root {
			return s
		}
		return cannot
	}
	engine := map[string]string{
		"read": "--mount\ntype=bind,source=/b/r,target=/b/r,readonly\n", "write": "--mount\ntype=bind,source=/b/tmp,target=/b/tmp\n", "env": "--env\nA=b c\n--env\nGIVEN\n",
		"memory": "--memory\n4096\n--memory-swap\n4096\n", "processes": "--pids-limit\n64\n", "files": "--ulimit\nnofile=32:32\n", "filesize": "--ulimit\nfsize=512:512\n",
		"disk": "--tmpfs\n/tmp:rw,nosuid,nodev,size=8192\n", "terminal": "--interactive\n--tty\n",
	}
	podman := map[string]string{"time": "--timeout\n90\n"}
	for ask, want := range engine {
		podman[ask] = want
	}
	for kind, says := range map[string]map[string]string{
		"docker": engine, "podman": podman,
		"bwrap": {"read": "--ro-bind\n/\n/\n", "write": "--bind\n/b/tmp\n/b/tmp\n", "env": "--setenv\nA\nb c\n", "terminal": "--new-session\n"},
		"srt": {"read": `"allowRead":["/b/w","/b/r"]`, "write": `"allowWrite":["/b/w","/b/tmp"]`, "hide": `"denyRead":["/home","/root","/b","/b/w/.env"]`, "env": "--settings\n",
			"terminal": "--settings\n", "reach": `"allowedDomains":["a.test:443","[2001:db8::1]:80"]`,
			"secrets": `"tlsTerminate":{}},`},
		"codex": {"read": `"/b/r"="read"`, "write": `"/b/tmp"="write"`, "hide": `".env"="deny"`, "env": `shell_environment_policy.set={"A"="b c","GIVEN"="from outside"}`, "terminal": "--\n"},
		"runsc": {"read": `{"destination":"/b/r","type":"bind","source":"/b/r","options":["rbind","ro"]}`, "write": `{"destination":"/b/tmp","type":"bind","source":"/b/tmp","options":["rbind","rw"]}`,
			"env": `"A=b c","GIVEN=from outside"`, "memory": ifRoot(`"memory":{"limit":4096}`), "processes": ifRoot(`"pids":{"limit":64}`),
			"files": `{"type":"RLIMIT_NOFILE","hard":32,"soft":32}`, "filesize": `{"type":"RLIMIT_FSIZE","hard":512,"soft":512}`, "disk": `"size=8192"`, "terminal": `"terminal":true`},
		"firejail": {"read": "--whitelist=/b/r\n--read-only=/b/r\n", "write": "--whitelist=/b/tmp\n--read-write=/b/tmp\n", "hide": "--blacklist=/b/w/.env\n", "env": "--quiet\n",
			"files": "--rlimit-nofile=32\n", "filesize": "--rlimit-fsize=512\n", "time": "--timeout=00:01:30\n", "terminal": "--quiet\n"},
	} {
		for ask, o := range asks {
			want := says[ask]
			got, err := lineOf(t, kind, o)
			switch {
			case want == "" || want == cannot:
				if !errors.Is(err, probe.ErrUnsupported) {
					t.Errorf("%s takes %s: %v", kind, ask, err)
				}
			case err != nil:
				t.Errorf("%s, %s: %v", kind, ask, err)
			case !strings.Contains(callText(got), want):
				t.Errorf("%s, %s: nothing says %q:\n%s", kind, ask, want, callText(got))
			}
		}
	}
}

// TestVariablesGoToTheLauncher is about peers that pass on the environment they
// get.
func TestVariablesGoToTheLauncher(t *testing.T) {
	for _, kind := range []string{"srt", "firejail"} {
		got, err := lineOf(t, kind, probe.Options{Env: []string{"A=b"}})
		if err != nil || !slices.Contains(got.env, "A=b") {
			t.Errorf("%s: %q, %v", kind, got.env, err)
		}
	}
}

// TestCommandLines requires that each command line ends with the command, word by
// word.
func TestCommandLines(t *testing.T) {
	for _, s := range specs() {
		got, err := lineOf(t, s.name, probe.Options{})
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		if s.name == "runsc" {
			if !strings.Contains(callText(got), `"args":["/b/w/prober","a b",""]`) {
				t.Errorf("runsc: %s", callText(got))
			}
		} else if !slices.Equal(got.argv[len(got.argv)-3:], []string{"/b/w/prober", "a b", ""}) {
			t.Errorf("%s: %q", s.name, got.argv)
		}
		if got.argv[0] != "/opt/"+s.name {
			t.Errorf("%s begins with %s", s.name, got.argv[0])
		}
	}
}

// TestMountsOfOddNames checks that names with commas and quotes reach an engine
// unchanged.
func TestMountsOfOddNames(t *testing.T) {
	w := world()
	w.W = `/b/a,b"c:d`
	flags, err := engineFlags(Peer{Path: "x"}, w, probe.Options{}, "n")
	if err != nil || !slices.Contains(flags, `type=bind,"source=/b/a,b""c:d","target=/b/a,b""c:d"`) {
		t.Errorf("%q, %v", flags, err)
	}
}

// TestRefusals distinguishes a launcher's messages from a command's.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		kind   string
		status int
		said   string
		want   bool
	}{
		{"docker", 125, "docker: Cannot connect to the Docker daemon", true},
		{"docker", 127, `docker: Error response from daemon: exec: "/x": no such file or directory`, false},
		{"docker", 125, "", false},
		{"podman", 125, "Error: statfs /x: no such file or directory", true},
		{"podman", 127, "Error: runc: exec: no such file or directory", false},
		{"bwrap", 1, "bwrap: Can't find source path /x: No such file or directory", true},
		{"bwrap", 1, "bwrap: execvp /x: No such file or directory", false},
		{"bwrap", 1, "prober: failed", false},
		{"srt", 1, "Error: /s.json does not hold a valid config\nRefusing to run", true},
		{"srt", 127, "/bin/bash: line 1: /x: No such file or directory", false},
		{"codex", 101, "WARNING: something\nthread 'main' (2) panicked at src/x.rs", true},
		{"codex", 1, "bwrap: execvp /x: No such file or directory", false},
		{"runsc", 128, "running container: creating container: bad", true},
		{"runsc", 128, `running container: starting container: failed to load /x: no such file or directory`, false},
		{"runsc", 1, "running", false},
		{"firejail", 1, "Error: seccomp already enabled", true},
		{"firejail", 127, "/bin/bash: line 1: /x: No such file or directory", false},
	} {
		s, err := Peer{Kind: c.kind}.spec()
		if err != nil {
			t.Fatal(err)
		}
		if got := s.refused(c.status, c.said); got != c.want {
			t.Errorf("%s, %d, %q: %v", c.kind, c.status, c.said, got)
		}
	}
}

// TestSpoken: the command's output is never taken for its launcher's.
func TestSpoken(t *testing.T) {
	report := []byte(`{"nonce":"n"}`)
	for _, c := range []struct {
		o        probe.Observation
		terminal bool
		want     string
	}{
		{probe.Observation{Stderr: []byte("no")}, false, "no"},
		{probe.Observation{Stdout: report, Stderr: []byte("no")}, false, ""},
		{probe.Observation{Stdout: []byte("no")}, true, "no"},
		{probe.Observation{Stdout: report}, true, ""},
	} {
		if got := launcherOutput(c.o, c.terminal); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestOwners: a process is identified by its start time too, because PIDs are
// reused.
func TestOwners(t *testing.T) {
	me, err := owner(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{me: true, fmt.Sprintf("%d-1", os.Getpid()): false, "4194305-1": false, "": false, "x": false} {
		if isAlive(name) != want {
			t.Errorf("alive(%q) is %v", name, !want)
		}
	}
}

// fakeEngine is a docker that has three containers and logs its arguments.
func fakeEngine(t *testing.T) (p Peer, told func() string) {
	t.Helper()
	me, err := owner(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p = Peer{Kind: "docker", Path: filepath.Join(dir, "docker"), Owner: me}
	parent, err := owner(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho \"$*\" >> " + dir + "/told\ncase \"$1 $2\" in\n" +
		"ps*) printf 'mine %s\\nstale 4194305-1\\nother %s\\n' " + me + " " + parent + ";;\n" +
		"'image ls') printf '%s\\n4194305-1\\n%s\\n' " + me + " " + parent + ";;\n" +
		"rm*) case \"$3\" in stale) echo 'Error: No such container: stale' >&2; exit 1;; esac;;\nesac\n"
	if err := programs.Write(p.Path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return p, func() string {
		b, err := os.ReadFile(dir + "/told")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// TestLeftContainers: containers of ended processes are removed before a run, our
// own after it, and those of another run never.
func TestLeftContainers(t *testing.T) {
	p, told := fakeEngine(t)
	if err := p.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := told()
	for want, is := range map[string]bool{"rm --force stale\n": true, "rm --force mine\n": false, "rm --force other\n": false,
		"image rm holdfast-probe:4194305-1\n": true, "import - holdfast-probe:" + p.Owner + "\n": true} {
		if strings.Contains(before, want) != is {
			t.Errorf("%q was said before the run: %v\n%s", want, !is, before)
		}
	}
	if err := Release(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	after := strings.TrimPrefix(told(), before)
	for want, is := range map[string]bool{"rm --force mine\n": true, "rm --force other\n": false, "image rm holdfast-probe:" + p.Owner + "\n": true} {
		if strings.Contains(after, want) != is {
			t.Errorf("%q was said after the run: %v\n%s", want, !is, after)
		}
	}
}

// TestKilledContainer: a container does not end with its client, so it is removed
// by name when a run is cut short.
func TestKilledContainer(t *testing.T) {
	p, told := fakeEngine(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	p.Run(ctx, &probe.World{B: dir, W: dir}, probe.Command{}, []string{"/x"})
	if said := told(); !strings.Contains(said, "rm --force holdfast-probe-") {
		t.Errorf("it was told %q", said)
	}
}

// TestDaemonThatDoesNotAnswer checks that the hint is the next command to type.
func TestDaemonThatDoesNotAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docker")
	if err := programs.Write(path, []byte("#!/bin/sh\necho 'Cannot connect to the daemon' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := Ready(t.Context(), probe.Runner{}, Peer{Kind: "docker", Path: path})
	if h := (hinted{}); !errors.As(err, &h) || !strings.Contains(err.Error(), "no daemon answers") || !strings.Contains(h.Hint(), "systemctl start docker") {
		t.Errorf("%v", err)
	}
}

// TestWhereCodexIs follows the npm package to the program.
func TestWhereCodexIs(t *testing.T) {
	dir := t.TempDir()
	script, program := dir+"/node_modules/@openai/codex/bin/codex.js", dir+"/node_modules/@openai/codex-linux-x64/vendor/x86_64/bin/codex"
	for _, path := range []string{script, program, dir + "/bin/x"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), programs.Write(path, []byte("#!"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(script, dir+"/bin/codex"); err != nil {
		t.Fatal(err)
	}
	if got, err := codexProgram(dir + "/bin/codex"); err != nil || got != program {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := codexProgram(program); err != nil || got != program {
		t.Errorf("%s, %v", got, err)
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if _, err := codexProgram(dir + "/bin/codex"); !errors.Is(err, ErrNotHere) {
		t.Errorf("%v", err)
	}
}
