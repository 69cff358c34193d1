package detect

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/detect/baseline"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/expr"
)

// groupFields are the fields by which events can be counted and distinguished,
// and what they are.
var groupFields = [...][2]string{
	{"session", "the run"},
	{"action", "what was attempted"},
	{"object", "as asked"},
	{"target", "the object as it was found, or else as asked"},
	{"name", "the last name of the target"},
	{"asked", "the last name of the object as asked"},
	{"directory", "the directory of the target"},
	{"to", "the second path, as it was found or asked"},
	{"host", "the object without its port"},
	{"domain", "the last two labels of the host"},
	{"executable", "the program that asked"},
	{"exec", "which program it was, by number"},
	{"layer", "what denied"},
	{"new", "what is new by the baseline of the workspace: its kind and name"},
}

// isField reports whether name is one of them, or detail.NAME.
func isField(name string) bool {
	if rest, ok := strings.CutPrefix(name, "detail."); ok {
		return rest != ""
	}
	return slices.ContainsFunc(groupFields[:], func(f [2]string) bool { return f[0] == name })
}

// field is one of the groupFields of a seen event.
func (s *candidate) field(name string) string {
	e := s.event
	switch name {
	case "session":
		return e.Session
	case "action":
		return e.Action
	case "object":
		return e.Object
	case "target":
		return s.target()
	case "name":
		return path.Base(s.target())
	case "asked":
		return path.Base(e.Object)
	case "directory":
		return path.Dir(s.target())
	case "to":
		return cmp.Or(e.Detail["to_resolved"], e.Detail["to"])
	case "host":
		return hostOf(e.Object)
	case "domain":
		return domainOf(hostOf(e.Object))
	case "executable":
		return s.process().Executable
	case "exec":
		return strconv.FormatUint(e.Process.Exec, 10)
	case "layer":
		return e.Layer
	case "new":
		if s.fresh.Name == "" {
			return ""
		}
		return s.fresh.String()
	}
	return e.Detail[strings.TrimPrefix(name, "detail.")]
}

func (s *candidate) target() string { return cmp.Or(s.event.Resolved, s.event.Object) }

// hostOf is the host of host:port, or of a name alone.
func hostOf(object string) string {
	if i := strings.LastIndexByte(object, ':'); i >= 0 && (strings.IndexByte(object, ':') == i || object[0] == '[') {
		object = object[:i]
	}
	return strings.Trim(object, "[]")
}

func domainOf(host string) string {
	host = strings.TrimSuffix(host, ".")
	last := strings.LastIndexByte(host, '.')
	if last < 0 {
		return host
	}
	return host[strings.LastIndexByte(host[:last], '.')+1:]
}

// candidate is an event that something may match, with what is known besides it.
type candidate struct {
	event    *event.Event
	object   mark
	to       mark
	program  *program // nil when it is not known
	place    *Place
	fresh    baseline.Thing // what is new about it, for the rule being evaluated; none for others
	fields   expr.Fields
	words    []string
	arranged bool
	arrival  uint64 // its number among events that something matched; 0 for none so far
}

// newSeen keeps an event; only events that something may match are worth it.
func newSeen(e event.Event, place *Place, object, to mark, by *program) *candidate {
	return &candidate{event: &e, place: place, object: object, to: to, program: by}
}

// process is the process that asked: from the event, or from that of its execution.
func (s *candidate) process() *event.Process {
	if s.event.Process.Executable == "" && s.program != nil {
		p := s.program.Process
		if s.event.Process.PID != 0 {
			p.PID = s.event.Process.PID
		}
		return &p
	}
	return &s.event.Process
}

// marks are the words about the event and the program that asked.
func (s *candidate) marks() []string {
	if !s.arranged {
		s.words = s.to.names(s.object.names(nil, ""), toPrefix)
		if s.program != nil {
			s.words = s.program.is.names(s.words)
		}
		s.words = s.place.keptWords(s.event, s.words)
		s.arranged = true
	}
	return s.words
}

// Field implements expr.Fields.
func (s *candidate) Field(name string) (any, bool) {
	switch name {
	case "marks":
		return s.marks(), true
	case "executable":
		return s.process().Executable, true
	case "argv":
		return s.process().Argv, true
	case "sha256":
		return s.process().SHA256, true
	case "cwd":
		return s.process().Cwd, true
	}
	if s.fields == nil {
		s.fields = expr.Event(*s.event)
	}
	return s.fields.Field(name)
}
