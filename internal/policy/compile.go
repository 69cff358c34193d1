package policy

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
		return Plan{}, fault(Origin{}, "name directories above them", "the policy has %d entries; at most %d are allowed", len(e.Entries), 2*maxEntries)
	}
	h.owned = h.ownPaths()
	v := view{host: h, workspace: e.Workspace, dir: e.Dir, review: e.word("workspace.mode") == "review", writable: []writable{{e.Workspace, "the workspace"}}}
	for _, section := range []func() error{
		func() error { return p.network(e) },
		func() error { return p.credentials(e, h) },
		func() error { p.limits(e, h); return nil },
		func() error { p.guarantees(e); return nil },
		func() error { p.record(e); return nil },
		func() error { p.tools(e); return nil },
		func() error { p.consent(e); return nil },
		func() error { p.names(e); return nil },
		func() error { return v.entries(e) },
		func() error { return p.agent(e, &v) },
		func() error { return p.show(e, &v) },
		func() error { return p.refuseWritablePolicy(e, h) },
		func() error { return p.sources(e, h) },
		func() error { return p.alerts(e, h) },
		func() error { return p.approvals(e, h) },
		func() error { return p.environment(e, h, &v) },
		func() error { return p.programs(e, &v) },
	} {
		if err := section(); err != nil {
			return Plan{}, err
		}
	}
	return p, nil
}
