//go:build linux

package native

import (
	"slices"

	"holdfast.dev/holdfast/internal/policy"
)

// viewTrees lists what the view is made of, for the supervisor, which must decide
// whether a path is in it. It names what the launch mounted and made.
func (l *launch) viewTrees() []policy.Tree {
	b, plan := l.builder, l.spec.Plan
	var out []policy.Tree
	add := func(path string, access policy.Access, rule string) {
		out = append(out, policy.Tree{Path: path, Access: access, Rule: rule})
	}
	rules := map[string]string{}
	for _, r := range plan.Paths {
		rules[r.Path] = r.Origin.String()
		if r.Access == policy.Hidden {
			add(r.Path, policy.Hidden, r.Origin.String())
		}
	}
	for _, p := range b.parts {
		switch {
		case p.layers:
			add(p.at, policy.Write, rules[p.at])
		case p.source == "", p.access == policy.Copy, p.at == policy.ScratchDir:
			add(p.at, policy.Copy, rules[p.at])
		case p.access == policy.Write:
			add(p.at, policy.Write, rules[p.at])
		default:
			add(p.at, policy.Read, rules[p.at])
		}
	}
	for path := range b.own {
		if enclosing(out, path) != policy.Copy { // there it is a file like any other
			add(path, policy.Read, "")
		}
	}
	for _, d := range devices {
		add("/dev/"+d, policy.Device, "")
	}
	add("/dev/pts", policy.Device, "")
	add("/proc", policy.Device, "")
	for _, m := range l.facts.masks {
		access := policy.Hidden
		if m.readonly {
			access = policy.Read
		}
		add(m.path, access, "")
	}
	return append(out, pinnedTrees(plan, b.pinned, out)...)
}

// pinnedTrees are what is mounted over paths of trees: over what is protected or
// hidden, and over what leads there or to another mount, which stays where it is
// and as it is.
func pinnedTrees(plan policy.Plan, above map[string]bool, trees []policy.Tree) (out []policy.Tree) {
	over := map[string]bool{}
	for _, r := range slices.Concat(plan.Protect, plan.HardLinks, plan.Hidden) {
		over[plan.Within(r)] = true
	}
	for path := range above {
		if !over[path] {
			out = append(out, policy.Tree{Path: path, Access: enclosing(trees, path)})
		}
	}
	for _, r := range slices.Concat(plan.Protect, plan.HardLinks) {
		out = append(out, policy.Tree{Path: plan.Within(r), Access: policy.ProtectedRead, Rule: r.Rule})
	}
	for _, r := range plan.Hidden {
		out = append(out, policy.Tree{Path: plan.Within(r), Access: policy.Hidden, Rule: r.Rule})
	}
	return out
}

// enclosing is the access of the deepest of the trees that path is in.
func enclosing(trees []policy.Tree, path string) policy.Access {
	access, longest := policy.Write, -1
	for _, t := range trees {
		if len(t.Path) > longest && below(path, t.Path) {
			access, longest = t.Access, len(t.Path)
		}
	}
	return access
}
