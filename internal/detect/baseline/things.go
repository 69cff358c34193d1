// Package baseline knows what is normal in a workspace: which programs, hosts,
// directories and tools earlier runs involved, and how much of each. It learns
// from the events of the runs that it is given, and finds in an event what no
// such run did. It judges nothing: it does not know which runs may be learnt
// from, nor what is bad about something new.
package baseline

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"path"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
)

// Kind is the sort of a thing that an event involves.
type Kind uint8

// The kinds. What was refused is another thing than what was done: asking for a
// host in vain does not make a connection to it normal.
const (
	Program      Kind = iota // was executed, or is a script that was
	Host                     // was connected to
	RefusedHost              // was asked for or connected to, and refused
	Method                   // of a request, with its host
	Read                     // a directory outside the workspace that was read from
	RefusedRead              // likewise, and refused
	Write                    // that something was changed in
	RefusedWrite             // likewise, and refused
	Tool                     // an agent called it
	Count                    // far more of something than ever before
	kinds
)

var kindNames = [kinds]string{"program", "host", "refused-host", "method", "read", "refused-read", "write", "refused-write", "tool", "count"}

func (k Kind) String() string { return kindNames[k] }

// Kinds are all of them.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// KindOf is the kind of a name, false if there is none.
func KindOf(name string) (Kind, bool) {
	k := slices.Index(kindNames[:], name)
	return Kind(max(0, k)), k >= 0
}

// Thing is something that an event involves.
type Thing struct {
	Kind Kind
	Name string // printable as far as its event is; valid UTF-8, at most maxName bytes
}

func (t Thing) String() string { return t.Kind.String() + " " + t.Name }

// maxName is how long a name may be: what runs inside chooses it.
const maxName = 400

// runDirs is where a run works; things are named from there.
type runDirs struct{ workspace, home string }

// things appends what an event involves, except counts.
func (p *runDirs) things(e *event.Event, into []Thing) []Thing {
	switch e.Action {
	case event.ProcExec:
		if e.Verdict != event.Allowed || e.Error != "" {
			return into // nothing was executed
		}
		if s := e.Detail["script"]; s != "" {
			into = addThing(into, Program, p.program(s, e.Detail["script_sha256"]))
		}
		return addThing(into, Program, p.program(e.Process.Executable, e.Process.SHA256))
	case event.NetQuery:
		if e.Verdict == event.Denied { // a query that is answered is followed by its connection
			into = addThing(into, RefusedHost, e.Object)
		}
		return into
	case event.NetConnect:
		return addThing(into, kindOf(e, RefusedHost, Host), e.Object)
	case event.SockConnect, event.SockSend:
		if !isAway(e.Object) {
			return into
		}
		return addThing(into, kindOf(e, RefusedHost, Host), e.Object)
	case event.NetRequest:
		if e.Verdict == event.Denied || e.Detail["method"] == "" {
			return into
		}
		return addThing(into, Method, methodOf(e.Detail["method"])+" "+e.Object)
	case event.ToolCall:
		return addThing(into, Tool, cmp.Or(e.Detail["server"], e.Detail["agent"])+" "+e.Object)
	case event.FileOpen, event.FileLookup:
		return p.directory(into, kindOf(e, RefusedRead, Read), e, target(e))
	case event.FileWrite, event.FileMkdir, event.FileRename, event.FileLink, event.FileSymlink, event.FileUnlink, event.FileChmod,
		event.FileChown, event.FileTruncate, event.FileMknod, event.FileXattr:
		kind := kindOf(e, RefusedWrite, Write)
		if to := cmp.Or(e.Detail["to_resolved"], e.Detail["to"]); e.Action == event.FileRename && to != "" {
			into = p.directory(into, kind, e, to)
		}
		return p.directory(into, kind, e, target(e))
	}
	return into
}

func target(e *event.Event) string { return cmp.Or(e.Resolved, e.Object) }

// kindOf is one of two kinds, by whether the attempt was denied or failed.
func kindOf(e *event.Event, denied, done Kind) Kind {
	if refused(e) {
		return denied
	}
	return done
}

// refused reports whether an attempt was denied or failed.
func refused(e *event.Event) bool { return e.Verdict == event.Denied || e.Error != "" }

func addThing(into []Thing, kind Kind, name string) []Thing {
	if strings.TrimSpace(name) == "" {
		return into
	}
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(name))
		name = text.Cut(name, maxName-40) + hex.EncodeToString(sum[:16])
	}
	return append(into, Thing{kind, name})
}

// program names a program. One where work or installers change it is known by its
// path: each build has other content. Any other is known by its path and content.
func (p *runDirs) program(file, sum string) string {
	switch {
	case file == "" || file[0] != '/':
		return ""
	case within(file, p.workspace):
		return general(file, len(p.workspace))
	case within(file, p.home):
		return general(file, len(p.home))
	}
	for _, dir := range [...]string{"/tmp", "/var/tmp", "/dev/shm"} {
		if rest, ok := strings.CutPrefix(file, dir+"/"); ok {
			if _, below, deeper := strings.Cut(rest, "/"); deeper { // a directory that is made for each use
				return dir + "/*/" + general(below, 0)
			}
			return general(file, len(dir))
		}
	}
	if len(sum) < 32 {
		return file
	}
	return file + " sha256:" + sum[:32]
}

// directory names the directory of a path outside the workspace, at most two
// names deep, and at most two names below the home.
func (p *runDirs) directory(into []Thing, kind Kind, e *event.Event, file string) []Thing {
	if e.Error == "EEXIST" || e.Verdict == event.Allowed && e.Error != "" || file == "" || file[0] != '/' || within(file, p.workspace) {
		return into // it changed nothing, and was not refused
	}
	depth, from := 2, 0
	switch {
	case within(file, p.home):
		from = len(p.home)
	case within(file, "/tmp"), within(file, "/dev"), within(file, "/proc"), within(file, "/run"):
		depth = 1
	}
	dir := path.Dir(file)
	if len(dir) < from {
		return addThing(into, kind, dir) // of the home itself
	}
	for i := from; i < len(dir); i++ {
		if i > from && dir[i] == '/' {
			if depth--; depth == 0 {
				dir = dir[:i]
			}
		}
	}
	return addThing(into, kind, general(dir, from))
}

// within reports whether a path is dir or below it.
func within(file, dir string) bool {
	return dir != "" && strings.HasPrefix(file, dir) && (len(file) == len(dir) || file[len(dir)] == '/')
}

// general replaces with a star what differs each time in the names of a path,
// after its first bytes: three digits and more, and eight and more of a hash.
func general(file string, after int) string {
	var b []byte // nil while nothing was replaced
	last := 0
	for i := after; i < len(file); {
		digits, hexes := i, i
		for digits < len(file) && file[digits] >= '0' && file[digits] <= '9' {
			digits++
		}
		plain := true // no digit among them: a word
		for hexes < len(file) && isHex(file[hexes]) {
			plain = plain && file[hexes] > '9'
			hexes++
		}
		end := 0
		switch word := i > 0 && isLetter(file[i-1]) || hexes < len(file) && isLetter(file[hexes]); {
		case hexes-i >= 8 && !plain && !word:
			end = hexes
		case digits-i >= 3:
			end = digits
		}
		if end > 0 {
			b = append(append(b, file[last:i]...), '*')
			i, last = end, end
			continue
		}
		i = max(i+1, digits)
	}
	if b == nil {
		return file
	}
	return string(append(b, file[last:]...))
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// isAway reports whether an address is that of another machine. Those that
// represent names inside (RFC 2544) say nothing: the connection has the name.
func isAway(object string) bool {
	a, err := netip.ParseAddrPort(object)
	if err != nil {
		return false
	}
	ip := a.Addr().Unmap()
	return !ip.IsLoopback() && !ip.IsUnspecified() && !synthetic.Contains(ip)
}

var synthetic = netip.MustParsePrefix("198.18.0.0/15")

// methodOf is a method by its name, "other" for a method of no standard: what
// runs inside can make up any number of them.
func methodOf(name string) string {
	switch name {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PROPFIND", "REPORT", "MKCOL":
		return name
	}
	return "other"
}
