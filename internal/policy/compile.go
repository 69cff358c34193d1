package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Compile resolves what e says on this host. The plan has nothing left to look
// up; whatever could not be resolved is an error.
func Compile(e Effective, h Host) (Plan, error) {
	p := Plan{
		Profile:   e.Profile,
		Sources:   e.Sources,
		Workspace: e.Workspace,
		File:      e.file,
		Dir:       e.Dir,
		Identity:  Identity{UID: h.UID, GID: h.GID, Name: h.Name, Home: h.Home},
	}
	if len(e.Entries) > 2*maxEntries {
		return Plan{}, fault(Origin{}, "name directories above them", "%d policy entries; %d are taken", len(e.Entries), 2*maxEntries)
	}
	if err := p.network(e); err != nil {
		return Plan{}, err
	}
	if err := p.credentials(e, h); err != nil {
		return Plan{}, err
	}
	p.limits(e, h)
	for _, one := range e.of("without") {
		if g := Guarantee(one.Value); !slices.Contains(p.Accepted, g) {
			p.Accepted = append(p.Accepted, g)
		}
	}
	p.record(e)
	p.tools(e)
	p.ProtectMore, p.ProtectLess = e.patterns("workspace.protect"), e.patterns("workspace.unprotect")
	p.HideMore, p.HideLess = e.patterns("workspace.hide"), e.patterns("workspace.show")
	h.owned = h.own()
	v := view{host: h, workspace: e.Workspace, review: e.word("workspace.mode") == "review", writable: []writable{{e.Workspace, "the workspace"}}}
	if err := v.entries(e); err != nil {
		return Plan{}, err
	}
	for _, part := range []func() error{
		func() error { return p.agent(e, &v) },
		func() error { return p.show(e, &v) },
		func() error { return p.unreachable(e, h) },
		func() error { return p.sources(e, h) },
		func() error { return p.alerts(e, h) },
		func() error { return p.gates(e, h) },
		func() error { return p.environment(e, h, &v) },
		func() error { return p.programs(e, &v) },
	} {
		if err := part(); err != nil {
			return Plan{}, err
		}
	}
	return p, nil
}

func (e Effective) patterns(key string) (out []Pattern) {
	for _, one := range e.of(key) {
		out = append(out, Pattern{one.Value, one.Origin})
	}
	return out
}

func (p *Plan) limits(e Effective, h Host) {
	p.Limits = Limits{
		Memory:    e.amount("limits.memory"),
		Processes: e.amount("limits.processes"),
		Files:     e.amount("limits.files"),
		Disk:      e.amount("limits.disk"),
		FileSize:  e.amount("limits.filesize"),
		CPUs:      float64(e.amount("limits.cpus")) / 1000,
		Time:      time.Duration(e.amount("limits.time")),
	}
	if h.Memory > 0 && p.Limits.Memory > h.Memory {
		p.Notes = append(p.Notes, fmt.Sprintf("limits.memory is lowered from %s to the %s that this machine has",
			formatAmount(size, p.Limits.Memory), formatAmount(size, h.Memory)))
		p.Limits.Memory = h.Memory
	}
}

// environment builds the whole environment inside.
func (p *Plan) environment(e Effective, h Host, v *view) error {
	out := map[string]Env{}
	ours := Origin{File: "holdfast"}
	for _, kv := range [][2]string{
		{"HOME", h.Home}, {"USER", h.Name}, {"LOGNAME", h.Name}, {"TMPDIR", "/tmp"},
		{"PWD", p.Dir}, {"PATH", v.searchPath()}, {"SHELL", v.shell()},
		// Compiled python is executed in the place of its source, and nobody
		// reads it: where honest programs write none, what was planted shows.
		{"PYTHONDONTWRITEBYTECODE", "1"},
	} {
		out[kv[0]] = Env{kv[0], kv[1], ours}
	}
	if p.Scratch {
		out["HOLDFAST_SCRATCH"] = Env{"HOLDFAST_SCRATCH", ScratchDir, ours}
	}
	if len(p.Outputs) > 0 {
		out["HOLDFAST_OUTPUT"] = Env{"HOLDFAST_OUTPUT", p.Outputs[0], ours}
	}
	for _, one := range v.env {
		out[one.Name] = one
	}
	for _, one := range e.of("environment.pass") {
		if err := p.pass(one, h, out); err != nil {
			return err
		}
	}
	for _, one := range e.of("environment.set") {
		if err := setVariable(one.Value, one.Text); err != nil {
			return fault(one.Origin, "", "%v", err)
		}
		out[one.Value] = Env{one.Value, one.Text, one.Origin}
	}
	if err := p.credentialVariables(e, out); err != nil {
		return err
	}
	for _, one := range out {
		p.Env = append(p.Env, one)
	}
	slices.SortFunc(p.Env, func(a, b Env) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// pass hands in what one entry of environment.pass stands for. A name given
// in full whose value is a secret is an error; what a wildcard stands for is
// left out and noted.
func (p *Plan) pass(one Entry, h Host, out map[string]Env) error {
	prefix, wild := strings.CutSuffix(one.Value, "*")
	if !wild {
		return p.passOne(one, h, out)
	}
	for _, kv := range h.Env {
		name, _, _ := strings.Cut(kv, "=")
		value, found := h.find(name)
		if !found || !strings.HasPrefix(name, prefix) {
			continue
		}
		if variable(name) != nil || refusedName(name) != nil || secretValue(value) || strings.ContainsAny(value, "\x00\n") {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: %s is left out: it looks like a secret or makes programs execute something", one.Origin, printable(name)))
			continue
		}
		out[name] = Env{name, value, one.Origin}
	}
	return nil
}

func (p *Plan) passOne(one Entry, h Host, out map[string]Env) error {
	name := one.Value // which was found passable when it was parsed
	value, found := h.find(name)
	if !found && one.Origin.File == "--env" {
		return fault(one.Origin, "give a value: --env "+name+"=VALUE", "%s is not set here", name)
	}
	if !found {
		return nil
	}
	if secretValue(value) || strings.ContainsAny(value, "\x00\n") {
		if strings.HasPrefix(one.Origin.File, "profile ") {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: %s is left out: its value looks like a secret", one.Origin, name))
			return nil
		}
		return fault(one.Origin, "give the value in full: --env "+name+"=VALUE, or environment.set", "the value of %s looks like a secret, or has a line break", name)
	}
	out[name] = Env{name, value, one.Origin}
	return nil
}
