package baseline

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

const hash = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// start is how every session begins.
func start(level, sensors string) event.Event {
	return event.Event{Sensor: event.Task, Action: event.SessionStart, Verdict: event.Allowed, Object: "/home/you/project",
		Detail: map[string]string{"home": "/home/you", "level": level, "sensors": sensors}}
}

func exec(path, sum string) event.Event {
	return event.Event{Action: event.ProcExec, Verdict: event.Allowed, Object: path, Process: event.Process{Executable: path, SHA256: sum}}
}

func traceOf(events []event.Event) *Trace {
	var t Trace
	for i := range events {
		t.Observe(&events[i])
	}
	return &t
}

func learnt(t *testing.T, sessions ...[]event.Event) *Baseline {
	t.Helper()
	b := &Baseline{}
	for i, s := range sessions {
		if _, err := b.Learn(Run{Session: fmt.Sprint("run", i)}, traceOf(s)); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// newsOf is what is new in a session.
func newsOf(b *Baseline, events []event.Event) []string {
	c := Against(b)
	var out []string
	for i := range events {
		for _, n := range c.News(&events[i], nil) {
			out = append(out, n.String())
		}
	}
	return out
}

// anySession is an arbitrary session.
func anySession(r *rand.Rand) []event.Event {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	path := func() string {
		return pick("/home/you/project/a", "/home/you/.cache/pip/x/y", "/home/you", "/home/youth/x", "/tmp/go-build123/b001/exe/x.test", "/tmp", "/tmp/a", "/",
			"/usr/bin/git", "/usr/share/zoneinfo/Europe/Berlin", "/etc/passwd", "relative", "", "/home/you/\xff\xfe", "/proc/12345/fd/3", "/x/"+strings.Repeat("ä", 300),
			fmt.Sprintf("/opt/%d/x", r.IntN(3000)), "/home/you/.config/a\nb/c", "/dev/null", "/memfd:x (deleted)")
	}
	events := []event.Event{start(pick("standard", "full"), pick("task,syscall", "task,syscall,tripwire"))}
	for range 5 + r.IntN(80) {
		e := event.Event{Verdict: event.Verdict(r.IntN(3)), Error: pick("", "", "ENOENT", "EEXIST", "EACCES"), Object: path(), Resolved: pick("", path()), Detail: map[string]string{}}
		switch e.Action = pick(event.ProcExec, event.ProcExec, event.FileWrite, event.FileRename, event.FileLookup, event.FileOpen, event.NetQuery, event.NetConnect,
			event.NetRequest, event.NetClose, event.SockConnect, event.ToolCall, event.RecordCut, event.ProcExit); e.Action {
		case event.ProcExec:
			e.Process = event.Process{Executable: path(), SHA256: pick("", hash, strings.Repeat("b", 64))}
			e.Detail["script"] = pick("", path())
		case event.NetQuery, event.NetConnect, event.NetRequest, event.NetClose, event.SockConnect, event.ToolCall:
			e.Object = pick("a.example:443", "b.example:80", "10.0.0.1:22", "127.0.0.1:80", "[::1]:80", "198.18.0.4:443", "unix:/run/x", " ", "nonsense", "[2001:db8::1]:443")
			e.Detail["method"], e.Detail["out"], e.Detail["again"] = pick("", "GET", "EVIL"), pick("", "5000000", "-1", "x"), pick("", "200")
		case event.RecordCut:
			e.Detail["count.file.write"], e.Detail["count.evil"] = pick("", "90000"), "1"
		}
		e.Detail["to"] = pick("", path())
		events = append(events, e)
	}
	return events
}

// TestLearntIsNotNew: what was learnt from a run is not new in the same run, also
// after the baseline was written and read, and whatever else was learnt.
func TestLearntIsNotNew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dir", "b.json")
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		one, other := anySession(r), anySession(r)
		b := learnt(t, other, one)
		if err := b.Write(file); err != nil {
			t.Fatal(err)
		}
		read, err := ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, session := range [][]event.Event{one, other} {
			if news := newsOf(read, session); len(news) > 0 {
				t.Fatalf("seed %d: what was learnt is new: %q", seed, news)
			}
		}
	}
}

// TestForgetTakesBack: after a run was forgotten, the baseline is as if it had
// not been learnt from, whatever its place among the others.
func TestForgetTakesBack(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		all, without := &Baseline{}, &Baseline{}
		n := 1 + r.IntN(5)
		gone := r.IntN(n)
		for i := range n {
			run, session := Run{Session: fmt.Sprint("run", i)}, anySession(r)
			all.Learn(run, traceOf(session))
			if i != gone {
				without.Learn(run, traceOf(session))
			}
		}
		if all.Forget("nobody") || !all.Forget(fmt.Sprint("run", gone)) {
			t.Fatal("Forget says wrongly whether the run was learnt from")
		}
		for _, k := range Kinds() {
			if got, want := all.Known(k), without.Known(k); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: of %s there is %v, want %v", seed, k, got, want)
			}
		}
		if !reflect.DeepEqual(all.Most(), without.Most()) {
			t.Fatalf("seed %d: counts %v, want %v", seed, all.Most(), without.Most())
		}
	}
}

// TestNews checks what is new after one run.
func TestNews(t *testing.T) {
	normal := []event.Event{
		start("standard", "syscall,tripwire"), exec("/usr/bin/git", hash), exec("/home/you/project/app", hash), exec("/tmp/go-build17/b001/app.test", hash),
		{Action: event.NetConnect, Verdict: event.Allowed, Object: "a.example:443"},
		{Action: event.NetConnect, Verdict: event.Denied, Object: "b.example:443"},
		{Action: event.NetRequest, Verdict: event.Allowed, Object: "a.example:443", Detail: map[string]string{"method": "GET"}},
		{Action: event.FileWrite, Verdict: event.Allowed, Object: "/home/you/.cache/pip/http/1"},
		{Action: event.FileLookup, Verdict: event.Denied, Object: "/home/you/.npmrc"},
		{Action: event.ToolCall, Verdict: event.Allowed, Object: "Bash", Detail: map[string]string{"agent": "claude"}},
	}
	b := learnt(t, normal)
	for _, row := range []struct {
		name string
		e    event.Event
		want string
	}{
		{"a program of the system with other content", exec("/usr/bin/git", strings.Repeat("b", 64)), "program /usr/bin/git sha256:" + strings.Repeat("b", 32)},
		{"its copy in the workspace", exec("/home/you/project/git", hash), "program /home/you/project/git"},
		{"a program of the workspace that was built again", exec("/home/you/project/app", strings.Repeat("b", 64)), ""},
		{"a test that was built again in another temporary directory", exec("/tmp/go-build99/b001/app.test", strings.Repeat("b", 64)), ""},
		{"a host that was only refused is now reached", event.Event{Action: event.NetConnect, Verdict: event.Allowed, Object: "b.example:443"}, "host b.example:443"},
		{"another port", event.Event{Action: event.NetConnect, Verdict: event.Allowed, Object: "a.example:22"}, "host a.example:22"},
		{"a name that is answered is told with its connection", event.Event{Action: event.NetQuery, Verdict: event.Allowed, Object: "c.example"}, ""},
		{"a name that is refused", event.Event{Action: event.NetQuery, Verdict: event.Denied, Object: "c.example"}, "refused-host c.example"},
		{"a first upload", event.Event{Action: event.NetRequest, Verdict: event.Allowed, Object: "a.example:443", Detail: map[string]string{"method": "POST"}}, "method POST a.example:443"},
		{"another file of a known directory", event.Event{Action: event.FileWrite, Verdict: event.Allowed, Object: "/home/you/.cache/pip/wheels/2"}, ""},
		{"another directory", event.Event{Action: event.FileWrite, Verdict: event.Allowed, Object: "/home/you/.config/gh/hosts.yml"}, "write /home/you/.config/gh"},
		{"a file of the workspace", event.Event{Action: event.FileWrite, Verdict: event.Allowed, Object: "/home/you/project/src/x"}, ""},
		{"a refused look-up elsewhere", event.Event{Action: event.FileLookup, Verdict: event.Denied, Object: "/home/you/.ssh/id_rsa"}, "refused-read /home/you/.ssh"},
		{"another tool", event.Event{Action: event.ToolCall, Verdict: event.Allowed, Object: "WebFetch", Detail: map[string]string{"agent": "claude"}}, "tool claude WebFetch"},
		{"an execution that failed", event.Event{Action: event.ProcExec, Verdict: event.Allowed, Error: "ENOENT", Object: "/usr/local/bin/git"}, ""},
		{"nothing that is there was made", event.Event{Action: event.FileMkdir, Verdict: event.Denied, Error: "EEXIST", Object: "/home"}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := newsOf(b, []event.Event{normal[0], row.e, row.e}) // each is new once
			if strings.Join(got, "; ") != row.want {
				t.Errorf("new is %q, want %q", got, row.want)
			}
		})
	}
	if news := newsOf(&Baseline{}, append(normal, exec("/usr/bin/nc", hash))); news != nil {
		t.Errorf("without a baseline %q is new", news)
	}
}

// TestReadsAreComparedWithTheirLike: a run that is seen more closely than all
// that were learnt from does not read more because of that.
func TestReadsAreComparedWithTheirLike(t *testing.T) {
	open := func(v event.Verdict) event.Event {
		return event.Event{Action: event.FileOpen, Verdict: v, Object: "/etc/ssl/x"}
	}
	for _, row := range []struct {
		name           string
		was, is        event.Event
		allows, refuse bool
	}{
		{"full after standard", start("standard", "syscall"), start("full", "syscall"), false, false},
		{"a tripwire after none", start("standard", "syscall"), start("standard", "syscall,tripwire"), false, false},
		{"standard after full", start("full", "syscall"), start("standard", "syscall,tripwire"), true, true},
		{"both with a tripwire", start("standard", "tripwire"), start("standard", "syscall,tripwire"), false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := learnt(t, []event.Event{row.was})
			if got := len(newsOf(b, []event.Event{row.is, open(event.Allowed)})) > 0; got != row.allows {
				t.Errorf("a read is new: %v", got)
			}
			if got := len(newsOf(b, []event.Event{row.is, open(event.Denied)})) > 0; got != row.refuse {
				t.Errorf("a refused read is new: %v", got)
			}
		})
	}
}

// TestCounts: far more of something is new, once; a little more is not.
func TestCounts(t *testing.T) {
	writes := func(n int) []event.Event {
		s := []event.Event{start("standard", "")}
		for i := range n {
			s = append(s, event.Event{Action: event.FileWrite, Verdict: event.Allowed, Object: fmt.Sprint("/home/you/project/", i)})
		}
		return s
	}
	b := learnt(t, writes(50), writes(30))
	if news := newsOf(b, writes(200)); news != nil {
		t.Errorf("four times as many: %q", news)
	}
	if news := newsOf(b, writes(900)); !slices.Equal(news, []string{"count file.write more than 200"}) {
		t.Errorf("far more: %q", news)
	}
	sent := func(n string) []event.Event {
		return []event.Event{start("standard", ""), {Action: event.NetClose, Verdict: event.Allowed, Object: "a:1", Detail: map[string]string{"out": n}}}
	}
	if news := newsOf(b, sent("1048577")); !slices.Equal(news, []string{"count bytes out more than 1048576"}) {
		t.Errorf("bytes: %q", news)
	}
	if news := newsOf(learnt(t, sent("2000000")), sent("7999999")); news != nil {
		t.Errorf("bytes that are normal: %q", news)
	}
}

// flood is a session with n different programs.
func flood(n int) []event.Event {
	s := []event.Event{start("standard", "")}
	for i := range n {
		s = append(s, exec("/opt/"+strings.Repeat("x", i%7)+strings.Repeat("y", i/7), hash))
	}
	return s
}

// TestBounds: what runs inside can make neither the baseline nor a run's memory of
// what is new grow without end, and hides nothing by trying.
func TestBounds(t *testing.T) {
	b := learnt(t, flood(20))
	before := b.clone()
	if _, err := b.Learn(Run{Session: "flood"}, traceOf(flood(MaxThings+1))); err == nil || !reflect.DeepEqual(b, before) {
		t.Fatalf("a flood was learnt: %v, %d things", err, b.Len())
	}
	for i := range MaxRuns + 5 {
		if _, err := b.Learn(Run{Session: fmt.Sprint("later", i)}, traceOf([]event.Event{start("standard", ""), exec(fmt.Sprintf("/opt/%c%c", 'a'+i/26, 'a'+i%26), hash)})); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.Runs) != MaxRuns || b.Len() != MaxRuns {
		t.Errorf("%d runs and %d things are kept, want %d of each: the oldest made room", len(b.Runs), b.Len(), MaxRuns)
	}
	c := Against(b)
	session := flood(5000)
	told := 0
	for i := range session {
		told += len(c.News(&session[i], nil))
	}
	if told != 5001 || len(c.seen[Program]) != maxReported { // the count of executions is new too
		t.Errorf("%d things were told and %d are remembered", told, len(c.seen[Program]))
	}
	long := exec("/opt/"+strings.Repeat("z", 5000), hash)
	for thing := range traceOf([]event.Event{long}).seen {
		if len(thing.Name) > maxName {
			t.Errorf("a name has %d bytes", len(thing.Name))
		}
	}
}

// TestFile: only the user can read a baseline, one without runs leaves no file,
// and a file that this package did not write is refused.
func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	file := File(dir, "/home/you/project")
	b := learnt(t, flood(3))
	if err := b.Write(file); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want mode %v", path, st.Mode(), err, mode)
		}
	}
	for _, text := range []string{
		"", "{}", `{"version":2}`, `{"version":1,"more":1}`, `{"version":1,"runs":[],"things":{"program":[{"name":"x","runs":[0]}]}}`,
		`{"version":1,"runs":[{"session":"a"}],"things":{"program":[{"name":"x","runs":[]}]}}`, `{"version":1,"runs":[],"things":{"evil":[]}}`,
		`{"version":1,"runs":[` + strings.Repeat(`{},`, MaxRuns) + `{}]}`, strings.Repeat(" ", maxFile+1),
	} {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%.60q was read", text)
		}
	}
	b.Forget("run0")
	if err := b.Write(file); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func BenchmarkNews(b *testing.B) {
	base := &Baseline{}
	base.Learn(Run{Session: "a"}, traceOf(append(flood(400), exec("/usr/bin/git", hash))))
	for _, row := range []struct {
		name string
		e    event.Event
	}{
		{"known-exec", exec("/usr/bin/git", hash)},
		{"write-in-workspace", event.Event{Action: event.FileWrite, Verdict: event.Allowed, Object: "/home/you/project/x"}},
		{"write-outside", event.Event{Action: event.FileWrite, Verdict: event.Allowed, Object: "/home/you/.cache/go-build/aa/bb"}},
	} {
		b.Run(row.name, func(b *testing.B) {
			c := Against(base)
			s := start("standard", "")
			c.News(&s, nil)
			b.ReportAllocs()
			for b.Loop() {
				c.News(&row.e, nil)
			}
		})
	}
}

func BenchmarkReadFile(b *testing.B) {
	base := &Baseline{}
	base.Learn(Run{Session: "a"}, traceOf(flood(400)))
	file := filepath.Join(b.TempDir(), "b.json")
	if err := base.Write(file); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := ReadFile(file); err != nil {
			b.Fatal(err)
		}
	}
}
