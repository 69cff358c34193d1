//go:build linux

package workspace

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	maxStaged     = 10000    // names of one index that are compared with the tree
	maxStagedKept = 100000   // names of one index that are remembered from the start, and of all that are kept at the end
	maxStagedRows = 100      // paths that are listed for one index
	maxStagedFile = 16 << 20 // bytes of a file that is compared with its object
)

// staged is an entry of a git index under a name of the deny tier.
type staged struct {
	name string // from the top of the worktree
	at   string // the part of it that is listed
	rule *Rule
	mode uint32
	id   []byte // of the object
}

// sum distinguishes the content of a name from any other.
func (e *staged) sum() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%o %x %s", e.mode, e.id, e.name))
	return hex.EncodeToString(sum[:12])
}

// indexMatcher matches the names of an index with the rules. The names are sorted, so
// that what a directory matched is kept for all that is in it.
type indexMatcher struct {
	rules  *Rules
	prefix string // of the worktree, from the root, with a slash at its end; or ""
	repos  map[string]bool
	heads  map[string]bool // directories with a HEAD: git may take them for repositories
	dir    []byte
	stack  []stagedDir
	fold   []byte
}

// stagedDir is one directory of those that the last name lies in.
type stagedDir struct {
	end    int // of its path
	states []*node
	rule   *Rule // it is, or lies in, a listed directory
	at     int   // the end of that one's path
	git    bool
	dep    bool
}

// eachStaged calls visit for the entries of an index that have a listed name.
// top is the worktree, from the root, or ""; shared reads the second file of a
// split index.
func eachStaged(data []byte, hash int, rules *Rules, top string, shared func(name string) []byte, visit func(staged)) error {
	s := &indexMatcher{rules: rules, heads: map[string]bool{}, fold: make([]byte, 0, 256)}
	if rules.tree == nil {
		return nil
	}
	first := stagedDir{states: []*node{rules.root}}
	if top != "" {
		s.prefix = top + "/"
		for c := range strings.SplitSeq(top, "/") {
			var below sub
			rules.match(dirState{states: first.states}, unix.DT_DIR, fold([]byte(c), nil), &below)
			first.states = below.states
		}
	}
	base := baseNames(data, hash, shared)
	pass := func(visit func(staged)) error {
		first.git = s.repos[""]
		s.stack = append(s.stack[:0], first)
		left := base
		return eachIndexed(data, hash, func(name, head []byte) {
			if len(name) == 0 && len(left) > 0 {
				name, left = []byte(left[0]), left[1:]
			}
			mode := binary.BigEndian.Uint32(head[24:])
			if rule, at := s.match(name, mode); rule != nil {
				visit(staged{string(name), string(name[:at]), rule, mode, bytes.Clone(head[40 : 40+hash])})
			}
		})
	}
	var found []staged
	n := 0
	if err := pass(func(e staged) {
		if n++; n <= maxStaged {
			found = append(found, e)
		}
	}); err != nil {
		return err
	}
	if len(s.heads) > 0 || n > maxStaged {
		s.repos = s.heads
		return pass(visit)
	}
	for _, e := range found {
		visit(e)
	}
	return nil
}

// match finds the deny rule for one name, and where in it the listed part ends.
func (s *indexMatcher) match(name []byte, mode uint32) (*Rule, int) {
	at := &s.stack[len(s.stack)-1]
	for at.end > 0 && (len(name) <= at.end || name[at.end] != '/' || !bytes.Equal(name[:at.end], s.dir[:at.end])) {
		s.stack = s.stack[:len(s.stack)-1]
		at = &s.stack[len(s.stack)-1]
	}
	s.dir = append(s.dir[:0], name...)
	for {
		if at.rule != nil {
			return at.rule, at.at
		}
		from := at.end
		if from > 0 {
			from++
		}
		end, typ := len(name), byte(unix.DT_REG)
		if n := bytes.IndexByte(name[from:], '/'); n == 0 {
			return nil, 0 // no name of git's
		} else if n > 0 {
			end, typ = from+n, unix.DT_DIR
		} else if from == len(name) {
			return nil, 0
		} else if t := mode & typeMask; t == typeLink {
			typ = unix.DT_LNK
		} else if t == gitLink {
			typ = unix.DT_DIR
		}
		below := s.step(at, name, from, end, typ)
		if end == len(name) {
			return below.rule, below.at
		}
		s.stack = append(s.stack, below)
		at = &s.stack[len(s.stack)-1]
	}
}

// gitLink is the mode of a submodule in an index.
const gitLink = 0o160000

// step looks up name[from:end], an entry of the directory d.
func (s *indexMatcher) step(d *stagedDir, name []byte, from, end int, typ byte) stagedDir {
	var more sub
	folded := fold(name[from:end], s.fold)
	if typ == unix.DT_REG && string(folded) == "head" && len(s.heads) < maxStaged {
		s.heads[string(name[:d.end])] = true
	}
	rule := s.rules.match(dirState{states: d.states, git: d.git, dep: d.dep}, typ, folded, &more)
	if rule != nil && s.rules.exempt != nil && s.rules.isExempted(s.prefix+string(name[:end])) {
		rule = nil
	}
	below := stagedDir{end: end, states: more.states, dep: d.dep, git: typ == unix.DT_DIR && s.repos[string(name[:end])]}
	switch {
	case rule == nil:
	case rule.Tier == Deny:
		below.rule, below.at = rule, end
	case rule.Dir:
		below.dep = true
	}
	return below
}

// noteStagedAtStart notes what the indexes of a repository have under listed names when
// the run begins.
func (s *scan) noteStagedAtStart(w *walker, d *dir, data []byte) {
	top := strings.TrimPrefix(worktree(string(s.found.Root)+"/"+string(w.path), d.fd), string(s.found.Root)+"/")
	if path.IsAbs(top) {
		top = ""
	}
	for _, hash := range []int{sha1.Size, sha256.Size} {
		var sums []string
		note := func(e staged) {
			if len(sums) < maxStagedKept {
				sums = append(sums, e.sum())
			}
		}
		if eachStaged(data, hash, s.rules, top, s.budget.sharedAt(d.fd), note) == nil {
			s.mu.Lock()
			s.found.Staged = append(s.found.Staged, sums...)
			s.mu.Unlock()
			return
		}
	}
}

// worktree is the directory that the index of a repository is for: gitDir itself
// where nothing says.
func worktree(gitDir string, fd int) string {
	if strings.EqualFold(path.Base(gitDir), ".git") {
		return path.Dir(gitDir)
	}
	from := func(to string) string {
		if !path.IsAbs(to) {
			to = gitDir + "/" + to
		}
		return path.Clean(to)
	}
	if b, ok := readFile(fd, "gitdir", maxPointer); ok {
		return path.Dir(from(strings.TrimRight(string(b), "\r\n")))
	}
	data, _ := readFile(fd, "config", MaxConfig)
	if c, err := parseConfig(data); err == nil {
		for _, v := range c.settings {
			if v.section == "core" && !v.hasSub && v.key == "worktree" {
				return from(v.value)
			}
		}
	}
	return path.Clean(gitDir)
}

// newStaged are the entries of one index that it did not have when the run began.
type newStaged struct {
	index Name   // absolute
	top   string // of the worktree, absolute
	hash  int
	names []staged
	more  int64 // that are not among names
}

// noteStaged notes what an index has under listed names and had not at the start.
func (v *settle) noteStaged(w *walker, d *dir, e entry, data []byte, hash int) {
	in := &newStaged{index: v.full(w.pathTo(e)), top: worktree(string(v.full(string(w.path))), d.fd), hash: hash}
	top, ok := strings.CutPrefix(in.top, string(v.t.Root)+"/")
	if !ok {
		top = ""
	}
	err := eachStaged(data, hash, &v.snap.rules, top, v.budget.sharedAt(d.fd), func(e staged) {
		switch {
		case v.staged[e.sum()]:
		case len(in.names) < maxStaged:
			in.names = append(in.names, e)
		default:
			in.more++
		}
	})
	if err != nil || len(in.names) == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.kept += len(in.names); v.kept > maxStagedKept {
		in.more += int64(len(in.names))
		in.names = nil
	}
	v.indexes = append(v.indexes, in)
}

// listStaged lists names of the deny tier that git would write from an index: what was
// quarantined would come back, and what was never in the tree would appear. It is
// called after the tree is settled, so that what is there then is the user's.
func (v *settle) listStaged(in *newStaged) {
	root := v.openInTrees("", in.top)
	if root >= 0 {
		defer unix.Close(root)
	}
	rows, order := map[string]*Flagged{}, []string(nil)
	for i := range in.names {
		e := &in.names[i]
		if root >= 0 && e.matchesTree(root, in.hash, v.budget.spend) {
			continue
		}
		f := rows[e.at]
		if f == nil && len(rows) == maxStagedRows {
			in.more++
			continue
		}
		if f == nil {
			at := in.top + "/" + e.at
			f = &Flagged{Path: Name(at), Change: Added, Rule: e.rule.Pattern,
				Reason: fmt.Sprintf("in the git index %q, from which git checkout, git restore and git stash pop write it: %s", in.index, e.rule.Reason)}
			if _, err := os.Lstat(at); err == nil {
				f.Change = Changed
			}
			rows[e.at] = f
			order = append(order, e.at)
		}
		if e.at != e.name {
			f.Files++
		}
	}
	for _, at := range order {
		v.addFlagged(*rows[at])
	}
	if in.more > 0 {
		v.addFlagged(Flagged{Path: in.index, Change: Changed, Rule: ".git", Files: in.more,
			Reason: "it has more names that a host would obey than are listed; git checkout and git restore write them"})
	}
}

// matchesTree reports whether the tree has the content that git would write. What afford
// does not allow to be read counts as different.
func (e *staged) matchesTree(root, size int, afford func(bytes int64) bool) bool {
	dir, name := path.Split(e.name)
	fd, err := OpenBeneath(root, strings.TrimSuffix(dir, "/"), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var content []byte
	switch e.mode & typeMask {
	case typeLink:
		buf := make([]byte, 4096)
		n, err := unix.Readlinkat(fd, name, buf)
		if err != nil {
			return false
		}
		content = buf[:n]
	case typeReg:
		f := openFile(fd, name)
		if f == nil {
			return false
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil || e.mode&0o111 != 0 && st.Mode()&0o111 == 0 || st.Size() > maxStagedFile || !afford(st.Size()) {
			return false
		}
		if content, err = io.ReadAll(io.LimitReader(f, maxStagedFile+1)); err != nil || len(content) > maxStagedFile {
			return false
		}
	default:
		return false
	}
	return slices.Equal(blobID(content, size), e.id)
}

// blobID is the name of an object with that content.
func blobID(content []byte, size int) []byte {
	var h hash.Hash = sha1.New()
	if size == sha256.Size {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return h.Sum(nil)
}
