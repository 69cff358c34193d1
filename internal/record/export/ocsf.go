package export

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// ocsfVersion is the version of the schema that is written.
const ocsfVersion = "1.9.0"

// ocsf writes one event per line. Each line is canonical (RFC 8785) and has a
// fingerprint of itself and of the line before it, so that the export is a chain
// of its own; raw_data_hash leads back to the record, whose chain is signed.
type ocsf struct {
	w       io.Writer
	options Options
	err     error // the first that happened

	line    []byte
	mapped  []string // keys of Detail that have a name in OCSF
	known   programs
	objects objects
	last    link
}

// link is what the next event says about the one before it.
type link struct {
	uid         string
	typeUID     int64
	fingerprint string // SHA-256, hex
}

func newOCSF(w io.Writer, o Options) Writer { return &ocsf{w: w, options: o} }

func (x *ocsf) Write(e event.Event) error { return x.WriteRecord(e, nil) }

func (x *ocsf) WriteRecord(e event.Event, line []byte) error {
	if x.err != nil {
		return x.err
	}
	if e.Session != x.known.session {
		x.last = link{} // a chain is of one session
	}
	x.known.remember(e)
	x.mapped, x.objects.used = x.mapped[:0], 0
	attestation := x.objects.next().str("chain_uid", orUnknown(e.Session))
	root, here := x.event(e, line, attestation)
	here.fingerprint = sum(root.append(x.line[:0]))
	attestation.obj("fingerprint", x.fingerprint(here.fingerprint, true))
	x.line = append(root.append(x.line[:0]), '\n')
	x.last = here
	if _, err := x.w.Write(x.line); err != nil {
		x.err = fmt.Errorf("writing an event as OCSF: %w", err)
	}
	return x.err
}

func (x *ocsf) Close() error { return x.err }

// event makes the whole of an event except its fingerprint, which goes into attestation.
func (x *ocsf) event(e event.Event, line []byte, attestation *object) (*object, link) {
	a := actionOf(e)
	activity, name := activityOf(a, e)
	here := link{uid: UID(e), typeUID: a.class.uid*100 + activity}
	s := severityOf(a, e)
	if _, said := e.Detail["severity"]; said {
		x.markMapped("severity")
	}
	o := x.objects.next()
	o.num("class_uid", a.class.uid).str("class_name", a.class.name).
		num("category_uid", a.class.uid/1000).num("activity_id", activity).str("activity_name", name).num("type_uid", here.typeUID).
		num("severity_id", int64(s)).str("severity", severities[s].ocsf).
		num("time", max(0, e.Time.UnixMilli())).str("message", message(e)).
		obj("metadata", x.metadata(e, line != nil)).obj("device", x.device(e))
	if line != nil {
		o.obj("raw_data_hash", x.fingerprint(sum(line), false))
	}
	x.decision(o, a, e)
	x.subject(o, a, e)
	if ms, ok := x.mappedInt(e, "ms"); ok {
		o.num("duration", ms)
	}
	if n, ok := x.mappedInt(e, "again"); ok {
		o.num("count", n+1)
	} else if e.Action == event.FileLookup {
		if n, ok := x.mappedInt(e, "count"); ok {
			o.num("count", n)
		}
	}
	if x.last.uid != "" {
		attestation.obj("prev_event", x.objects.next().str("uid", x.last.uid).num("type_uid", x.last.typeUID).
			obj("fingerprint", x.fingerprint(x.last.fingerprint, true)))
	}
	o.list("attestation_list", attestation)
	o.obj("unmapped", x.unmappedObject(e, a))
	return o, here
}

func activityOf(a *action, e event.Event) (int64, string) {
	activity, name := a.activity, a.other
	if a.class == httpActivity {
		activity, name = other, orUnknown(e.Detail["method"])
		if id, ok := methods[e.Detail["method"]]; ok {
			activity = id
		}
	}
	if activity != other {
		name = a.class.activities[activity]
	}
	return activity, name
}

func (x *ocsf) metadata(e event.Event, record bool) *object {
	profiles := []string{"record_integrity"}
	if e.Verdict != event.Unknown {
		profiles = append(profiles, "security_control")
	}
	if actionOf(e).class.uid < 2000 || actionOf(e).class == lifecycle {
		profiles = append([]string{"host"}, profiles...)
	}
	o := x.objects.next().str("version", ocsfVersion).str("uid", UID(e)).
		str("correlation_uid", e.Session).str("event_code", e.Action).
		str("log_name", "holdfast").str("log_provider", string(e.Sensor)).
		str("original_time", e.Time.UTC().Format(time.RFC3339Nano)).
		set("profiles", profiles).obj("product", x.product())
	if e.Seq > 0 {
		o.num("sequence", int64(e.Seq))
	}
	if record {
		o.str("log_format", "holdfast-jsonl")
	}
	return o
}

func (x *ocsf) product() *object {
	return x.objects.next().str("name", "Holdfast").str("vendor_name", "Holdfast").str("version", x.options.Version)
}

// device is the recorded machine.
func (x *ocsf) device(e event.Event) *object {
	name := x.known.host
	if e.Detail["host"] == name && name != "" {
		x.markMapped("host")
	}
	return x.objects.next().str("hostname", orUnknown(cmp.Or(name, x.options.Host))).num("type_id", 0).str("type", "Unknown").
		obj("os", x.objects.next().str("name", "Linux").num("type_id", 200).str("type", "Linux"))
}

// fingerprint is a SHA-256 in hex; jcs means that it is of an event's canonical
// form and not of bytes as they are.
func (x *ocsf) fingerprint(hash string, jcs bool) *object {
	o := x.objects.next().num("algorithm_id", 3).str("algorithm", "SHA-256").
		num("encoding_id", 1).str("encoding", "Hex").str("value", hash)
	if jcs {
		o.num("serialization_id", 2).str("serialization", "JCS")
	}
	return o
}

// decision sets what was decided, by which rule, and the outcome.
func (x *ocsf) decision(o *object, a *action, e event.Event) {
	switch e.Verdict {
	case event.Allowed:
		o.num("action_id", 1).str("action", "Allowed").num("disposition_id", 1).str("disposition", "Allowed")
	case event.Denied:
		o.num("action_id", 2).str("action", "Denied")
		if e.Action == event.FileQuarantine {
			o.num("disposition_id", 3).str("disposition", "Quarantined")
		} else {
			o.num("disposition_id", 2).str("disposition", "Blocked")
		}
	}
	if e.Verdict != event.Unknown && e.Rule != "" {
		o.obj("policy", x.objects.next().str("name", "Holdfast policy").str("uid", e.Rule))
	}
	o.str("status_code", e.Error)
	o.str("status_detail", x.mappedText(e, "reason"))
	switch {
	case a.class == finding:
		o.num("status_id", 1).str("status", "New")
	case e.Verdict == event.Denied || e.Error != "":
		o.num("status_id", 2).str("status", "Failure")
	case e.Verdict == event.Allowed:
		o.num("status_id", 1).str("status", "Success")
	default:
		o.num("status_id", 0).str("status", "Unknown")
	}
}

// unmappedObject holds what OCSF has no name for.
func (x *ocsf) unmappedObject(e event.Event, a *action) *object {
	o := x.objects.next().str("layer", e.Layer)
	if e.N > 0 {
		o.num("n", int64(e.N))
	}
	if e.Resolved != "" || a.class == lifecycle || a.class == processActivity || a.class == apiActivity || a.class == finding || a.class.uid == 0 {
		o.str("object", e.Object)
	}
	if e.Verdict == event.Unknown {
		o.str("rule", e.Rule)
	}
	if a.class != fileActivity && e.Action != event.HoneyRead {
		o.str("resolved", e.Resolved)
	}
	if a.class.uid == 0 || !isKnown(e.Process) {
		o.obj("process", x.processObject(e, true)) // a process has a pid or an id in OCSF
	}
	rest := x.objects.next()
	raw := x.objects.next().str("object", rawBytes(e.Object)).str("resolved", rawBytes(e.Resolved)).
		str("executable", rawBytes(e.Process.Executable)).str("cwd", rawBytes(e.Process.Cwd))
	for i, arg := range e.Process.Argv {
		if b := rawBytes(arg); b != "" {
			raw.str("argv."+strconv.Itoa(i), b)
		}
	}
	for key, value := range e.Detail {
		if !slices.Contains(x.mapped, key) {
			rest.text(safeKey(key), value)
		}
		if b := rawBytes(value); b != "" {
			raw.str("detail."+safeKey(key), b)
		}
	}
	return o.obj("detail", rest).obj("raw", raw)
}

// mappedText returns a detail, and marks it as mapped.
func (x *ocsf) mappedText(e event.Event, key string) string {
	v, ok := e.Detail[key]
	if ok {
		x.markMapped(key)
	}
	return v
}

// mappedInt returns a detail that is an integer which JSON holds exactly, and marks it as
// mapped. Any other stays among the details.
func (x *ocsf) mappedInt(e event.Event, key string) (int64, bool) {
	n, ok := exactInt(e.Detail[key])
	if ok {
		x.markMapped(key)
	}
	return n, ok
}

// exactInt parses an integer in its shortest form that a JSON reader with floating point
// reads exactly.
func exactInt(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n > -1<<53 && n < 1<<53 && strconv.FormatInt(n, 10) == s
}

func (x *ocsf) markMapped(key string) {
	if !slices.Contains(x.mapped, key) {
		x.mapped = append(x.mapped, key)
	}
}

func orUnknown(s string) string { return cmp.Or(s, "unknown") }
