package consent

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Line is one line of the description of a request for a human.
type Line struct {
	Name string `json:"name,omitempty"` // such as program
	Text string `json:"text"`           // made visible
	Warn bool   `json:"warn,omitempty"` // it is unusual, and easy to miss
}

// What is shown in full: as much of the arguments as the supervisor reads, and as
// many as a person could read through. What is longer can be allowed only once.
const (
	wholeBytes     = 64 << 10
	wholeArguments = 2000
	everything     = 1 << 24 // characters: more than the visible form of so many bytes has
)

// How many arguments have lines of their own if there are too many: at the
// beginning and at the end.
const (
	firstArguments = 30
	lastArguments  = 10
)

// tooLong reports whether an attempt is too long to be shown in full.
func tooLong(a event.Attempt) bool {
	n := len(a.Path) + len(a.To) + len(a.URLPath) + len(a.Arguments) + len(a.Process.Executable) + len(a.Script) + len(a.Process.Cwd)
	if a.Kind == event.KindExec {
		n += total(a.Process.Argv) + total(a.Interpreted) + total(a.Environment)
	}
	return n > wholeBytes || a.Kind == event.KindExec && len(a.Process.Argv)+len(a.Interpreted)+len(a.Environment) > wholeArguments
}

// description collects the lines that describe a request.
type description struct {
	lines []Line
	long  bool // it is too long to be shown in full
}

func (s *description) addLine(name, format string, args ...any) {
	s.lines = append(s.lines, Line{Name: name, Text: fmt.Sprintf(format, args...)})
}

func (s *description) warn(format string, args ...any) {
	s.lines = append(s.lines, Line{Name: "unusual", Text: fmt.Sprintf(format, args...), Warn: true})
}

// textLimit is how much of a text is shown, in characters.
func (s *description) textLimit() int {
	if s.long {
		return longest
	}
	return everything
}

// text shows a text that came from inside, and what a reader might miss in it.
func (s *description) text(name, text string) {
	s.addLine(name, "%s", quote(text, s.textLimit()))
	s.notes(name, text)
}

func (s *description) notes(name, text string) {
	for _, n := range Notes(text) {
		s.warn("%s: %s", name, n)
	}
}

// Describe returns the description of a request for a human, word for word the
// same wherever it is shown. Every text in it is made visible. Up to 64 KiB and
// 2000 arguments are there in full, below the first line, which is a summary;
// if it is longer, the description says what was left out.
func Describe(r Request) []Line {
	a := r.Attempt
	s := description{long: tooLong(a)}
	s.addLine("would happen", "%s", Summary(a))
	switch a.Kind {
	case event.KindExec:
		s.exec(r)
	case event.KindFile:
		s.text("file", a.Path)
		if a.To != "" {
			s.text("to", a.To)
		}
	case event.KindConnect, event.KindRequest, event.KindCredential:
		s.network(a)
	case event.KindTool:
		s.tool(a)
	}
	if a.Kind != event.KindExec {
		s.asker(a)
	}
	s.chain(r.Chain)
	rule := Visible(r.Rule)
	if r.Reason != "" {
		rule = strings.TrimPrefix(rule+": "+Visible(r.Reason), ": ")
	}
	s.addLine("rule", "%s", rule)
	if r.Count > 1 {
		s.addLine("waiting", "%d that are the same; once is for the first of them", r.Count)
	}
	s.addLine("until", "%s UTC, and then it is denied", r.Expires.UTC().Format(time.TimeOnly))
	s.scopes(r)
	return s.lines
}

func (s *description) scopes(r Request) {
	s.addLine("once", "%s", Words(r, Once, false))
	if why := r.Limited(); why != "" {
		s.warn("it can be allowed only once: %s", why)
		return
	}
	s.addLine("session", "%s", Words(r, Session, false))
	s.addLine("for a time", "the same as session, for the time that you give")
	if d := path.Dir(r.Attempt.Path); r.Attempt.Kind == event.KindFile && path.IsAbs(d) && d != "/" {
		s.addLine("directory", "%s", Words(r, Session, true))
	}
}

// exec describes what would be executed.
func (s *description) exec(r Request) {
	a, p := r.Attempt, r.Attempt.Process
	s.addLine("program", "%s", program(p.Executable, p.SHA256, s.textLimit()))
	s.notes("program", p.Executable)
	if a.Path != "" && a.Path != p.Executable && a.Path != a.Script {
		s.text("asked for as", a.Path)
	}
	if a.Script != "" {
		s.addLine("script", "%s, which the program interprets", program(a.Script, a.ScriptSHA256, s.textLimit()))
		s.notes("script", a.Script)
	}
	s.arguments(executedArgs(a), a.Cut)
	s.text("in directory", p.Cwd)
	if a.ParentExecutable != "" && len(r.Chain) == 0 {
		s.text("started by", a.ParentExecutable)
	}
	s.environment(a)
	if !systemFile(p.Executable) {
		s.warn("the program is not in a system directory")
	}
	if r.Writable {
		s.warn("programs inside can write what would be executed")
	}
	if p.SHA256 == "" {
		s.warn("the content of the program is not known")
	}
	if a.Script != "" && a.ScriptSHA256 == "" {
		s.warn("the content of the script is not known")
	}
	if len(p.Argv) > 0 && a.Script == "" && path.Base(p.Argv[0]) != path.Base(p.Executable) {
		s.warn("it calls itself %s", quote(p.Argv[0], s.textLimit()))
	}
	if a.Cut {
		s.warn("not all of its arguments are known")
	}
}

// arguments adds a line for each argument, and says how many there are.
func (s *description) arguments(argv []string, cut bool) {
	n := max(len(argv)-1, 0)
	count := strconv.Itoa(n)
	if cut {
		count = "more than " + count
	}
	s.addLine("arguments", "%s", count)
	for i := 1; i < len(argv); i++ {
		if left := len(argv) - lastArguments - i; s.long && i > firstArguments && left > 0 {
			s.warn("%d arguments are not shown here, of %d bytes", left, total(argv[i:i+left]))
			i += left
		}
		s.text(strconv.Itoa(i), argv[i])
	}
}

func total(list []string) int {
	n := 0
	for _, s := range list {
		n += len(s)
	}
	return n
}

// systemTrees are where a machine has its programs.
var systemTrees = []string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/nix/store/", "/gnu/store/", "/snap/"}

func systemFile(file string) bool {
	for _, t := range systemTrees {
		if strings.HasPrefix(file, t) && path.Clean(file) == file {
			return true
		}
	}
	return false
}

// network describes a connection, a request and the use of a credential.
func (s *description) network(a event.Attempt) {
	if a.Name != "" {
		s.text("credential", a.Name)
	}
	s.addLine("host", "%s", host(a))
	if strings.ContainsFunc(a.Host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		s.warn("the host name is not in Latin letters: %s", Quote(a.Host))
	} else if strings.Contains("."+strings.ToLower(a.Host), ".xn--") {
		s.warn("the host name encodes one that is not in Latin letters")
	}
	s.addLine("port", "%d", a.Port)
	if a.Protocol != "" {
		s.addLine("protocol", "%s", Visible(a.Protocol))
	}
	if a.Method != "" {
		s.text("method", a.Method)
	}
	if a.URLPath != "" {
		s.text("path", a.URLPath)
	}
	if !a.Known && a.Kind != event.KindCredential {
		s.warn("no rule of the policy allows this destination")
	}
}

// tool describes a call of a tool.
func (s *description) tool(a event.Attempt) {
	s.text("tool", a.Tool)
	if a.Server != "" {
		s.text("server", a.Server)
	}
	if a.Agent != "" {
		s.text("agent", a.Agent)
	}
	s.addLine("arguments", "%s", visible(a.Arguments, s.textLimit()))
	s.notes("arguments", a.Arguments)
	if s.long {
		s.warn("the arguments have %d bytes, and are not all shown", len(a.Arguments))
	}
	if a.Cut {
		s.warn("not all of its arguments are known")
	}
}

// asker is the program that asks, unless it is the one that would be executed.
func (s *description) asker(a event.Attempt) {
	p := a.Process
	if p.Executable == "" {
		if a.Kind != event.KindTool {
			s.warn("which program asks is not known")
		}
		return
	}
	s.addLine("asked by", "%s", program(p.Executable, p.SHA256, s.textLimit()))
	if len(p.Argv) > 0 {
		s.addLine("which is", "%s", command(event.Attempt{Process: p}))
	}
	s.notes("asked by", p.Executable)
}

// longestChain is how many of the asking programs are shown.
const longestChain = 8

func (s *description) chain(chain []Asker) {
	for i, c := range chain {
		if i == longestChain && len(chain) > i+1 {
			s.addLine("started by", "%d more", len(chain)-i)
			return
		}
		text := command(event.Attempt{Process: event.Process{Executable: c.Executable, Argv: c.Argv}})
		if c.PID > 0 {
			text += fmt.Sprintf(" (pid %d)", c.PID)
		}
		s.addLine("started by", "%s", text)
	}
}
