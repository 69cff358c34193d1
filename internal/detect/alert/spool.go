package alert

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/canonical"
	"holdfast.dev/holdfast/internal/policy"
)

// What is kept of undelivered alerts at most.
const (
	journalBytes = 1 << 20             // of one run and sink
	mostJournals = 16                  // of runs that have ended, for one sink; the oldest go first
	mostAge      = 30 * 24 * time.Hour // of what no run ever sends again
	entryBytes   = journalBytes + 4096 // a line of any journal
)

// spool keeps what was not delivered to one sink, in a file for each run. The run
// that writes a file holds a lock on it, which the kernel takes away when the run
// dies however it dies; a later run then takes it over. It is for one goroutine.
type spool struct {
	dir, key string
	own      *journal // made with the first alert
	failed   bool     // own cannot be written
	others   []string // paths that were not looked at yet, the oldest first
	listed   bool
	held     []*journal // taken over
}

// journal is the file of one run: a line for each alert, and one for each that is
// finished.
type journal struct {
	file *os.File
	size int64
	last uint64 // entry
	open int    // entries that are not finished
	torn bool   // the last line may be cut
}

// entry is a line of a journal.
type entry struct {
	N     uint64          `json:"n,omitempty"`
	Alert json.RawMessage `json:"alert,omitempty"`
	Done  uint64          `json:"done,omitempty"`
}

// newSpool is the spool of a sink. Its key tells nothing about the address, which
// may be secret.
func newSpool(dir string, s policy.AlertSink) *spool {
	h := sha256.Sum256([]byte(s.Kind + "\x00" + s.Address))
	return &spool{dir: dir, key: s.Kind + "-" + hex.EncodeToString(h[:8])}
}

const journalEnd = ".jsonl"

// keep writes an alert; nil when it cannot be kept.
func (s *spool) keep(body []byte) (*journal, uint64) {
	if s.own == nil && !s.failed {
		var err error
		// Between making a file and locking it another run can take it for one that
		// was left behind.
		for range 3 {
			if s.own, err = s.create(); err == nil {
				break
			}
		}
		s.failed = err != nil
	}
	if s.failed || s.own.size+int64(len(body)) > journalBytes {
		return nil, 0
	}
	line, err := canonical.Marshal(entry{N: s.own.last + 1, Alert: body})
	if err != nil || s.own.write(line) != nil {
		return nil, 0
	}
	s.own.last++
	s.own.open++
	return s.own, s.own.last
}

func (s *spool) create() (*journal, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, s.key+"-"+time.Now().UTC().Format("20060102T150405.000")+"-"+strings.ToLower(rand.Text()[:8])+journalEnd)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{file: f}
	if err := j.lock(); err != nil {
		j.remove()
		return nil, err
	}
	return j, nil
}

// lock takes the file's lock, and fails when another run has it, or when it is
// not the file of that name any more.
func (j *journal) lock() error {
	if err := syscall.Flock(int(j.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	mine, err := j.file.Stat()
	if err != nil {
		return err
	}
	named, err := os.Lstat(j.file.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(mine, named) || !mine.Mode().IsRegular() {
		return os.ErrNotExist
	}
	return nil
}

func (j *journal) write(line []byte) error {
	if j.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := j.file.Write(append(line, '\n'))
	j.size += int64(n)
	j.torn = err != nil
	return err
}

// delivered notes that an entry is finished. When that cannot be written it is
// sent once more by a later run: better twice than never.
func (j *journal) delivered(n uint64) {
	if line, err := canonical.Marshal(entry{Done: n}); err == nil {
		j.write(line)
	}
	if j.open--; j.open == 0 {
		j.file.Truncate(0)
		j.size = 0
	}
}

func (j *journal) remove() {
	os.Remove(j.file.Name()) // while it is locked: nobody else has taken it over
	j.file.Close()
}

// left takes over one file of an earlier run and returns what stands in it. No
// items and no count means that there is none any more. aged counts what was
// given up.
func (s *spool) left() (items []*item, aged int) {
	if !s.listed {
		s.listed = true
		aged = s.list()
	}
	for len(s.others) > 0 && len(items) == 0 {
		path := s.others[0]
		s.others = s.others[1:]
		j, found := takeOver(path)
		if j == nil {
			continue
		}
		if len(found) == 0 {
			j.remove()
			continue
		}
		s.held = append(s.held, j)
		items = found
	}
	return items, aged
}

// list finds the files of earlier runs, and removes those that are too many, and
// those of any sink that are too old.
func (s *spool) list() (aged int) {
	entries, err := os.ReadDir(s.dir) // sorted, and names have their time behind the key
	if err != nil {
		return 0
	}
	for _, e := range entries {
		path := filepath.Join(s.dir, e.Name())
		mine := strings.HasPrefix(e.Name(), s.key+"-")
		st, err := e.Info()
		if err != nil || !st.Mode().IsRegular() || !strings.HasSuffix(e.Name(), journalEnd) {
			continue
		}
		switch {
		case time.Since(st.ModTime()) > mostAge:
			if n := giveUp(path); mine {
				aged += n
			}
		case mine && (s.own == nil || path != s.own.file.Name()):
			s.others = append(s.others, path)
		}
	}
	for len(s.others) > mostJournals {
		aged += giveUp(s.others[0])
		s.others = s.others[1:]
	}
	return aged
}

// giveUp removes a file that no run holds, and counts what stood in it.
func giveUp(path string) int {
	j, items := takeOver(path)
	if j == nil {
		return 0
	}
	j.remove()
	return len(items)
}

// takeOver locks a file of an earlier run and reads it; nil when another run has
// it.
func takeOver(path string) (*journal, []*item) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil
	}
	j := &journal{file: f, torn: true}
	if err := j.lock(); err != nil {
		f.Close()
		return nil, nil
	}
	waiting := map[uint64]*item{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, entryBytes)
	for lines.Scan() { // a line that is cut or longer than any of ours ends it, or says nothing
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		if e.Done != 0 {
			delete(waiting, e.Done)
			continue
		}
		var d Document
		if len(e.Alert) == 0 || json.Unmarshal(e.Alert, &d) != nil {
			continue
		}
		waiting[e.N] = &item{id: d.ID, body: bytes.Clone(e.Alert), level: detect.Severity(d.Severity).Level(), settled: true, journal: j, entry: e.N}
	}
	var items []*item
	for _, it := range waiting {
		items = append(items, it)
	}
	slices.SortFunc(items, func(a, b *item) int { return int(a.entry) - int(b.entry) })
	j.open = len(items)
	return j, items
}

// close lets go of the files; those with nothing left in them are removed.
func (s *spool) close() {
	for _, j := range append(s.held, s.own) {
		switch {
		case j == nil:
		case j.open <= 0:
			j.remove()
		default:
			j.file.Close()
		}
	}
}
