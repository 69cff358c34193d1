//go:build linux

package run

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
	"holdfast.dev/holdfast/internal/supervise"
)

// traps are the honeytokens of a run: files that nobody honest reads, in the
// private home.
type traps struct {
	files  []honey.File
	decoys []egress.Decoy // of their secrets
}

// newTraps makes them, none where the user put something of his own.
func (t *Task) newTraps() (traps, error) {
	if !t.Plan.Honeytokens || t.Log == "" {
		return traps{}, nil
	}
	files, err := honey.Files(t.Plan.Identity.Home)
	if err != nil {
		return traps{}, err
	}
	files = slices.DeleteFunc(files, func(f honey.File) bool { return taken(t.Plan, f) })
	var decoys []egress.Decoy
	for _, f := range files {
		for _, s := range f.Secrets {
			t.bus.Secrets().Hold("honey-"+f.Kind, s)
			decoys = append(decoys, egress.Decoy{Kind: f.Kind, Value: s})
		}
	}
	if len(decoys) == 0 {
		return traps{}, nil
	}
	return traps{files, decoys}, nil
}

// taken says whether the place of a honeytoken is the user's own, or its kind is
// what honest tools of this run read.
func taken(plan policy.Plan, f honey.File) bool {
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

// apply puts the files into view.
func (s traps) apply(spec *boundary.Spec) {
	for _, f := range s.files {
		spec.Files = append(spec.Files, boundary.File{Path: f.Path, Content: f.Content, Mode: f.Mode & fs.ModePerm})
	}
}

// served are those of the files that whoever serves the root of the view has: it
// tells of them itself.
func (o *observers) served(made []boundary.Entry) supervise.Baits {
	out := supervise.Baits{Details: map[string]map[string]string{}, Sink: o.bus.Sensor(event.Honey)}
	for _, f := range o.traps.files {
		if slices.ContainsFunc(made, func(e boundary.Entry) bool { return e.Path == f.Path }) {
			out.Details[f.Path] = f.Details()
		}
	}
	return out
}

// watch begins to look whether one of them is opened that is not served. The view is
// complete.
func (o *observers) watch(w boundary.Watch) error {
	files := slices.DeleteFunc(slices.Clone(o.traps.files), func(f honey.File) bool { return o.baits.Details[f.Path] != nil })
	if len(files) == 0 {
		return nil
	}
	var watcher *honey.Watcher
	err := sys.AsTask(w.UID, w.GID, func() (err error) {
		watcher, err = honey.Watch(fmt.Sprintf("/proc/%d/root", w.First), files, blinding{o.bus.Sensor(event.Honey), o})
		return err
	})
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.honey = watcher
	return nil
}
