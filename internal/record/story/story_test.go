package story

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// tape numbers events and gives them times.
type tape struct {
	b   *Builder
	seq uint64
}

func (t *tape) add(e event.Event) {
	t.seq++
	e.Seq, e.Session, e.Time = t.seq, "s1", time.Unix(1000+int64(t.seq), 0).UTC()
	t.b.Add(e)
}

func exec(pid int, exec, parentExec uint64, argv ...string) event.Event {
	return event.Event{Action: event.ProcExec, Sensor: event.Syscall, Object: argv[0], Verdict: event.Allowed,
		Process: event.Process{PID: pid, Exec: exec, ParentExec: parentExec, Executable: "/usr/bin/" + argv[0], Cwd: "/w", Argv: argv}}
}

func by(pid int, exec uint64, action, object string) event.Event {
	return event.Event{Action: action, Sensor: event.Syscall, Object: object, Verdict: event.Allowed, Process: event.Process{PID: pid, Exec: exec}}
}

func with(e event.Event, change func(*event.Event)) event.Event {
	change(&e)
	return e
}

func detail(e event.Event, pairs ...string) event.Event {
	e.Detail = map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		e.Detail[pairs[i]] = pairs[i+1]
	}
	return e
}

func denied(e event.Event, layer, rule, err string) event.Event {
	e.Verdict, e.Layer, e.Rule, e.Error = event.Denied, layer, rule, err
	return e
}

func tell(events ...event.Event) *Story {
	t := tape{b: New(Default)}
	for _, e := range events {
		t.add(e)
	}
	return t.b.Story()
}

func TestPrograms(t *testing.T) {
	s := tell(
		exec(10, 1, 0, "sh", "-c", "make"),
		by(11, 1, event.ProcSeen, ""),
		exec(11, 2, 1, "make"),
		by(12, 2, event.ProcSeen, ""),
		by(12, 2, event.FileWrite, "/w/log"), // of the fork
		detail(by(12, 2, event.ProcExit, ""), "status", "3"),
		with(exec(13, 3, 2, "cc"), func(e *event.Event) { e.Error = "ENOENT" }),
		denied(exec(13, 3, 2, "sudo"), event.LayerView, "", "ENOENT"),
		detail(by(11, 2, event.ProcExit, ""), "status", "0"),
		exec(10, 4, 0, "true"), // sh executes another program
		detail(by(10, 4, event.ProcExit, ""), "signal", "9"),
	)
	got := map[uint64]string{}
	for _, p := range s.Programs {
		got[p.Exec] = fmt.Sprintf("%s of %d, status %q signal %q, forks %d, replaced %v, failed %d", p.Argv[0], p.Parent, p.Status, p.Signal, p.Forks, p.Replaced, p.Failed)
	}
	want := map[uint64]string{
		1: `sh of 0, status "" signal "", forks 1, replaced true, failed 0`,
		2: `make of 1, status "0" signal "", forks 1, replaced false, failed 1`,
		4: `true of 1, status "" signal "9", forks 0, replaced false, failed 0`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	p := s.Programs[1]
	if len(p.Wrote.Objects) != 1 || p.Wrote.Objects[0].Name != "/w/log" || len(p.Refused.Objects) != 1 || p.Refused.Objects[0].What != "proc.exec view ENOENT" {
		t.Errorf("make: %+v", p)
	}
}

// A pid is reused: what the second process with it does is its own.
func TestPIDsAreUsedAgain(t *testing.T) {
	s := tell(exec(10, 1, 0, "sh"), exec(11, 2, 1, "a"), detail(by(11, 2, event.ProcExit, ""), "status", "0"), exec(11, 3, 1, "b"))
	if p := s.Programs[2]; p.Parent != 1 || s.Programs[1].Replaced {
		t.Errorf("b is a child of %d", p.Parent)
	}
}

func TestFiles(t *testing.T) {
	s := tell(
		exec(10, 1, 0, "sh"),
		by(10, 1, event.FileWrite, "/w/a.tmp"),
		by(10, 1, event.FileWrite, "/w/a.tmp"),
		detail(by(10, 1, event.FileRename, "a.tmp"), "to", "a", "to_resolved", "/w/a"),
		with(by(10, 1, event.FileOpen, "../w/in"), func(e *event.Event) { e.Resolved = "/w/in" }),
		with(by(10, 1, event.FileOpen, "/w/none"), func(e *event.Event) { e.Error = "ENOENT" }),
		denied(by(10, 1, event.FileLookup, "/home/you/.ssh/id_rsa"), event.LayerView, "", "ENOENT"),
		by(10, 1, event.FileUnlink, "/w/old"),
		detail(by(10, 1, event.FileChmod, "/w/run"), "mode", "0755"),
		detail(by(10, 1, event.FileSymlink, "/w/link"), "to", "/etc"),
	)
	var got []string
	for _, f := range s.Files {
		got = append(got, fmt.Sprintf("%s r%d w%d d%d c%d x%d %v", f.Path, f.Read, f.Written, f.Removed, f.Changed, f.Refused, f.Gone))
	}
	want := []string{
		"/home/you/.ssh/id_rsa r0 w0 d0 c0 x1 false", "/w/a r0 w1 d0 c0 x0 false", "/w/a.tmp r0 w2 d0 c0 x0 false",
		"/w/in r1 w0 d0 c0 x0 false", "/w/link r0 w1 d0 c0 x0 false", "/w/old r0 w0 d1 c0 x0 true", "/w/run r0 w0 d0 c1 x0 false", "a.tmp r0 w0 d1 c0 x0 true",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	p := s.Programs[0]
	if p.Wrote.Count() != 3 || p.Renamed.Objects[0].To != "/w/a" || p.Changed.Objects[0].What != "mode 0755" || p.Failed != 1 || p.Refused.Count() != 1 {
		t.Errorf("%+v", p)
	}
	if len(s.Refusals) != 1 || s.Refusals[0].Object != "/home/you/.ssh/id_rsa" || s.Refusals[0].By[0] != 1 {
		t.Errorf("%+v", s.Refusals)
	}
}

func TestNetwork(t *testing.T) {
	egress := func(action, object string, pairs ...string) event.Event {
		return detail(event.Event{Action: action, Sensor: event.Egress, Object: object, Verdict: event.Allowed, Rule: "p.yaml:3"}, pairs...)
	}
	s := tell(
		egress(event.NetQuery, "a.example.org", "type", "A"),
		egress(event.NetConnect, "a.example.org:443"),
		egress(event.NetRequest, "a.example.org:443", "method", "GET", "path", "/x"), // it left beside others
		egress(event.NetRequest, "a.example.org:443", "method", "GET", "path", "/x", "status", "200", "in", "100", "out", "10"),
		egress(event.NetRequest, "a.example.org:443", "method", "GET", "path", "/x", "status", "200", "in", "100", "out", "10"),
		egress(event.NetClose, "a.example.org:443", "in", "200", "out", "20"),
		egress(event.NetClose, "b.example.org:22", "in", "7", "out", "5"),
		denied(egress(event.NetConnect, "c.example.org:443", "reason", "it is not allowed", "again", "4"), "", "", ""),
		denied(egress(event.NetQuery, "c.example.org", "reason", "it is not allowed"), "", "", ""),
		by(10, 1, event.SockConnect, "unix:/run/x"),
		denied(by(10, 1, event.SockConnect, "unix:/run/x"), event.LayerLandlock, "", "EACCES"),
	)
	var got []string
	for _, d := range s.Destinations {
		got = append(got, fmt.Sprintf("%s q%d c%d x%d in%d out%d %v %v", d.Name, d.Queries, d.Connects, d.Denied, d.In, d.Out, d.Requests, d.Reasons))
	}
	want := []string{
		"a.example.org:443 q1 c1 x0 in200 out20 [{GET /x 200 false 2}] []",
		"b.example.org:22 q0 c0 x0 in7 out5 [] []",
		"c.example.org:443 q0 c0 x1 in0 out0 [] [it is not allowed]",
		"c.example.org q0 c0 x1 in0 out0 [] [it is not allowed]",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if len(s.Sockets) != 1 || s.Sockets[0].Count != 2 || s.Sockets[0].Denied != 1 {
		t.Errorf("%+v", s.Sockets)
	}
	if s.Refusals[0].Count != 5 {
		t.Errorf("a refusal that stands for others counts %d", s.Refusals[0].Count)
	}
}

func TestSession(t *testing.T) {
	task := func(action, object string, pairs ...string) event.Event {
		return detail(event.Event{Action: action, Sensor: event.Task, Object: object, Verdict: event.Allowed}, pairs...)
	}
	s := tell(
		task(event.RecordBegin, "", "level", "standard"),
		task(event.SessionStart, "/w", "profile", "local"),
		task(event.SessionLimit, "memory"),
		task(event.FileQuarantine, "/w/.git/hooks/x", "reason", "a hook"),
		task(event.AlertRaise, "FS-01", "severity", "high"),
		task(event.AlertRaise, "FS-01", "severity", "high"),
		task(event.AlertRaise, "FS-01", "severity", "critical"),
		task(event.CredentialUse, "a:443", "credential", "gh"),
		denied(task(event.CredentialUse, "b:443", "credential", "gh", "reason", "not bound"), event.LayerBroker, "", ""),
		denied(task(event.HoneyRead, "/home/you/.aws/credentials"), "", "", ""),
		task(event.RecordCut, "", "of", "syscall", "from", "10", "to", "19", "reason", "rate", "count", "10", "count.file.write", "10"),
		task(event.RecordCut, "", "of", "syscall", "from", "30", "to", "34", "reason", "rate", "count", "5", "count.file.write", "5"),
		task(event.RecordDrop, "", "of", "tripwire", "from", "3", "to", "3", "count", "1"),
		with(by(1, 1, event.FileWrite, "/x"), func(e *event.Event) { e.Verdict = event.Unknown }),
		task(event.SessionEnd, "", "status", "0"),
	)
	if s.Workspace != "/w" || s.Started["profile"] != "local" || s.Recorded["level"] != "standard" || !s.Ended || s.Status != "0" || s.Unknown != 1 || s.Events != 15 {
		t.Errorf("%+v", s)
	}
	if len(s.Alerts) != 2 || s.Alerts[0].Count != 2 || len(s.Notes) != 2 || len(s.Credentials) != 3 || s.Credentials[1].Reason != "not bound" {
		t.Errorf("%+v %+v %+v", s.Alerts, s.Notes, s.Credentials)
	}
	if len(s.Lost) != 2 || s.Lost[0].Detail["count"] != "15" || s.Lost[0].Detail["count.file.write"] != "15" || s.Lost[0].Detail["to"] != "34" || s.Lost[1].Detail["count"] != "1" {
		t.Errorf("%+v", s.Lost)
	}
}

// The longest names, each different, in every place: a story has a bound, says
// what it left out, and still lists what was refused at the end.
func TestFlood(t *testing.T) {
	limits := Limits{Programs: 1000, Each: 10, Files: 3000, Changes: 3000, Destinations: 100, Refusals: 100, Bytes: 8 << 20}
	b := tape{b: New(limits)}
	long := strings.Repeat("a", 5000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 20_000 {
		name := fmt.Sprint("/", i, long)
		n := uint64(i + 1)
		b.add(exec(i, n, n-1, name, long, long))
		b.add(by(i, n, event.FileWrite, name))
		b.add(denied(by(i, n, event.FileLookup, name), event.LayerView, "", "ENOENT"))
		b.add(by(i, n, event.SockConnect, name))
		b.add(detail(by(i, n, event.NetRequest, name), "method", "GET", "path", name, "reason", name))
		b.add(detail(by(i, n, event.AlertRaise, name), "key", name, name, name))
		b.add(detail(by(i, n, event.RecordCut, name), "of", name))
		b.add(detail(by(i, n, "a."+name, name), name, name))
		b.add(detail(by(i, n, event.ApprovalRequest, name), "id", name, "reason", name))
		b.add(detail(by(i, n, event.ApprovalRule, name), "outcome", name))
		b.add(detail(by(i, n, event.ReviewApply, name), "reason", name))
	}
	b.add(denied(by(1, 1, event.NetConnect, "evil.example.org:443"), event.LayerEgress, "", ""))
	s := b.b.Story()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 3*int64(limits.Bytes) {
		t.Errorf("%d MiB are kept", used>>20)
	}
	if last := s.Refusals[len(s.Refusals)-1]; last.Object != "evil.example.org:443" {
		t.Errorf("the last refusal is %.60s", last.Object)
	}
	l := s.Left
	if !l.Listed() || l.Programs == 0 || l.Files == 0 || l.Destinations == 0 || l.Refusals == 0 || l.Other == 0 || l.Bytes == 0 {
		t.Errorf("%+v", l)
	}
	runtime.KeepAlive(b)
}

func FuzzAdd(f *testing.F) {
	f.Add([]byte(`[{"Action":"proc.exec","Process":{"PID":1,"Exec":1,"ParentExec":1}},{"Action":"proc.exit","Process":{"PID":1,"Exec":1}}]`))
	f.Add([]byte(`[{"Action":"record.cut","Detail":{"from":"9","to":"18446744073709551615"}},{"Action":"file.rename"},{"Action":"net.close"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var events []event.Event
		if json.Unmarshal(data, &events) != nil {
			return
		}
		b := New(Limits{Programs: 2, Each: 2, Files: 2, Changes: 2, Destinations: 2, Refusals: 2, Bytes: 10_000})
		for _, e := range events {
			b.Add(e)
		}
		s := b.Story()
		if s.Events != uint64(len(events)) || len(s.Programs) > 2 || len(s.Files) > 2 || b.bytes > 10_000 {
			t.Errorf("%+v, %d bytes", s, b.bytes)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	t := tape{b: New(Default)}
	names := make([]string, 50_000)
	for i := range names {
		names[i] = fmt.Sprint("/home/you/app/node_modules/package", i%300, "/lib/file", i, ".js")
	}
	t.add(exec(10, 1, 0, "npm"))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		t.add(by(10, 1, event.FileWrite, names[i%len(names)]))
	}
}
