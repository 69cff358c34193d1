package expr

import "holdfast.dev/holdfast/internal/floor/event"

// Fields is what a condition reads: one event, whose fields are read only when the
// condition needs them. The values are of the Go types int, int64, uint64, bool,
// string, time.Time, []string, map[string]string, ToolArguments, event.Verdict and
// event.Sensor; false means that there is no value.
type Fields interface {
	Field(name string) (any, bool)
}

// Field is one name that a condition can use.
type Field struct {
	Name    string
	Type    string // string, int, bool, timestamp, list(string), map(string, string)
	Meaning string
}

// vocabulary is the names of conditions. They are flat, unlike those of a record,
// because they are typed by hand.
var vocabulary = []Field{
	{"seq", "int", "place in the log, from 1"},
	{"time", "timestamp", "wall clock, in UTC"},
	{"session", "string", "name of the run"},
	{"sensor", "string", "what saw or decided it"},
	{"n", "int", "number of the event among those of its sensor, from 1"},
	{"action", "string", "what was attempted"},
	{"object", "string", "what it was about, as asked"},
	{"resolved", "string", "the object as found; \"\" when it is the same or unknown"},
	{"verdict", "string", "denied, allowed or unknown"},
	{"layer", "string", "what denied"},
	{"rule", "string", "policy rule that decided, as file:line"},
	{"error", "string", "name of the error that the caller got"},
	{"pid", "int", "process that asked"},
	{"exec", "int", "which program it runs: number of its proc.exec"},
	{"parent", "int", "pid of the parent"},
	{"parent_exec", "int", "which program the parent runs"},
	{"executable", "string", "path of what is executed, as found"},
	{"sha256", "string", "of the executable, hex"},
	{"cwd", "string", "working directory of what is executed"},
	{"argv", "list(string)", "command line of what is executed"},
	{"detail", "map(string, string)", "what else is known; a missing key is \"\""},
	{"tool", "string", "of tool.*: name of the tool"},
	{"server", "string", "likewise: MCP server of the tool"},
	{"agent", "string", "likewise: the agent that calls it"},
	{"arguments", "map(string, string)", "likewise: its arguments, the first level only; a value that is not a string as JSON"},
	{"marks", "list(string)", "marks that detection puts on the object; only in rules"},
}

// Vocabulary lists the names that a condition can use.
func Vocabulary() []Field { return append([]Field(nil), vocabulary...) }

// Event gives the fields of an event.
func Event(e event.Event) Fields { return fieldsOf{e} }

type fieldsOf struct{ event.Event }

// Field implements Fields.
func (f fieldsOf) Field(name string) (any, bool) {
	switch e := f.Event; name {
	case "seq":
		return e.Seq, true
	case "time":
		return e.Time, true
	case "session":
		return e.Session, true
	case "sensor":
		return e.Sensor, true
	case "n":
		return e.N, true
	case "action":
		return e.Action, true
	case "object":
		return e.Object, true
	case "resolved":
		return e.Resolved, true
	case "verdict":
		return e.Verdict, true
	case "layer":
		return e.Layer, true
	case "rule":
		return e.Rule, true
	case "error":
		return e.Error, true
	case "detail":
		return e.Detail, true
	}
	return processField(f.Process, name)
}

func processField(p event.Process, name string) (any, bool) {
	switch name {
	case "pid":
		return p.PID, true
	case "exec":
		return p.Exec, true
	case "parent":
		return p.Parent, true
	case "parent_exec":
		return p.ParentExec, true
	case "executable":
		return p.Executable, true
	case "sha256":
		return p.SHA256, true
	case "cwd":
		return p.Cwd, true
	case "argv":
		return p.Argv, true
	}
	return nil, false
}
