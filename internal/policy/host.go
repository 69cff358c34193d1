package policy

import (
	"bufio"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// Host is what a plan is made for: the user, the machine, and where Holdfast
// itself lives. It holds no policy.
type Host struct {
	UID, GID   int
	Name       string     // user name; the number if there is no name
	Home       string     // absolute, resolved
	Dir        string     // the caller's working directory
	Env        []string   // the caller's environment, NAME=VALUE
	Memory     int64      // bytes of main memory; 0 when unknown
	Executable string     // this program, resolved; "" when unknown
	Config     string     // directory of the user's policy
	State      string     // directory of trust pins and records
	System     []PathRule // the fixed view of the system, as the backend shows it

	// Grants returns a credential that the user keeps across runs, by its name. Its
	// error is fs.ErrNotExist if there is none, and otherwise says why it is not valid.
	// nil for no grants.
	Grants func(name string) (Credential, error)

	owned []ownPath // own(), once it was looked up
}

// ThisHost describes the machine and the user of this process. env and dir
// are the caller's.
func ThisHost(env []string, dir string) (Host, error) {
	h := Host{UID: os.Getuid(), GID: os.Getgid(), Env: env, Dir: dir, Memory: mainMemory(), System: System()}
	h.Name = strconv.Itoa(h.UID)
	home := h.lookup("HOME")
	if u, err := user.LookupId(h.Name); err == nil {
		if variable(strings.NewReplacer("-", "_", ".", "_").Replace(u.Username)) == nil {
			h.Name = u.Username
		}
		if !filepath.IsAbs(home) {
			home = u.HomeDir
		}
	}
	if !filepath.IsAbs(home) || strings.ContainsAny(home, "\n\r") {
		return Host{}, fault(Origin{}, "set HOME to an absolute path", "there is no home directory: HOME is %q and user %d has no entry", printable(home), h.UID)
	}
	if h.Home = nearestReal(home); h.Home == "/" {
		return Host{}, fault(Origin{}, "set HOME to a directory of your own", "the home directory is /")
	}
	if exe, err := os.Executable(); err == nil {
		h.Executable = strings.TrimSuffix(exe, " (deleted)")
	}
	h.Config = filepath.Join(h.base("XDG_CONFIG_HOME", ".config"), "holdfast")
	h.State = filepath.Join(h.base("XDG_STATE_HOME", ".local/state"), "holdfast")
	return h, h.ownState()
}

// base is an XDG base directory; a relative one is ignored, as the
// specification says.
func (h Host) base(name, fallback string) string {
	if dir := h.lookup(name); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(h.Home, fallback)
}

// lookup returns a variable of the caller. If a name is set twice the last one counts,
// as in every shell.
func (h Host) lookup(name string) string {
	value, _ := h.find(name)
	return value
}

func (h Host) find(name string) (value string, found bool) {
	for _, kv := range h.Env {
		if n, v, ok := strings.Cut(kv, "="); ok && n == name {
			value, found = v, true
		}
	}
	return value, found
}

// System is the least that every backend shows of the system: where a caller
// knows the view of its backend, it puts that in Host.System.
func System() []PathRule {
	var rules []PathRule
	for _, p := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if info, err := os.Lstat(p); err == nil && (info.IsDir() || info.Mode()&os.ModeSymlink != 0) {
			rules = append(rules, PathRule{Path: p, Access: Read, Origin: Origin{File: "system"}})
		}
	}
	return rules
}

// mainMemory reads MemTotal of /proc/meminfo (proc(5)); 0 when it cannot.
func mainMemory() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kb int64
		if n, _ := fmt.Sscanf(s.Text(), "MemTotal: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	return 0
}

// ownState refuses a state directory that another user controls: reviews, journals,
// keys and trust pins in it are obeyed, so the owner of it, or of a directory or link
// on the way to it, would decide what this user writes and where. Root with the HOME of
// another user (sudo -E) is the usual case.
func (h Host) ownState() error {
	refuse := func(what, path string, owner int) error {
		return fault(Origin{}, "set HOME or XDG_STATE_HOME to a directory of your own (with sudo: sudo -H holdfast …)",
			"the state directory %s is not safe: %s %s belongs to user %d, not to you or root", quote(h.State), what, quote(path), owner)
	}
	for p := h.State; ; p = filepath.Dir(p) {
		at, err := locate(p)
		for _, l := range at.links {
			if !h.trusts(l.owner) {
				return refuse("the link", l.at, l.owner)
			}
		}
		if err != nil && p != "/" {
			continue // it is not there yet, or cannot be used anyway
		}
		for dir := at.path; err == nil && dir != "/"; dir = filepath.Dir(dir) {
			if up, err := locate(dir); err == nil && !h.trusts(up.owner) {
				return refuse("the directory", dir, up.owner)
			}
		}
		return nil
	}
}

// trusts reports whether a file of this owner is one of the user's or root's. In
// a user namespace that maps a part of the users, all others, root of the host
// among them, are shown as the overflow user.
func (h Host) trusts(owner int) bool {
	const overflow = 65534 // /proc/sys/kernel/overflowuid, as good as always
	return owner == h.UID || owner == 0 || owner == overflow && mappedInPart()
}

func mappedInPart() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(text)), " ") != "0 0 4294967295"
}

// nearestReal resolves as much of path as exists and adds the rest.
func nearestReal(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	_, real := steps(path)
	return real
}

// ownPath is a place that Holdfast rests on.
type ownPath struct {
	what, path, hint string
	tree             bool
}

func (h Host) ownPaths() []ownPath {
	if h.owned != nil {
		return h.owned
	}
	all := []ownPath{
		{what: "the state directory", path: h.State, tree: true, hint: "unset XDG_STATE_HOME, or set it to a directory outside the workspace"},
		{what: "the policy directory", path: h.Config, tree: true, hint: "unset XDG_CONFIG_HOME, or set it to a directory outside the workspace"},
		{what: "the holdfast program", path: h.Executable, hint: "install holdfast outside the workspace, for example in /usr/local/bin"},
	}
	if dir := filepath.Dir(h.Executable); h.Executable != "" { // where holdfast looks for the programs that it starts
		hint := "install holdfast-prove outside the workspace, for example in /usr/local/bin"
		all = append(all, ownPath{what: "the examiner of holdfast", path: filepath.Join(dir, "holdfast-prove"), hint: hint},
			ownPath{what: "the directory for programs of holdfast", path: filepath.Join(filepath.Dir(dir), "libexec/holdfast"), tree: true, hint: hint})
	}
	for i, own := range all {
		if !filepath.IsAbs(own.path) {
			all[i].path = ""
			continue
		}
		var links []string
		links, all[i].path = steps(own.path)
		for _, at := range links { // what leads there counts as well
			all = append(all, ownPath{what: "a link to " + own.what, path: at, hint: own.hint})
		}
	}
	return all
}
