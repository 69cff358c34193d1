//go:build linux

package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// maxBlindNamed bounds how many files a line of the list names, of those that an
// index keeps from git status.
const maxBlindNamed = 5

// blind identifies one thing in a file of git's that makes git show less, or
// something else, than is there.
type blind [8]byte

func blindOf(file, what string) blind {
	sum := sha256.Sum256([]byte(file + "\x00" + what))
	return blind(sum[:8])
}

// eachBlind calls visit for what makes git miss changes in an index that git can read:
// entries that are marked as assumed unchanged or not checked out, and the tables by
// which git status takes files as unchanged or known.
func eachBlind(data []byte, hash int, shared func(name string) []byte, visit func(what, name string)) {
	base := baseNames(data, hash, shared)
	at := 12
	_ = eachIndexed(data, hash, func(name, entry []byte) {
		at += len(entry)
		if len(name) == 0 && len(base) > 0 {
			name, base = []byte(base[0]), base[1:]
		}
		flags := entry[40+hash:]
		if flags[0]&0x80 != 0 {
			visit("assume-unchanged", string(name))
		}
		if flags[0]&0x40 != 0 && flags[2]&0x40 != 0 {
			visit("skip-worktree", string(name))
		}
	})
	eachTable(data[:max(len(data)-hash, 0)], at, func(name string, _ []byte) {
		if name == "UNTR" || name == "FSMN" {
			visit(name, "")
		}
	})
}

// eachTable calls visit for what follows the entries of an index, which end at at, and
// returns where it ends.
func eachTable(data []byte, at int, visit func(name string, body []byte)) int {
	for len(data)-at >= 8 {
		size := int(binary.BigEndian.Uint32(data[at+4:]))
		if size > len(data)-at-8 {
			return at
		}
		visit(string(data[at:at+4]), data[at+8:at+8+size])
		at += 8 + size
	}
	return at
}

// replacements are the lines of packed-refs by which git takes one object for
// another (git-replace(1)).
func replacements(packed []byte) []string {
	var out []string
	for line := range bytes.SplitSeq(packed, []byte("\n")) {
		if _, name, ok := bytes.Cut(line, []byte(" ")); ok && bytes.HasPrefix(name, []byte("refs/replace/")) {
			out = append(out, string(line))
		}
	}
	return out
}

// noteGitFile notes what the index, or the packed refs, of a repository have when the
// run begins.
func (s *scan) noteGitFile(w *walker, d *dir, e entry) {
	packed := string(e.folded) == "packed-refs"
	if !packed && !isIndex(e.folded) {
		return
	}
	if !s.affordsIndex(w, d, e) {
		return
	}
	s.budget.reading.Lock()
	defer s.budget.reading.Unlock()
	data, ok := readFile(d.fd, string(e.name()), maxIndexed)
	if !ok {
		return
	}
	file := w.pathTo(e)
	var sums []byte
	note := func(what string) {
		sum := blindOf(file, what)
		sums = append(sums, sum[:]...)
	}
	if packed {
		for _, line := range replacements(data) {
			note(line)
		}
	} else {
		s.noteStagedAtStart(w, d, data)
		eachBlind(data, hashOf(data), s.budget.sharedAt(d.fd), func(what, name string) { note(what + " " + name) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.Blind = append(s.found.Blind, sums...)
}

// blinds are the sums of Blind.
func (t *tree) blinds() map[blind]bool {
	m := make(map[blind]bool, len(t.Blind)/len(blind{}))
	for b := t.Blind; len(b) >= len(blind{}); b = b[len(blind{}):] {
		m[blind(b[:len(blind{})])] = true
	}
	return m
}

// hashOf is the length of object names by which git can read an index.
func hashOf(data []byte) int {
	for _, hash := range hashSizes {
		if eachIndexed(data, hash, func([]byte, []byte) {}) == nil {
			return hash
		}
	}
	return hashSizes[0]
}

// blindIndex lists an index that hides more than it did when the run began.
func (v *settle) blindIndex(w *walker, d *dir, e entry, data []byte, hash int) {
	file := w.pathTo(e)
	for _, why := range blindReasons(data, hash, v.budget.sharedAt(d.fd), func(what, name string) bool { return v.blind[blindOf(file, what+" "+name)] }) {
		v.addFlagged(Flagged{Path: v.full(file), Change: Changed, Rule: ".git/index", Reason: why})
	}
}

// blindReasons says what an index hides from its user that was not known before.
func blindReasons(data []byte, hash int, shared func(string) []byte, known func(what, name string) bool) (out []string) {
	names := map[string][]string{}
	counts := map[string]int{}
	eachBlind(data, hash, shared, func(what, name string) {
		if known(what, name) {
			return
		}
		if counts[what]++; counts[what] <= maxBlindNamed {
			names[what] = append(names[what], fmt.Sprintf("%q", short([]byte(name))))
		}
	})
	for _, what := range []string{"assume-unchanged", "skip-worktree"} {
		if n := counts[what]; n > 0 {
			out = append(out, fmt.Sprintf("it marks %d more as %s, %s: git status and git diff skip them; git ls-files -v lists them", n, what, andMore(names[what], n)))
		}
	}
	for _, t := range [][2]string{{"FSMN", "files that were not changed"}, {"UNTR", "files that git does not track"}} {
		if counts[t[0]] > 0 {
			out = append(out, "it now has a list of "+t[1]+", which git status may believe; git reset makes a new one")
		}
	}
	return out
}

// IndexBlind says what now, the index of a repository with a configuration, hides
// from its user that was, the indexes before it, did not hide. shared and oldShared
// read the second file of a split index.
func IndexBlind(now []byte, was [][]byte, shared, oldShared func(name string) []byte, config []byte) []string {
	hash := hashSize(config)
	had := map[string]bool{}
	for _, data := range was {
		if readable := eachIndexed(data, hash, func([]byte, []byte) {}) == nil; readable {
			eachBlind(data, hash, oldShared, func(what, name string) { had[what+" "+name] = true })
		}
	}
	return blindReasons(now, hash, shared, func(what, name string) bool { return had[what+" "+name] })
}

// PackedHarm says what git shows instead of something else because of the packed-refs
// now, and not of was; "" for nothing.
func PackedHarm(now, was []byte) string {
	had, n := replacements(was), 0
	for _, line := range replacements(now) {
		if !slices.Contains(had, line) {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return replacedRefs(n)
}

func replacedRefs(n int) string {
	return fmt.Sprintf("it has %d more refs/replace: git shows, and checks out, other objects in place of those that they name; git replace -l lists them", n)
}

// andMore joins names, and says when they are not all.
func andMore(names []string, n int) string {
	s := strings.Join(names, ", ")
	if n > len(names) {
		s += ", …"
	}
	return s
}

// packedRefs lists packed refs that replace other objects than they did.
func (v *settle) packedRefs(w *walker, d *dir, e entry) {
	file, n := w.pathTo(e), 0
	if !v.budget.affordsFile(d.fd, string(e.name()), 1) {
		v.addFlagged(Flagged{Path: v.full(file), Change: Changed, Rule: ".git/packed-refs", Reason: unread + ": git could show, and check out, other objects than it seems"})
		return
	}
	v.budget.reading.Lock()
	defer v.budget.reading.Unlock()
	data, ok := readFile(d.fd, string(e.name()), maxIndexed)
	for _, line := range replacements(data) {
		if !v.blind[blindOf(file, line)] {
			n++
		}
	}
	switch {
	case !ok:
		v.addFlagged(Flagged{Path: v.full(file), Change: Changed, Rule: ".git/packed-refs", Reason: "it cannot be read, or is larger than git makes it"})
	case n > 0:
		v.addFlagged(Flagged{Path: v.full(file), Change: Changed, Rule: ".git/packed-refs",
			Reason: replacedRefs(n)})
	}
}
