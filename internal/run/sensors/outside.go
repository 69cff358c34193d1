//go:build linux

package sensors

import (
	"os"
	"path/filepath"
	"slices"
	"sync"

	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/supervise"
)

// carry says why a path of the host's is not changed from inside even when a human
// allows it: what Holdfast is and keeps, its policy, what the host would execute, and
// secrets. The paths are resolved when the first change is asked about: a run without
// rules of consent never needs them.
func (s *Set) carry() func(op, path string) error {
	judge := sync.OnceValue(func() func(op, path string) error {
		return supervise.Outside(protectedPaths(s.plan, s.config.Protected))
	})
	return func(op, path string) error { return judge()(op, path) }
}

// protectedPaths returns the paths that are never changed from inside, and what they lead to.
func protectedPaths(plan policy.Plan, own []string) (real []string) {
	all := slices.Clone(own)
	if dir, err := os.UserConfigDir(); err == nil {
		all = append(all, filepath.Join(dir, "holdfast"))
	}
	for _, source := range plan.Sources {
		all = append(all, source.Name)
	}
	for _, list := range [][]policy.Protected{plan.Protect, plan.Hidden} {
		for _, p := range list {
			all = append(all, plan.Within(p))
		}
	}
	for _, path := range all {
		if !filepath.IsAbs(path) {
			continue // a flag, or nothing
		}
		real = append(real, path)
		if to, err := filepath.EvalSymlinks(path); err == nil && to != path {
			real = append(real, to)
		}
	}
	return real
}
