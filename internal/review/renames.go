//go:build linux

package review

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	maxRename = 64 << 20 // bytes of a file that is read to find where it went
	minRename = 16       // bytes below which equal content says nothing
	chunk     = 256 << 10
)

var buffers = sync.Pool{New: func() any { b := make([]byte, chunk); return &b }}

type sum = [sha256.Size]byte

// renames joins a deleted and a new file of the same content to one change.
// Sizes are compared first, so that only likely pairs are read.
func (s *Set) renames(ctx context.Context, c *collector) error {
	sizes := map[int64]uint8{}
	const was, is = 1, 2
	for _, ch := range s.Changes {
		switch {
		case movable(ch.OldType, ch.Kind == Deleted, ch.OldSize):
			sizes[ch.OldSize] |= was
		case movable(ch.Type, ch.Kind == Added, ch.Size):
			sizes[ch.Size] |= is
		}
	}
	var list []*Change
	for _, ch := range s.Changes {
		size := max(ch.Size, ch.OldSize)
		if (ch.Kind == Deleted || ch.Kind == Added) && max(ch.Type, ch.OldType) == File && sizes[size] == was|is && c.mayRead(size) {
			list = append(list, ch)
		}
	}
	sums := s.sums(ctx, list)
	if err := ctx.Err(); err != nil {
		return err
	}
	s.pair(list, sums)
	return nil
}

func movable(t Type, kind bool, size int64) bool {
	return kind && t == File && size >= minRename && size <= maxRename
}

// sums hashes the side of each change that has content.
func (s *Set) sums(ctx context.Context, list []*Change) []sum {
	sums := make([]sum, len(list))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(max(runtime.GOMAXPROCS(0), 2), 8) {
		wg.Go(func() {
			for i := range next {
				sums[i] = s.sumOf(list[i])
			}
		})
	}
	for i := range list {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	return sums
}

func (s *Set) sumOf(c *Change) (out sum) {
	var f *os.File
	var err error
	if c.Kind == Deleted {
		f, err = s.trees.openOld(string(c.Path))
	} else {
		f, err = openFile(s.trees.upper, string(c.Path), true)
	}
	if err != nil {
		return sum{}
	}
	defer f.Close()
	h := sha256.New()
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, io.LimitReader(f, maxRename+1), *buf); err != nil {
		return sum{}
	}
	h.Sum(out[:0])
	return out
}

// pair turns pairs of equal sums into renames, those of the same last name
// first. A zero sum was not read.
func (s *Set) pair(list []*Change, sums []sum) {
	type key struct {
		sum  sum
		last string
	}
	byName, bySum := map[key][]*Change{}, map[sum][]*Change{}
	for i, c := range list {
		if c.Kind == Deleted && sums[i] != (sum{}) {
			_, last := cut(string(c.Path))
			byName[key{sums[i], last}] = append(byName[key{sums[i], last}], c)
			bySum[sums[i]] = append(bySum[sums[i]], c)
		}
	}
	taken := map[*Change]bool{}
	for _, last := range []bool{true, false} {
		for i, c := range list {
			if c.Kind != Added || sums[i] == (sum{}) {
				continue
			}
			queue := bySum[sums[i]]
			k := key{sums[i], ""}
			if last {
				_, k.last = cut(string(c.Path))
				queue = byName[k]
			}
			for len(queue) > 0 && taken[queue[0]] {
				queue = queue[1:]
			}
			if len(queue) > 0 {
				taken[queue[0]] = true
				makeRename(c, queue[0])
				queue = queue[1:]
			}
			if last {
				byName[k] = queue
			} else {
				bySum[sums[i]] = queue
			}
		}
	}
	if len(taken) > 0 {
		s.Changes = slices.DeleteFunc(s.Changes, func(c *Change) bool { return taken[c] })
	}
}

// makeRename makes the new file c a rename of the deleted file from.
func makeRename(c, from *Change) {
	c.Kind, c.From = Renamed, from.Path
	c.OldType, c.OldMode, c.OldSize = from.OldType, from.OldMode, from.OldSize
	for _, f := range from.Flags {
		if !slices.Contains(c.Flags, f) {
			c.Flags = append(c.Flags, f)
		}
	}
	for _, n := range from.Notes {
		c.note(n)
	}
}

// openOld opens the regular file that was at path.
func (t *trees) openOld(path string) (*os.File, error) {
	if t.gone[path] {
		return nil, unix.ENOENT
	}
	if t.base >= 0 {
		f, err := openFile(t.base, path, false)
		if err == nil || !absent(err) && !errors.Is(err, unix.ELOOP) {
			return f, err
		}
	}
	return openFile(t.tree, path, false)
}
