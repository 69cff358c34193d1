//go:build linux

package run

import (
	"os"
	"path/filepath"
	"sync"

	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/supervise"
)

// carry says what is not changed outside, whoever allows it: what Holdfast is and
// keeps, what it was told, what the host would execute, and secrets. A run without
// rules of consent asks for nothing of it.
func (t *Task) carry(plan policy.Plan) func(op, path string) error {
	judge := sync.OnceValue(func() func(op, path string) error { return supervise.Outside(t.never(plan)) })
	return func(op, path string) error { return judge()(op, path) }
}

func (t *Task) never(plan policy.Plan) (real []string) {
	never := []string{t.State, t.Log, t.Keys, t.Grants, t.Executable}
	if dir, err := os.UserConfigDir(); err == nil {
		never = append(never, filepath.Join(dir, "holdfast"))
	}
	for _, s := range plan.Sources {
		never = append(never, s.Name)
	}
	for _, list := range [][]policy.Protected{plan.Protect, plan.Hidden} {
		for _, p := range list {
			root := p.Root
			if root == "" {
				root = plan.Workspace
			}
			never = append(never, filepath.Join(root, p.Path))
		}
	}
	for _, path := range never {
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
