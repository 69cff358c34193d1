//go:build linux

package sensors

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/detect/honey"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/network/egress"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/bus"
	"holdfast.dev/holdfast/internal/supervise"
)

// newHoneytokens makes the honeytokens of a run: files that no honest program reads, in
// the private home. None is made where the user put something, or without a record.
func newHoneytokens(plan policy.Plan, b *bus.Bus) ([]honey.File, error) {
	if !plan.Honeytokens || !b.Recording() {
		return nil, nil
	}
	files, err := honey.Files(plan.Identity.Home)
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(f honey.File) bool { return isUnusable(plan, f) })
	for _, f := range files {
		for _, secret := range f.Secrets {
			b.Secrets().Hold("honey-"+f.Kind, secret)
		}
	}
	return files, nil
}

// Decoys are the secrets in the honeytokens.
func (s *Set) Decoys() (out []egress.Decoy) {
	for _, f := range s.honey {
		for _, secret := range f.Secrets {
			out = append(out, egress.Decoy{Kind: f.Kind, Value: secret})
		}
	}
	return out
}

// isUnusable reports whether the user has something where a honeytoken would be,
// or honest tools of this run read its kind.
func isUnusable(plan policy.Plan, f honey.File) bool {
	dir, home := filepath.Dir(f.Path), plan.Identity.Home
	near := func(path string) bool { // it is there, or could be read as something of the user's
		return path != "" && (paths.Within(path, f.Path) || dir != home && paths.Within(dir, path))
	}
	switch {
	case near(plan.Workspace):
		return true
	case slices.ContainsFunc(plan.Paths, func(r policy.PathRule) bool { return near(r.Path) || near(r.At) }):
		return true
	case f.Kind == "aws":
		return slices.ContainsFunc(plan.Credentials, func(c policy.Credential) bool { return c.Sign != "" })
	case f.Kind == "vault":
		return slices.ContainsFunc(plan.Env, func(e policy.Env) bool { return e.Name == "VAULT_TOKEN" })
	}
	return false
}

// addHoneytokens puts the files into view.
func addHoneytokens(spec *boundary.Spec, files []honey.File) {
	spec.Files = slices.Clip(spec.Files)
	for _, f := range files {
		spec.Files = append(spec.Files, boundary.File{Path: f.Path, Content: f.Content, Mode: f.Mode & fs.ModePerm})
	}
}

// servedHoneytokens returns the honeytokens that the tripwire has among its files: it
// reports the processes that touch them.
func (s *Set) servedHoneytokens(made []boundary.Entry) supervise.Honeytokens {
	out := supervise.Honeytokens{Details: map[string]map[string]string{}, Sink: s.config.Bus.Sensor(event.Honey)}
	for _, f := range s.honey {
		if slices.ContainsFunc(made, func(e boundary.Entry) bool { return e.Path == f.Path }) {
			out.Details[f.Path] = f.Details()
		}
	}
	return out
}

// watchHoneytokens watches for opens of the honeytokens that the tripwire does not
// serve. The view is complete.
func (s *Set) watchHoneytokens(w boundary.Watch) error {
	files := slices.DeleteFunc(slices.Clone(s.honey), func(f honey.File) bool { return s.honeytokens.Details[f.Path] != nil })
	if len(files) == 0 {
		return nil
	}
	var watcher *honey.Watcher
	err := sys.AsTask(w.UID, w.GID, func() (err error) {
		watcher, err = honey.Watch(fmt.Sprintf("/proc/%d/root", w.First), files, blinding{s.config.Bus.Sensor(event.Honey), s})
		return err
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watcher = watcher
	return nil
}
