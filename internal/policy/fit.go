package policy

import "slices"

// Guarantees are all that a host may be unable to keep, in the order of plan.go.
var Guarantees = []Guarantee{
	Namespaces, PrivateProc, Landlock, Scopes, Seccomp, TaskID, CopyLayers,
	Recording, Interception, HardLinks, MemoryLimit, ProcessLimit,
}

// Losses are the guarantees whose loss can be accepted: all but the namespaces,
// without which nothing of the boundary holds.
var Losses = Guarantees[1:]

// Switch reports whether --without gives a guarantee up also where the host keeps it.
// All others are kept as far as the host does.
func (g Guarantee) Switch() bool {
	return slices.Contains([]Guarantee{Recording, Interception, CopyLayers, HardLinks}, g)
}

// Needs lists the guarantees that p rests on. Those that only some plans need
// (copy layers, limits, a task id for root) are left out of the others.
func Needs(p Plan) []Guarantee {
	needs := []Guarantee{Namespaces, PrivateProc, Landlock, Scopes, Seccomp}
	if p.Identity.UID == 0 {
		needs = append(needs, TaskID)
	}
	if slices.ContainsFunc(p.Paths, func(r PathRule) bool { return r.Access == Copy }) {
		needs = append(needs, CopyLayers)
	}
	if p.Record.Level == RecordStandard || p.Record.Level == RecordFull {
		needs = append(needs, Recording)
	}
	if len(p.Allow) > 0 {
		needs = append(needs, Interception)
	}
	needs = append(needs, HardLinks)
	if p.Limits.Memory != 0 {
		needs = append(needs, MemoryLimit)
	}
	if p.Limits.Processes != 0 {
		needs = append(needs, ProcessLimit)
	}
	return needs
}

// Fit returns the guarantees that p needs, that the host cannot keep, and
// whose loss p does not accept by name. Nothing may start unless it is empty.
func Fit(p Plan, can func(Guarantee) bool) (missing []Guarantee) {
	for _, g := range Needs(p) {
		if !p.Accepts(g) && !can(g) {
			missing = append(missing, g)
		}
	}
	return missing
}
