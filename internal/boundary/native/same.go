//go:build linux

package native

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

const replacedReason = "was replaced after the policy was checked against it"

// sameSteps begins the names of steps that compare what was opened with what was
// judged.
const sameSteps = "same file: "

// judgedFile returns which file a part was when the policy was judged by it; the zero value
// for what only Holdfast or root can replace: its own storage, the system.
func judgedFile(spec boundary.Spec, p part) policy.FileID {
	plan := spec.Plan
	if i := slices.IndexFunc(plan.Paths, func(r policy.PathRule) bool { return r.Path == p.source }); i >= 0 {
		return plan.Paths[i].File
	}
	if p.source == plan.Workspace {
		return plan.File
	}
	return policy.FileID{}
}

// compare ends the launch where fd is not open on the file that was judged. It
// looks at the descriptor that is mounted, or mounted over: whatever runs in the
// same tree can give the name to another file at any time.
func (b *builder) compare(fd ref, was policy.FileID, path string) {
	if was == (policy.FileID{}) || b.omit["same-file"] {
		return
	}
	if b.stat == 0 {
		b.stat = b.bytes(make([]byte, statxSize))
	}
	b.call("look at "+path, unix.SYS_STATX, []any{fd, b.empty, unix.AT_EMPTY_PATH, unix.STATX_INO, b.stat})
	b.call(sameSteps+path, noCall, []any{ref(b.stat + statxIno)}, want(int64(was.Ino)))
	device := uint64(unix.Major(was.Dev)) | uint64(unix.Minor(was.Dev))<<32
	b.call(sameSteps+path, noCall, []any{ref(b.stat + statxDev)}, want(int64(device)))
}

// compareIn compares what is mounted over, where a tree shows the files that were
// judged themselves: layers and copies have others in their place.
func (b *builder) compareIn(fd ref, p pin) {
	if tree := b.hostTree(p.path); tree != nil && tree.source == tree.at && !tree.layers && tree.access != policy.Copy {
		b.compare(fd, p.file, p.path)
	}
}

// Where struct statx (statx(2)) has the number of the inode, and those of the
// device, major and minor, 32 bits each.
const (
	statxSize = 256
	statxIno  = 32
	statxDev  = 136
)

// asReplaced returns the failure of a step that compared; nil for another step.
func asReplaced(step string) error {
	path, ok := strings.CutPrefix(step, sameSteps)
	if !ok {
		return nil
	}
	return &boundary.PostureError{Diff: []string{path + " " + replacedReason}, Replaced: true}
}
