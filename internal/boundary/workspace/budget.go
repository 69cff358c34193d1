//go:build linux

package workspace

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	settleBytes = 2 << 30         // that are read and judged in all; an index counts several times
	settleTime  = 5 * time.Minute // after which nothing more is looked at
	maxFlagged  = 20_000          // files of a run that are listed one by one
	maxUnread   = 50              // directories of a tree that are listed as unexamined one by one

	// indexPasses is how often an index is gone through.
	indexPasses = 4
)

// Budget bounds what settling costs over all trees of a run together, and what
// looking through them costs when a run begins: an earlier run chose what is there. What a run
// left decides how much there is to do, so that without a bound it decides how
// long its end takes. Past the bound nothing is taken for harmless: what could not
// be read is moved out where its name calls for a judgement, and directories that
// were not looked through are listed as a whole.
type Budget struct {
	bytes   atomic.Int64 // that may still be read
	files   atomic.Int64 // looked at so far
	stopped atomic.Bool
	end     time.Time
	at      atomic.Value // string: the directory that was looked at lately

	mu    sync.Mutex
	trees []string // that are not looked through to their end

	// reading is held while a large file is in memory: one at a time, so that the
	// number of processors does not multiply what that takes.
	reading sync.Mutex
}

// NewBudget returns the budget of one settling, or one start, that begins now.
func NewBudget() *Budget {
	b := &Budget{end: time.Now().Add(settleTime)}
	b.bytes.Store(settleBytes)
	return b
}

// Stop ends settling: what was not looked at yet is listed as a whole.
func (b *Budget) Stop() { b.stopped.Store(true) }

// Files is how many entries were looked at so far.
func (b *Budget) Files() int64 { return b.files.Load() }

// At is a directory that was looked at lately.
func (b *Budget) At() string {
	at, _ := b.at.Load().(string)
	return at
}

// Expect says which trees will be looked through.
func (b *Budget) Expect(trees ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trees = append(b.trees, trees...)
}

func (b *Budget) finished(tree string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trees = slices.DeleteFunc(b.trees, func(t string) bool { return t == tree })
}

// Left are the trees that are not looked through to their end.
func (b *Budget) Left() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.trees)
}

// isExhausted reports that nothing more may be examined.
func (b *Budget) isExhausted() bool { return b.stopped.Load() || time.Now().After(b.end) }

// spend takes n bytes that are about to be read off the budget; false means that
// they are not to be read.
func (b *Budget) spend(n int64) bool {
	for !b.isExhausted() {
		left := b.bytes.Load()
		if n > left {
			return false
		}
		if b.bytes.CompareAndSwap(left, left-max(n, 0)) {
			return true
		}
	}
	return false
}

// unread is why something that was not read cannot stay.
const unread = "it was not read: the run left more to check than the time allows"

// affordsSmall charges the budget for judging a file of a repository, of which at most
// MaxConfig is read.
func (b *Budget) affordsSmall(dir int, nameZ []byte) bool {
	const opened = 4096
	var st unix.Statx_t
	return statAt(dir, nameZ, &st) != nil || b.spend(opened+min(int64(st.Size), MaxConfig))
}

// sharedAt reads the second file of a split index that lies in dir.
func (b *Budget) sharedAt(dir int) func(string) []byte {
	return func(name string) []byte {
		if !b.affordsFile(dir, name, indexPasses) {
			return nil
		}
		data, _ := readFile(dir, name, maxIndexed)
		return data
	}
}

// affordsFile charges the budget for going through a file passes times.
func (b *Budget) affordsFile(dir int, name string, passes int64) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && b.spend(passes*st.Size)
}

// BudgetError is a tree that cannot be looked through when a run begins.
type BudgetError struct {
	At    string // a directory that was looked at lately
	Files int64
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("there is more to check than %v and %d GiB allow: %d files so far, in %s", settleTime, settleBytes>>30, e.Files, e.At)
}

// Hint names the way out.
func (e *BudgetError) Hint() string {
	return "remove what an earlier run left there, or choose a smaller workspace with --workspace"
}

// withBudget has Scan and FindObeyed share a budget with others.
func withBudget(b *Budget) Option { return func(s *scan) { s.budget = b } }

// countEntry counts an entry of a directory; it is an error when the time is over.
func (s *scan) countEntry(w *walker) error {
	n := s.budget.files.Add(1)
	if n&1023 != 1 {
		return nil
	}
	s.budget.at.Store(string(s.found.Root) + "/" + string(w.path))
	if s.budget.isExhausted() {
		return &BudgetError{At: s.budget.At(), Files: n}
	}
	return nil
}

// affordsIndex takes what it costs to read an index off the budget. Of one that is not
// read nothing is known when the run ends: what is in it counts as new.
func (s *scan) affordsIndex(w *walker, d *dir, e entry) bool {
	if s.budget.affordsFile(d.fd, string(e.name()), indexPasses) {
		return true
	}
	s.warn("%q was not read, because there is too much to check: at the end everything in it counts as new", w.pathTo(e))
	return false
}

// countEntry counts an entry of a directory and reports whether it may be looked at.
// If not, the directory is listed as a whole.
func (v *settle) countEntry(dir []byte) bool {
	if !v.budget.isExhausted() {
		if v.budget.files.Add(1)&1023 == 1 {
			v.budget.at.Store(string(v.full(string(dir))))
		}
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.partial = true
	if len(v.unexamined) <= maxUnread {
		v.unexamined[string(dir)] = true
	}
	return false
}

// listUnexamined lists the directories that were not looked through.
func (v *settle) listUnexamined() {
	why := "it was not looked through, for that took too long: the host may execute or obey what is in it"
	if v.budget.stopped.Load() {
		why = "it was not looked through, for that was stopped: the host may execute or obey what is in it"
	}
	if len(v.unexamined) > maxUnread {
		clear(v.unexamined)
		v.unexamined[""] = true
	}
	for dir := range v.unexamined {
		v.report.Flagged = append(v.report.Flagged, Flagged{Path: v.full(dir), Change: Unexamined, Reason: why})
	}
}

// listMore lists that there is more to look at than is listed.
func (v *settle) listMore() {
	if v.more > 0 {
		v.report.Flagged = append(v.report.Flagged, Flagged{Path: Name(v.snap.Root), Change: Unexamined, Files: v.more,
			Reason: "more files in it are to be looked at than are listed one by one"})
	}
}
