package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// filesystemKeys are those of the section filesystem.
var filesystemKeys = []key{
	{name: "filesystem",
		doc: "Host paths that are in view besides the system and the workspace. A path ending in `?` may be missing. The most specific path decides; of two entries for the same path the later source decides, and in one source the narrower."},
	{name: "filesystem.read", kind: &paths, project: clearsNothing, example: "[~/datasets]",
		doc: "Paths that the command may read and execute."},
	{name: "filesystem.copy", kind: &paths, project: clearsNothing, example: "[~/.cache/ccache]",
		doc: "Directories that the command may read and write, but what it writes goes to a private layer that is dropped at the end. Meant for caches."},
	{name: "filesystem.write", kind: &paths, project: clears, example: "[~/out]",
		doc: "Paths whose contents the command may change on the host. Files in them are not protected as those of the workspace are."},
}

// clearsNothing is never under a name that says why: an entry that makes a path
// readable can also be what makes a path below a writable one read-only, so that
// removing it may widen.
const clearsNothing = never

var paths = kind{
	takes:  "a list of paths: absolute, `~/…`, or relative to the file (for `workspace.readonly` and `workspace.outputs`: to the workspace); never with `..`",
	many:   true,
	text:   func(k key, text string) (Entry, string, error) { return checked(k, text, pathText(text)) },
	schema: func(key) map[string]any { return list(textShape()) },
}

// siblings are paths that may lead up from where they count from, which has no link in it.
var siblings = kind{
	takes: "a list of paths: absolute, `~/…`, or relative, which may begin with `../`",
	many:  true,
	text: func(k key, text string) (Entry, string, error) {
		rest := text
		for strings.HasPrefix(rest, "../") {
			rest = rest[len("../"):]
		}
		return checked(k, text, pathText(rest))
	},
	schema: func(key) map[string]any { return list(textShape()) },
}

// Access is how a path appears inside.
type Access int

// The narrowest comes first: the zero value shows nothing. A policy gives Hidden, Read,
// Copy and Write; a boundary also makes trees of the other two.
const (
	Hidden        Access = iota // not there, or something empty in its place
	ProtectedRead               // what the host would execute: read-only, whatever is around it
	Read                        // read-only
	Copy                        // readable and writable; what is written is private and dropped at the end
	Write                       // writable: changes are changes on the host
	Device                      // writable, and keeps nothing: a device, or a tree of the kernel's own
)

func (a Access) String() string {
	return [...]string{"hidden", "protected", "read", "copy", "write", "device"}[a]
}

// Tree is a path of the view that a boundary made of a plan, with all below it, except
// where a longer path applies.
type Tree struct {
	Path   string // absolute inside, without links and dots
	Access Access
	Rule   string // that put it there, as file:line or pattern; "" for a built-in default
}

// PathRule puts one host path into view.
type PathRule struct {
	Path   string // absolute; every component resolved, so it names no link
	At     string // a link by which the rule was given: inside, a link of this name leads to Path, which is mounted in one place only; "" for none
	Access Access
	Origin Origin
	File   FileID // what Path was: a backend shows this or nothing
}

// view collects the paths of a plan.
type view struct {
	host      Host
	workspace string
	dir       string // the working directory inside
	rules     []ranked
	outputs   []string
	review    bool     // the workspace is a view
	env       []Env    // that shown tools need to find their files
	search    []string // PATH inside
	notes     []string
	resolved  map[string]resolution // what locate answered, by path
	writable  []writable            // what something inside can change
}

type resolution struct {
	at  located
	err error
}

// locate asks once for each spelling of a path: the directories of PATH and
// what lies in them come up again and again, and one plan should rest on one
// answer.
func (v *view) locate(path string) (located, error) {
	if l, known := v.resolved[path]; known {
		return l.at, l.err
	}
	if v.resolved == nil {
		v.resolved = map[string]resolution{}
	}
	at, err := locate(path)
	v.resolved[path] = resolution{at, err}
	return at, err
}

// ranked is a rule with the precedence of its source.
type ranked struct {
	PathRule
	rank int
}

// maxRules bounds what a backend has to mount.
const maxRules = 1000

// entries resolves what policies name.
func (v *view) entries(e Effective) error {
	var errs Errors
	v.changeable(e)
	for _, one := range slices.Concat(e.entriesFor("workspace.outputs"), e.entriesFor("workspace.worktrees")) {
		if err := v.output(one); err != nil {
			errs = append(errs, err)
		}
	}
	for _, kind := range []struct {
		key    string
		access Access
	}{{"filesystem.read", Read}, {"filesystem.copy", Copy}, {"filesystem.write", Write}, {"workspace.readonly", Read}} {
		for _, one := range e.entriesFor(kind.key) {
			if err := v.entry(one, kind.access); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if len(v.rules) > maxRules {
		return fault(Origin{}, "name a directory above them", "the policy has %d paths; at most %d are allowed", len(v.rules), maxRules)
	}
	return errs.orNil()
}

// changeable collects what something inside can change, before any path is
// judged: the links in there are not followed.
func (v *view) changeable(e Effective) {
	for _, one := range slices.Concat(e.entriesFor("filesystem.write"), e.entriesFor("workspace.outputs"), e.entriesFor("workspace.worktrees")) {
		if at, err := v.locate(v.entryPath(one)); err == nil && at.dir {
			v.writable = append(v.writable, writable{at.path, quote(at.path) + " (writable inside: " + one.Origin.String() + ")"})
		}
	}
}

// entryPath is the absolute path that an entry names.
func (v *view) entryPath(one Entry) string {
	base, text := one.Base, strings.TrimSuffix(one.Value, "?")
	byFlag := one.Origin.Line == 0
	switch {
	case one.Key == "workspace.readonly", !byFlag && (one.Key == "workspace.outputs" || one.Key == "workspace.worktrees"):
		base = v.workspace
	case one.Key == "workspace.worktrees":
		base = v.dir // in which no link is
	}
	return filepath.Clean(expand(text, base, v.host.Home))
}

// leads refuses a path that a link leads to which is not the user's own, and a
// relative one that leads out of what it counts from.
func (v *view) leads(one Entry, at located, access Access) *Error {
	bad := v.host.findUntrustedLink(at, v.writable)
	if bad == nil && access == Write {
		bad = v.host.findShippedLink(at)
	}
	if bad != nil {
		return fault(one.Origin, bad.hint(one.name()), "%s: the path %s: %s", one.Key, printable(one.Value), bad)
	}
	text := one.Value
	if one.Key == "workspace.worktrees" || filepath.IsAbs(text) || text[0] == '~' || at.path == "" {
		return nil
	}
	if base, err := v.locate(one.Base); err != nil || !within(at.path, base.path) && !within(at.path, v.workspace) {
		return fault(one.Origin, "write the absolute path if that is meant", "%s: the relative path %s leads to %s, out of %s", one.Key, printable(text), at.path, one.Base)
	}
	return nil
}

// name is how the path of an entry must be given.
func (e Entry) name() string {
	if e.Origin.Line == 0 {
		return e.Origin.File
	}
	return e.Key + ":"
}

func (v *view) entry(one Entry, access Access) *Error {
	text, optional := strings.CutSuffix(one.Value, "?")
	given := v.entryPath(one)
	at, err := v.locate(given)
	if refused := v.leads(one, at, access); refused != nil {
		return refused
	}
	if err != nil {
		if optional && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		hint := ""
		if errors.Is(err, fs.ErrNotExist) {
			hint = "make it first, or write " + text + "? if it may be missing"
		}
		return &Error{Origin: one.Origin, Msg: fmt.Sprintf("%s: the path %s: %s", one.Key, printable(text), reason(err)), hint: hint, cause: err}
	}
	if one.Key == "workspace.readonly" && !within(at.path, v.workspace) {
		return fault(one.Origin, "name what lies outside under filesystem.read", "workspace.readonly: %s is %s, outside the workspace", printable(text), at.path)
	}
	if err := v.host.showable(at, access); err != nil {
		return fault(one.Origin, "name a directory below it that holds only what is needed", "%s: %s", one.Key, err)
	}
	rule := PathRule{Path: at.path, Access: access, Origin: one.Origin, File: at.id}
	if given != at.path {
		rule.At = given
	}
	v.rules = append(v.rules, ranked{rule, one.rank})
	return nil
}

// hostTrees hold the kernel's and the daemons' interfaces; inside they are
// private.
var hostTrees = []string{"/dev", "/proc", "/run", "/sys", "/var/run"}

// showable says why a resolved path may not come into view.
func (h Host) showable(at located, access Access) error {
	switch {
	case !at.dir && !at.file:
		return fmt.Errorf("%s is neither a directory nor a regular file (a socket or device of the host is a way out)", at.path)
	case access == Copy && !at.dir:
		return fmt.Errorf("%s is a file; only a directory can be copied on write", at.path)
	case at.path == "/":
		return errors.New("/ is the whole file system")
	case within(h.Home, at.path):
		return fmt.Errorf("%s is or contains your whole home, with its keys and start-up files", at.path)
	}
	for _, tree := range hostTrees {
		if within(at.path, tree) {
			return fmt.Errorf("%s belongs to %s, which is private inside", at.path, tree)
		}
	}
	for _, secret := range embeddedToolchains().Secret {
		if within(at.path, secret) {
			return fmt.Errorf("%s is or belongs to %s, which holds secrets of the system", at.path, secret)
		}
	}
	for _, own := range h.ownPaths() {
		if own.path == "" {
			continue
		}
		if own.tree && (within(at.path, own.path) || within(own.path, at.path)) || access == Write && within(own.path, at.path) {
			return fmt.Errorf("%s is or contains %s %s", at.path, own.what, own.path)
		}
	}
	if access == Write {
		return h.writable(at.path)
	}
	return nil
}

// writable says why the contents of a path may not be changed from inside.
func (h Host) writable(path string) error {
	if ofSystem(path) && !isSource(path) {
		return fmt.Errorf("%s belongs to the system, which executes what is in it", path)
	}
	if slices.Contains(sharedRoots, path) {
		return fmt.Errorf("%s is shared by the whole machine", path)
	}
	if one := h.executed(path, true); one != "" {
		return fmt.Errorf("%s is or contains ~/%s, which your account executes or obeys later; filesystem.copy gives a private copy", path, one)
	}
	return nil
}

// ofSystem reports whether a path is in a tree that the host runs from.
func ofSystem(path string) bool {
	return within(path, "/opt") || slices.ContainsFunc(systemTrees, func(tree string) bool { return within(path, tree) })
}

// isSource reports whether a path of the system is meant for work.
func isSource(path string) bool {
	return slices.ContainsFunc(sourceTrees, func(s string) bool { return path != s && within(path, s) })
}

// executed is what of the home, that the account executes or obeys later, a path is or
// lies in, or with above contains; "" for nothing.
func (h Host) executed(path string, above bool) string {
	for _, one := range embeddedToolchains().Executed {
		if full := filepath.Join(h.Home, one); within(path, full) || above && within(full, path) {
			return one
		}
	}
	return ""
}

// credentialPart is the part of a path that is the name of a place of credentials; ""
// for none.
func credentialPart(path string) string {
	for part := range strings.SplitSeq(path, "/") {
		if slices.Contains(embeddedToolchains().CredentialNames, part) {
			return part
		}
	}
	return ""
}

// settle brings the rules into the order in which a backend mounts them, one
// a path: the later source wins, in one source the narrower. What a rule above
// says already is dropped, so that a plan has no two truths about a place.
func (v *view) settle() []PathRule {
	slices.SortStableFunc(v.rules, func(a, b ranked) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		if a.rank != b.rank {
			return b.rank - a.rank
		}
		return int(a.Access) - int(b.Access)
	})
	var out []PathRule
	for i := 0; i < len(v.rules); {
		rule := v.rules[i].PathRule
		rule.At = ""
		for ; i < len(v.rules) && v.rules[i].Path == rule.Path; i++ {
			if at := v.rules[i].At; rule.At == "" && at != "" && !v.linkInView(at) {
				rule.At = at
			}
		}
		reviewed := v.review && within(rule.Path, v.workspace) // where writable is not what the workspace is
		if rule.At == "" && !reviewed && v.accessAbove(out, rule.Path) == rule.Access {
			continue
		}
		out = append(out, rule)
	}
	return out
}

// accessAbove is the access that the nearest rule over path gives, the workspace and
// the system included.
func (v *view) accessAbove(rules []PathRule, path string) Access {
	access, longest := Hidden, -1
	consider := func(tree string, a Access) {
		if within(path, tree) && len(tree) > longest {
			access, longest = a, len(tree)
		}
	}
	for _, r := range rules { // first: a rule for the workspace itself comes before the workspace
		consider(r.Path, r.Access)
	}
	consider(v.workspace, Write)
	for _, r := range v.host.System {
		consider(r.Path, r.Access)
	}
	return access
}

// linkInView reports whether the link by which a path was named is itself in
// view, so that it needs no second place.
func (v *view) linkInView(at string) bool {
	parent, err := v.locate(filepath.Dir(at))
	if err != nil {
		return false
	}
	place := filepath.Join(parent.path, filepath.Base(at))
	for _, r := range v.host.System {
		if within(place, r.Path) {
			return true
		}
	}
	if within(place, v.workspace) {
		return true
	}
	return slices.ContainsFunc(v.rules, func(r ranked) bool { return r.Path != place && within(place, r.Path) })
}
