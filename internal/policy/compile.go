package policy

import "slices"

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
	p.Ask, p.Deny = consentRulesOf(e, "ask"), consentRulesOf(e, "deny")
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
		func() error { return p.approvals(e, h) },
		func() error { return p.environment(e, h, &v) },
		func() error { return p.programs(e, &v) },
	} {
		if err := part(); err != nil {
			return Plan{}, err
		}
	}
	return p, nil
}
