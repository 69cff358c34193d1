//go:build linux

package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/policy"
)

// reviewStore is where the storage of a review is mounted during the launch.
const reviewStore = hidden + "/review"

// viewSteps begins the names of steps that fail where no layer can be laid over
// the workspace.
const viewSteps = "view: "

// viewError says that no layer can be laid over the workspace.
type viewError struct{ err error }

func (e *viewError) Error() string { return e.err.Error() }
func (e *viewError) Unwrap() error { return e.err }

// Hint is how to do without.
func (e *viewError) Hint() string {
	return "write workspace.view: auto (or copy) into the policy: the workspace is then copied"
}

// startView launches with a layer over the workspace, and where that cannot be
// had, with a copy of it.
func (b *Backend) startView(ctx context.Context, spec boundary.Spec) (boundary.Process, error) {
	r, why := spec.Review, "the policy asks for it"
	if view := spec.Plan.View; view != policy.ViewCopy {
		r.Mode = policy.ViewOverlay
		p, err := b.startNetwork(ctx, spec)
		failure := asViewError(err)
		if failure == nil || view == policy.ViewOverlay {
			return p, err
		}
		why = failure.Error()
	}
	r.Mode = policy.ViewCopy
	if err := r.Copy(ctx, why); err != nil {
		return nil, err
	}
	return b.startNetwork(ctx, spec)
}

// asViewError returns err if it means that the host cannot lay the layer.
func asViewError(err error) error {
	var view *viewError
	if errors.As(err, &view) {
		return view
	}
	var step *StepError
	if errors.As(err, &step) && strings.Contains(step.Step, viewSteps) {
		return step
	}
	return nil
}

// prepareView refuses a layer where it would not show what the workspace is.
func (l *launch) prepareView() error {
	r := l.spec.Review
	if r == nil || r.Mode != policy.ViewOverlay {
		return nil
	}
	if l.omit["view"] {
		return &viewError{errors.New("left out")}
	}
	if r.Other != "" {
		return &viewError{fmt.Errorf("%s belongs to a user or group other than the command's, and an overlay cannot change such files", r.Other)}
	}
	mounts, err := readMounts("/proc/self/mountinfo")
	if err != nil {
		return &viewError{err}
	}
	for _, m := range mounts {
		if m.Point != l.spec.Plan.Workspace && below(m.Point, l.spec.Plan.Workspace) {
			return &viewError{fmt.Errorf("%s is a mount in the workspace, which an overlay does not show", m.Point)}
		}
	}
	return nil
}

// workspacePart is the workspace, or what is shown in its place.
func workspacePart(spec boundary.Spec) part {
	p := part{source: spec.Plan.Workspace, at: spec.Plan.Workspace, access: policy.Write, dir: true, exec: true}
	switch r := spec.Review; {
	case r == nil:
	case r.Mode == policy.ViewOverlay: // the lower layer can only be read
		p.access, p.layers = policy.Copy, true
	default:
		p.source = filepath.Join(r.Dir, "upper")
	}
	return p
}

// storePart is the storage that the layers of the workspace are on; its place is
// "" when there are none.
func storePart(spec boundary.Spec) part {
	if r := spec.Review; r != nil && r.Mode == policy.ViewOverlay {
		return part{source: r.Dir, at: reviewStore, access: policy.Write, dir: true}
	}
	return part{}
}

// attachView lays a writable layer on the host's disk over the workspace. Only
// the layer is written to. The layers share their owner's id map, so that what is
// written belongs on disk to the workspace's owner.
// Without "volatile": what a run did must outlive a crash of the machine.
func (b *builder) attachView(p part) {
	lower := fmt.Sprintf("%s/lower%d", hidden, len(b.expect))
	b.mkdirOne(lower, 0o755)
	b.mkdirOne(reviewStore, 0o755)
	b.attach("attach lower layer of "+p.at, b.trees[p.at], lower)
	b.attach("attach storage of the review", b.trees[reviewStore], reviewStore)
	b.attachOverlay(viewSteps+"layers of "+p.at, lower, reviewStore+"/upper", reviewStore+"/work", p.at)
}

// grown are the parts whose growth counts, with the storage of the review.
func (l *launch) grown() []part {
	parts := l.builder.parts
	if store := storePart(l.spec); store.at != "" {
		parts = append(parts[:len(parts):len(parts)], store)
	}
	return parts
}

// layerDevice is the device number that files of the view of the workspace have
// inside. Files of it that have no name take space on the host's disk, although the
// number is that of no disk.
func (l *launch) layerDevice(p *process) (uint64, error) {
	var st unix.Stat_t
	err := sys.AsTask(l.facts.uid, l.facts.gid, func() error {
		return unix.Lstat(fmt.Sprintf("/proc/%d/root%s", p.pid, l.spec.Plan.Workspace), &st)
	})
	if err != nil {
		return 0, fmt.Errorf("measuring the view of the workspace: %w", err)
	}
	return st.Dev, nil
}

// tryView lays a layer on this host's disk over a directory, as a review does.
func tryView() error {
	dir, err := os.MkdirTemp("", "holdfast-check-")
	if err != nil {
		return err
	}
	defer removeView(dir)
	for _, d := range []string{"lower", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	return trial(func(b *builder) {
		b.inNamespaces(func() { b.overlay(viewSteps+"layers", dir+"/lower", dir+"/upper", dir+"/work", 0) })
	})
}

// removeView removes a directory with a work directory of overlayfs in it.
func removeView(dir string) {
	os.Chmod(filepath.Join(dir, "work", "work"), 0o700) // it has mode 000; if it is not there, nothing needs to be done
	os.RemoveAll(dir)
}
