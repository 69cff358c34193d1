//go:build linux

package probe

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// reviewGitRows are about what git obeys, or shows, in a repository whose changes
// wait for a human.
func reviewGitRows() []Row {
	commit := plant("W/.git/refs/heads/topic", "{head}\n")
	state := []planted{commit, plant("W/.git/sequencer/opts", "[options]\n\tstrategy = a/../evil\n"), plant("W/.git/sequencer/todo", "pick {head} x\npick {head} x\n"),
		plant("W/.git/rebase-merge/strategy", "a/../evil\n"), plant("W/.git/rebase-merge/git-rebase-todo", "exec {trip}\n"), plant("W/.git/rebase-apply/apply-opt", "'--build-fake-ancestor={O}/written'")}
	obeyed := []string{"W/.git/sequencer/opts", "W/.git/rebase-merge/strategy", "W/.git/rebase-merge/git-rebase-todo", "W/.git/rebase-apply/apply-opt"}
	rows := []Row{
		{ID: "RVW-411", Title: "with a branch that is accepted come the files of operations that git has under way, and name what it executes or writes", Refs: []string{"git-cherry-pick(1) --strategy", "git-apply(1)"},
			Setup: inGit(nil, "W"), Absent: obeyed, Action: "replay-plant", Args: []string{plantsArg(state)}, Drive: thenReviewed("accept", "--flagged", ".")},
		{ID: "RVW-412", Title: "git is told not to look at files, and what is shown of the changes does not say so", Refs: []string{"git-update-index(1) --assume-unchanged, --skip-worktree"},
			Setup: inGit(nil, "W"), Oracle: unshown("tracked"), Action: "git-look-away", Args: []string{"path=W"}, Drive: thenReviewed("--all")},
		{ID: "RVW-413", Title: "packed references put one object into the place of another, and what is shown of the changes does not say so", Refs: []string{"git-replace(1)", "git-pack-refs(1)"},
			Setup: inGit(nil, "W"), Oracle: unshown("refs/replace"), Action: "git-write",
			Args: []string{"path=W/.git/packed-refs", "text=0123456789012345678901234567890123456789 refs/replace/0123456789012345678901234567890123456788"}, Drive: thenReviewed("--all")},
		{ID: "RVW-414", Title: "a reftable that deletes a replacement is left out of the stack, which brings it back, and what is shown of the changes does not say so", Refs: []string{"git-replace(1)", "reftable (git)"},
			Files: map[string]string{"W/.git/reftable/1.ref": reftable(1, replacement, true), "W/.git/reftable/2.ref": reftable(2, replacement, false), "W/.git/reftable/tables.list": "1.ref\n2.ref\n"},
			Setup: inGit(nil, "W"), Oracle: unshown("refs/replace"), Action: "replay-plant",
			Args: []string{plantsArg([]planted{plant("W/.git/reftable/tables.list", "1.ref\n")})}, Drive: thenReviewed("--all")},
	}
	for i := range rows {
		r := &rows[i]
		r.Class, r.Kind, r.Promise = classReview, Sandbox, "P3"
		r.Harmless = "it is done in a copy; what reaches the tree, and what is shown, is looked at"
		r.Trace = nothing("what is done to the copy is ordinary; what reaches the tree is recorded when it is applied")
	}
	return rows
}

// unshown asks the text of the review for each of these words.
func unshown(words ...string) func(*World, Observation) []string {
	return func(w *World, _ Observation) (out []string) {
		for _, word := range words {
			if !strings.Contains(w.remembered, word) {
				out = append(out, "the review shows nothing of "+word)
			}
		}
		return out
	}
}

// replacement names the object in the place of which git takes another.
const replacement = "refs/replace/0123456789012345678901234567890123456789"

// reftable is a table of one ref, which it sets or deletes (git's
// Documentation/technical/reftable.adoc).
func reftable(update byte, ref string, set bool) string {
	header := append([]byte("REFT\x01\x00\x10\x00"), make([]byte, 16)...)
	header[15], header[23] = update, update
	kind, value := 0, ""
	if set {
		kind, value = 1, strings.Repeat("\x11", 20)
	}
	size := len(ref)<<3 | kind // in two bytes
	block := append(append([]byte{}, header...), 'r', 0, 0, 0, 0, byte(size>>7-1)|0x80, byte(size&0x7f))
	block = append(append(block, ref...), 0)
	block = append(append(block, value...), 0, 0, 28, 0, 1)
	binary.BigEndian.PutUint16(block[26:], uint16(len(block)))
	footer := append(header, make([]byte, 40)...)
	return string(binary.BigEndian.AppendUint32(append(block, footer...), crc32.ChecksumIEEE(footer)))
}
