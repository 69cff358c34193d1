package consent

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// How much of a command line is shown in one line.
const (
	lineWord  = 80  // characters of one argument
	lineTotal = 240 // of all but the last two
)

// Summary is an attempt in one line, made visible: for a long command line its
// beginning and end.
func Summary(a event.Attempt) string {
	switch a.Kind {
	case event.KindExec:
		return command(a)
	case event.KindFile:
		return changeText(a)
	case event.KindConnect:
		return "connect to " + destination(a)
	case event.KindRequest:
		return visible(a.Method, lineWord) + " " + location(a)
	case event.KindCredential:
		s := "use the credential " + quote(a.Name, lineWord)
		if a.Host != "" {
			s += " for " + strings.TrimLeft(visible(a.Method, lineWord)+" "+location(a), " ")
		}
		return s
	case event.KindTool:
		s := "call the tool " + quote(a.Tool, lineWord)
		if a.Server != "" {
			s += " of " + quote(a.Server, lineWord)
		}
		if a.Arguments != "" {
			s += " with " + visible(a.Arguments, lineTotal)
		}
		return s
	}
	return "do something of an unknown kind: " + quote(string(a.Kind), lineWord)
}

// command is the command line of an exec. Words from right to left must not
// reverse those beside them.
func command(a event.Attempt) string {
	argv := executedArgs(a)
	if len(argv) == 0 {
		return quote(a.Process.Executable, lineTotal)
	}
	if program := path.Base(a.Process.Executable); path.Base(argv[0]) != program {
		argv[0] = a.Process.Executable // and not what it calls itself
	}
	var words []string
	length, last := 0, max(len(argv)-2, 1)
	for i, arg := range argv {
		if i < last && length > lineTotal {
			words = append(words, fmt.Sprintf(`\{%d arguments left out}`, last-i))
			for _, arg := range argv[last:] {
				words = append(words, quoteForward(arg))
			}
			break
		}
		w := quoteForward(arg)
		length += len(w)
		words = append(words, w)
	}
	if a.Cut {
		words = append(words, `\{and more that was not read}`)
	}
	return strings.Join(words, " ")
}

// executedArgs are the arguments as the executable gets them: for a script its
// interpreter's.
func executedArgs(a event.Attempt) []string {
	argv := slices.Clone(a.Process.Argv)
	if len(a.Interpreted) == 0 {
		return argv
	}
	return slices.Concat([]string{a.Process.Executable}, a.Interpreted, argv[min(1, len(argv)):])
}

// quoteForward is quote for a word beside others.
func quoteForward(s string) string {
	q := quote(s, lineWord)
	if !strings.ContainsFunc(q, backward) {
		return q
	}
	var b strings.Builder
	for _, r := range strings.Trim(q, "'") {
		if backward(r) {
			fmt.Fprintf(&b, `\u{%04X}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return "$'" + b.String() + "'"
}

// operationWords are the operations on files in words.
var operationWords = [][2]string{
	{"write", "write to"}, {"create", "create"}, {"mkdir", "make the directory"}, {"unlink", "delete"}, {"rename", "rename"}, {"truncate", "change the length of"},
	{"link", "make another name"}, {"symlink", "make the link"}, {"chmod", "change the mode of"}, {"chown", "change the owner of"},
	{"mknod", "make the device or pipe"}, {"xattr", "change an attribute of"},
}

func operationText(operation string) string {
	for _, d := range operationWords {
		if d[0] == operation {
			return d[1]
		}
	}
	return "do " + quote(operation, lineWord) + " to"
}

func changeText(a event.Attempt) string {
	s := operationText(a.Operation) + " " + quoteForward(a.Path)
	if a.To == "" {
		return s
	}
	switch a.Operation {
	case "link":
		s += " for "
	case "symlink":
		s += " pointing to "
	default:
		s += " to "
	}
	return s + quoteForward(a.To)
}

// host is the name of a host. The network accepts only names in ASCII, so one
// in other letters is shown as xn--….
func host(a event.Attempt) string { return visible(a.Host, 300) }

// destination is where a connection goes.
func destination(a event.Attempt) string {
	s := net.JoinHostPort(host(a), strconv.Itoa(a.Port))
	if a.Protocol != "" {
		s += " (" + visible(a.Protocol, lineWord) + ")"
	}
	return s
}

// location is where a request goes.
func location(a event.Attempt) string {
	s := net.JoinHostPort(host(a), strconv.Itoa(a.Port))
	switch a.Protocol {
	case "tls":
		s = "https://" + s
	case "http":
		s = "http://" + s
	}
	return s + visible(a.URLPath, lineTotal)
}

// Words says what an answer of that scope to r would cover; directory as in
// Answer.
func Words(r Request, s Scope, directory bool) string {
	a := r.Attempt
	if s == Once {
		return "this one " + noun(a.Kind) + "; the next is asked about again"
	}
	how := "until the run ends: "
	if s == For {
		how = "for that time: "
	}
	return how + reach(a, directory)
}

func noun(k event.Kind) string {
	switch k {
	case event.KindExec:
		return "start"
	case event.KindFile:
		return "change"
	case event.KindConnect:
		return "connection"
	case event.KindRequest:
		return "request"
	case event.KindTool:
		return "call"
	}
	return "use"
}

// reach is what is covered for longer than once.
func reach(a event.Attempt, directory bool) string {
	by := ", by the same program (path and content)"
	if a.Process.Executable == "" {
		by = ", by any program inside that cannot be identified"
	}
	switch a.Kind {
	case event.KindExec:
		s := "each start of the same program (path and content) with the same arguments in the same order, in the same directory, started by the same program"
		if a.Script != "" {
			s += ", of the same script (path and content)"
		}
		return s + ", with the same variables in its environment; not with the values that files give it then"
	case event.KindFile:
		if directory {
			return tree(a) + by
		}
		return "the same change of exactly this path" + by
	case event.KindConnect:
		return "each connection to exactly " + destination(a) + by
	case event.KindRequest:
		return "each " + visible(a.Method, lineWord) + " of exactly " + location(a) + ", whatever its query and content" + by
	case event.KindCredential:
		return "each use of exactly this credential, for the same host, method and path" + by
	case event.KindTool:
		return "each call of exactly this tool with exactly these arguments"
	}
	return "exactly the same"
}

func tree(a event.Attempt) string {
	s := "everything below the directory " + quote(path.Dir(a.Path), lineTotal) + " at any depth, but not the directory itself nor what links in it lead to: " +
		"write, create, make directories, change lengths, rename and link within it, delete"
	if a.Operation == "symlink" {
		s += ", and make links to wherever they point"
	} else if !slices.Contains(changes, a.Operation) {
		s += ", and " + operationText(a.Operation) + " what is there"
	}
	return s
}

// Words says what is covered, in one line, made visible.
func (c Covers) Words() string {
	a := c.attempt()
	var s string
	switch {
	case c.Directory:
		s = "change " + quote(c.Path, lineTotal) + " below it, at any depth"
		if !slices.Contains(changes, c.Operation) {
			s += ", also " + quote(c.Operation, lineWord)
		}
	case c.Kind == event.KindTool:
		a.Arguments = ""
		s = Summary(a) + " with the same arguments"
	default:
		s = Summary(a)
	}
	switch {
	case c.Kind == event.KindExec:
		s += ", in " + quote(c.Cwd, lineTotal) + ", " + program(c.Executable, c.SHA256, lineTotal) + ", started by " + quote(c.Parent, lineTotal)
		if c.Script != "" {
			s += ", script " + program(c.Script, c.ScriptSHA256, lineTotal)
		}
	case c.Kind != event.KindTool && c.Executable != "":
		s += ", by " + program(c.Executable, c.SHA256, lineTotal)
	}
	return s
}

// hashShown is how many digits of a hash are shown.
const hashShown = 12

// program is a file with its hash, of which so many characters are shown.
func program(file, sha256 string, most int) string {
	if sha256 == "" {
		return quote(file, most) + " (content not known)"
	}
	return quote(file, most) + " (sha256 " + visible(sha256[:min(len(sha256), hashShown)], hashShown) + "...)"
}
