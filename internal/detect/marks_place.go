package detect

import (
	"cmp"
	"path"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// changes reports whether an action changes what is at its paths.
func changes(action string) bool {
	switch action {
	case event.FileWrite, event.FileMkdir, event.FileRename, event.FileLink, event.FileSymlink, event.FileUnlink, event.FileChmod, event.FileTruncate, event.FileMknod:
		return true
	}
	return false
}

// changeMarks returns the additional marks of a path that something changes. Look-ups
// are left out: each command is looked for in many directories of programs.
func (p *Place) changeMarks(asked, found string) (m mark) {
	full := cmp.Or(found, asked)
	if !strings.HasPrefix(full, "/") {
		return 0
	}
	if p.isProgramDir(full) {
		m |= programDir
	}
	if p.leaves(asked, found) && wanders(asked, found) {
		m |= astray
	}
	if full == asked && p.Personal(full) {
		m |= personal
	}
	return m
}

// lookupMarks returns the additional marks of a path that something looks for.
func (p *Place) lookupMarks(asked, found string) (m mark) {
	climbs := strings.HasPrefix(asked, "../")
	if climbs && p.beside(found, true) {
		m |= sibling
	}
	if !climbs && p.leaves(asked, found) && wanders(asked, found) {
		m |= astray
	}
	return m
}

// leaves reports whether a path that seems to be in the workspace was found outside.
func (p *Place) leaves(asked, found string) bool {
	return p.Workspace != "" && found != "" && asked != "" && (asked[0] != '/' || within(asked, p.Workspace)) && !within(found, p.Workspace) && !isTemporary(found)
}

// wanders reports whether a name was found elsewhere than where it seems to be:
// it climbs, or a part of it is a link.
func wanders(asked, found string) bool {
	if asked == "" || found == "" {
		return false
	}
	if asked[0] == '/' {
		return asked != found
	}
	asked = path.Clean(asked)
	return asked == ".." || strings.HasPrefix(asked, "../") || asked != "." && !strings.HasSuffix(found, "/"+asked)
}

func isTemporary(path string) bool {
	return withinAny(path, "/tmp", "/var/tmp", "/dev", "/proc")
}

// isProgramDir reports whether a path is where shells look for programs.
func (p *Place) isProgramDir(path string) bool {
	for _, dir := range [...]string{"/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin"} {
		if within(path, dir) && len(path) > len(dir) {
			return true
		}
	}
	home := homeOf(path)
	if home == "" {
		if home = p.Home; !within(path, home) {
			return false
		}
	}
	for _, dir := range [...]string{"/bin/", "/.local/bin/", "/.cargo/bin/", "/go/bin/", "/.npm-global/bin/", "/.bun/bin/", "/.deno/bin/", "/.volta/bin/"} {
		if strings.HasPrefix(path[len(home):], dir) {
			return true
		}
	}
	return false
}

// beside reports whether a path is in another project: below a directory beside
// the workspace. The directory itself counts if top is set: tools that look for
// their files climb from directory to directory, by full names.
func (p *Place) beside(path string, top bool) bool {
	above := p.Workspace[:max(0, strings.LastIndexByte(p.Workspace, '/'))]
	if above == "" || above == "/home" || above == "/Users" || isTemporary(above) || len(path) <= len(above)+1 || path[len(above)] != '/' || !strings.HasPrefix(path, above) || within(path, p.Workspace) {
		return false
	}
	name, rest, _ := strings.Cut(path[len(above)+1:], "/")
	switch name {
	case "", "node_modules", "go", "bin", "lib", "snap", "sdk", "venv":
		return false
	}
	if p.Home != "" && within(p.Home, above+"/"+name) {
		return false // the user's own home is not a project
	}
	return name[0] != '.' && (rest != "" || top) && !(above == p.Home && isInstalled(path[len(above):]))
}
