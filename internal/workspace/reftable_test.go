//go:build linux

package workspace

import (
	"slices"
	"strings"
	"testing"
)

// tableOf makes a reftable of one block with refs of one object each.
func tableOf(names ...string) []byte {
	header := "REFT\x01\x00\x10\x00" + strings.Repeat("\x00", 15) + "\x01"
	block, last := header+"r\x00\x00\x00", ""
	for _, name := range names {
		n := 0
		for n < len(last) && n < len(name) && last[n] == name[n] {
			n++
		}
		size := (len(name)-n)<<3 | 1
		varint := string([]byte{byte(size & 0x7f)})
		if size > 0x7f {
			varint = string([]byte{byte((size>>7)-1) | 0x80, byte(size & 0x7f)})
		}
		block += string([]byte{byte(n)}) + varint + name[n:] + "\x00" + strings.Repeat("\x11", 20)
		last = name
	}
	block += "\x00\x00\x1c" + "\x00\x01"
	b := []byte(block)
	b[26], b[27] = byte(len(b)>>8), byte(len(b))
	return append(append(b, header...), make([]byte, 44)...)
}

func TestTableReplacements(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  int
	}{
		{[]string{"HEAD", "refs/heads/main", "refs/remotes/x"}, 0},
		{[]string{"refs/heads/main", "refs/replac", "refs/replace/0123456789012345678901234567890123456789", "refs/replace/1123"}, 2},
	} {
		got, err := TableReplacements(tableOf(c.names...))
		if err != nil || len(got) != c.want {
			t.Errorf("%q: %q, %v", c.names, got, err)
		}
	}
	good := tableOf("refs/heads/main", "refs/replace/01")
	for i := range len(good) - 44 - 24 { // whatever a byte is, nothing panics
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			bad := slices.Clone(good)
			bad[i] = b
			_, _ = TableReplacements(bad)
			_, _ = TableReplacements(bad[:i])
		}
	}
	for name, bad := range map[string][]byte{"no order": tableOf("refs/b", "refs/a"), "empty": nil, "cut": good[:len(good)-1]} {
		if _, err := TableReplacements(bad); err == nil {
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
	s := scanned(t, w)
	write(t, w, ".git/reftable/0x1-0x2-b.ref", string(tableOf("refs/heads/main", "refs/replace/01")))
	if list := settled(t, s).Flagged; len(list) != 0 {
		t.Errorf("listed: %+v", list)
	}
	s = scanned(t, w)
	write(t, w, ".git/reftable/0x3-0x3-c.ref", string(tableOf("refs/replace/02")))
	write(t, w, ".git/reftable/0x4-0x4-d.ref", "REFT, and no more")
	list := settled(t, s).Flagged
	if len(list) != 2 || !strings.Contains(list[0].Reason+list[1].Reason, "1 more refs/replace") || !strings.Contains(list[0].Reason+list[1].Reason, "cannot be read") {
		t.Errorf("listed: %+v", list)
	}
}
