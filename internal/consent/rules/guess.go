package rules

import (
	"slices"
	"strings"
	"sync"
)

// gitCommands are git's own, as far as every installation has them. One more
// would only make git less sure of what was meant.
var gitCommands = sync.OnceValue(func() []string {
	return strings.Fields(`add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore
	check-mailmap check-ref-format checkout checkout-index cherry cherry-pick clean clone column commit commit-graph
	commit-tree config count-objects credential credential-cache credential-store describe diagnose diff diff-files
	diff-index diff-tree difftool fast-export fast-import fetch fetch-pack fmt-merge-msg for-each-ref for-each-repo
	format-patch fsck fsck-objects gc get-tar-commit-id grep hash-object help hook index-pack init init-db
	interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file
	merge-index merge-ours merge-recursive merge-subtree merge-tree mktag mktree multi-pack-index mv name-rev notes
	pack-objects pack-redundant pack-refs patch-id prune prune-packed pull push range-diff read-tree rebase receive-pack
	reflog remote remote-ext remote-fd repack replace rerere reset restore rev-list rev-parse revert rm send-pack shortlog
	show show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule switch symbolic-ref tag
	unpack-file unpack-objects update-index update-ref update-server-info upload-archive upload-pack var verify-commit
	verify-pack verify-tag version whatchanged worktree write-tree`)
})

// autocorrected is the command that git runs for an unknown word if
// help.autocorrect lets it guess; "" for none. It goes on as that command
// without a new execution, so nothing else is seen of it. Whether it may guess
// can be in files and variables that are not read here.
func autocorrected(word string) string {
	const similar, longest = 7, 32 // as help.c has it; a longer word is like none
	if len(word) < 2 || len(word) > longest || slices.Contains(gitCommands(), word) {
		return ""
	}
	best, least := "", similar
	for _, one := range gitCommands() {
		switch d := editCost(word, one) + 1; {
		case d < least:
			best, least = one, d
		case d == least:
			best = "" // git asks which of them
		}
	}
	return best
}

// editCost is the cost of changing a into b by git's weights: nothing for a swap
// of neighbours, 1 to add a letter, 2 to replace one and 3 to leave one out.
func editCost(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = 3 * (i + 1)
		for j := range len(b) {
			row[j+1] = last[j]
			if a[i] != b[j] {
				row[j+1] += 2
			}
			if i > 0 && j > 0 && a[i-1] == b[j] && a[i] == b[j-1] {
				row[j+1] = min(row[j+1], before[j-1])
			}
			row[j+1] = min(row[j+1], last[j+1]+3, row[j]+1)
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
