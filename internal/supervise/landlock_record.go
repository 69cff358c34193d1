//go:build linux

package supervise

import (
	"encoding/hex"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Types of audit records (include/uapi/linux/audit.h).
const (
	auditGet            = 1000
	auditSyscall        = 1300
	auditEnd            = 1320
	auditLandlockAccess = 1423 // Linux 6.15
	auditLandlockDomain = 1424
)

// auditRecord is one record of the kernel's audit.
type auditRecord struct {
	kind   uint16
	serial string // of the event that it belongs to, with its time
	fields map[string]string
}

// parseAudit splits a record: audit(TIME:SERIAL): NAME=VALUE NAME="VALUE" NAME=HEX.
// What is not a field is left out.
func parseAudit(kind uint16, text string) (auditRecord, bool) {
	text = strings.TrimRight(text, "\x00\n")
	rest, ok := strings.CutPrefix(text, "audit(")
	if !ok {
		return auditRecord{}, false
	}
	serial, rest, ok := strings.Cut(rest, "):")
	if !ok || serial == "" {
		return auditRecord{}, false
	}
	r := auditRecord{kind: kind, serial: serial, fields: map[string]string{}}
	for rest != "" {
		rest = strings.TrimLeft(rest, " ")
		name, after, ok := strings.Cut(rest, "=")
		if space := strings.IndexByte(rest, ' '); !ok || space >= 0 && space < len(name) { // a word
			_, rest, _ = strings.Cut(rest, " ")
			continue
		}
		var value string
		if quoted, ok := strings.CutPrefix(after, `"`); ok {
			value, rest, _ = strings.Cut(quoted, `"`) // the kernel writes hex when there is a quote in it
		} else {
			value, rest, _ = strings.Cut(after, " ")
			if auditStrings[name] {
				value = unhex(value)
			}
		}
		if _, twice := r.fields[name]; !twice {
			r.fields[name] = value
		}
	}
	return r, true
}

// auditStrings are the fields that are hexadecimal if their value could be taken for
// the end of the field (audit_log_untrustedstring).
var auditStrings = map[string]bool{"path": true, "exe": true, "comm": true, "ocomm": true, "name": true}

func unhex(s string) string {
	raw, err := hex.DecodeString(s)
	if err != nil || s == "" {
		return s
	}
	return string(raw)
}

// number returns the value of a numeric field; 0 if it is not a number.
func (r auditRecord) number(name string) int {
	n, err := strconv.Atoi(r.fields[name])
	if err != nil {
		return 0
	}
	return n
}

// landlockActions are what a right that was missing was wanted for, the more
// telling first: an access may lack several.
var landlockActions = []struct{ blocker, action string }{
	{"fs.execute", event.ProcExec},
	{"fs.make_dir", event.FileMkdir},
	{"fs.make_sym", event.FileSymlink},
	{"fs.make_sock", event.FileMknod},
	{"fs.make_fifo", event.FileMknod},
	{"fs.make_char", event.FileMknod},
	{"fs.make_block", event.FileMknod},
	{"fs.make_reg", event.FileWrite},
	{"fs.refer", event.FileRename},
	{"fs.remove_dir", event.FileUnlink},
	{"fs.remove_file", event.FileUnlink},
	{"fs.truncate", event.FileWrite},
	{"fs.write_file", event.FileWrite},
	{"fs.ioctl_dev", event.SysCall},
	{"fs.read_dir", event.FileOpen},
	{"fs.read_file", event.FileOpen},
	{"net.bind_tcp", event.SockBind},
	{"net.connect_tcp", event.SockConnect},
	{"scope.abstract_unix_socket", event.SockConnect},
	{"scope.signal", event.SysCall},
	{"ptrace", event.SysCall},
}

// landlockEvent is the event of a denial; call is the record of the system call
// in which it happened, or none.
func landlockEvent(access, call auditRecord) event.Event {
	f := access.fields
	e := event.Event{Sensor: event.Landlock, Action: event.SysCall, Object: f["path"], Verdict: event.Denied, Layer: event.LayerLandlock,
		Error: "EACCES", Detail: map[string]string{"blockers": f["blockers"], "domain": f["domain"]}}
	has := map[string]bool{}
	for b := range strings.SplitSeq(f["blockers"], ",") {
		has[b] = true
	}
	for _, a := range landlockActions {
		if has[a.blocker] {
			e.Action = a.action
			if strings.HasPrefix(a.blocker, "fs.make_") || strings.HasPrefix(a.blocker, "fs.remove_") || a.blocker == "fs.refer" {
				e.Detail["path"] = "directory" // the kernel does not say which name in it
			}
			break
		}
	}
	for _, name := range []string{"dev", "ino"} {
		if f[name] != "" {
			e.Detail[name] = f[name]
		}
	}
	switch {
	case has["scope.signal"]:
		e.Object, e.Error, e.Detail["target"] = "kill", "EPERM", f["opid"]
	case has["ptrace"]:
		e.Object, e.Error, e.Detail["target"] = "ptrace", "EPERM", f["opid"]
	case has["fs.ioctl_dev"] && e.Action == event.SysCall:
		e.Object, e.Detail["path"] = "ioctl", f["path"]
	case has["scope.abstract_unix_socket"]:
		e.Object, e.Error = "unix:@"+f["path"], "EPERM"
	case has["net.bind_tcp"]:
		e.Object = f["saddr"] + ":" + f["src"]
	case has["net.connect_tcp"]:
		e.Object = f["daddr"] + ":" + f["dest"]
	}
	if call.fields != nil {
		e.Process.PID, e.Process.Parent, e.Process.Executable = call.number("pid"), call.number("ppid"), call.fields["exe"]
	}
	return e
}
