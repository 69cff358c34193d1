package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Agent is what a preset adds to a plan besides paths, destinations and credentials:
// the content of the private home when the agent starts.
type Agent struct {
	Preset  string // name
	Title   string
	Origin  Origin
	Sandbox string // what became of the agent's own sandbox; "" for nothing to say
	Install string // a command that installs the program; "" for unknown

	Copies  []AgentCopy
	Files   []AgentFile
	Trust   []string // variables that name the bundle of certificates, in addition to those that are always set
	Keeps   []string // directories of the host that stay writable
	Logins  []Login  // token endpoints that are answered outside
	Missing []string // what the user has to do first, each a sentence; empty when all is there
	NoLogin []Login  // hosts of credentials that are missing, with Title and what to type
}

// AgentCopy is a file or a directory of the user's that is copied for the agent. What
// the agent changes in the copy waits for the user.
type AgentCopy struct {
	Path   string // inside; with ~ in a preset, absolute in a plan
	Source string // on the host, resolved; "" if nothing is there yet
	Place  string // on the host, where a change would go
	Origin Origin
	Except []string // of a directory: names at its top that are neither copied nor checked

	// For a JSON file. Drop: keys that are left out. Only: keys of which just the named
	// members are copied. Notable: the keys whose changes alone are worth looking at,
	// if any. Quiet: keys whose changes are not. "*" is any key.
	Drop, Only, Notable, Quiet [][]string

	// Remember: keys of which the host's file has no value, and which runs hand on to
	// each other: what the agent asks everybody once. The host's file does not get them.
	Remember [][]string

	Set  []AgentValue // values that the copy has, whatever the file says
	Tell bool         // the copy is text, and begins or goes on with Plan.Told
}

// AgentValue is a value in a JSON file.
type AgentValue struct {
	Key   []string
	Value any // text may have ${NAME} for a variable inside, ${NAME:-20} for its last 20 signs
}

// AgentFile is a file of the run's own. ${NAME} in its content is replaced by a
// variable inside, escaped for double quotes of JSON, TOML and YAML; if one of them is not
// set, there is no such file.
type AgentFile struct {
	Path     string // inside; with ~ in a preset, absolute in a plan
	Content  string
	Merge    bool       // content is JSON, and is laid over the host's file of that path
	Source   string     // that file of the host, resolved; "" if there is none
	Drop     [][]string // keys of that file that are left out
	Writable bool       // by the agent, in the private home; nothing of it is kept
	Origin   Origin
}

// agent adds a preset's state of the agent to the plan.
func (p *Plan) agent(e Effective, v *view) error {
	a := e.agent
	if a == nil {
		return nil
	}
	out := &Agent{
		Preset: a.preset.Name, Title: a.preset.Title, Origin: a.preset.Origin, Install: a.preset.Install,
		Sandbox: a.preset.Sandbox, Trust: a.preset.trust, Logins: a.endpoints, NoLogin: a.noLogin,
	}
	var errs Errors
	for _, k := range a.preset.keep {
		if err := a.keepHistory(k, v, out, e.agentRank); err != nil {
			errs = append(errs, err)
		}
	}
	for _, r := range a.preset.read {
		a.readOnly(r, v, e.agentRank)
	}
	for _, c := range a.preset.copies {
		a.copyOf(c, v, out)
	}
	for _, f := range a.preset.files {
		f.Path = a.insidePath(f.Path)
		if err := a.base(&f, v); err != nil {
			errs = append(errs, err)
		}
		out.Files = append(out.Files, f)
	}
	out.Missing = a.missing // also of the paths above
	p.Agent = out
	return errs.orNil()
}

// maxSlug is the longest name of a file (limits.h, NAME_MAX); agents cut a longer
// one and add a hash of their own.
const maxSlug = 200

// keepHistory makes a directory of the agent's history writable. The directory itself
// may not be a link; those above it may, where they lead to a place that holds
// nothing else of importance.
func (a *agentPlan) keepHistory(k keptDir, v *view, out *Agent, rank int) *Error {
	at := a.insidePath(k.path)
	from := k.from
	if from == "" {
		from = k.path
	}
	path := a.hostPath(from)
	if len(filepath.Base(path)) > maxSlug {
		v.notes = append(v.notes, fmt.Sprintf("%s: the history is not kept: the name of the working directory is too long", k.origin))
		return nil
	}
	parent, err := a.parent(filepath.Dir(path), v)
	if err != nil {
		return fault(k.origin, "check what is there, or run without the preset: --preset none", "keep: %v", err)
	}
	real := filepath.Join(parent, filepath.Base(path))
	found, err := locate(real)
	switch {
	case err == nil && (found.path != real || !found.dir):
		return fault(k.origin, "replace it with a directory of your own, or run without the preset: --preset none", "keep: %s is a link or not a directory", quote(real))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return &Error{Origin: k.origin, Msg: "keep: " + quote(real) + ": " + reason(err), cause: err}
	case err == nil && found.owner != a.host.UID:
		return fault(k.origin, "", "keep: %s belongs to user %d", quote(real), found.owner)
	}
	if within(real, v.workspace) {
		return nil // writable already
	}
	if err := a.checkStatePath(real, v, true); err != nil {
		return fault(k.origin, "check what is there, or run without the preset: --preset none", "keep: %v", err)
	}
	rule := PathRule{Path: real, Access: Write, Origin: k.origin, File: found.id}
	if at != real {
		rule.At = at
	}
	v.rules = append(v.rules, ranked{rule, rank})
	out.Keeps = append(out.Keeps, real)
	return nil
}

// parent resolves the directory above one that is kept, as far as it exists.
func (a *agentPlan) parent(dir string, v *view) (string, error) {
	for p := dir; ; p = filepath.Dir(p) {
		at, err := locate(p)
		if errors.Is(err, fs.ErrNotExist) && p != "/" {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("%s: %s", quote(p), reason(err))
		}
		const othersWrite = 0o022
		bad := a.host.findUntrustedLink(at, v.writable)
		switch {
		case bad != nil:
			return "", errors.New(bad.String())
		case !at.dir:
			return "", fmt.Errorf("%s is not a directory", quote(p))
		case at.owner != 0 && at.owner != a.host.UID:
			return "", fmt.Errorf("%s belongs to user %d, not to you", quote(p), at.owner)
		case at.mode&othersWrite != 0 && at.mode&0o1000 == 0:
			return "", fmt.Errorf("%s can be written by others", quote(p))
		}
		return filepath.Join(at.path, strings.TrimPrefix(dir, p)), nil
	}
}

// checkStatePath says why a resolved path of the agent's state may not come into view. What the
// account executes or obeys is refused, except for the agent's own directory.
func (a *agentPlan) checkStatePath(real string, v *view, write bool) error {
	h := a.host
	at := located{path: real, dir: true}
	if err := h.showable(at, Read); err != nil {
		return err
	}
	if within(v.workspace, real) {
		return fmt.Errorf("%s contains the workspace", quote(real))
	}
	if part := credentialPart(real); part != "" {
		return fmt.Errorf("%s: %s holds credentials", quote(real), part)
	}
	if !write {
		return nil
	}
	if err := h.writable(real); err == nil {
		return nil
	}
	if ofSystem(real) {
		return fmt.Errorf("%s belongs to the system", quote(real))
	}
	for _, one := range embeddedToolchains().Executed {
		own := filepath.Join(h.Home, one)
		if (within(real, own) || within(own, real)) && (!a.isAgentHome(own) || real == own || within(own, real)) {
			return fmt.Errorf("%s is or belongs to ~/%s, which your account executes or obeys later", quote(real), one)
		}
	}
	return nil
}

// agentHomes are the directories of agents among those that the account obeys. A
// preset may keep something below its own.
var agentHomes = []string{".claude", ".codex", ".gemini", ".config/opencode"}

// isAgentHome reports whether a directory of the home is one of an agent's that the preset
// keeps something below.
func (a *agentPlan) isAgentHome(dir string) bool {
	if !slices.ContainsFunc(agentHomes, func(name string) bool { return filepath.Join(a.host.Home, name) == dir }) {
		return false
	}
	return slices.ContainsFunc(a.preset.keep, func(k keptDir) bool {
		return within(a.insidePath(k.path), dir) && a.insidePath(k.path) != dir
	})
}

// readOnly shows something of the agent's. What is missing, or is not fit to be
// shown, is left out.
func (a *agentPlan) readOnly(r named, v *view, rank int) {
	at, err := locate(a.hostPath(r.path))
	if err != nil {
		return
	}
	if within(at.path, v.workspace) {
		return // in view already
	}
	err = a.readable(at, v)
	if err == nil && !at.dir && !at.file {
		err = fmt.Errorf("%s is neither a directory nor a file", quote(at.path))
	}
	if err != nil {
		v.notes = append(v.notes, r.origin.String()+": left out: "+err.Error())
		return
	}
	rule := PathRule{Path: at.path, Access: Read, Origin: r.origin, File: at.id}
	if inside := a.insidePath(r.path); inside != at.path {
		rule.At = inside
	}
	v.rules = append(v.rules, ranked{rule, rank})
}

// readable says why what was found may not be shown to the agent.
func (a *agentPlan) readable(at located, v *view) error {
	if bad := v.host.findUntrustedLink(at, v.writable); bad != nil {
		return errors.New(bad.String())
	}
	if at.owner != 0 && at.owner != a.host.UID {
		return fmt.Errorf("%s belongs to another user", quote(at.path))
	}
	return a.checkStatePath(at.path, v, false)
}

// base resolves the file of the host that another is laid over.
func (a *agentPlan) base(f *AgentFile, v *view) *Error {
	if !f.Merge {
		return nil
	}
	at, err := locate(f.Path)
	if bad := v.host.findUntrustedLink(at, v.writable); bad != nil {
		return fault(f.Origin, bad.hint("path:"), "files: %s: %s", quote(f.Path), bad)
	}
	if err == nil {
		err = a.checkStatePath(at.path, v, false)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &Error{Origin: f.Origin, Msg: "files: " + quote(f.Path) + ": " + reason(err), cause: err}
	case !a.host.trusts(at.owner):
		return fault(f.Origin, "", "files: %s belongs to user %d", quote(at.path), at.owner)
	}
	f.Source = at.path
	return nil
}

// inDir puts the working directory in the place of {dir} in paths of values.
func (a *agentPlan) inDir(all [][]string) [][]string {
	out := slices.Clone(all)
	for i, way := range out {
		out[i] = slices.Clone(way)
		for k, part := range way {
			if part == "{dir}" {
				out[i][k] = a.dir
			}
		}
	}
	return out
}

// copyOf notes a file or directory to copy for the agent.
func (a *agentPlan) copyOf(c AgentCopy, v *view, out *Agent) {
	c.Place, c.Path = a.hostPath(c.Path), a.insidePath(c.Path)
	c.Only, c.Remember = a.inDir(c.Only), a.inDir(c.Remember)
	at, err := locate(c.Place)
	if err == nil {
		if err = a.readable(at, v); err == nil && within(at.path, v.workspace) {
			err = fmt.Errorf("%s is in the workspace, where what runs inside could change it", quote(at.path))
		}
		if err != nil {
			v.notes = append(v.notes, c.Origin.String()+": not copied: "+err.Error())
		} else {
			c.Source = at.path
		}
	}
	out.Copies = append(out.Copies, c)
}
