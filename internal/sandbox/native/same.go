//go:build linux

package native

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/sandbox"
)

const replaced = "is not what it was when the policy was read: something replaced it meanwhile"

// judged says which file a part was when the policy was judged by it; the zero
// value where that is not known, or where the part shows something else.
func judged(spec sandbox.Spec, p part) policy.FileID {
	plan := spec.Plan
	if p.layers || p.access == policy.Copy {
		return policy.FileID{}
	}
	if i := slices.IndexFunc(plan.Paths, func(r policy.PathRule) bool { return r.Path == p.source }); i >= 0 {
		return plan.Paths[i].File
	}
	if p.source == plan.Workspace {
		return plan.File
	}
	return policy.FileID{}
}

// same compares a file that was opened for the launch with the one that was judged.
func same(fd int, want policy.FileID, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("looking at %s: %w", path, err)
	}
	if want != (policy.FileID{}) && want != (policy.FileID{Dev: st.Dev, Ino: st.Ino}) {
		return &sandbox.PostureError{Diff: []string{path + " " + replaced}}
	}
	return nil
}

// exchanged lists the paths that show something else inside than what the policy
// was judged by. Their names were opened again in the launch, and whatever runs in
// the same tree could have given them to another file in between. What the
// supervisor opened itself was compared then.
func (l *launch) exchanged(pid int) (out []string) {
	plan := l.spec.Plan
	covered := map[string]bool{}
	for _, r := range plan.Hidden {
		covered[plan.Within(r)] = true
	}
	for _, f := range l.spec.Files {
		covered[f.Path] = true
	}
	for _, p := range l.builder.parts {
		want := judged(l.spec, p)
		if want == (policy.FileID{}) || p.fd != 0 || covered[p.at] {
			continue
		}
		var st unix.Stat_t
		if err := unix.Lstat(fmt.Sprintf("/proc/%d/root%s", pid, p.at), &st); err != nil {
			out = append(out, fmt.Sprintf("%s cannot be looked at: %v", p.at, err))
		} else if want != (policy.FileID{Dev: st.Dev, Ino: st.Ino}) {
			out = append(out, p.at+" "+replaced)
		}
	}
	return out
}
