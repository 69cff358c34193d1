//go:build linux

package workspace

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/policy"
)

// Inspect looks at the workspace and the other writable trees of a plan and puts
// into the plan what it found: protected paths, secrets, hard links, and git
// directories outside.
func Inspect(ctx context.Context, plan *policy.Plan, more ...Option) ([]*Snapshot, error) {
	rules, err := RulesOf(*plan)
	if err != nil {
		return nil, err
	}
	if err := checkOutputs(*plan); err != nil {
		return nil, err
	}
	var out []*Snapshot
	options := append(HostSettings(plan.Identity.Home), Fixed(readOnlyPaths(*plan)...), withBudget(NewBudget()))
	for i, root := range WritableTrees(*plan) {
		if i > 0 || !plan.Review { // in review mode nothing in the workspace must be settled
			options = append(options[:len(options):len(options)], more...)
		}
		own := options[:len(options):len(options)]
		if i > 0 {
			if rule := out[0].obeysAll(root); rule != nil && slices.Contains(plan.Outputs, root) {
				return nil, &ListedOutputError{Dir: root, Rule: *rule}
			}
			own = append(own, obeyedBy(out[0]))
		}
		if plan.Agent != nil && slices.Contains(plan.Agent.Keeps, root) {
			own = append(own, enclosed())
		}
		viewed := plan.Review && i == 0
		snap, err := Scan(ctx, root, rules, own...)
		if err = snap.lift(err, *plan, viewed); err != nil {
			return nil, err
		}
		if i > 0 { // a repository in the workspace is looked after there, and shown as the workspace is
			snap.trees = append(snap.trees[:1], slices.DeleteFunc(snap.trees[1:], func(t *tree) bool { return paths.Within(plan.Workspace, string(t.Root)) })...)
		}
		out = append(out, snap)
		if *plan, err = ConfirmTree(*plan, root, snap.File()); err != nil {
			return nil, err
		}
		if *plan, err = plan.With(planAdditions(*plan, snap, root, viewed)); err != nil {
			return nil, err
		}
	}
	joinTrees(out, plan.Review)
	hidden, err := hideInReadable(ctx, *plan, rules)
	if err == nil {
		*plan, err = plan.With(policy.Additions{Hidden: hidden})
	}
	return out, err
}

// lift returns the error of a scan, unless it is a limit that does not hold for the plan.
func (s *Snapshot) lift(err error, plan policy.Plan, viewed bool) error {
	var limit *LimitError
	switch {
	case !errors.As(err, &limit):
		return err
	case limit.Lifted != "" && plan.Accepts(limit.Lifted):
		return nil // the snapshot is still whole
	case viewed && len(s.Hidden()) <= MaxProtected:
		return nil // of the rest nothing is mounted over
	}
	return err
}

// joinTrees tells each of the trees which others are settled too: a worktree in one of them
// may belong to a repository in another.
func joinTrees(all []*Snapshot, review bool) {
	for _, snap := range all {
		if !review {
			snap.main = all[0]
		}
		for i, other := range all {
			if other != snap && !(review && i == 0) {
				snap.beside = append(snap.beside, other.Root)
			}
		}
	}
}

// ConfirmTree checks that the directory that was scanned is the one that was judged, and
// has the backend mount that one. A directory that was made meanwhile is judged by
// the scan.
func ConfirmTree(plan policy.Plan, root string, is policy.FileID) (policy.Plan, error) {
	plan, err := plan.With(policy.Additions{Files: map[string]policy.FileID{root: is}})
	var replaced *policy.ReplacedError
	if errors.As(err, &replaced) {
		err = &boundary.PostureError{Diff: []string{replaced.Error()}, Replaced: true}
	}
	return plan, err
}

// hideInReadable finds the secrets and sockets in the directories that the policy
// shows without letting them be changed.
func hideInReadable(ctx context.Context, plan policy.Plan, rules Rules) (out []policy.Protected, err error) {
	for _, r := range readOnlyPaths(plan) {
		named := r.Origin.Line > 0 || strings.HasPrefix(r.Origin.File, "--") // toolchains that were found hold neither
		if !named || r.Access == policy.Hidden {
			continue
		}
		if st, err := os.Lstat(r.Path); err != nil || !st.IsDir() {
			continue
		}
		hidden, err := Unreadable(ctx, r.Path, rules)
		if err != nil {
			return nil, err
		}
		out = append(out, hidden...)
	}
	return out, nil
}

// planAdditions returns what a scan found. In a workspace that the command sees a view of,
// only secrets and sockets of the host matter: what a host would execute may be changed
// there, because a human sees it before it reaches a host.
func planAdditions(plan policy.Plan, snap *Snapshot, root string, viewed bool) policy.Additions {
	if root == plan.Workspace {
		root = ""
	}
	out := policy.Additions{Hidden: inTree(root, snap.Hidden()), Paths: snap.External()}
	if viewed {
		for i := range out.Paths { // what is written to them is not handed over
			out.Paths[i].Access = policy.Copy
			out.Notes = append(out.Notes, "the repository of this worktree, "+out.Paths[i].Path+", is a private copy: commits and branches made there are gone at the end")
		}
		return out
	}
	out.Protect = inTree(root, snap.Protected())
	nameCopies(plan, out.Protect)
	if !plan.Accepts(policy.HardLinks) {
		out.HardLinks = inTree(root, snap.HardLinks())
	}
	return out
}

// nameCopies gives each configuration of git that is copied a directory of its own, for git
// puts a lock beside it. What the policy shows read-only, and what is too much, is not copied.
func nameCopies(plan policy.Plan, rows []policy.Protected) {
	fixed := readOnlyPaths(plan)
	n := 0 // copies so far
	for _, r := range plan.Protect {
		if r.Copy != "" {
			n++
		}
	}
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Copy == "":
		case n >= maxConfigCopies || slices.ContainsFunc(fixed, func(f policy.PathRule) bool { return paths.Within(f.Path, plan.Within(*r)) }):
			r.Copy = ""
		default:
			r.Copy = path.Join(event.KeptConfigs, strconv.Itoa(n), r.Copy)
			n++
		}
	}
}

// RulesOf returns the protected names and the names of secrets under a plan.
func RulesOf(plan policy.Plan) (Rules, error) {
	texts := func(ps []policy.Pattern) []string {
		out := make([]string, len(ps))
		for i, p := range ps {
			out[i] = p.Text
		}
		return out
	}
	return RulesWith(Changes{
		Protect: texts(plan.ProtectMore), Unprotect: texts(plan.ProtectLess),
		Hide: texts(plan.HideMore), Show: texts(plan.HideLess),
	})
}

// WritableTrees are the directories of the host that the command may change:
// the workspace first.
func WritableTrees(plan policy.Plan) []string {
	out := []string{plan.Workspace}
	for _, r := range plan.Paths {
		st, err := os.Stat(r.Path)
		if err != nil || !st.IsDir() || r.Access != policy.Write {
			continue
		}
		if inside := slices.ContainsFunc(out, func(root string) bool {
			viewed := plan.Review && root == plan.Workspace // and what is in it is not
			return r.Path == root || !viewed && strings.HasPrefix(r.Path, root+"/")
		}); !inside {
			out = append(out, r.Path)
		}
	}
	return out
}

// readOnlyPaths are the paths that a plan shows without letting them be changed.
func readOnlyPaths(plan policy.Plan) []policy.PathRule {
	return slices.DeleteFunc(slices.Clone(plan.Paths), func(r policy.PathRule) bool { return r.Access == policy.Write })
}

// inTree sets the tree of the rows that have none; "" is the workspace.
func inTree(root string, rows []policy.Protected) []policy.Protected {
	for i := range rows {
		if rows[i].Root == "" {
			rows[i].Root = root
		}
	}
	return rows
}

// Writable reports whether what runs inside may write a file: in a directory of the
// host or in one of its own.
func Writable(plan policy.Plan, path string) bool {
	return boundary.InTrees(path, boundary.PrivateTrees(plan.Identity.Home)) || boundary.InTrees(path, WritableTrees(plan))
}
