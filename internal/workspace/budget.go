//go:build linux

package workspace

import (
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

// Budget bounds what settling costs over all trees of a run together. What a run
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

	// reading is held while a large file is in memory: one at a time, so that the
	// number of processors does not multiply what that takes.
	reading sync.Mutex
}

// NewBudget returns the budget of one settling that begins now.
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

// over reports that nothing more is to be looked at.
func (b *Budget) over() bool { return b.stopped.Load() || time.Now().After(b.end) }

// spend takes n bytes that are about to be read off the budget; false means that
// they are not to be read.
func (b *Budget) spend(n int64) bool {
	for !b.over() {
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

// unread is why something cannot stay that was not read.
const unread = "it was not read: the run left more to look through than there is time for"

// affords takes what it costs to judge a file of a repository off the budget.
func (v *settle) affords(d *dir, e entry) bool {
	const opened = 4096
	var st unix.Statx_t
	return statAt(d.fd, e.nameZ, &st) != nil || v.budget.spend(opened+min(int64(st.Size), maxConfig))
}

// sharedAt reads the second file of a split index that lies in dir.
func (v *settle) sharedAt(dir int) func(string) []byte {
	read := sharedAt(dir)
	return func(name string) []byte {
		var st unix.Stat_t
		if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || !v.budget.spend(indexPasses*st.Size) {
			return nil
		}
		return read(name)
	}
}

// examine counts an entry of a directory and reports whether it may be looked at.
// If not, the directory is listed as a whole.
func (v *settle) examine(dir []byte) bool {
	if !v.budget.over() {
		if v.budget.files.Add(1)&1023 == 1 {
			v.budget.at.Store(string(v.inTreePath(string(dir))))
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
		v.report.Flagged = append(v.report.Flagged, Flagged{Path: v.inTreePath(dir), Change: Unexamined, Reason: why})
	}
}

// inTreePath is full, and the root for "".
func (v *settle) inTreePath(rel string) Name {
	if rel == "" {
		return v.t.Root
	}
	return v.full(rel)
}

// listMore says that there is more to look at than is listed.
func (v *settle) listMore() {
	if v.more > 0 {
		v.report.Flagged = append(v.report.Flagged, Flagged{Path: Name(v.snap.Root), Change: Unexamined, Files: v.more,
			Reason: "more files in it are to be looked at than are listed one by one"})
	}
}
