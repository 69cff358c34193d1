package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writable is a place of the host whose contents something inside can change.
type writable struct{ path, why string }

// findUntrustedLink says why a link on the way to a path is not followed: it is in a place
// where something inside could have made it, in this run or in an earlier one, or it
// belongs to another user. nil means that all may be followed, as those may that the
// user made outside every such place.
func (h Host) findUntrustedLink(at located, places []writable) *untrustedLink {
	for _, l := range at.links {
		why := ""
		switch place := containing(places, l.at); {
		case place != "":
			why = "in " + place + ", where what runs inside could have made it"
		case h.exposedAbove(l.at) != "":
			why = "in " + quote(h.exposedAbove(l.at)) + ", where an earlier run could have made it"
		case l.owner != 0 && l.owner != h.UID:
			why = fmt.Sprintf("owned by user %d, not by you or root", l.owner)
		}
		if why != "" {
			return &untrustedLink{link: l, why: why, leads: at.path}
		}
	}
	return nil
}

// findShippedLink is findUntrustedLink for links that a repository may have brought: those of a
// directory with a .git above them. A file that is written through them must be named
// itself.
func (h Host) findShippedLink(at located) *untrustedLink {
	for _, l := range at.links {
		for dir := filepath.Dir(l.at); dir != "/" && !within(h.Home, dir); dir = filepath.Dir(dir) {
			if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
				return &untrustedLink{link: l, why: "in the repository " + quote(dir) + ", which may have brought it", leads: at.path}
			}
		}
	}
	return nil
}

func containing(places []writable, path string) string {
	for _, p := range places {
		if within(path, p.path) {
			return p.why
		}
	}
	return ""
}

// untrustedLink is a link that is not followed.
type untrustedLink struct {
	link
	why   string
	leads string // what the whole path leads to; "" for nothing that exists
}

func (u *untrustedLink) String() string {
	return fmt.Sprintf("it goes through the link %s (to %s) %s", quote(printable(u.at)), quote(printable(u.target)), u.why)
}

// hint is what to type; name is how the path was given.
func (u *untrustedLink) hint(name string) string {
	if u.leads == "" {
		return "see what the link is for, and remove it: rm " + quote(printable(u.at))
	}
	return "remove the link, or if you mean what it leads to, name that: " + name + " " + quote(printable(u.leads))
}

// replaceable is the rule by which the command can change what path leads to,
// or the links on the way; "" for none.
func (x explainer) replaceable(path string) string {
	links, real := steps(filepath.Clean(path))
	if _, rule := x.changeableLink(links); rule != "" {
		return rule
	}
	_, rule := x.changeable([]string{real})
	return rule
}

// changeableLink returns the first of the links on the way to a file that something inside
// could have made, in this run or in an earlier one, and the rule or the tree by
// which it could; "" for none.
func (x explainer) changeableLink(links []string) (link, rule string) {
	if link, rule = x.changeable(links); rule != "" {
		return link, rule
	}
	for _, at := range links {
		if tree := x.host.exposedAbove(at); tree != "" {
			return at, "an earlier run could write to " + quote(tree)
		}
	}
	return "", ""
}

// changeable returns the first of some names that the command can change, and
// the rule by which it can; "" for none.
func (x explainer) changeable(names []string) (name, rule string) {
	for _, name := range names {
		if rule := x.rule(name); rule.Access == Write {
			return name, rule.Origin.String()
		}
	}
	return "", ""
}

// usedFile is something that Holdfast uses on the host for the run of a plan.
type usedFile struct {
	path, key string
	origin    Origin
	tree      bool // so is everything below it
	readable  bool // it may be in view, but not be changed
}

// usedFiles lists what the record, the alerts and the approvals of p use.
func (p Plan) usedFiles() (out []usedFile) {
	for _, a := range p.Record.Anchor {
		if a.Kind == "file" {
			out = append(out, usedFile{path: a.Address, key: "record.anchor", origin: a.Origin})
		}
	}
	for _, s := range p.Alerts.Sinks {
		files := []string{s.Headers, s.Secret, s.Authority}
		if s.Kind == "file" {
			files = append(files, s.Address)
		}
		if socket, ok := strings.CutPrefix(s.Address, "unix://"); ok {
			files = append(files, socket)
		}
		for _, path := range files {
			if path != "" {
				out = append(out, usedFile{path: path, key: "alerts.sinks", origin: s.Origin})
			}
		}
	}
	for _, n := range p.Approvals.Notify {
		for _, path := range []string{n.Secret, n.Headers, n.Authority} {
			if path != "" {
				out = append(out, usedFile{path: path, key: "approvals.notify", origin: n.Origin})
			}
		}
	}
	for _, r := range p.Alerts.Rules {
		out = append(out, usedFile{path: r.Path, key: "alerts.rules", origin: r.Origin, tree: true, readable: true})
	}
	return out
}

// outsideView resolves a file that Holdfast uses on the host, and refuses one that the
// command could read, or that a link leads to which the command could replace.
func (x explainer) outsideView(one Entry, what, text string) (string, *Error) {
	path := filepath.Clean(expand(text, one.Base, x.host.Home))
	if !filepath.IsAbs(path) { // it would be one file here, and another where it is used
		return "", fault(one.Origin, "write the absolute path", "%s: %s is not an absolute path", what, quote(printable(path)))
	}
	links, real := steps(path)
	if len(links) > maxFollowed {
		return "", fault(one.Origin, "name the file itself", "%s: %s goes through more than %d links", what, quote(path), maxFollowed)
	}
	if rule := x.rule(real); rule.Path != "" && rule.Access != Hidden {
		return "", fault(one.Origin, "keep it in a directory that is not in view", "%s: %s is in view inside (%s), so that the command could read it", what, quote(path), rule.Origin)
	}
	if link, rule := x.changeableLink(links); rule != "" {
		return "", fault(one.Origin, "name the file itself", "%s: the link %s on the way to %s is writable inside (%s), so that the command could lead it elsewhere", what, quote(link), quote(path), rule)
	}
	return real, nil
}

// files is outsideView for several paths, each of which is resolved in place; "" for
// none.
func (x explainer) files(one Entry, what string, paths ...*string) (fault *Error) {
	for _, path := range paths {
		if *path == "" {
			continue
		}
		if *path, fault = x.outsideView(one, what, *path); fault != nil {
			return fault
		}
	}
	return nil
}

// appendTarget refuses a file to be written whose text something on the host
// executes or obeys: part of what is written comes from inside.
func (x explainer) appendTarget(one Entry, what, path string) *Error {
	refuse := func(why string) *Error {
		return fault(one.Origin, "choose a file of its own, such as ~/.local/state/holdfast/alerts.jsonl", "%s: %s %s", what, quote(path), why)
	}
	if ofSystem(path) {
		return refuse("belongs to the system")
	}
	if name := x.host.executed(path, false); name != "" {
		return refuse("is or belongs to ~/" + name + ", which your account executes or obeys later")
	}
	if filepath.Dir(path) == nearestReal(x.host.State) && filepath.Ext(path) == ".jsonl" {
		return nil // Holdfast reads no such file
	}
	for _, own := range x.host.ownPaths() {
		if own.path != "" && within(path, own.path) {
			return refuse("is or belongs to " + own.what + " " + own.path)
		}
	}
	return nil
}
