//go:build linux

package workspace

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxTables bounds how many reftables of a repository are read; git keeps a few.
const maxTables = 1000

// tablesHarm says what reftables that are not as git writes them may hide.
const tablesHarm = "it cannot be read as git reads it: git could show, and check out, other objects than it seems"

// reftable is a file of refs (git's Documentation/technical/reftable.adoc).
type reftable struct {
	data   []byte
	end    int // where the footer begins
	header int // bytes
	block  int // size to which blocks are aligned; 0 for not
	hash   int // bytes of an object name
	index  int // where the index of refs is; 0 for none
	last   string
	starts map[int]bool // of blocks of refs and of their index
	out    []string
}

// TablesInForce returns the refs/replace that a stack of reftables has in force, with
// their values, and the tables that cannot be read as git reads them. list is the
// content of tables.list, the oldest table first: a later one replaces or deletes what
// an earlier one has. read returns the content of a table, nil for none.
func TablesInForce(list []byte, read func(name string) []byte) (lines, unread []string) {
	values := map[string]string{}
	for name := range strings.Lines(string(list)) {
		if name = strings.TrimSuffix(name, "\n"); name == "" {
			continue
		}
		var records []string
		err := errIndex
		if !strings.Contains(name, "/") {
			records, err = tableRecords(read(name))
		}
		if err != nil {
			unread = append(unread, name)
		}
		for _, r := range records {
			value, ref, _ := strings.Cut(r, " ")
			values[ref] = value
		}
	}
	for ref, value := range values {
		if value != "" {
			lines = append(lines, value+" "+ref)
		}
	}
	slices.Sort(lines)
	return lines, unread
}

// tableRecords returns the refs/replace of a reftable with their values; one that is
// deleted has none. The table is read in one pass; what git could find in it by another
// way is an error.
func tableRecords(data []byte) ([]string, error) {
	t := reftable{data: data, header: 24, hash: 20, starts: map[int]bool{}}
	if len(data) < 24+68 || string(data[:4]) != "REFT" || data[4] < 1 || data[4] > 2 {
		return nil, errIndex
	}
	if data[4] == 2 {
		if t.header = 28; string(data[24:28]) == "s256" {
			t.hash = 32
		}
	}
	t.block, t.end = u24(data[5:]), len(data)-t.header-44
	if t.end < t.header || string(data[t.end:t.end+t.header]) != string(data[:t.header]) {
		return nil, errIndex
	}
	index := binary.BigEndian.Uint64(data[t.end+t.header:])
	if index >= uint64(t.end) {
		return nil, errIndex
	}
	t.index = int(index)
	at := 0
	for at < t.end && t.kind(at) == 'r' {
		next, err := t.refs(at)
		if err != nil {
			return nil, err
		}
		at = next
	}
	if t.index > 0 {
		if err := t.indexAt(t.index, 0); err != nil {
			return nil, err
		}
	}
	return t.out, nil
}

func u24(b []byte) int { return int(b[0])<<16 | int(b[1])<<8 | int(b[2]) }

// first is the offset of the type of the block at.
func (t *reftable) first(at int) int {
	if at == 0 {
		return t.header
	}
	return at
}

func (t *reftable) kind(at int) byte {
	if at = t.first(at); at >= t.end {
		return 0
	}
	return t.data[at]
}

// records calls visit for each record of the block at with the name, the three bits
// beside its length, and what follows it, whose length visit returns. It returns where
// the next block begins.
func (t *reftable) records(at int, visit func(name string, kind uint64, rest []byte) int) (next int, err error) {
	p := t.first(at) + 4
	if p > t.end {
		return 0, errIndex
	}
	end := at + u24(t.data[p-3:])
	if end > t.end || end < p+2 {
		return 0, errIndex
	}
	restarts := int(binary.BigEndian.Uint16(t.data[end-2:]))
	stop := end - 2 - 3*restarts
	if restarts == 0 || stop < p {
		return 0, errIndex
	}
	whole, name := map[int]bool{}, ""
	for p < stop {
		b := t.data[p:stop]
		prefix, n := varint(b, 9)
		size, m := varint(b[n:], 9)
		if n == 0 || m == 0 || prefix > uint64(len(name)) || size>>3 > uint64(len(b)-n-m) {
			return 0, errIndex
		}
		whole[p-at] = prefix == 0
		used := n + m + int(size>>3)
		name = name[:prefix] + string(b[n+m:used])
		rest := visit(name, size&7, b[used:])
		if rest < 0 || rest > len(b)-used {
			return 0, errIndex
		}
		p += used + rest
	}
	for i := range restarts {
		if !whole[u24(t.data[stop+3*i:])] {
			return 0, errIndex // git looks for names from there
		}
	}
	t.starts[at] = true
	if aligned := at + t.block; t.block > 0 && end < aligned && (end >= t.end || t.data[end] == 0) {
		return aligned, nil
	}
	return end, nil
}

// refs reads a block of refs.
func (t *reftable) refs(at int) (next int, err error) {
	ordered := true
	next, err = t.records(at, func(name string, kind uint64, rest []byte) int {
		ordered, t.last = ordered && name > t.last, name
		_, used := varint(rest, 9) // the update
		size := 0
		switch kind {
		case 1, 2:
			size = int(kind) * t.hash
		case 3:
			length, n := varint(rest[used:], 9)
			if n == 0 || length > uint64(len(rest)) {
				return -1
			}
			size = n + int(length)
		}
		if used == 0 || kind > 3 || used+size > len(rest) {
			return -1
		}
		if strings.HasPrefix(name, "refs/replace/") {
			t.out = append(t.out, hex.EncodeToString(rest[used:used+size])+" "+name)
		}
		return used + size
	})
	if !ordered {
		err = errIndex
	}
	return next, err
}

// indexAt checks that the index leads to blocks that were read.
func (t *reftable) indexAt(at, depth int) error {
	if depth > 8 || at <= 0 || at >= t.end || t.kind(at) != 'i' {
		return errIndex
	}
	var to []int
	_, err := t.records(at, func(_ string, _ uint64, rest []byte) int {
		position, n := varint(rest, 9)
		if n == 0 || position >= uint64(t.end) {
			return -1
		}
		to = append(to, int(position))
		return n
	})
	for _, p := range to {
		if err == nil && !t.starts[p] {
			err = t.indexAt(p, depth+1)
		}
	}
	return err
}

// tablesOf are the refs/replace that the reftables of the repository dir have in force,
// and the tables that cannot be read, or that b does not allow to be read.
func tablesOf(dir int, b *Budget) (lines, unread []string) {
	fd, err := unix.Openat(dir, "reftable", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil
	}
	defer unix.Close(fd)
	read := func(name string) []byte {
		if !b.affordsFile(fd, name, 1) {
			return nil
		}
		data, _ := readFile(fd, name, maxIndexed)
		return data
	}
	b.reading.Lock() // one repository's tables in memory at a time, like every large file that is read
	defer b.reading.Unlock()
	list := read("tables.list")
	if list == nil || strings.Count(string(list), "\n") > maxTables {
		return nil, []string{"tables.list"}
	}
	return TablesInForce(list, read)
}

// tablesAtStart notes what the reftables of a repository replace when the run begins.
func (s *scan) tablesAtStart(w *walker, d *dir) {
	lines, unread := tablesOf(d.fd, s.budget)
	for _, name := range unread {
		lines = append(lines, "unread "+name)
	}
	var sums []byte
	for _, line := range lines {
		sum := blindOf(string(w.path)+"/reftable", line)
		sums = append(sums, sum[:]...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.Blind = append(s.found.Blind, sums...)
}

// tables lists reftables that replace other objects than they did.
func (v *settle) tables(w *walker, d *dir) {
	file, n := string(w.path)+"/reftable", 0
	lines, unread := tablesOf(d.fd, v.budget)
	for _, line := range lines {
		if !v.blind[blindOf(file, line)] {
			n++
		}
	}
	for _, name := range unread {
		if !v.blind[blindOf(file, "unread "+name)] {
			v.addFlagged(Flagged{Path: v.full(file + "/" + name), Change: Changed, Rule: ".git/reftable", Reason: tablesHarm})
			break
		}
	}
	if n > 0 {
		v.addFlagged(Flagged{Path: v.full(file), Change: Changed, Rule: ".git/reftable", Reason: replacedRefs(n)})
	}
}
