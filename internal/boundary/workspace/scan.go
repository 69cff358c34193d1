//go:build linux

package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

const (
	typeMask = unix.S_IFMT
	typeDir  = unix.S_IFDIR
	typeLink = unix.S_IFLNK
	typeReg  = unix.S_IFREG

	// MaxProtected and MaxHardLinks bound the mounts that one run makes.
	MaxProtected = 4096
	MaxHardLinks = 4096

	maxSum    = 1 << 20  // bytes of a flagged file that is hashed before the run
	maxSumAll = 16 << 20 // bytes of all of them

	// clockSlack is taken off the start time: inode times are taken from a
	// clock that is up to a tick (10 ms at HZ=100) behind.
	clockSlack = 20 * time.Millisecond
)

// Option widens what Scan looks at.
type Option func(*scan)

// GitConfig hands in a configuration file that git reads for every repository
// (~/.gitconfig, $XDG_CONFIG_HOME/git/config, /etc/gitconfig): what it names in the
// workspace is protected too. name is its absolute path, home what "~/" means in it.
func GitConfig(name, home string, data []byte) Option {
	return func(s *scan) { s.shared = append(s.shared, gitFile{name: name, home: home, data: data}) }
}

// Remember makes Scan remember names, so that the report of Settle lists all that
// changed. Without it, and for a Snapshot that was loaded, the list is based on change
// times: deleted and renamed files are not in it.
func Remember() Option { return func(s *scan) { s.names = newNames() } }

// LimitError is a tree with more to protect than one run can.
type LimitError struct {
	What string // "protected paths" or "hard links"
	Have int
	Max  int
	hint string

	// Lifted is the guarantee whose loss, if it is accepted, lifts the limit; ""
	// for none.
	Lifted policy.Guarantee
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%d %s are more than the %d that can be protected", e.Have, e.What, e.Max)
}

// Hint names the way out.
func (e *LimitError) Hint() string { return e.hint }

// Scan walks the tree at root, which must be an absolute path whose components
// are all resolved, and returns what must be protected in it.
func Scan(ctx context.Context, root string, r Rules, options ...Option) (*Snapshot, error) {
	began := time.Now().Add(-clockSlack).UnixNano()
	s := &scan{rules: &r}
	for _, o := range options {
		o(s)
	}
	if err := s.open(root); err != nil {
		return nil, err
	}
	defer unix.Close(s.root)
	if s.names != nil {
		s.names.watch.begin(s.root, s.found.Dev)
	}
	if err := run(ctx, s.root, &r, maxPath, false, s, walkMemory{names: s.names}); err != nil {
		return nil, fmt.Errorf("scanning workspace %s: %w", root, err)
	}
	snap := &Snapshot{Root: root, rules: r, began: began, trees: []*tree{s.found}, names: s.names, remember: s.names != nil, enclosed: s.enclosed}
	outside, err := s.finish(ctx)
	if err != nil {
		return nil, fmt.Errorf("scanning workspace %s: %w", root, err)
	}
	for _, dir := range outside {
		t, warn, err := scanExternal(ctx, dir, &r, s.budget)
		if err != nil {
			return nil, err
		}
		snap.trees = append(snap.trees, t)
		s.warnings = append(s.warnings, warn...)
	}
	snap.Warnings, snap.obeyed = s.warnings, s.absoluteRows()
	if s.followed > maxFollowed || s.obeyed > maxObeyed {
		return snap, &LimitError{What: "links and settings that lead the host to other files", Have: s.followed, Max: maxFollowed, hint: "choose a smaller workspace with --workspace"}
	}
	return snap, snap.check()
}

func (s *Snapshot) check() error {
	if n := len(s.Protected()); n > MaxProtected {
		return &LimitError{What: "protected paths", Have: n, Max: MaxProtected, hint: "name directories whose files the host may obey unchecked under workspace.unprotect in the policy, or choose a smaller workspace with --workspace"}
	}
	if n := len(s.trees[0].Hidden); n > MaxProtected {
		return &LimitError{What: "secrets and sockets", Have: n, Max: MaxProtected, hint: "name files that the command may read under workspace.show in the policy, or choose a smaller workspace with --workspace"}
	}
	if n := len(s.HardLinks()); n > MaxHardLinks {
		return &LimitError{What: "hard links to files outside it", Have: n, Max: MaxHardLinks, Lifted: policy.HardLinks, hint: "break the links by copying the tree (cp -r), or accept that they can be written through with --without hard-links"}
	}
	return nil
}

// scan is the visitor of Scan.
type scan struct {
	rules    *Rules
	root     int
	roots    []int  // root, and the top of what is laid over it
	over     string // directory whose content is looked up before that of root; "" for none
	shared   []gitFile
	agents   []gitFile // the user's own settings of agents
	budget   *Budget
	obeyedBy *Snapshot       // of a tree that leads the host into this one; nil for none
	near     map[string]bool // directories that alone are entered, with the top; nil for all
	external bool
	fixed    []policy.PathRule
	enclosed bool
	names    *names // to remember the tree's; nil for not

	mu       sync.Mutex
	found    *tree
	outward  []row // with absolute paths: what is obeyed outside the tree
	links    map[inode]*linked
	configs  []gitFile
	tops     []string // directories with a .git of any type
	pointers []string // .git files
	rowAt    map[Name]bool
	followed int      // of maxFollowed
	obeyed   int      // bytes, of maxObeyed
	all      *Rule    // what makes the host obey the whole tree; nil for nothing
	secrets  []row    // to be made unreadable
	listed   []string // those of them that the built-in list names
	warnings []string
	summed   atomic.Int64
}

type inode struct{ dev, ino uint64 }

// linked is a regular file with several names.
type linked struct {
	nlink uint32
	st    unix.Statx_t
	paths []string
}

func (s *scan) open(root string) error {
	if s.budget == nil {
		s.budget = NewBudget()
	}
	fd, err := openResolved(root, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("opening workspace %s: %w", root, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return fmt.Errorf("opening workspace %s: %w", root, err)
	}
	s.root, s.roots, s.links, s.rowAt = fd, []int{fd}, map[inode]*linked{}, map[Name]bool{}
	s.found = &tree{Root: Name(root), Dev: st.Dev, Ino: st.Ino, Owner: st.Uid}
	return nil
}

func newRow(path, rule, reason string, st *unix.Statx_t) row {
	return row{
		Path: Name(path), Rule: rule, Reason: reason, Mode: uint32(st.Mode),
		Ino: st.Ino, Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ctime: nanos(st.Ctime),
	}
}

func nanos(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// birthOf is when a file was created, in ns since 1970. It is not known where the file
// system does not record it (statx(2)).
func birthOf(st *unix.Statx_t) (at int64, known bool) {
	return nanos(st.Btime), st.Mask&unix.STATX_BTIME != 0
}

func (s *scan) add(r row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.Rows, s.rowAt[r.Path] = append(s.found.Rows, r), true
}

func (s *scan) deny(w *walker, d *dir, e entry) (bool, error) {
	var st unix.Statx_t
	if err := statAt(d.fd, e.nameZ, &st); err != nil {
		return false, ignoreGone(err)
	}
	r := newRow(w.pathTo(e), e.rule.Pattern, e.rule.Reason, &st)
	r.config = e.rule.Where == InGit && strings.HasPrefix(e.rule.Pattern, "config") && r.Mode&typeMask == typeReg && st.Nlink == 1 && st.Size <= maxCopied
	s.add(r)
	return false, nil
}

func (s *scan) flag(w *walker, d *dir, e entry, st *unix.Statx_t) error {
	m := newMark(w.pathTo(e), e.rule, st)
	if st.Mode&typeMask == typeReg && st.Size <= maxSum && s.summed.Add(int64(st.Size)) <= maxSumAll {
		m.Sum = sumAt(d.fd, e.name(), maxSum)
	}
	s.mu.Lock()
	s.found.Marks = append(s.found.Marks, m)
	s.mu.Unlock()
	return s.file(w, d, e, st)
}

func newMark(path string, r *Rule, st *unix.Statx_t) mark {
	return mark{
		Path: Name(path), Rule: r.Pattern, Ino: st.Ino, Size: int64(st.Size), Mode: uint32(st.Mode),
		Mtime: nanos(st.Mtime), Ctime: nanos(st.Ctime), Dir: r.Dir,
	}
}

// sumAt hashes a regular file of at most limit bytes; "" for anything else.
func sumAt(dir int, name []byte, limit int64) string {
	f := openFile(dir, string(name))
	if f == nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, limit+1))
	if err != nil || n > limit {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// openFile opens a regular file for reading, never through a link. It never opens
// anything else, because that may block or have side effects; it returns nil instead.
func openFile(dir int, name string) *os.File {
	h, err := openHandle(dir, name)
	if err != nil {
		return nil
	}
	defer h.close()
	f, err := h.read()
	if err != nil {
		return nil
	}
	return f
}

// readFile returns the bytes of a regular file of at most limit bytes.
func readFile(dir int, name string, limit int64) ([]byte, bool) {
	f := openFile(dir, name)
	if f == nil {
		return nil, false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() > limit {
		return nil, false
	}
	b := bytes.NewBuffer(make([]byte, 0, st.Size()+bytes.MinRead)) // io.ReadAll takes several times the size
	_, err = b.ReadFrom(io.LimitReader(f, limit+1))
	return b.Bytes(), err == nil && int64(b.Len()) <= limit
}

func (s *scan) file(w *walker, d *dir, e entry, st *unix.Statx_t) error {
	if e.typ == unix.DT_LNK && d.gits() {
		if err := statAt(d.fd, e.nameZ, &w.st); err != nil {
			return ignoreGone(err)
		}
		r := newRow(w.pathTo(e), "", "", &w.st)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.found.Links = append(s.found.Links, r)
		return nil
	}
	if st == nil || st.Mode&typeMask != typeReg {
		return nil
	}
	if e.rule != nil && e.rule.Judged {
		s.state(d, e)
	}
	if d.git {
		s.noteGitFile(w, d, e)
	}
	if s.external {
		return nil
	}
	if st.Mode&0o111 != 0 && d.dep == nil {
		s.mu.Lock()
		s.found.Programs = append(s.found.Programs, Name(w.pathTo(e)))
		s.mu.Unlock()
	}
	if st.Nlink < 2 {
		return nil
	}
	key := inode{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino}
	path := w.pathTo(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.links[key]
	if l == nil {
		l = &linked{nlink: st.Nlink, st: *st}
		s.links[key] = l
	}
	l.paths = append(l.paths, path)
	return nil
}

func (s *scan) repository(w *walker, d *dir) error {
	s.tablesAtStart(w, d)
	c := gitFile{dir: string(w.path), own: true}
	c.data, _ = readFile(d.fd, "config", MaxConfig)
	own := []gitFile{c}
	if c.data, _ = readFile(d.fd, "config.worktree", MaxConfig); c.data != nil {
		own = append(own, c)
	}
	if !s.budget.spend(int64(len(own[0].data) + len(c.data))) {
		return &BudgetError{At: string(s.found.Root) + "/" + string(w.path), Files: s.budget.Files()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.Repos = append(s.found.Repos, Name(w.path))
	for _, c := range own {
		if s.afford(0, len(c.data)) {
			s.configs = append(s.configs, c)
		}
	}
	s.tops = append(s.tops, string(w.path), parent(string(w.path)))
	return nil
}

func (s *scan) dotGit(w *walker, d *dir, e entry) error {
	var st unix.Statx_t
	if err := statAt(d.fd, e.nameZ, &st); err != nil {
		return ignoreGone(err)
	}
	path := w.pathTo(e)
	s.add(newRow(path, ".git", "git takes the repository, its config and its hooks from where it points", &st))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tops = append(s.tops, string(w.path))
	if st.Mode&typeMask == typeReg {
		s.pointers = append(s.pointers, path)
	}
	return nil
}

func (s *scan) closed(w *walker, d *dir, e entry, why error) (int, error) {
	var st unix.Statx_t
	if err := statAt(d.fd, e.nameZ, &st); err != nil {
		return -1, ignoreGone(err)
	}
	r := newRow(w.pathTo(e), "", "cannot be read, so nothing is known of what is in it", &st)
	r.Closed = true
	s.add(r)
	s.warn("%q is read-only inside: %v", r.Path, why)
	return -1, nil
}

func (s *scan) warn(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// known: while scanning, everything is there from the start.
func (s *scan) knownRepository([]byte) bool { return true }

func (s *scan) tree(*dep) {}
