package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

func filesystemRows(p Plan) (rows []Row) {
	for _, r := range p.Paths {
		value := r.Path
		if r.At != "" {
			value += " (by the link " + r.At + ")"
		}
		rows = append(rows, Row{"filesystem." + r.Access.String(), value, r.Origin.String()})
	}
	return rows
}

func (x explainer) file(query string) (Answer, error) {
	// Not joined where it is relative: what .. leads to is the kernel's to say.
	given := query
	switch {
	case query == "~" || strings.HasPrefix(query, "~/"):
		given = expand(query, x.host.Dir, x.host.Home)
	case !filepath.IsAbs(query):
		given = x.host.Dir + "/" + query
	}
	a := Answer{Query: query, Kind: "path"}
	at, err := locate(given)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a.Resolved = nearestReal(filepath.Clean(given))
	case err == nil:
		a.Resolved = at.path
	case errors.Is(err, fs.ErrPermission):
		a.Resolved = filepath.Clean(given) // decided by name; it is unreadable for the user already
	default:
		return Answer{}, &Error{Msg: "looking at " + printable(query) + ": " + reason(err), cause: err}
	}
	rule := x.rule(a.Resolved)
	read, write := x.readWrite(a.Resolved, rule)
	a.Read, a.Write = &read, &write
	execute := x.execute(read, at, err == nil)
	a.Execute = &execute
	return a, nil
}

// rule is the one that decides about a resolved path.
func (x explainer) rule(path string) PathRule {
	best := PathRule{}
	for _, r := range slices.Concat(x.plan.Paths, x.plan.ownRules(), x.host.System) {
		if within(path, r.Path) && len(r.Path) > len(best.Path) {
			best = r
		}
	}
	return best
}

func (x explainer) readWrite(path string, rule PathRule) (read, write Verdict) {
	name := rule.Origin.String()
	if rule.Path == "" || rule.Access == Hidden {
		return x.absent(path, rule)
	}
	if p, ok := x.findProtected(path, x.plan.Hidden); ok {
		secret := Verdict{Why: "hidden as a secret: " + p.Reason, Rule: "secret " + p.Rule}
		read = secret
		read.Add = "--show " + quote(filepath.Base(path)) + ", or under workspace.show: " + filepath.Base(path)
		return read, secret
	}
	read = Verdict{Allowed: true, Why: "in view", Rule: name}
	switch rule.Access {
	case Copy:
		return read, Verdict{Allowed: true, Private: true, Why: "to a private layer that is dropped at the end; the host's file stays as it is", Rule: name}
	case Read:
		write = Verdict{Why: "in view read-only", Rule: name}
		err := x.host.writable(path)
		if err == nil {
			write.Add = "--rw " + quote(path) + ", or under filesystem.write: " + path
		} else {
			write.Why += "; cannot be allowed: " + err.Error()
		}
		return read, write
	}
	if p, ok := x.protected(path); ok && p.Copy != "" {
		return read, Verdict{Allowed: true, Private: true, Rule: "protected path " + p.Rule,
			Why: "to a copy of it: branches, remotes, submodules and the author's name wait at the end for 'holdfast review', anything else is dropped"}
	} else if ok {
		write = Verdict{Why: "protected: " + p.Reason, Rule: "protected path " + p.Rule}
		if p.Root == "" {
			write.Add = "under workspace.unprotect: " + p.Path + " (then the host may execute what was written)"
		}
		return read, write
	}
	write = Verdict{Allowed: true, Why: x.plan.outcomeOf(path, rule), Rule: name}
	if r, ok := x.reserved(path); ok {
		write.Why, write.Rule = r.Outcome+": "+r.Reason, "protected name "+r.Pattern
	}
	return read, write
}

// absent explains a path that no rule shows.
func (x explainer) absent(path string, rule PathRule) (read, write Verdict) {
	why := "not in view: inside it does not exist"
	if rule.Path != "" {
		why = "hidden: it can hold credentials"
	}
	for _, private := range []string{x.host.Home, "/tmp", "/var/tmp", "/run", "/dev", "/proc", "/sys"} {
		if rule.Path == "" && within(path, private) {
			why = "not in view: " + private + " is private inside, and the host's is not visible"
			break
		}
	}
	if path == filepath.Join(x.host.Home, ".gitconfig") {
		why += "; inside, git has the settings of it that execute and include nothing"
	}
	read, write = Verdict{Why: why, Rule: rule.Origin.File}, Verdict{Why: why, Rule: rule.Origin.File}
	at, err := locate(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			read.Why, write.Why = why+"; nor does it exist on the host", why+"; nor does it exist on the host"
			if beside := filepath.Dir(x.plan.Workspace); filepath.Dir(path) == beside && beside != x.host.Home {
				write.Add = "--worktrees " + quote(path) + ", for worktrees of git"
			}
		}
		return read, write
	}
	if err := x.showable(at, Read); err != nil {
		read.Why += "; cannot be allowed: " + err.Error()
	} else {
		read.Add = "--ro " + quote(path) + ", or under filesystem.read: " + path
	}
	if err := x.showable(at, Write); err != nil {
		write.Why += "; cannot be allowed: " + err.Error()
	} else {
		write.Add = "--rw " + quote(path) + ", or under filesystem.write: " + path
	}
	return read, write
}

// showable says why a path that is not in view cannot come into it.
func (x explainer) showable(at located, access Access) error {
	if err := x.host.showable(at, access); err != nil {
		return err
	}
	for _, file := range x.plan.usedFiles() {
		if file.readable && access != Write {
			continue
		}
		if within(file.path, at.path) || file.tree && within(at.path, file.path) {
			return fmt.Errorf("%s (%s) uses %s", file.key, file.origin, file.path)
		}
	}
	return nil
}

// aDirectory is why a directory may be executed.
const aDirectory = "a directory: may be entered"

func (x explainer) execute(read Verdict, at located, exists bool) Verdict {
	const anyExecute = 0o111
	switch {
	case !read.Allowed:
		return Verdict{Why: read.Why, Add: read.Add}
	case !exists:
		return Verdict{Why: "does not exist", Rule: read.Rule}
	case at.dir:
		return Verdict{Allowed: true, Why: aDirectory, Rule: read.Rule}
	case at.mode&anyExecute == 0:
		return Verdict{Why: "in view, but its mode lets nobody execute it", Rule: read.Rule, Add: "chmod +x " + quote(at.path)}
	}
	return Verdict{Allowed: true, Why: "in view and executable", Rule: read.Rule}
}
