//go:build linux

package supervise

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

func TestParseAudit(t *testing.T) {
	for _, c := range []struct {
		text   string
		serial string
		want   map[string]string
	}{
		{`audit(1795310684.518:294): domain=1605d4079 blockers=fs.read_file path="/etc/pass wd" dev="vda" ino=12`, "1795310684.518:294",
			map[string]string{"domain": "1605d4079", "blockers": "fs.read_file", "path": "/etc/pass wd", "dev": "vda", "ino": "12"}},
		{`audit(1.2:3): domain=1 status=allocated mode=enforcing pid=7 uid=0 exe=2F746D702F610A comm="sh"`, "1.2:3",
			map[string]string{"domain": "1", "status": "allocated", "mode": "enforcing", "pid": "7", "uid": "0", "exe": "/tmp/a\n", "comm": "sh"}},
		{`audit(1.2:3): domain=1 status=deallocated denials=5` + "\x00", "1.2:3", map[string]string{"domain": "1", "status": "deallocated", "denials": "5"}},
		{`audit(1.2:3): word path="/a" path="/b" x=`, "1.2:3", map[string]string{"path": "/a", "x": ""}},
		{`audit(1.2:3): path="/never ends`, "1.2:3", map[string]string{"path": "/never ends"}},
		{`audit(1.2:3):`, "1.2:3", map[string]string{}},
		{`audit(): domain=1`, "", nil},
		{`domain=1`, "", nil},
		{``, "", nil},
	} {
		r, ok := parseAudit(auditLandlockAccess, c.text)
		if ok != (c.want != nil) || r.serial != c.serial || fmt.Sprint(r.fields) != fmt.Sprint(c.want) {
			t.Errorf("%q: %q %q %v", c.text, r.serial, r.fields, ok)
		}
	}
}

func TestLandlockEvent(t *testing.T) {
	for _, c := range []struct{ access, action, object, errno string }{
		{`blockers=fs.execute,fs.read_file path="/bin/sh"`, event.ProcExec, "/bin/sh", "EACCES"},
		{`blockers=fs.read_dir path="/home"`, event.FileOpen, "/home", "EACCES"},
		{`blockers=fs.make_reg path="/etc"`, event.FileWrite, "/etc", "EACCES"},
		{`blockers=fs.make_dir path="/etc"`, event.FileMkdir, "/etc", "EACCES"},
		{`blockers=fs.refer,fs.make_reg path="/etc"`, event.FileWrite, "/etc", "EACCES"},
		{`blockers=net.connect_tcp daddr=192.0.2.1 dest=443`, event.SockConnect, "192.0.2.1:443", "EACCES"},
		{`blockers=net.bind_tcp src=80`, event.SockBind, ":80", "EACCES"},
		{`blockers=scope.abstract_unix_socket path=2F63`, event.SockConnect, "unix:@/c", "EPERM"},
		{`blockers=scope.signal opid=1 ocomm="init"`, event.SysCall, "kill", "EPERM"},
		{`blockers=ptrace opid=1 ocomm="init"`, event.SysCall, "ptrace", "EPERM"},
		{`blockers=fs.ioctl_dev path="/dev/tty" ioctlcmd=0x5412`, event.SysCall, "ioctl", "EACCES"},
		{`blockers=fs.of_tomorrow path="/x"`, event.SysCall, "/x", "EACCES"},
	} {
		r, _ := parseAudit(auditLandlockAccess, "audit(1.2:3): domain=1 "+c.access)
		e := landlockEvent(r, auditRecord{})
		if e.Action != c.action || e.Object != c.object || e.Error != c.errno || e.Verdict != event.Denied || e.Layer != event.LayerLandlock {
			t.Errorf("%s: %+v", c.access, e)
		}
	}
}

// listen makes a LandlockAudit without a socket, for the domain of process 7.
func listen(sink Sink) *LandlockAudit {
	a := &LandlockAudit{config: LandlockConfig{Sink: sink}, domains: map[string]*landlockDomain{}, open: map[string]*auditEvent{}, lost: func() uint32 { return 0 }}
	a.flood = newFlood(a.observe, nil)
	a.Domain(7)
	return a
}

func TestLandlockDomains(t *testing.T) {
	type rec struct {
		kind uint16
		text string
	}
	access := func(serial int, domain string) rec {
		return rec{auditLandlockAccess, fmt.Sprintf(`audit(1.0:%d): domain=%s blockers=fs.read_file path="/%d"`, serial, domain, serial)}
	}
	allocated := func(serial int, domain string, pid int) rec {
		return rec{auditLandlockDomain, fmt.Sprintf(`audit(1.0:%d): domain=%s status=allocated pid=%d`, serial, domain, pid)}
	}
	ended := func(domain string, n int) rec {
		return rec{auditLandlockDomain, fmt.Sprintf(`audit(1.0:99): domain=%s status=deallocated denials=%d`, domain, n)}
	}
	call := func(serial, pid int) rec {
		return rec{auditSyscall, fmt.Sprintf(`audit(1.0:%d): arch=c000003e syscall=257 ppid=6 pid=%d exe="/bin/cat"`, serial, pid)}
	}
	end := func(serial int) rec { return rec{auditEnd, fmt.Sprintf(`audit(1.0:%d): `, serial)} }
	for _, c := range []struct {
		name    string
		records []rec
		denials []string // objects and pids
		lost    string   // count of the record that says that some are lost; "" for none
		ended   bool
		overrun bool
	}{
		{"ours", []rec{access(1, "a"), allocated(2, "a", 7), access(3, "a"), ended("a", 2)}, []string{"/1 0", "/3 0"}, "", true, false},
		{"with its system call", []rec{access(1, "a"), allocated(1, "a", 7), call(1, 30), end(1), ended("a", 1)}, []string{"/1 30"}, "", true, false},
		{"interleaved", []rec{access(1, "a"), allocated(1, "a", 7), access(2, "a"), call(2, 32), call(1, 31), end(2), end(1), ended("a", 2)},
			[]string{"/2 32", "/1 31"}, "", true, false},
		{"somebody else's", []rec{access(1, "b"), allocated(2, "b", 8), access(3, "b"), ended("b", 5)}, nil, "", true, false},
		{"one is missing", []rec{access(1, "a"), allocated(2, "a", 7), ended("a", 3)}, []string{"/1 0"}, "2", true, false},
		{"it never ends", []rec{access(1, "a"), allocated(2, "a", 7)}, []string{"/1 0"}, "unknown", false, false},
		{"nothing was denied", nil, nil, "", true, false},
		{"nothing was heard and something lost", nil, nil, "unknown", false, true},
		{"told twice", []rec{access(1, "a"), allocated(2, "a", 7), ended("a", 1), ended("a", 9)}, []string{"/1 0"}, "", true, false},
		{"nonsense", []rec{{auditLandlockAccess, "x"}, {auditLandlockDomain, "audit(1:1): "}, {auditEnd, "audit(1:1): "}, {1, ""}}, nil, "", true, false},
	} {
		sink := &memorySink{}
		a := listen(sink)
		a.overrun = c.overrun
		for _, r := range c.records {
			a.handleRecord(r.kind, r.text, time.Now())
		}
		a.settle(time.Now().Add(time.Hour))
		a.flood.close()
		a.remain()
		var denials []string
		lost := ""
		for _, e := range sink.all() {
			if e.Action == event.RecordDrop {
				lost = e.Detail["count"]
				continue
			}
			denials = append(denials, fmt.Sprintf("%s %d", e.Object, e.Process.PID))
		}
		if fmt.Sprint(denials) != fmt.Sprint(c.denials) || lost != c.lost || a.stats.Ended != c.ended {
			t.Errorf("%s: %v, lost %q, %+v", c.name, denials, lost, a.stats)
		}
	}
}

// Others on the machine may make as many domains as they like.
func TestLandlockAuditIsBounded(t *testing.T) {
	sink := &memorySink{}
	a := listen(sink)
	a.handleRecord(auditLandlockAccess, `audit(1.0:1): domain=ours blockers=fs.read_file path="/1"`, time.Now())
	a.handleRecord(auditLandlockDomain, `audit(1.0:2): domain=ours status=allocated pid=7`, time.Now())
	for i := range 3 * auditDomains {
		a.handleRecord(auditLandlockAccess, fmt.Sprintf(`audit(1.0:%d): domain=%d blockers=fs.read_file path="/x"`, i+10, i%(2*auditDomains)), time.Now())
	}
	a.settle(time.Now().Add(time.Hour))
	if len(a.domains) > auditDomains || len(a.open) != 0 {
		t.Errorf("%d domains, %d events", len(a.domains), len(a.open))
	}
	a.handleRecord(auditLandlockDomain, `audit(1.0:3): domain=ours status=deallocated denials=1`, time.Now())
	a.remain()
	if a.stats.Denials != 1 || a.stats.Lost != 0 || !a.stats.Ended {
		t.Errorf("%+v", a.stats)
	}
}

func FuzzAudit(f *testing.F) {
	f.Add(uint16(auditLandlockAccess), `audit(1.0:1): domain=a blockers=fs.read_file path="/1"`, uint16(auditLandlockDomain), `audit(1.0:2): domain=a status=allocated pid=7`)
	f.Add(uint16(auditLandlockDomain), `audit(1.0:1): domain=a status=allocated pid=7`, uint16(auditLandlockDomain), `audit(1.0:2): domain=a status=deallocated denials=18446744073709551615`)
	f.Add(uint16(auditSyscall), `audit(1.0:1): pid=-1 exe=2G`, uint16(auditEnd), `audit(`)
	f.Fuzz(func(t *testing.T, k1 uint16, first string, k2 uint16, second string) {
		a := listen(&memorySink{})
		a.handleRecord(k1, first, time.Now())
		a.handleRecord(k2, second, time.Now())
		a.settle(time.Now().Add(time.Hour))
		a.flood.close()
		a.remain()
		for _, d := range a.domains {
			if d.ours && len(d.waiting) > 0 {
				t.Error("a denial was kept back")
			}
		}
	})
}

func TestNetlinkMessages(t *testing.T) {
	message := func(kind uint16, length int, body string) []byte {
		b := binary.LittleEndian.AppendUint32(nil, uint32(length))
		b = binary.LittleEndian.AppendUint16(b, kind)
		return append(append(b, make([]byte, 10)...), body...)
	}
	for _, c := range []struct {
		name string
		raw  []byte
		want string
	}{
		{"one", message(auditGet, 20, "abcd"), "1000:abcd "},
		{"two", append(message(auditGet, 19, "abc\x00"), message(auditGet, 17, "d")...), "1000:abc 1000:d "},
		{"a length without the header", message(auditLandlockAccess, 4, "audit"), ""},
		{"a record, whatever its length says", message(auditLandlockAccess, 16, "audit"), "1423:audit "},
		{"longer than it is", message(auditGet, 200, "abcd"), "1000:abcd "},
		{"half a header", make([]byte, 15), ""},
		{"no length", message(auditGet, 0, "abcd"), ""},
	} {
		got := ""
		for kind, body := range netlinkMessages(c.raw) {
			got += fmt.Sprintf("%d:%s ", kind, body)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if unix.NLMSG_HDRLEN != 16 {
		t.Error("another kernel")
	}
}

// TestTheAuditLingers: its end waits while an event may have more records, or a domain
// of the run has not ended.
func TestTheAuditLingers(t *testing.T) {
	for _, row := range []struct {
		name  string
		audit *LandlockAudit
		want  bool
	}{
		{"nothing is open", &LandlockAudit{}, false},
		{"an event may have more records", &LandlockAudit{open: map[string]*auditEvent{"1": {}}}, true},
		{"a domain of the run has not ended", &LandlockAudit{domains: map[string]*landlockDomain{"a": {ours: true}}}, true},
		{"it has", &LandlockAudit{domains: map[string]*landlockDomain{"a": {ours: true, ended: true}}}, false},
		{"it is another's", &LandlockAudit{domains: map[string]*landlockDomain{"a": {}}}, false},
	} {
		if got := row.audit.lingering(); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}
