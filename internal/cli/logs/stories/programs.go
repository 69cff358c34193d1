package stories

import (
	"fmt"
	"strings"

	"holdfast.dev/holdfast/internal/cli/lines"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/story"
)

const (
	programLines = 400 // programs that log show has lines for, unless --long
	alike        = 5   // children of the same executable that it shows one by one
	objects      = 4   // objects of one kind that it names
)

func (pr *printer) programs() {
	for _, p := range pr.t.Programs {
		if p.Parent == 0 || !pr.isListed(p.Parent) {
			pr.program(p, "", "", "")
		}
	}
	if pr.hidden > 0 {
		pr.printf("… and %s; see log tree", words.Plural(pr.hidden, "more program", "more programs"))
	}
	if n := pr.t.Left.Programs; n > 0 {
		pr.printf("… and %s beyond the limit of a story", words.Plural(n, "program", "programs"))
	}
}

func (pr *printer) isListed(exec uint64) bool { return pr.names[exec] != "" }

// maxDepth bounds the branches that are drawn: a chain of executions can be as
// long as the log.
const maxDepth = 200

// program shows one program and those it started: branch comes before its own line,
// indent before the others.
func (pr *printer) program(p *story.Program, branch, indent, cwd string) {
	if pr.lines >= programLines && !pr.long || len(indent) > maxDepth*len("│  ") {
		pr.hidden += pr.countAll(p)
		return
	}
	pr.lines++
	kids := pr.listChildren(p)
	width := 160
	if pr.long && !pr.bare {
		width = 4000
	}
	pr.printf("%s%s%s%s", branch, words.CommandLine(p.Argv, p.ArgvLeft, width), pr.directoryText(p, cwd), pr.a.Tint(command.Grey, pr.outcome(p)))
	bar := "   "
	if len(kids) > 0 {
		bar = "│  "
	}
	if !pr.bare {
		pr.changes(p, indent+bar)
	}
	for i, k := range kids {
		b, in := "├─ ", "│  "
		if i == len(kids)-1 {
			b, in = "└─ ", "   "
		}
		if k.more > 0 {
			pr.printf("%s%s%s", indent, b, pr.a.Tint(command.Grey, fmt.Sprintf("… and %d more of %s", k.more, text.Word(k.name))))
			continue
		}
		pr.program(k.p, indent+b, indent+in, p.Cwd)
	}
}

// child is a program to be shown, or how many are left out.
type child struct {
	p    *story.Program
	name string
	more int
}

// listChildren returns the children of p that get a line of their own: of many that run the
// same executable, ended well, started nothing and were refused nothing that the
// others were not, the first few.
func (pr *printer) listChildren(p *story.Program) []child {
	var out []child
	kinds := map[string]*siblings{}
	for _, k := range pr.children[p.Exec] {
		if k == p {
			continue
		}
		name := pr.names[k.Exec]
		group := kinds[name]
		if group == nil {
			group = &siblings{at: -1, refused: map[string]bool{}}
			kinds[name] = group
		}
		dull := len(pr.children[k.Exec]) == 0 && (k.Status == "0" || k.Status == "") && k.Signal == "" && group.addObjects(k.Refused)
		if !dull || group.shown < alike || pr.long {
			group.shown++
			out = append(out, child{p: k, name: name})
			continue
		}
		if group.at < 0 {
			group.at = len(out)
			out = append(out, child{name: name})
		}
		out[group.at].more++
	}
	return out
}

// siblings are the children of a program that run one executable.
type siblings struct {
	shown   int
	at      int             // where the rest is counted; -1 for nowhere yet
	refused map[string]bool // what those that are shown were refused
}

// addObjects adds the objects of t, and reports whether none of them is new.
func (k *siblings) addObjects(t story.Touched) bool {
	known := t.More == 0
	for _, o := range t.Objects {
		key := o.What + " " + o.Name
		known = known && (k.refused[key] || lines.Usual(o.Name))
		k.refused[key] = true
	}
	return known
}

// countAll is how many programs p and those below it are.
func (pr *printer) countAll(p *story.Program) int {
	n := 0
	for todo := []*story.Program{p}; len(todo) > 0; n++ {
		last := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], pr.children[last.Exec]...)
	}
	return n
}

// directoryText names the directory, when it is not that of the program above.
func (pr *printer) directoryText(p *story.Program, above string) string {
	if p.Cwd == "" || p.Cwd == above {
		return ""
	}
	return "  in " + pr.path(p.Cwd)
}

// outcome is how a program ended.
func (pr *printer) outcome(p *story.Program) string {
	var parts []string
	if p.PID != 0 {
		parts = append(parts, fmt.Sprintf("pid %d", p.PID))
	}
	switch {
	case p.Signal != "":
		parts = append(parts, "ended by signal "+text.Line(p.Signal))
	case p.Status != "":
		parts = append(parts, "status "+text.Line(p.Status))
	case p.Replaced:
		parts = append(parts, "went on as another program")
	case !pr.t.Running:
		parts = append(parts, "status unknown")
	}
	if s := span(p); s != "" {
		parts = append(parts, s)
	}
	if p.Forks > 0 {
		parts = append(parts, words.Plural(p.Forks, "fork", "forks"))
	}
	return "  (" + strings.Join(parts, ", ") + ")"
}

// changes is what a program did, a line for each kind.
func (pr *printer) changes(p *story.Program, indent string) {
	for _, d := range []struct {
		word string
		t    story.Touched
	}{{"read", p.Read}, {"wrote", p.Wrote}, {"renamed", p.Renamed}, {"removed", p.Removed}, {"changed", p.Changed}, {"connected to", p.Reached}, {"listened on", p.Bound}} {
		if d.t.Count() > 0 {
			pr.printf("%s%s %s", indent, d.word, pr.objects(d.t))
		}
	}
	pr.refused(p, indent)
}

// refused is a line for each of the first things that a program was refused.
func (pr *printer) refused(p *story.Program, indent string) {
	shown, more := 0, p.Refused.More
	for _, o := range p.Refused.Objects {
		if lines.Usual(o.Name) && !pr.long {
			continue
		}
		if shown >= objects && !pr.long {
			more += o.Count
			continue
		}
		shown++
		pr.printf("%s%s %s%s  [%s]", indent, pr.a.Tint(command.Red, "refused"), pr.path(o.Name), words.Times(o.Count), text.Line(o.What))
	}
	if more > 0 {
		pr.printf("%s%s %d more", indent, pr.a.Tint(command.Red, "refused"), more)
	}
}

// objects names the first few, without those that every program has to do with.
func (pr *printer) objects(t story.Touched) string {
	var parts []string
	left := t.More
	for _, o := range t.Objects {
		if !pr.long && (len(parts) >= objects || isSystemFile(o.Name)) {
			left += o.Count
			continue
		}
		what := pr.path(o.Name)
		if o.To != "" {
			what += " → " + pr.path(o.To)
		}
		if o.What != "" {
			what += " (" + text.Line(o.What) + ")"
		}
		parts = append(parts, what+words.Times(o.Count))
	}
	switch {
	case left > 0 && len(parts) == 0:
		parts = append(parts, fmt.Sprintf("%d of the system", left))
	case left > 0:
		parts = append(parts, fmt.Sprintf("%d more", left))
	}
	return strings.Join(parts, ", ")
}

// isSystemFile reports whether every program reads or writes a path, such as libraries and
// /dev/null. What is not for all programs is not in view.
func isSystemFile(name string) bool {
	for _, dir := range []string{"/usr/", "/lib/", "/lib64/", "/etc/ld.so.cache", "/etc/locale.alias", "/proc/", "/sys/", "/dev/null", "/dev/tty"} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return false
}

// path is a path for the story: below the workspace, from there.
func (pr *printer) path(name string) string {
	if rest, found := strings.CutPrefix(name, pr.t.Workspace+"/"); found && pr.t.Workspace != "" && !pr.long {
		name = "./" + rest
	}
	return words.Cut(name, 300)
}
