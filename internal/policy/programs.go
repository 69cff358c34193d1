package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
	lexical "holdfast.dev/holdfast/internal/floor/paths"
)

// programKeys are those of the section programs.
var programKeys = []key{
	{name: "programs",
		doc: "Which programs may be started inside. Off without `else`. " + programsDoc},
	{name: "programs.allow", kind: &startable, project: listed, example: "[git, /usr/lib/git-core/*, node, npm, /usr/bin/make, ./scripts/*]",
		doc: programsAllowDoc},
	{name: "programs.else", kind: &words, words: []string{programsOff, programsReport, programsRefuse}, project: raises, example: "report",
		doc: programsElseDoc},
}

var startable = kind{
	takes:  "a list of names, paths and patterns",
	many:   true,
	text:   func(k key, text string) (Entry, string, error) { return checked(k, text, programText(text)) },
	schema: func(key) map[string]any { return list(textShape()) },
}

// The texts of the reference.
const (
	programsDoc      = "What an interpreter reads is not a program: see [Programs](#programs)."
	programsAllowDoc = "Programs that may be started. What counts is the path of the file that the kernel would execute, with every link followed, and nothing that the caller chooses.\n\n" +
		"| entry | meaning |\n| --- | --- |\n" +
		"| `git` | the programs of that name in the directories of `PATH` inside, where nothing inside can write: a copy elsewhere is another program |\n" +
		"| `/usr/bin/make`, `./build.sh` | that file; a relative path counts from the workspace. A link of yours is followed when the run begins |\n" +
		"| `python3*`, `./scripts/*` | patterns: `*`, `?` and `[…]` stand for parts of one name |\n" +
		"| `./node_modules/**` | everything below a directory |\n\n" +
		"Names and links are looked up once, when the run begins. What can be written inside may be named: then whatever the command puts there may be started, and `holdfast policy show` says so."
	programsElseDoc = "What happens to programs that are not listed. `refuse`: starting one is denied (`EACCES`), nobody is asked, and an alert is raised (`program-refused`). `report`: it starts, its event says `unlisted`, and an alert is raised once for each (`program-unlisted`, low). `off`: nothing, even if there is a list."
)

// What becomes of a program that programs.allow does not name.
const (
	programsOff    = "off"
	programsReport = "report"
	programsRefuse = "refuse"
)

// Programs are the programs that may be started inside. The zero value lets all
// of them.
type Programs struct {
	Else   string // of the others: report or refuse; "" for all may be started and none is reported
	Allow  []Program
	Origin Origin // of Else
}

// Program is one entry of the list: some files, or a pattern.
type Program struct {
	Text    string   // as it was written
	Paths   []string // absolute, as found when the run was planned, every link followed
	Dir     string   // of a pattern: the directory, as found, that it counts from; "" for no pattern
	Pattern string   // of what is below Dir: path.Match, and "/**" at the end for all that is below that
	Origin  Origin
}

// allows reports whether a file, by its path without links, is meant.
func (p Program) allows(file string) bool {
	if p.Dir == "" {
		return slices.Contains(p.Paths, file)
	}
	name, ok := lexical.Rel(p.Dir, file)
	if !ok {
		return false
	}
	pattern, deep := strings.CutSuffix("/"+p.Pattern, "/**")
	parts := strings.Split("/"+name, "/")
	above := strings.Count(pattern, "/") + 1
	if deep {
		if len(parts) <= above {
			return false
		}
		parts = parts[:above]
	}
	matches, err := path.Match(pattern, strings.Join(parts, "/"))
	return matches && err == nil
}

// entryAllowing is the entry that allows a file; false for none.
func (p Programs) entryAllowing(file string) (Program, bool) {
	i := slices.IndexFunc(p.Allow, func(one Program) bool { return one.allows(file) })
	if i < 0 {
		return Program{}, false
	}
	return p.Allow[i], true
}

// unlisted is the first file of an execution that is not in the list: the script,
// those that interpret it, or the program. "" for none. The command of the run is
// what the user asked for. Env as an interpreter executes a program, and that is
// judged then.
func (c *Consent) unlisted(a event.Attempt) string {
	if c.programs.Else == "" || a.Kind != event.KindExec || a.Command {
		return ""
	}
	files := a.Between
	if a.Script != "" {
		files = slices.Concat([]string{a.Script}, files)
	}
	if a.Script == "" || path.Base(a.Process.Executable) != "env" || !c.fixed(a.Process.Executable) {
		files = slices.Concat(files, []string{a.Process.Executable})
	}
	for _, file := range files {
		if _, ok := c.programs.entryAllowing(file); !ok {
			return cmp.Or(file, a.Path, "?")
		}
	}
	return ""
}

// programText checks an entry of programs.allow.
func programText(text string) error {
	if err := pathText(text); err != nil {
		return err
	}
	name := strings.TrimSuffix(text, "/**")
	_, err := path.Match(name, "")
	switch {
	case err != nil:
		return fmt.Errorf("the pattern %q: %w", printable(text), err)
	case strings.Contains(name, "**"):
		return fmt.Errorf("%q: ** is allowed only after a slash at the end, as in ./tools/**", printable(text))
	case slices.Contains([]string{"", ".", "~"}, name) && name == text || strings.HasSuffix(name, "/"):
		return fmt.Errorf("%q is not a program; for all programs of a directory write DIRECTORY/*", printable(text))
	}
	return nil
}

// programs finds the programs that may be started. PATH inside must be known.
func (p *Plan) programs(e Effective, v *view) error {
	p.Programs.Else = e.word("programs.else")
	all := e.entriesFor("programs.allow")
	if p.Programs.Else == "" && len(all) > 0 {
		return fault(all[0].Origin, "add else: report or else: refuse below programs", "programs.allow names programs, but programs.else does not say what happens to the others")
	}
	if p.Programs.Else == "" || p.Programs.Else == programsOff {
		p.Programs.Else = ""
		return nil
	}
	modes := e.entriesFor("programs.else")
	p.Programs.Origin = modes[len(modes)-1].Origin
	x := explainer{plan: *p, host: v.host}
	var errs Errors
	for _, one := range all {
		find := x.programPath
		if !strings.Contains(one.Value, "/") {
			find = x.programName
		}
		program, note, err := find(one, v)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		program.Text, program.Origin = one.Value, one.Origin
		p.Programs.Allow = append(p.Programs.Allow, program)
		if note != "" {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: programs.allow: %s %s", one.Origin, printable(one.Value), note))
		}
	}
	if v.host.Executable != "" { // the hooks of agents are this program
		p.Programs.Allow = append(p.Programs.Allow, Program{Text: "holdfast", Paths: []string{v.host.Executable}, Origin: Origin{File: "holdfast"}})
	}
	return errs.orNil()
}

// programName finds the files that a name, or a pattern of names, is of in the
// directories of PATH inside. Nothing inside can have put one there.
func (x explainer) programName(one Entry, v *view) (p Program, note string, _ *Error) {
	for _, dir := range filepath.SplitList(variableIn(x.plan.Env, "PATH")) {
		names := []string{one.Value}
		if strings.ContainsAny(one.Value, wildcards) {
			names = matching(dir, one.Value)
		}
		for _, name := range names {
			at, err := v.locate(filepath.Join(dir, name))
			if err == nil && at.file && at.mode&0o111 != 0 && x.unreplaceable(at) && !slices.Contains(p.Paths, at.path) {
				p.Paths = append(p.Paths, at.path)
			}
		}
	}
	if len(p.Paths) == 0 {
		note = "is in no directory of PATH that is read-only inside"
	}
	return p, note, nil
}

// unreplaceable reports whether nothing inside can put something else in the place of a
// file, or of a link that leads to it.
func (x explainer) unreplaceable(at located) bool {
	return x.fixed(at.path) && !slices.ContainsFunc(at.links, func(l link) bool { return !x.fixed(l.at) })
}

// programPath finds the file, or the directory of a pattern, that a path names.
func (x explainer) programPath(one Entry, v *view) (p Program, note string, _ *Error) {
	given := filepath.Clean(expand(one.Value, x.plan.Workspace, x.host.Home))
	if first := strings.IndexAny(one.Value, wildcards); first >= 0 {
		lead := one.Value[:strings.LastIndexByte(one.Value[:first+1], '/')+1]
		p.Dir = filepath.Clean(expand(lead, x.plan.Workspace, x.host.Home))
		p.Pattern, given = one.Value[len(lead):], p.Dir
	}
	at, err := v.locate(given)
	if bad := x.host.findUntrustedLink(at, v.writable); bad != nil {
		return p, "", fault(one.Origin, bad.hint(one.name()), "programs.allow: the path %s: %s", printable(one.Value), bad)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		at.path = nearestReal(given)
	case err != nil:
		return p, "", &Error{Origin: one.Origin, Msg: fmt.Sprintf("programs.allow: the path %s: %s", printable(one.Value), reason(err)), cause: err}
	case at.dir && p.Dir == "":
		return p, "", fault(one.Origin, "for the programs in it write "+one.Value+"/*", "programs.allow: %s is a directory", printable(one.Value))
	}
	if p.Dir != "" {
		p.Dir = at.path
	} else {
		p.Paths = []string{at.path}
	}
	if !x.fixed(at.path) {
		note = "can be written inside: what the command puts there may be started"
	}
	return p, note, nil
}

// wildcards make an entry a pattern.
const wildcards = "*?[\\"

// matching are the names in a directory that match a pattern.
func matching(dir, pattern string) (names []string) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil // a PATH may name directories that are not there
	}
	for _, one := range all {
		if ok, err := path.Match(pattern, one.Name()); ok && err == nil {
			names = append(names, one.Name())
		}
	}
	return names
}

func programRows(e Effective, p Plan) (rows []Row) {
	for _, one := range p.Programs.Allow {
		value := one.Text
		if len(one.Paths) > 0 && !slices.Equal(one.Paths, []string{value}) {
			value += " (" + strings.Join(one.Paths, ", ") + ")"
		}
		rows = append(rows, Row{"programs.allow", value, one.Origin.String()})
	}
	return append(rows, e.rows("programs.else")...)
}

// explainPrograms adds to an answer whether an executable file may be started.
func (x explainer) explainPrograms(a *Answer) {
	p := x.plan.Programs
	if p.Else == "" {
		return
	}
	by, ok := p.entryAllowing(a.Resolved)
	switch add := "under programs.allow: " + a.Resolved; {
	case ok:
		a.Execute.Why += "; programs.allow has it (" + by.Origin.String() + ")"
	case p.Else == programsRefuse:
		a.Execute = &Verdict{Why: "programs.allow does not list it", Rule: p.Origin.String(), Add: add}
	default:
		a.Execute.Why += "; programs.allow does not list it, which is reported (" + p.Origin.String() + ")"
		a.Execute.Add = add
	}
}
