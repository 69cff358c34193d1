package expr

import (
	"fmt"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"holdfast.dev/holdfast/internal/floor/canonical"
	"holdfast.dev/holdfast/internal/floor/event"
)

// Fields is what a condition reads: one event, of which a field is asked for
// only when the condition gets there. The values are of the Go types int,
// int64, uint64, bool, string, time.Time, []string, map[string]string, ToolArguments,
// event.Verdict and event.Sensor; false means that there is none.
type Fields interface {
	Field(name string) (any, bool)
}

// Field is one name that a condition can use.
type Field struct {
	Name    string
	Type    string // string, int, bool, timestamp, list(string), map(string, string)
	Meaning string
}

// vocabulary is the names of conditions. They are flat, unlike those of a
// record, for they are typed by hand.
var vocabulary = []Field{
	{"seq", "int", "place in the log, from 1"},
	{"time", "timestamp", "wall clock, in UTC"},
	{"session", "string", "which run"},
	{"sensor", "string", "who saw or decided it"},
	{"n", "int", "which of its sensor's events it is, from 1"},
	{"action", "string", "what was attempted"},
	{"object", "string", "what it was about, as asked"},
	{"resolved", "string", "the object as found; \"\" when it is the same or unknown"},
	{"verdict", "string", "denied, allowed or unknown"},
	{"layer", "string", "what denied"},
	{"rule", "string", "policy rule that decided, as file:line"},
	{"error", "string", "name of the error that the asker got"},
	{"pid", "int", "process that asked"},
	{"exec", "int", "which program it runs: number of its proc.exec"},
	{"parent", "int", "pid of the parent"},
	{"parent_exec", "int", "which program the parent runs"},
	{"executable", "string", "path of what is executed, as found"},
	{"sha256", "string", "of the executable, hex"},
	{"cwd", "string", "working directory of what is executed"},
	{"argv", "list(string)", "command line of what is executed"},
	{"detail", "map(string, string)", "what else is known; a key that is not there is \"\""},
	{"tool", "string", "of tool.*: its name"},
	{"server", "string", "likewise: MCP server of the tool"},
	{"agent", "string", "likewise: who calls it"},
	{"arguments", "map(string, string)", "likewise: what it is given, the first level of it; what is no text as JSON"},
	{"marks", "list(string)", "what detection calls the object; only in rules"},
}

// Vocabulary lists the names that a condition can use.
func Vocabulary() []Field { return append([]Field(nil), vocabulary...) }

// kind is what CEL calls a type, and the value of a name of which there is none.
type kind struct {
	name  string
	cel   *cel.Type
	empty ref.Val
}

// kindsOf are the types by the names of fields.
func kindsOf(fields []Field) map[string]kind {
	byType := map[string]kind{}
	for _, k := range []kind{
		{"string", cel.StringType, types.String("")},
		{"int", cel.IntType, types.Int(0)},
		{"bool", cel.BoolType, types.False},
		{"timestamp", cel.TimestampType, types.Timestamp{}},
		{"list(string)", cel.ListType(cel.StringType), types.NewStringList(types.DefaultTypeAdapter, nil)},
		{"map(string, string)", cel.MapType(cel.StringType, cel.StringType), newDetails(nil, false)},
	} {
		byType[k.name] = k
	}
	m := map[string]kind{}
	for _, f := range fields {
		m[f.Name] = byType[f.Type]
	}
	return m
}

// activation gives CEL the fields of one event, and remembers the first that
// could not be.
type activation struct {
	over   *language
	fields Fields
	err    error
}

var activations = sync.Pool{New: func() any { return new(activation) }}

// Parent is part of what CEL asks of an activation: there is none.
func (*activation) Parent() cel.Activation { return nil }

// ResolveName gives the value of a name.
func (a *activation) ResolveName(name string) (any, bool) {
	want, known := a.over.kinds()[name]
	if !known {
		return nil, false
	}
	v, found := a.fields.Field(name)
	if !found && a.over.derive != nil {
		v, found = a.over.derive(a.fields, name)
	}
	if !found {
		return want.empty, true
	}
	value, got := convert(v)
	if got == "unknown" {
		return value, true
	}
	if got != want.name {
		if a.err == nil {
			a.err = fmt.Errorf("evaluating a condition: the field %s is a %T and should be of type %s", name, v, want.name)
		}
		return want.empty, true
	}
	return value, true
}

// convert makes a value of CEL's, and names its type.
func convert(v any) (ref.Val, string) {
	switch v := v.(type) {
	case string:
		return types.String(v), "string"
	case event.Verdict:
		return types.String(v.String()), "string"
	case event.Sensor:
		return types.String(v), "string"
	case int:
		return types.Int(v), "int"
	case int64:
		return types.Int(v), "int"
	case uint64:
		return types.Int(v), "int"
	case bool:
		return types.Bool(v), "bool"
	case unknown:
		return v.value, "unknown"
	case time.Time:
		return types.Timestamp{Time: v}, "timestamp"
	case []string:
		return types.NewStringList(types.DefaultTypeAdapter, v), "list(string)"
	case map[string]string:
		return newDetails(v, false), "map(string, string)"
	case ToolArguments:
		return newDetails(v, true), "map(string, string)"
	}
	return nil, ""
}

// details is a map in which what is not there is "": conditions about a detail
// that only some events have need not ask for it first.
type details struct {
	traits.Mapper
	m map[string]string

	// By what their names have in common with those in other letters, where readers
	// may take both for the same: nil where none does.
	folded map[string]string
}

func newDetails(m map[string]string, fold bool) details {
	d := details{Mapper: types.NewStringStringMap(types.DefaultTypeAdapter, m), m: m}
	if fold {
		d.folded = make(map[string]string, len(m))
		for name := range m {
			d.folded[canonical.FoldName(name)] = name
		}
	}
	return d
}

// get returns the value of a key; an error where the key stands there in other
// letters, for it cannot be told whether the program that gets it minds them.
func (d details) get(key string) ref.Val {
	v, found := d.m[key]
	if !found && d.folded != nil {
		if other, like := d.folded[canonical.FoldName(key)]; like {
			return types.NewErr("%q is there as %q", key, other)
		}
	}
	return types.String(v)
}

// FindStringKey is the short way for detail.name and detail["name"]. What it does
// not find is looked up with Find.
func (d details) FindStringKey(key string) (any, bool) {
	if v, found := d.m[key]; found || d.folded == nil {
		return v, true
	}
	return nil, false
}

// Find gives the value of a key.
func (d details) Find(key ref.Val) (ref.Val, bool) {
	if s, ok := key.(types.String); ok {
		return d.get(string(s)), true
	}
	return d.Mapper.Find(key)
}

// Get gives the value of a key.
func (d details) Get(key ref.Val) ref.Val {
	if s, ok := key.(types.String); ok {
		return d.get(string(s))
	}
	return d.Mapper.Get(key)
}

// Contains says whether a key is there.
func (d details) Contains(key ref.Val) ref.Val {
	if s, ok := key.(types.String); ok {
		if v := d.get(string(s)); types.IsError(v) {
			return v
		}
	}
	return d.Mapper.Contains(key)
}

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
