package expr

import (
	"slices"
	"sync"

	"holdfast.dev/holdfast/internal/floor/event"
)

// attemptField is a name that a condition on an attempt can use, and the kinds
// of attempts that a condition with it is most likely about; none for any.
type attemptField struct {
	Field
	about []event.Kind
}

var (
	ofExec    = []event.Kind{event.KindExec}
	ofFile    = []event.Kind{event.KindFile}
	ofNetwork = []event.Kind{event.KindConnect, event.KindRequest, event.KindCredential}
	ofRequest = []event.Kind{event.KindRequest, event.KindCredential}
)

// attemptVocabulary is the names of conditions on attempts.
var attemptVocabulary = [...]attemptField{
	{Field{"action", "string", "what is attempted: exec, file, connect, request, credential or tool"}, nil},
	{Field{"program", "string", "the executed program by its well-known name, whatever its file is called; of other actions the name of the program that asks"}, ofExec},
	{Field{"verb", "string", "its subcommand, such as `push`: the full name of an abbreviation"}, ofExec},
	{Field{"args", "list(string)", "its arguments, after the verb if it has one; options before the verb are left out"}, ofExec},
	{Field{"argv", "list(string)", "the command line as it was given, with the name that the program is called by"}, ofExec},
	{Field{"executable", "string", "file of the program, every link followed; of other actions that of the program that asks"}, ofExec},
	{Field{"sha256", "string", "of that file, hex"}, ofExec},
	{Field{"script", "string", "file that the executable interprets, where it begins with #!"}, ofExec},
	{Field{"cwd", "string", "working directory"}, ofExec},
	{Field{"parent", "string", "file of the program that asks for it"}, ofExec},
	{Field{"path", "string", "of a file, every link followed; of what is executed, as asked for"}, ofFile},
	{Field{"operation", "string", "write, create, mkdir, unlink, rename, link, symlink, chmod, chown, truncate, mknod or xattr"}, ofFile},
	{Field{"to", "string", "the other path of a rename or a link"}, ofFile},
	{Field{"outside", "bool", "whether the file is outside the workspace"}, ofFile},
	{Field{"host", "string", "a DNS name or an address"}, ofNetwork},
	{Field{"port", "int", "of the host"}, ofNetwork},
	{Field{"kind", "string", "protocol: tls, http or tcp"}, ofNetwork},
	{Field{"known", "bool", "whether a rule of the policy allows the host and the port"}, ofNetwork},
	{Field{"method", "string", "of a request, upper case"}, ofRequest},
	{Field{"url_path", "string", "of a request, without the query"}, ofRequest},
	{Field{"credential", "string", "name of the credential that is used"}, []event.Kind{event.KindCredential}},
	{Field{"tool", "string", "name of the tool"}, []event.Kind{event.KindTool}},
	{Field{"server", "string", "MCP server of the tool"}, []event.Kind{event.KindTool}},
	{Field{"agent", "string", "agent that calls it"}, []event.Kind{event.KindTool}},
	{Field{"arguments", "map(string, string)", "its arguments, the first level only; a value that is not a string as JSON"}, []event.Kind{event.KindTool}},
}

// AttemptVocabulary lists the names that a condition on an attempt can use.
func AttemptVocabulary() (out []Field) {
	for _, f := range attemptVocabulary {
		out = append(out, f.Field)
	}
	return out
}

// Kinds are all kinds of attempts.
func Kinds() []event.Kind {
	return []event.Kind{event.KindExec, event.KindFile, event.KindConnect, event.KindRequest, event.KindCredential, event.KindTool}
}

var attempts = sync.OnceValue(func() *language {
	return newLanguage(AttemptVocabulary(), map[string][]string{
		"action":    texts(Kinds()),
		"operation": {"write", "create", "mkdir", "unlink", "rename", "link", "symlink", "chmod", "chown", "truncate", "mknod", "xattr"},
		"kind":      {"tls", "http", "tcp"},
	}, nil)
})

func texts(kinds []event.Kind) (out []string) {
	for _, k := range kinds {
		out = append(out, string(k))
	}
	return out
}

// CompileAttempt checks a condition on an attempt, as Compile one on an event.
func CompileAttempt(condition string) (*Program, error) { return attempts().compile(condition) }

// About returns which kinds of attempts a condition is about: those that it names by
// action; else those that have one of the fields that it names; else all.
func (p *Program) About() []event.Kind {
	if only, bounded := p.Only("action"); bounded {
		var out []event.Kind
		for _, word := range only {
			out = append(out, event.Kind(word))
		}
		return out
	}
	named := map[string]bool{}
	p.tree.walk(func(n *node) {
		if n.op == opField || n.op == opBound {
			named[n.name] = true
		}
	})
	if named["action"] { // in a way that bounds nothing
		return Kinds()
	}
	var out []event.Kind
	for _, f := range attemptVocabulary {
		if !named[f.Name] {
			continue
		}
		for _, k := range f.about {
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	if len(out) == 0 {
		return Kinds()
	}
	return out
}

// Only lists the values of a field of text without which the condition cannot
// be true, each once. It is not bounded where there may be others.
func (p *Program) Only(field string) (values []string, bounded bool) {
	return p.tree.only(field)
}

func (n *node) only(field string) ([]string, bool) {
	switch n.op {
	case opAnd, opOr:
		return n.onlyOfAll(field)
	case opEqual:
		name, other := n.args[0], n.args[1]
		if other.isField(field) {
			name, other = other, name
		}
		if text, ok := other.text(); ok && name.isField(field) {
			return []string{text}, true
		}
	case opIn:
		if !n.args[0].isField(field) || n.args[1].op != opList {
			return nil, false
		}
		var all []string
		for _, one := range n.args[1].args {
			text, ok := one.text()
			if !ok {
				return nil, false
			}
			all = append(all, text)
		}
		return unique(all), true
	}
	return nil, false
}

// onlyOfAll is only for an operator whose operands must all be true, or any of them.
func (n *node) onlyOfAll(field string) (values []string, bounded bool) {
	for _, a := range n.args {
		some, bounds := a.only(field)
		switch {
		case n.op == opOr && !bounds:
			return nil, false
		case n.op == opOr:
			values, bounded = unique(append(values, some...)), true
		case bounds && !bounded:
			values, bounded = some, true
		case bounds:
			values = slices.DeleteFunc(values, func(v string) bool { return !slices.Contains(some, v) })
		}
	}
	return values, bounded
}

func unique(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// Attempted is an attempt that several conditions are evaluated over, each of
// whose fields is asked for once. It is for one goroutine.
type Attempted struct {
	of     Fields
	values [len(attemptVocabulary)]any
	asked  uint64 // a bit for each of values that is there
}

// Reset restarts with other fields.
func (a *Attempted) Reset(f Fields) { a.of, a.asked = f, 0 }

// Field implements Fields.
func (a *Attempted) Field(name string) (any, bool) {
	number, found := attempts().index[name]
	if !found {
		return nil, false
	}
	v := a.get(number)
	return v, v != nil
}

func (a *Attempted) get(number int) any {
	if a.asked&(1<<number) == 0 {
		a.values[number], _ = a.of.Field(attemptVocabulary[number].Name)
		a.asked |= 1 << number
	}
	return a.values[number]
}
