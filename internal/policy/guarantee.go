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
