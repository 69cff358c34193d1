//go:build linux

package workspace

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

// Name is a path that survives JSON even where it is not UTF-8: a backslash is
// doubled and each byte that is no part of a character is written \xNN.
type Name string

// MarshalText implements encoding.TextMarshaler.
func (n Name) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(n)) && !strings.Contains(string(n), `\`) {
		return []byte(n), nil
	}
	var out []byte
	for rest := string(n); rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\x%02x`, rest[0])
		case r == '\\':
			out = append(out, `\\`...)
		default:
			out = append(out, rest[:size]...)
		}
		rest = rest[size:]
	}
	return out, nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Name) UnmarshalText(b []byte) error {
	var out []byte
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] != '\\':
			out = append(out, b[i])
		case i+1 < len(b) && b[i+1] == '\\':
			out = append(out, '\\')
			i++
		case i+3 < len(b) && b[i+1] == 'x':
			v, err := strconv.ParseUint(string(b[i+2:i+4]), 16, 8)
			if err != nil {
				return fmt.Errorf("name %q: %w", b, err)
			}
			out = append(out, byte(v))
			i += 3
		default:
			return fmt.Errorf("name %q: stray backslash", b)
		}
	}
	*n = Name(out)
	return nil
}

// Snapshot is what Scan found: what a backend must make read-only, and what Settle
// needs to recognise what is new.
type Snapshot struct {
	Root     string   // of the workspace, absolute
	Warnings []string // what could not be done, for the user

	// Patience is how long Settle may wait, over all, before it takes what may
	// be gone or finished in a moment: set where other runs use the same tree.
	Patience time.Duration

	// Budget is what Settle may spend, shared by all trees of a run; nil for one of
	// its own.
	Budget *Budget

	// NothingHidden says that nothing inside could change a file without an event in
	// its directory: then Settle may pass over directories in which nothing happened.
	NothingHidden bool

	obeyed []row // with absolute paths: what a host obeys, in and outside the tree
	trees  []*tree
	names  *names // of the first of them; nil where they were not remembered, or are lost
	rules  Rules
	began  int64 // wall clock in ns, a little before the walk

	main     *Snapshot // of the workspace, whose worktrees may hold what it holds; nil where that is not known
	beside   []string  // the other trees that the run can write to, which are settled too
	held     *os.File  // the workspace; nil when it is found by its path
	remember bool      // Settle lists all that changed
	enclosed bool      // links that lead out of the tree do not stay
}

// Hold keeps the workspace open, so that Settle finds it when the host moves it
// meanwhile. Release ends that.
func (s *Snapshot) Hold() error {
	fd, err := openResolved(s.Root, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("opening workspace %s: %w", s.Root, err)
	}
	s.held = os.NewFile(uintptr(fd), s.Root)
	return nil
}

// Release closes what Hold opened, and ends the watching that Remember began.
func (s *Snapshot) Release() {
	if s.held != nil {
		s.held.Close()
		s.held = nil
	}
	if s.names != nil {
		s.names.watch.end()
	}
}

// followMove gives a tree that was held the path that it has now.
func (s *Snapshot) followMove(t *tree) (from Name, is bool) {
	at, err := fdPath(int(s.held.Fd()))
	if err != nil || Name(at) == t.Root {
		return "", false
	}
	from, t.Root, s.Root = t.Root, Name(at), at
	return from, true
}

// tree is one directory tree that was scanned: the workspace first, then git
// directories outside it that its worktrees use.
type tree struct {
	Root     Name
	Dev      uint64
	Ino      uint64
	Owner    uint32
	Rows     []row
	Marks    []mark
	Repos    []Name // directories that git takes for repositories
	Links    []row  // symbolic links in repositories, which stay
	Hidden   []row  // secrets, and sockets of the host
	Programs []Name // regular files with an executable bit
	Fixed    []row  `json:",omitempty"` // read-only inside, by a policy
	Absent   []row  // paths that would be obeyed if they were there, beyond the rules

	// Settings of the repositories, by directory, that are not harmless: the
	// SHA-256 of each name with its value.
	Settings map[Name][]string

	// Staged are sums of what git's indexes have under names of the deny tier.
	Staged []string `json:",omitempty"`

	// States are sums of what git operations under way already said that could do harm;
	// see stateSum.
	States []string `json:",omitempty"`

	// Blind are sums of what made git look away already, of 8 bytes each.
	Blind []byte `json:",omitempty"`
}

// row is one protected path.
type row struct {
	Path   Name
	Rule   string
	Reason string
	Ino    uint64
	Dev    uint64
	Mode   uint32
	Ctime  int64
	Linked bool `json:",omitempty"` // a hard link, not a listed name
	Closed bool `json:",omitempty"` // a directory that could not be read

	config bool // a git configuration, of which a run gets a copy
}

// copyName is the name of the copy that a run gets; "" for none.
func (r *row) copyName() string {
	if r.config {
		return path.Base(string(r.Path))
	}
	return ""
}

// mark is a file of the flag tier as it was.
type mark struct {
	Path  Name
	Rule  string
	Ino   uint64
	Size  int64
	Mtime int64
	Ctime int64
	Mode  uint32
	Sum   string `json:",omitempty"` // SHA-256, hex; "" when it was not read
	Dir   bool   `json:",omitempty"`
}

// Began is when the walk began, a little early: what changed since has a later
// time of change.
func (s *Snapshot) Began() time.Time { return time.Unix(0, s.began) }

// Protected returns the rows that the backend must make read-only, ancestors
// pinned, the shallowest first.
func (s *Snapshot) Protected() []policy.Protected { return s.protected(false) }

// HardLinks returns rows for regular files that are also reachable by a name
// outside the workspace, or by a protected one, to be treated as Protected.
func (s *Snapshot) HardLinks() []policy.Protected { return s.protected(true) }

func (s *Snapshot) protected(linked bool) []policy.Protected {
	var out []policy.Protected
	for i, t := range s.trees {
		root := ""
		if i > 0 {
			root = string(t.Root)
		}
		for _, r := range t.Rows {
			if r.Linked != linked {
				continue
			}
			out = append(out, policy.Protected{
				Root: root, Path: string(r.Path), Rule: r.Rule, Reason: r.Reason,
				IsDir: r.Mode&typeMask == typeDir, IsLink: r.Mode&typeMask == typeLink,
				File: policy.FileID{Dev: r.Dev, Ino: r.Ino}, Copy: r.copyName(),
			})
		}
	}
	return out
}

// Hidden returns rows for files, directories and sockets that the backend must
// make unreadable, whatever else lies on their way.
func (s *Snapshot) Hidden() []policy.Protected {
	var out []policy.Protected
	for _, r := range s.trees[0].Hidden {
		out = append(out, policy.Protected{Path: string(r.Path), Rule: r.Rule, Reason: r.Reason, IsDir: r.Mode&typeMask == typeDir,
			File: policy.FileID{Dev: r.Dev, Ino: r.Ino}})
	}
	return out
}

// Roots are the trees that Settle looks through.
func (s *Snapshot) Roots() []string {
	var out []string
	for _, t := range s.trees {
		out = append(out, string(t.Root))
	}
	return out
}

// External returns the git directories outside the workspace that its worktrees
// use and that were found to name those worktrees in turn. Their protected
// paths are among Protected, with Root set.
func (s *Snapshot) External() []policy.PathRule {
	var out []policy.PathRule
	for _, t := range s.trees[1:] {
		out = append(out, policy.PathRule{Path: string(t.Root), Access: policy.Write, Origin: policy.Origin{File: "git worktree"}, File: t.file()})
	}
	return out
}

// File is which directory was scanned.
func (s *Snapshot) File() policy.FileID { return s.trees[0].file() }

func (t *tree) file() policy.FileID { return policy.FileID{Dev: t.Dev, Ino: t.Ino} }

// tidy sorts the rows and drops those that lie below another.
func (t *tree) tidy() {
	slices.SortFunc(t.Rows, func(a, b row) int {
		if d := strings.Count(string(a.Path), "/") - strings.Count(string(b.Path), "/"); d != 0 {
			return d
		}
		if c := strings.Compare(string(a.Path), string(b.Path)); c != 0 {
			return c
		}
		return btoi(a.Linked) - btoi(b.Linked)
	})
	dirs := map[Name]bool{}
	kept := t.Rows[:0]
	for _, r := range t.Rows {
		covered := dirs[r.Path]
		for p := path.Dir(string(r.Path)); p != "." && !covered; p = path.Dir(p) {
			covered = dirs[Name(p)]
		}
		if covered || len(kept) > 0 && kept[len(kept)-1].Path == r.Path {
			continue
		}
		if r.Mode&typeMask == typeDir {
			dirs[r.Path] = true
		}
		kept = append(kept, r)
	}
	t.Rows = kept
	slices.SortFunc(t.Marks, func(a, b mark) int { return strings.Compare(string(a.Path), string(b.Path)) })
	slices.Sort(t.Repos)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// journal is the form of a Snapshot in a file.
type journal struct {
	Version int
	Root    Name
	Began   int64
	Rules   []Rule   // the user's own
	Lacks   []string // patterns of the built-in list that were taken away
	Exempt  []Name
	Trees   []*tree
	Beside  []Name `json:",omitempty"`

	Remember bool
	Enclosed bool `json:",omitempty"`
}

// Save writes the snapshot so that Load can settle a run whose supervisor died.
func (s *Snapshot) Save(w io.Writer) error {
	j := journal{Version: 1, Root: Name(s.Root), Began: s.began, Rules: s.rules.own, Lacks: s.rules.lacks, Trees: s.trees, Remember: s.remember, Enclosed: s.enclosed}
	for _, dir := range s.beside {
		j.Beside = append(j.Beside, Name(dir))
	}
	for _, e := range s.rules.exempt {
		j.Exempt = append(j.Exempt, Name(e))
	}
	if err := json.NewEncoder(w).Encode(j); err != nil {
		return fmt.Errorf("writing workspace journal: %w", err)
	}
	return nil
}

// Load reads what Save wrote.
func Load(r io.Reader) (*Snapshot, error) {
	var j journal
	if err := json.NewDecoder(r).Decode(&j); err != nil {
		return nil, fmt.Errorf("reading workspace journal: %w", err)
	}
	if j.Version != 1 || len(j.Trees) == 0 {
		return nil, fmt.Errorf("reading workspace journal: unknown version %d", j.Version)
	}
	var exempt, beside []string
	for _, dir := range j.Beside {
		beside = append(beside, string(dir))
	}
	for _, e := range j.Exempt {
		exempt = append(exempt, string(e))
	}
	return &Snapshot{Root: string(j.Root), trees: j.Trees, rules: compile(builtIn(), j.Rules, j.Lacks, exempt), began: j.Began, remember: j.Remember, enclosed: j.Enclosed, beside: beside}, nil
}
