package detect

import (
	"slices"
	"strings"
)

// depth is a little more than the number of names above one that a pattern can
// ask for. A power of two.
const depth = 8

// climb is how many directories a path must climb in a row to be remarkable.
const climb = 4

// walk is one pass over a path.
type walk struct {
	names *names
	place *Place
	above [depth]string // the last names, by their number
	n     int           // how many there were
	up    int           // ".." in a row, the most
	run   int           // ".." in a row, now
	top   bool          // rooted looks below the first name
	first bool          // only patterns that begin at the first name count
	found mark
}

// path classifies a path. A relative one that climbs far is assumed to reach the root.
func (p *Place) path(s string) mark {
	w := walk{names: pathNames(), place: p}
	if strings.HasPrefix(s, "memfd:") || strings.HasPrefix(s, "/memfd:") {
		return memoryFile
	}
	w.walkNames(s)
	if w.found&passingMarks != 0 {
		w.found = w.found&^passingMarks | p.passingMarksOf(s, w.found)
	}
	if w.up >= climb {
		w.found |= traversal
	}
	if strings.IndexByte(s, '%') >= 0 || strings.IndexByte(s, '\\') >= 0 || strings.IndexByte(s, 0xc0) >= 0 {
		w.found |= disguisedClimb(s)
	}
	if w.up == 0 && within(s, p.Workspace) {
		w.found &^= otherHome // whoever's home the workspace is in
	}
	if w.place.Workspace != "" && w.n > 1 && strings.HasPrefix(s, w.place.Workspace) {
		w.found |= w.place.inWorkspace(s[len(w.place.Workspace):])
	}
	if w.place.beside(s, false) {
		w.found |= sibling
	}
	return w.found
}

// passingMarks are the marks of what comes and goes, about which rules say less.
const passingMarks = generated | dependency | temporary

// passingMarksOf returns those marks of a path, below the home or workspace: that these
// are in /tmp, or in a directory called build, says nothing about their content.
func (p *Place) passingMarksOf(s string, found mark) mark {
	for _, top := range [...]string{p.Workspace, p.Home} {
		if top != "/" && within(s, top) {
			w := walk{names: pathNames(), place: p}
			w.walkNames(strings.TrimPrefix(s[len(top):], "/"))
			found = w.found
			break
		}
	}
	return found & passingMarks
}

// walkNames walks the names of s.
func (w *walk) walkNames(s string) {
	rooted := s != "" && s[0] == '/'
	for rest := s; rest != ""; {
		var name string
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			name, rest = rest[:i], rest[i+1:]
		} else {
			name, rest = rest, ""
		}
		w.step(name, rest == "", rooted)
	}
}

// step processes one name.
func (w *walk) step(name string, last, rooted bool) {
	switch name {
	case "", ".":
		return
	case "..":
		w.climb(rooted)
		return
	}
	w.run = 0
	w.above[w.n&(depth-1)] = name
	w.n++
	at := w.n // from 1
	if at == 1 && (rooted || w.up >= 3) {
		w.top = name == "home" || name == "Users" || name == "root" || name == "proc" || name == "dev"
	} else if w.top && at <= 5 {
		w.judgeRooted(name, at, last)
	}
	if w.names.may(name) {
		if patterns := w.names.patterns[name]; patterns != nil {
			w.match(patterns, last, rooted || w.up >= 3)
		}
	}
	if last {
		w.found |= lastName(name)
	}
}

// climb processes "..".
func (w *walk) climb(rooted bool) {
	if w.run++; w.run > w.up {
		w.up = w.run
	}
	if w.n == 4 && w.above[0] == "proc" && w.above[2] == "fd" || w.n == 3 && w.above[0] == "dev" && w.above[1] == "fd" {
		w.found |= alias
	}
	if w.n > 0 && rooted {
		w.n-- // lexically; Resolved has the path with links resolved
	}
}

func (w *walk) match(patterns []pattern, last, rooted bool) {
next:
	for i := range patterns {
		p := &patterns[i]
		if w.first && w.n != len(p.before)+1 || p.last && !last || p.rooted && (!rooted || w.n != len(p.before)+1) || w.n <= len(p.before) || len(p.before) >= depth {
			continue
		}
		for up, name := range p.before {
			have := w.above[(w.n-2-up)&(depth-1)]
			if name != have && (name != "*" || have == "") {
				continue next
			}
		}
		w.found |= p.is
	}
}

// judgeRooted judges what depends on the place in the tree: homes of others and
// processes.
func (w *walk) judgeRooted(name string, at int, last bool) {
	switch {
	case at == 3 && (w.above[0] == "home" || w.above[0] == "Users"):
		if who := w.above[1]; who != "node_modules" && who != "linuxbrew" && who[0] != '.' && !w.place.own(w.above[0], who) {
			w.found |= otherHome
		}
	case at == 2 && w.above[0] == "root":
		if !w.place.own("", "root") {
			w.found |= otherHome
		}
	case at == 4 && w.above[0] == "proc" && w.above[2] == "fd", at == 3 && w.above[0] == "dev" && w.above[1] == "fd":
		if last {
			w.found |= descriptor
		} else {
			w.found |= alias
		}
	case at == 3 && w.above[0] == "proc":
		w.process(w.above[1], name, last)
	case at == 5 && w.above[0] == "proc" && w.above[2] == "task":
		w.process(w.above[1], name, last)
	}
}

// own reports whether /DIR/WHO is the home of the session's user. If that is
// not known, no home is another's.
func (p *Place) own(dir, who string) bool {
	if p.Home == "" {
		return true
	}
	home := strings.TrimPrefix(p.Home, "/")
	if dir == "" {
		return home == who || strings.HasPrefix(home, who+"/")
	}
	rest, ok := strings.CutPrefix(home, dir)
	if !ok || rest == "" || rest[0] != '/' {
		return false
	}
	rest = rest[1:]
	return rest == who || strings.HasPrefix(rest, who) && rest[len(who)] == '/'
}

// process judges /proc/WHO/NAME. A process may read about itself, except
// through the links that lead around names.
func (w *walk) process(who, name string, last bool) {
	self := who == "self" || who == "thread-self"
	if !self && (who[0] < '0' || who[0] > '9') {
		return
	}
	switch name {
	case "root", "cwd":
		if !last {
			w.found |= alias
		} else if !self {
			w.found |= otherProcess
		}
	case "mem":
		w.found |= processMemory
	case "environ", "maps", "smaps", "pagemap", "auxv", "stack", "syscall", "map_files":
		if !self {
			w.found |= otherProcess
		}
	case "fd":
		if !self {
			w.found |= otherProcess
		}
	}
}

// lastName judges the name of a file by its form.
func lastName(name string) mark {
	if name[0] == '.' {
		if strings.HasPrefix(name, ".env") && (len(name) == 4 || name[4] == '.') && !example(name) {
			return secretFile
		}
	}
	if name[0] == 'l' && (strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || strings.HasPrefix(name, "ld-2.")) && strings.Contains(name, ".so") {
		return loader
	}
	if name[0] == 'i' && strings.HasPrefix(name, "id_") && !strings.HasSuffix(name, ".pub") && !strings.Contains(name[3:], ".") {
		switch name[3:] {
		case "rsa", "dsa", "ecdsa", "ed25519", "ecdsa_sk", "ed25519_sk", "xmss":
			return key | credential
		}
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || len(name)-dot > 10 {
		return 0
	}
	switch name[dot+1:] {
	case "pem", "key", "ppk", "p12", "pfx", "jks", "keystore", "kdbx", "keytab":
		if !strings.Contains(name, "cert") && !strings.Contains(name, "pub") && !strings.Contains(name, "ca-") && !strings.HasPrefix(name, "ca.") {
			return key
		}
	case "o", "obj", "a", "d", "pyc", "pyo", "class", "gcda", "gcno", "rlib", "rmeta", "rcgu", "tmp", "lock", "log", "map":
		return generated
	}
	return 0
}

var exampleNames = []string{"example", "sample", "template", "dist", "defaults"}

func example(name string) bool {
	return slices.ContainsFunc(exampleNames, func(s string) bool { return strings.Contains(name, s) })
}

// disguisedClimb finds a climb that is spelt so that a comparison misses it: escaped
// once or twice, with a backslash, or in the overlong form that UTF-8 forbids
// (RFC 3629, 10).
func disguisedClimb(s string) mark {
	for _, form := range [...]string{"..%2f", "..%2F", "%2e%2e", "%2E%2E", "%252e", "%252E", "..%5c", "..%5C", `..\`, "..%c0%af", "..%C0%AF", "..\xc0\xaf", ".%2e/", ".%2E/", "%2e./", "%2E./", "%uff0e"} {
		if strings.Contains(s, form) {
			return encoded
		}
	}
	return 0
}

// inWorkspace judges what is the workspace's own repository.
func (p *Place) inWorkspace(rest string) mark {
	switch rest {
	case "/.git", "/.git/HEAD", "/.git/config", "/.git/objects", "/.git/refs":
		return repository
	case "/holdfast.yaml":
		return ownPolicy
	}
	return 0
}
