//go:build linux

package workspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
	floortext "holdfast.dev/holdfast/internal/floor/text"
)

// maxIndexed is how much of a git index is looked through: about two million files.
const maxIndexed = 256 << 20

// errIndex is an index, or a reftable, that git did not write.
var errIndex = errors.New("git does not write such a file")

// eachIndexed calls visit with every path in a git index (gitformat-index(5)) and with
// its entry. Object names have hash bytes. Whatever git would read differently than in
// one pass from the beginning is an error: its threaded readers use tables at the end,
// which must lead to the same entries.
func eachIndexed(data []byte, hash int, visit func(name, entry []byte)) error {
	end := len(data) - hash
	if end < 12 || string(data[:4]) != "DIRC" {
		return errIndex
	}
	version, count := binary.BigEndian.Uint32(data[4:]), int(binary.BigEndian.Uint32(data[8:]))
	if version < 2 || version > 4 {
		return errIndex
	}
	at, starts := 12, []int{}
	var name []byte
	for range count {
		n, kept, err := indexEntry(data[at:end], hash, version == 4, &name)
		if err != nil {
			return err
		}
		start := at
		if kept > 0 {
			start = -at // no block may begin here
		}
		starts = append(starts, start)
		visit(name, data[at:at+n])
		at += n
	}
	return indexTables(data[:end], hash, at, starts)
}

// indexEntry reads the entry at the beginning of b. It returns its size, and how
// many bytes of the name before are kept in its own.
func indexEntry(b []byte, hash int, prefixed bool, name *[]byte) (size, kept int, err error) {
	p := 40 + hash + 2
	if len(b) < p+2 {
		return 0, 0, errIndex
	}
	flags := int(b[p-2])<<8 | int(b[p-1])
	if flags&0x4000 != 0 {
		p += 2
	}
	rest := b[p:]
	if prefixed {
		strip, n := varint(rest, 5)
		if n == 0 || strip > uint64(len(*name)) {
			return 0, 0, errIndex
		}
		kept, p, rest = len(*name)-int(strip), p+n, rest[n:]
	}
	n := bytes.IndexByte(rest, 0)
	if n < 0 {
		return 0, 0, errIndex
	}
	*name = append((*name)[:kept], rest[:n]...)
	if flags&0xfff != min(len(*name), 0xfff) {
		return 0, 0, errIndex
	}
	size = p + n + 1
	if !prefixed {
		size = (p + n + 8) &^ 7
	}
	if size > len(b) {
		return 0, 0, errIndex
	}
	return size, kept, nil
}

// varint reads a number of several bytes, at most most; n is 0 if there is none.
func varint(b []byte, most int) (value uint64, n int) {
	for i, c := range b[:min(len(b), most)] {
		if value = value<<7 + uint64(c&0x7f); c&0x80 == 0 {
			return value, i + 1
		}
		value++
	}
	return 0, 0
}

// indexTables checks what follows the entries, which end at at.
func indexTables(data []byte, hash, at int, starts []int) error {
	u32 := binary.BigEndian.Uint32
	blocks := true
	end := eachTable(data, at, func(name string, body []byte) {
		if name != "IEOT" {
			return
		}
		done := 0
		for b := body[min(4, len(body)):]; len(b) >= 8 && blocks; b = b[8:] {
			blocks = done < len(starts) && int(u32(b)) == starts[done]
			done += int(u32(b[4:]))
		}
		blocks = blocks && done == len(starts)
	})
	if !blocks || end != len(data) {
		return errIndex
	}
	entries := at
	// "End of index entry" is looked for from the end of the file.
	if eoie := len(data) - 12 - hash; eoie >= entries && string(data[eoie:eoie+4]) == "EOIE" && int(u32(data[eoie+8:])) != entries {
		return errIndex
	}
	return nil
}

// IndexHarm says why git may not be given data as the index of a repository with a
// configuration; "" for no reason. Git checks names when it adds them to an index but
// not when it reads them: git checkout, git restore and git checkout-index write to any
// path in it, even a hook of the repository or a file of the user.
func IndexHarm(data, config []byte) string {
	return indexHarm(data, hashSize(config), func([]byte) {})
}

// indexHarm is IndexHarm, and calls visit with the names. It also tries the other
// length of object names: another file decides which one git uses.
func indexHarm(data []byte, hash int, visit func(name []byte)) string {
	why := ""
	harm := func(name []byte) {
		if why == "" && !checkable(name) {
			why = fmt.Sprintf("it would make git write %q", short(name))
		}
	}
	err := eachIndexed(data, hash, func(name, _ []byte) {
		visit(name)
		harm(name)
	})
	for _, other := range hashSizes {
		if other != hash && why == "" && readable(data, other, harm) && why == "" {
			why = "git could read it with object names of another length"
		}
	}
	if why == "" && err != nil {
		why = errIndex.Error()
	}
	return why
}

// readable reports whether git, which checks little, could read data as an index with
// object names of hash bytes; harm sees the names that it would find. Git accepts an
// entry that extends past the end, because the page there is zeros.
func readable(data []byte, hash int, harm func(name []byte)) bool {
	end := len(data) - hash
	if end < 12 || string(data[:4]) != "DIRC" || data[7] < 2 || data[7] > 4 {
		return false
	}
	if eoie := end - hash - 12; eoie >= 12 && string(data[eoie:eoie+4]) == "EOIE" {
		return true // entries may be anywhere
	}
	count, at := int(binary.BigEndian.Uint32(data[8:])), 12
	var names [][]byte
	var name []byte
	whole := false
	for range count {
		n, ok := looseEntry(data, at, hash, data[7] == 4, &name)
		if !ok {
			return false
		}
		names, whole = append(names, bytes.Clone(name)), whole || len(name) > 0
		if at += n; at > len(data) {
			whole = false
			break
		}
	}
	known := true
	at = eachTable(data[:end], min(at, end), func(name string, _ []byte) {
		known = known && (name[0] >= 'A' && name[0] <= 'Z' || name == "link" || name == "sdir")
	})
	if !known || whole && end-at >= 8 {
		return false
	}
	for _, n := range names {
		harm(n)
	}
	return whole
}

// looseEntry reads an entry as git does, which does not look for the end of a name
// where a length is given. ok is false where git gives up.
func looseEntry(data []byte, at, hash int, prefixed bool, name *[]byte) (size int, ok bool) {
	p := at + 40 + hash + 2
	if p+2 > len(data) {
		return 0, false
	}
	flags := int(data[p-2])<<8 | int(data[p-1])
	if flags&0x4000 != 0 {
		if binary.BigEndian.Uint16(data[p:])&^0x6000 != 0 {
			return 0, false
		}
		p += 2
	}
	kept := 0
	if prefixed {
		strip, n := varint(data[min(p, len(data)):], 5)
		if n == 0 || strip > uint64(len(*name)) {
			return 0, false
		}
		kept, p = len(*name)-int(strip), p+n
	}
	rest := data[min(p, len(data)):]
	n := bytes.IndexByte(rest, 0)
	if n < 0 {
		n = len(rest)
	}
	if flags &= 0xfff; flags != 0xfff {
		n = max(flags-kept, 0)
	}
	*name = append((*name)[:kept], rest[:min(n, len(rest))]...)
	if nul := bytes.IndexByte(*name, 0); nul >= 0 {
		*name = (*name)[:nul]
	}
	size = p - at + n + 1
	if !prefixed {
		size = (p - at + n + 8) &^ 7
	}
	return size, true
}

// hashSizes are the lengths of object names: SHA-1 and SHA-256.
var hashSizes = []int{20, 32}

// hashSize is the length of object names by the configuration of a repository, of
// which git takes the last word.
func hashSize(config []byte) int {
	size := hashSizes[0]
	c, err := parseConfig(config)
	if err != nil {
		return size
	}
	for _, s := range c.settings {
		if s.section == "extensions" && !s.hasSub && s.key == "objectformat" {
			size = hashSizes[0]
			if s.value == "sha256" {
				size = hashSizes[1]
			}
		}
	}
	return size
}

// checkable reports whether git would put name into an index itself.
func checkable(name []byte) bool {
	rest, more := name, len(name) > 0
	for more {
		var c []byte
		c, rest, more = bytes.Cut(rest, []byte("/"))
		switch {
		case len(c) == 0:
			return !more && len(name) > 1 // a directory of a sparse index
		case string(c) == ".", string(c) == "..":
			return false
		case (c[0] == '.' || c[0] == 'g' || c[0] == 'G' || c[0] >= 0x80) && string(fold(c, nil)) == ".git":
			return false
		}
	}
	return true
}

func short(name []byte) string { return floortext.Cut(string(name), 200) }

// isIndex reports whether git takes a file of a repository, by its folded name,
// for an index or a part of one.
func isIndex(name []byte) bool {
	return string(name) == "index" || strings.HasPrefix(string(name), "sharedindex.")
}

// inRepository is the rule for links among what git writes to. Git makes none
// there, and follows them when it writes a reflog, the index or packed refs, so
// that the next git command on the host would write where the link says.
var inRepository = &Rule{Pattern: ".git", Reason: "git writes through it"}

// poisoned is the rule for an index that git did not write.
var poisoned = &Rule{Pattern: ".git/index", Reason: "git writes to any path listed in it; git reset makes a new one"}

// gitFile takes links and poisoned indexes out of what git writes to by name.
// True ends the matter.
func (v *settle) gitFile(w *walker, d *dir, e entry, st *unix.Statx_t, fresh bool) (bool, error) {
	if e.typ == unix.DT_LNK && d.gits() {
		if old := v.gitLinks[w.pathTo(e)]; old != nil && old.Ino == st.Ino && old.Ctime == nanos(st.Ctime) {
			return true, nil
		}
		return true, v.moveOut(w, d, e, inRepository, "a link appeared in a repository during the run")
	}
	if e.rule != nil && e.rule.Judged {
		why := v.state(d, e)
		if why != "" && v.waitForOthers() {
			why = v.state(d, e) // another run may have been writing it
		}
		if why != "" {
			return true, v.moveOut(w, d, e, e.rule, why)
		}
	}
	if d.git && (fresh || !v.knownRepository(w.path)) {
		if why := v.gitIndex(w, d, e, st); why != "" {
			return true, v.moveOut(w, d, e, poisoned, why)
		}
		if string(e.folded) == "packed-refs" {
			v.packedRefs(w, d, e)
		}
	}
	return false, nil
}

// configOf is the configuration that git reads for the git directory d; nil where it
// cannot be read.
func (v *settle) configOf(w *walker, d *dir) []byte {
	dir := d.fd
	if pointer, has := readFile(d.fd, "commondir", maxPointer); has {
		if fd := v.openInTrees(string(w.path), strings.TrimRight(string(pointer), "\r\n")); fd >= 0 {
			defer unix.Close(fd)
			dir = fd
		}
	}
	if !v.budget.affordsSmall(dir, []byte("config\x00")) {
		return nil
	}
	config, ok := readFile(dir, "config", MaxConfig)
	if !ok {
		return nil
	}
	return config
}

// gitIndex says why e may not stay if it is an index of the repository d, and lists it if it
// has the names of secrets: what is tracked is not hidden from the next run.
func (v *settle) gitIndex(w *walker, d *dir, e entry, st *unix.Statx_t) string {
	if st.Mode&typeMask != typeReg || !isIndex(e.folded) {
		return ""
	}
	if !v.budget.spend(indexPasses * int64(st.Size)) {
		return unread
	}
	v.budget.reading.Lock()
	defer v.budget.reading.Unlock()
	data, ok := readFile(d.fd, string(e.name()), maxIndexed)
	if !ok {
		return "it cannot be read, or is larger than git makes it"
	}
	top, _ := strings.CutSuffix("/"+string(w.path), "/.git")
	secret := ""
	hash := hashSize(v.configOf(w, d))
	if v.budget.isExhausted() {
		return unread // it was stopped while that was read
	}
	why := indexHarm(data, hash, func(name []byte) {
		if secret == "" && len(v.secrets) > 0 && v.secrets[(top + "/" + string(name))[1:]] {
			secret = string(name)
		}
	})
	if why == "" && v.budget.isExhausted() {
		return unread
	}
	if why == "" {
		v.noteStaged(w, d, e, data, hash)
		v.blindIndex(w, d, e, data, hash)
	}
	if why == "" && secret != "" {
		v.addFlagged(Flagged{Path: v.full(w.pathTo(e)), Change: Changed, Rule: ".git",
			Reason: fmt.Sprintf("it names %q, which was hidden; what git tracks is not hidden from the next run", short([]byte(secret)))})
	}
	return why
}
