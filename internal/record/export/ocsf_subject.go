package export

import (
	"cmp"
	"net"
	"net/netip"
	"path"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
	floortext "holdfast.dev/holdfast/internal/floor/text"
)

// subject sets the actor and the target, in the attributes of the event's class.
func (x *ocsf) subject(o *object, a *action, e event.Event) {
	switch a.class {
	case fileActivity:
		x.files(o, e)
	case kernelActivity:
		o.obj("kernel", x.objects.next().str("name", orUnknown(e.Object)).num("type_id", 2).str("type", "System Call").str("system_call", e.Object))
	case processActivity:
		x.processes(o, e)
		return
	case logActivity:
		o.str("log_name", "holdfast").str("log_provider", string(e.Sensor))
	case finding:
		x.addFinding(o, e)
		return
	case entity:
		o.obj("entity", x.objects.next().str("name", orUnknown(e.Object)).str("type", "policy"))
	case networkActivity, httpActivity, dnsActivity:
		x.network(o, a, e)
	case lifecycle:
		o.obj("app", x.product().str("uid", e.Session))
	case apiActivity:
		switch {
		case strings.HasPrefix(e.Action, "tool."):
			x.toolUse(o, e)
		case strings.HasPrefix(e.Action, "approval."):
			x.consent(o, e)
		default:
			x.credentialUse(o, e)
		}
	case unknownAction.class:
		return
	}
	o.obj("actor", x.actor(e))
}

// actor is the acting process, or Holdfast itself.
func (x *ocsf) actor(e event.Event) *object {
	if p := x.process(e, true); p != nil {
		return x.objects.next().obj("process", p)
	}
	return x.objects.next().str("app_name", "holdfast")
}

// isKnown reports whether a process has a number of any kind.
func isKnown(p event.Process) bool { return p.PID != 0 || p.Exec != 0 }

// process is the acting process; nil if it is not known. Its parent is left out
// if the event itself has the parent.
func (x *ocsf) process(e event.Event, parent bool) *object {
	if !isKnown(e.Process) {
		return nil
	}
	return x.processObject(e, parent).str("sandbox", e.Session)
}

// processObject is the process of an event as OCSF has it.
func (x *ocsf) processObject(e event.Event, parent bool) *object {
	q := e.Process
	o := x.objects.next().str("uid", execUID(e, q.Exec)).str("working_directory", q.Cwd)
	if q.PID != 0 {
		o.num("pid", int64(q.PID))
	}
	if len(q.Argv) > 0 {
		o.str("cmd_line", commandLine(q.Argv))
	}
	if exe := x.known.executable(q); exe != "" {
		o.str("name", path.Base(exe))
		f := x.file(exe, 1)
		if q.SHA256 != "" {
			f.list("hashes", x.fingerprint(q.SHA256, false))
		}
		o.obj("file", f)
	}
	if parent {
		o.obj("parent_process", x.parent(e))
	}
	return o
}

func (x *ocsf) parent(e event.Event) *object {
	q := e.Process
	if q.Parent == 0 && q.ParentExec == 0 {
		return nil
	}
	o := x.objects.next().str("uid", execUID(e, q.ParentExec))
	if q.Parent != 0 {
		o.num("pid", int64(q.Parent))
	}
	if exe := x.known.of[q.ParentExec]; q.ParentExec != 0 && exe != "" {
		o.str("name", path.Base(exe))
	}
	return o
}

func execUID(e event.Event, exec uint64) string {
	if exec == 0 {
		return ""
	}
	return e.Session + "-" + strconv.FormatUint(exec, 10)
}

// processes describes an event about a process itself: the parent is the actor
// of a start, the process that of its end.
func (x *ocsf) processes(o *object, e event.Event) {
	starts := e.Action != event.ProcExit
	p := x.process(e, true)
	if p == nil {
		p = x.objects.next().str("uid", e.Session+"-unknown")
	}
	if x.known.executable(e.Process) == "" && e.Object != "" {
		p.str("name", path.Base(e.Object)).obj("file", x.file(e.Object, 0))
	}
	o.obj("process", p)
	switch {
	case e.Action == event.ProcExec:
		o.num("launch_type_id", 3).str("launch_type", "Exec")
	case e.Action == event.ProcSeen:
		o.num("launch_type_id", 2).str("launch_type", "Fork")
	}
	if code, ok := x.mappedInt(e, "status"); ok && e.Action == event.ProcExit {
		o.num("exit_code", code)
	}
	who := x.objects.next()
	if parent := x.parent(e); starts && parent != nil {
		who.obj("process", parent)
	} else if self := x.process(e, false); !starts && self != nil {
		who.obj("process", self)
	} else {
		who.str("app_name", "holdfast")
	}
	o.obj("actor", who)
}

// fileTypes are the types of what an action makes, by type_id.
var fileTypes = map[string]int64{event.FileMkdir: 2, event.FileSymlink: 7, event.FileMknod: 99}

func (x *ocsf) files(o *object, e event.Event) {
	f := x.file(cmp.Or(e.Resolved, e.Object), fileTypes[e.Action])
	if e.Action == event.FileMknod {
		f.str("type", x.mappedText(e, "type"))
	}
	o.obj("file", f)
	to, resolved := e.Detail["to"], e.Detail["to_resolved"]
	if to == "" && resolved == "" {
		return
	}
	if resolved == "" {
		x.markMapped("to")
	} else {
		x.markMapped("to_resolved") // the requested name stays among the details
	}
	o.obj("file_result", x.file(cmp.Or(resolved, to), 0))
}

func (x *ocsf) file(p string, kind int64) *object {
	name := path.Base(p)
	if p == "" {
		name = "unknown"
	}
	return x.objects.next().str("name", name).str("path", p).num("type_id", kind)
}

func (x *ocsf) network(o *object, a *action, e event.Event) {
	o.obj("src_endpoint", x.sandboxEndpoint(e))
	if a.class == dnsActivity {
		o.obj("query", x.objects.next().str("hostname", orUnknown(e.Object)).str("type", x.mappedText(e, "type")))
		return
	}
	o.obj("dst_endpoint", x.endpoint(e.Object))
	o.obj("tls", x.objects.next().str("sni", x.mappedText(e, "sni")))
	traffic := x.objects.next()
	in, hasIn := x.mappedInt(e, "in")
	out, hasOut := x.mappedInt(e, "out")
	if hasIn {
		traffic.num("bytes_in", in)
	}
	if hasOut {
		traffic.num("bytes_out", out)
	}
	if hasIn && hasOut {
		traffic.num("bytes", in+out)
	}
	o.obj("traffic", traffic)
	if a.class != httpActivity {
		return
	}
	o.obj("http_request", x.request(e))
	if code, ok := x.mappedInt(e, "status"); ok {
		o.obj("http_response", x.objects.next().num("code", code))
	}
}

// sandboxEndpoint is the session as an endpoint of a connection.
func (x *ocsf) sandboxEndpoint(e event.Event) *object {
	return x.objects.next().str("name", "sandbox").str("uid", orUnknown(e.Session))
}

func (x *ocsf) request(e event.Event) *object {
	host, port := hostPort(e.Object)
	url := x.objects.next().str("hostname", orUnknown(host)).str("path", x.mappedText(e, "path"))
	if port > 0 {
		url.num("port", port)
	}
	return x.objects.next().str("http_method", x.mappedText(e, "method")).str("version", x.mappedText(e, "proto")).obj("url", url)
}

// endpoint is where a connection goes.
func (x *ocsf) endpoint(address string) *object {
	o := x.objects.next()
	if strings.HasPrefix(address, "unix:") {
		return o.str("name", address)
	}
	host, port := hostPort(address)
	if _, err := netip.ParseAddr(host); err == nil {
		o.str("ip", host)
	} else {
		o.str("hostname", orUnknown(host))
	}
	if port > 0 {
		o.num("port", port)
	}
	return o
}

// hostPort splits HOST:PORT; without a port it is 0.
func hostPort(s string) (string, int64) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return s, 0
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return s, 0
	}
	return host, int64(port)
}

// credentialUse sets the use of a credential.
func (x *ocsf) credentialUse(o *object, e event.Event) {
	o.obj("api", x.objects.next().str("operation", e.Action).obj("service", x.objects.next().str("name", "holdfast broker")))
	o.obj("src_endpoint", x.sandboxEndpoint(e)).obj("dst_endpoint", x.endpoint(e.Object))
	if e.Action == event.CredentialUse {
		o.obj("http_request", x.request(e))
	}
	if name := x.mappedText(e, "credential"); name != "" {
		o.list("resources", x.objects.next().str("name", name).str("type", "credential"))
	}
}

// toolUse sets the call of a tool by an agent.
func (x *ocsf) toolUse(o *object, e event.Event) {
	x.api(o, e, cmp.Or(e.Detail["server"], "agent"), "tool")
}

// consent sets a request for approval, and its answer.
func (x *ocsf) consent(o *object, e event.Event) {
	x.api(o, e, "holdfast approve", "approval")
}

// api sets a call of a service; the object of the event is a resource of that kind.
func (x *ocsf) api(o *object, e event.Event, service, kind string) {
	o.obj("api", x.objects.next().str("operation", e.Action).obj("service", x.objects.next().str("name", service)))
	o.obj("src_endpoint", x.sandboxEndpoint(e))
	if e.Object != "" {
		o.list("resources", x.objects.next().str("name", e.Object).str("type", kind))
	}
}

// commandLine is an argv as typed in a shell.
func commandLine(argv []string) string {
	var b strings.Builder
	for i, arg := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(floortext.Quote(arg))
	}
	return b.String()
}
