package honey

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/sys"
)

const (
	watchMask = sys.InOpen | sys.InAccess | sys.InModify | sys.InMoveSelf

	// burst is the time in which repeated operations on a file are only counted.
	burst = time.Second

	eventSize = 16 // of an inotify event about a file, which has no name (inotify(7))
)

// Watcher reports when one of the files is touched, by whatever name.
type Watcher struct {
	queue   *os.File
	root    string
	sink    event.Sink
	closing atomic.Bool
	ended   chan struct{}

	// Owned by the goroutine until it has ended, then by Close.
	files map[int32]*watchedFile // by watch
	lost  int                    // times that the queue overflowed, not yet reported
	fault error                  // the first error of the sink
}

// watchedFile is a file that is watched.
type watchedFile struct {
	file  File
	inode fs.FileInfo
	since time.Time      // when it was last reported
	count map[string]int // operations since then that are not yet reported, at least: the kernel joins equal ones in a row; nil for none
}

// Watch begins to watch files through the root directory of a process inside,
// such as /proc/PID/root, and reports each touch to the sink as event.HoneyRead.
// All of them must be there: nothing has run inside yet that could have removed
// one. The watch is on the file and not on its name: it stays when the file is
// renamed or linked, and another file of that name is not a honeytoken.
func Watch(root string, files []File, sink event.Sink) (*Watcher, error) {
	queue, err := sys.Inotify()
	if err != nil {
		return nil, fmt.Errorf("watching honeytokens: %w", err)
	}
	w := &Watcher{queue: queue, root: root, sink: sink, files: map[int32]*watchedFile{}, ended: make(chan struct{})}
	for _, f := range files {
		if err := w.watchFile(f); err != nil {
			queue.Close()
			return nil, fmt.Errorf("watching the honeytoken %s: %w", f.Path, err)
		}
	}
	go w.run()
	return w, nil
}

func (w *Watcher) watchFile(f File) error {
	at := filepath.Join(w.root, f.Path)
	inode, err := os.Lstat(at)
	if err != nil {
		return err
	}
	if !inode.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	wd, err := sys.InotifyAdd(w.queue, at, watchMask)
	if err != nil {
		return err
	}
	w.files[wd] = &watchedFile{file: f, inode: inode}
	return nil
}

// Close reports what was not reported yet and ends the watch. It returns the first error
// of the sink. Call it once, when nothing runs inside any more.
func (w *Watcher) Close() error {
	w.closing.Store(true)
	w.queue.SetReadDeadline(time.Unix(1, 0)) // does not fail for an open descriptor that can wait
	<-w.ended
	p := make([]byte, 64<<10)
	for {
		n, err := sys.ReadNow(w.queue, p)
		if n == 0 || err != nil {
			break
		}
		w.handleEvents(p[:n], time.Now())
	}
	w.reportCounted(time.Now().Add(burst))
	go w.queue.Close() // the kernel may take 10 ms to end the watches (fsnotify_destroy_group)
	return w.fault
}

// run reads events until Close ends it.
func (w *Watcher) run() {
	defer close(w.ended)
	p := make([]byte, 4096)
	for {
		var until time.Time
		if w.counting() {
			until = time.Now().Add(burst)
		}
		if w.queue.SetReadDeadline(until) != nil || w.closing.Load() {
			return
		}
		n, err := w.queue.Read(p)
		w.handleEvents(p[:n], time.Now())
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		w.reportCounted(time.Now())
	}
}

func (w *Watcher) counting() bool {
	for _, t := range w.files {
		if t.count != nil {
			return true
		}
	}
	return w.lost > 0
}

// handleEvents processes events. The first of a burst is reported at once.
func (w *Watcher) handleEvents(p []byte, now time.Time) {
	for ; len(p) >= eventSize; p = p[min(len(p), eventSize+int(binary.NativeEndian.Uint32(p[12:]))):] {
		wd, mask := int32(binary.NativeEndian.Uint32(p)), binary.NativeEndian.Uint32(p[4:])
		if mask&sys.InOverflow != 0 {
			w.lost++
			continue
		}
		t := w.files[wd]
		if t == nil {
			continue
		}
		if mask&sys.InIgnored != 0 { // the last name and the last descriptor are gone
			w.report(t, now)
			delete(w.files, wd)
			continue
		}
		if mask&watchMask == 0 { // such as IN_UNMOUNT, at the end of the view
			continue
		}
		if t.count == nil {
			t.count = map[string]int{}
		}
		t.count[operation(mask)]++
		if now.Sub(t.since) >= burst {
			w.report(t, now)
		}
	}
}

func operation(mask uint32) string {
	switch {
	case mask&sys.InOpen != 0:
		return "open"
	case mask&sys.InModify != 0:
		return "write"
	case mask&sys.InMoveSelf != 0:
		return "rename"
	}
	return "read"
}

// reportCounted reports what was counted in bursts that are over.
func (w *Watcher) reportCounted(now time.Time) {
	for _, t := range w.files {
		if now.Sub(t.since) >= burst {
			w.report(t, now)
		}
	}
	if w.lost > 0 {
		w.emit(event.Event{Object: w.root, Verdict: event.Unknown, Detail: map[string]string{"lost": strconv.Itoa(w.lost)}})
		w.lost = 0
	}
}

// report emits what was done to a file since it was last reported.
func (w *Watcher) report(t *watchedFile, now time.Time) {
	if t.count == nil {
		return
	}
	e := event.Event{Object: t.file.Path, Verdict: event.Allowed, Detail: t.file.Details()}
	for _, op := range slices.Sorted(maps.Keys(t.count)) {
		e.Detail[op] = strconv.Itoa(t.count[op])
	}
	holders := w.holders(t.inode)
	if len(holders) == 1 {
		e.Process.PID, e.Process.Executable = holders[0].pid, holders[0].executable
	}
	texts := make([]string, len(holders))
	for i, h := range holders {
		texts[i] = strconv.Itoa(h.pid) + " " + h.executable
	}
	if len(texts) > 0 {
		e.Detail["held_by"] = strings.Join(texts, ", ")
	}
	t.count, t.since = nil, now
	w.emit(e)
}

func (w *Watcher) emit(e event.Event) {
	e.Sensor, e.Action, e.Time = event.Honey, event.HoneyRead, time.Now()
	if err := w.sink.Emit(e); err != nil && w.fault == nil {
		w.fault = fmt.Errorf("recording that a honeytoken was touched: %w", err)
	}
}
