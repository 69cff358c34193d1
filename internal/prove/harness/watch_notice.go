//go:build linux

package harness

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"sync"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// noticeMask selects what can put another program at a path. Opening, reading and
// executing it are not in it.
const noticeMask = sys.InCreate | sys.InDelete | sys.InMoved | sys.InModify | sys.InCloseWrite | sys.InAttrib | sys.InDeleteSelf | sys.InMoveSelf

// notices receives kernel events about directories. A nil *notices receives none.
type notices struct {
	queue *os.File
	woken chan struct{}
	ended chan struct{}

	mu    sync.Mutex
	by    map[int32][]interest // by watch
	dirty map[int]bool
	lost  bool // events were lost: everything may have changed
}

// interest is why a directory is watched.
type interest struct {
	program int      // index in Watched
	names   []string // in the directory; none for all of them
}

func newNotices() (*notices, error) {
	queue, err := sys.Inotify()
	if err != nil {
		return nil, err
	}
	n := &notices{queue: queue, woken: make(chan struct{}, 1), ended: make(chan struct{}), by: map[int32][]interest{}, dirty: map[int]bool{}}
	go n.run()
	return n, nil
}

// watchPath watches a file or directory. A failure is not an error: the timer checks
// everything.
func (n *notices) watchPath(program int, path string, names []string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	wd, err := sys.InotifyAdd(n.queue, path, noticeMask)
	if err != nil {
		return
	}
	for i, in := range n.by[wd] {
		if in.program != program {
			continue
		}
		if len(names) == 0 {
			n.by[wd][i].names = nil
		} else if len(in.names) > 0 && !slices.Contains(in.names, names[0]) {
			n.by[wd][i].names = append(in.names, names...)
		}
		return
	}
	n.by[wd] = append(n.by[wd], interest{program, slices.Clone(names)})
}

// wake is ready when an event came.
func (n *notices) wake() <-chan struct{} {
	if n == nil {
		return nil
	}
	return n.woken
}

// takeDirty returns the programs that had events.
func (n *notices) takeDirty() []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []int
	if n.lost {
		for _, all := range n.by {
			for _, in := range all {
				n.dirty[in.program] = true
			}
		}
	}
	for i := range n.dirty {
		out = append(out, i)
	}
	n.dirty, n.lost = map[int]bool{}, false
	slices.Sort(out)
	return out
}

func (n *notices) close() {
	if n != nil {
		n.queue.Close() // ends the reader
		<-n.ended
	}
}

func (n *notices) run() {
	defer close(n.ended)
	p := make([]byte, 64<<10)
	for {
		got, err := n.queue.Read(p)
		if err != nil {
			return
		}
		if n.readEvents(p[:got]) {
			select {
			case n.woken <- struct{}{}:
			default:
			}
		}
	}
}

// readEvents reads events (inotify(7)) and reports whether one matters.
func (n *notices) readEvents(p []byte) bool {
	const head = 16
	n.mu.Lock()
	defer n.mu.Unlock()
	matters := false
	for len(p) >= head {
		wd, mask := int32(binary.NativeEndian.Uint32(p)), binary.NativeEndian.Uint32(p[4:])
		size := int(binary.NativeEndian.Uint32(p[12:]))
		name, _, _ := bytes.Cut(p[head:min(len(p), head+size)], []byte{0})
		p = p[min(len(p), head+size):]
		switch {
		case mask&sys.InOverflow != 0:
			n.lost, matters = true, true
			continue
		case mask&sys.InIgnored != 0:
			for _, in := range n.by[wd] {
				n.dirty[in.program], matters = true, true
			}
			delete(n.by, wd)
			continue
		}
		for _, in := range n.by[wd] {
			if len(name) == 0 || len(in.names) == 0 || slices.Contains(in.names, string(name)) {
				n.dirty[in.program], matters = true, true
			}
		}
	}
	return matters
}
