//go:build linux

package workspace

import (
	"slices"
	"strings"
	"testing"
)

// tableOf makes a reftable of one block with refs of one object each; of one that
// begins with "-" it says that it is deleted.
func tableOf(names ...string) []byte {
	header := "REFT\x01\x00\x10\x00" + strings.Repeat("\x00", 15) + "\x01"
	block, last := header+"r\x00\x00\x00", ""
	for _, name := range names {
		name, gone := strings.CutPrefix(name, "-")
		kind, value := 1, strings.Repeat("\x11", 20)
		if gone {
			kind, value = 0, ""
		}
		n := 0
		for n < len(last) && n < len(name) && last[n] == name[n] {
			n++
		}
		size := (len(name)-n)<<3 | kind
		varint := string([]byte{byte(size & 0x7f)})
		if size > 0x7f {
			varint = string([]byte{byte((size>>7)-1) | 0x80, byte(size & 0x7f)})
		}
		block += string([]byte{byte(n)}) + varint + name[n:] + "\x00" + value
		last = name
	}
	block += "\x00\x00\x1c" + "\x00\x01"
	b := []byte(block)
	b[26], b[27] = byte(len(b)>>8), byte(len(b))
	return append(append(b, header...), make([]byte, 44)...)
}

// indexed is a table with an index of its one block, of that type.
func indexed(kind string, table []byte) []byte {
	at := len(table) - 24 - 44
	index := kind + "\x00\x00\x10" + "\x00\x08z\x00" + "\x00\x00\x04\x00\x01"
	index = index[:3] + string([]byte{byte(len(index))}) + index[4:]
	b := slices.Concat(table[:at], []byte(index), table[at:])
	b[len(b)-44+7] = byte(at)
	return b
}

func TestTableRecords(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  int
	}{
		{[]string{"HEAD", "refs/heads/main", "refs/remotes/x"}, 0},
		{[]string{"refs/heads/main", "refs/replac", "refs/replace/0123456789012345678901234567890123456789", "refs/replace/1123"}, 2},
	} {
		got, err := tableRecords(tableOf(c.names...))
		if err != nil || len(got) != c.want {
			t.Errorf("%q: %q, %v", c.names, got, err)
		}
	}
	good := tableOf("refs/heads/main", "refs/replace/01")
	for i := range len(good) - 44 - 24 { // whatever a byte is, nothing panics
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			bad := slices.Clone(good)
			bad[i] = b
			_, _ = tableRecords(bad)
			_, _ = tableRecords(bad[:i])
		}
	}
	if got, err := tableRecords(indexed("i", good)); err != nil || len(got) != 1 {
		t.Errorf("with an index: %q, %v", got, err)
	}
	for name, bad := range map[string][]byte{"no order": tableOf("refs/b", "refs/a"), "empty": nil, "cut": good[:len(good)-1], "an index that is none": indexed("o", good)} {
		if _, err := tableRecords(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A repository with reftables: what is replaced when the run ends, and was not when
// it began, is listed.
func TestSettleReftables(t *testing.T) {
	w := tempRoot(t)
	write(t, w, ".git/HEAD", "ref: refs/heads/.invalid\n")
	write(t, w, ".git/objects/x", "")
	write(t, w, ".git/refs/heads", "this repository uses the reftable format\n")
	write(t, w, ".git/reftable/0x1-0x1-a.ref", string(tableOf("refs/heads/main", "refs/replace/01")))
	stack := func(names ...string) {
		t.Helper()
		write(t, w, ".git/reftable/tables.list", strings.Join(names, "\n")+"\n")
	}
	stack("0x1-0x1-a.ref")
	s := scanned(t, w)
	write(t, w, ".git/reftable/0x1-0x2-b.ref", string(tableOf("refs/heads/main", "refs/replace/01")))
	stack("0x1-0x2-b.ref")
	if list := settled(t, s).Flagged; len(list) != 0 {
		t.Errorf("listed: %+v", list)
	}
	s = scanned(t, w)
	write(t, w, ".git/reftable/0x3-0x3-c.ref", string(tableOf("refs/replace/02")))
	write(t, w, ".git/reftable/0x4-0x4-d.ref", "REFT, and no more")
	stack("0x1-0x2-b.ref", "0x3-0x3-c.ref", "0x4-0x4-d.ref")
	list := settled(t, s).Flagged
	if len(list) != 2 || !strings.Contains(list[0].Reason+list[1].Reason, "1 more refs/replace") || !strings.Contains(list[0].Reason+list[1].Reason, "cannot be read") {
		t.Errorf("listed: %+v", list)
	}

	// What one table deletes comes back when another takes its place, or none.
	write(t, w, ".git/reftable/0x3-0x3-c.ref", string(tableOf("-refs/replace/01")))
	for name, without := range map[string]func(){
		"dropped":   func() { stack("0x1-0x2-b.ref") },
		"exchanged": func() { write(t, w, ".git/reftable/0x3-0x3-c.ref", string(tableOf("refs/heads/main"))) },
	} {
		stack("0x1-0x2-b.ref", "0x3-0x3-c.ref")
		s = scanned(t, w)
		if list := settled(t, s).Flagged; len(list) != 0 {
			t.Errorf("%s: listed before: %+v", name, list)
		}
		s = scanned(t, w)
		without()
		if list := settled(t, s).Flagged; len(list) != 1 || !strings.Contains(list[0].Reason, "1 more refs/replace") {
			t.Errorf("%s: listed: %+v", name, list)
		}
		write(t, w, ".git/reftable/0x3-0x3-c.ref", string(tableOf("-refs/replace/01")))
	}
}
