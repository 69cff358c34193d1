//go:build linux

package workspace

import (
	"slices"
	"strings"
	"testing"
)

// tableOf makes a reftable of one block with refs of one object each; a ref whose name
// begins with "-" is marked as deleted.
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

// rawTable is a reftable of one block of refs with these records, and its restarts.
func rawTable(records string, restarts ...int) []byte {
	header := "REFT\x01\x00\x00\x00" + strings.Repeat("\x00", 16)
	block := header + "r\x00\x00\x00" + records
	for _, r := range restarts {
		block += string([]byte{byte(r >> 16), byte(r >> 8), byte(r)})
	}
	block += string([]byte{0, byte(len(restarts))})
	b := []byte(block)
	b[26], b[27] = byte(len(b)>>8), byte(len(b))
	return append(append(b, header...), make([]byte, 44)...)
}

// What a record of a ref may be, and what makes a table one that git does not write.
func TestTableRecordsOfEachKind(t *testing.T) {
	const one, name = "\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11", "refs/replace/a"
	value := strings.Repeat("11", 20)
	record := func(kind byte, name, rest string) string { // names of less than 16 bytes
		return string([]byte{0, byte(len(name))<<3 | kind}) + name + "\x01" + rest
	}
	with := func(b []byte, at int, to string) []byte {
		b = slices.Clone(b)
		copy(b[at:], to)
		return b
	}
	good := rawTable(record(1, name, one), 28)
	footer := len(good) - 44
	for _, tt := range []struct {
		name string
		data []byte
		want []string // nil for an error
	}{
		{"a value", good, []string{value + " " + name}},
		{"a value and what it is peeled to", rawTable(record(2, name, one+one), 28), []string{value + value + " " + name}},
		{"deleted", rawTable(record(0, name, ""), 28), []string{" " + name}},
		{"a symbolic one", rawTable(record(3, name, "\x02ab"), 28), []string{"026162 " + name}},
		{"another ref", rawTable(record(1, "refs/heads/a", one), 28), []string{}},
		{"two of them", rawTable(record(1, "refs/heads/a", one)+record(0, name, ""), 28, 28+15+20), []string{" " + name}},
		{"a name of which a part is in the one before", rawTable(record(0, name, "")+"\x0d\x08b\x01", 28), []string{" " + name, " refs/replace/b"}},
		{"a later version, with the longer names", func() []byte {
			head := "REFT\x02\x00\x00\x00" + strings.Repeat("\x00", 16) + "s256"
			b := []byte(head + "r\x00\x00\x00" + record(1, name, one+one[:12]) + "\x00\x00\x20\x00\x01")
			b[31] = byte(len(b))
			return append(append(b, head...), make([]byte, 44)...)
		}(), []string{strings.Repeat("11", 32) + " " + name}},
		{"a later version, with the shorter ones", func() []byte {
			head := "REFT\x02\x00\x00\x00" + strings.Repeat("\x00", 16) + "sha1"
			b := []byte(head + "r\x00\x00\x00" + record(1, name, one) + "\x00\x00\x20\x00\x01")
			b[31] = byte(len(b))
			return append(append(b, head...), make([]byte, 44)...)
		}(), []string{value + " " + name}},

		{"a kind that is not known", rawTable(record(4, name, one), 28), nil},
		{"a value that is cut", rawTable(record(1, name, one[1:]), 28), nil},
		{"a symbolic one that is cut", rawTable(record(3, name, "\x03ab"), 28), nil},
		{"a symbolic one without a length", rawTable(record(3, name, ""), 28), nil},
		{"a symbolic one that is far too long", rawTable(record(3, name, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), 28), nil},
		{"a name that is cut", rawTable("\x00\x70refs", 28), nil},
		{"more kept than there is", rawTable("\x01\x08b\x01", 28), nil},
		{"no update", rawTable("\x00\x08b", 28), nil},
		{"the same name twice", rawTable(record(0, name, "")+record(0, name, ""), 28), nil},
		{"no restart", rawTable(record(0, name, "")), nil},
		{"a restart within a record", rawTable(record(0, name, ""), 29), nil},
		{"a restart at a name of which a part is in the one before", rawTable(record(0, name, "")+"\x0d\x08b\x01", 28, 28+17), nil},
		{"more restarts than there is room", rawTable("", 28)[:0], nil},
		{"another word at its beginning", with(good, 0, "REFX"), nil},
		{"version 0", with(good, 4, "\x00"), nil},
		{"version 3", with(good, 4, "\x03"), nil},
		{"another header at its end", with(good, footer-1, "x"), nil},
		{"an index behind its end", with(good, footer, "\x01"), nil},
		{"an index where there is none", with(good, footer+7, "\x18"), nil},
		{"a block that is longer than the table", with(good, 26, "\x7f"), nil},
		{"a block that is too short", with(good, 26, "\x00\x1d"), nil},
		{"as many restarts as do not fit", with(good, footer-24-2, "\xff\xff"), nil},
	} {
		got, err := tableRecords(tt.data)
		if (err == nil) != (tt.want != nil) || err == nil && !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}

// Blocks may be filled up to a size, with zeros.
func TestTableBlocksAreAligned(t *testing.T) {
	head := "REFT\x01\x00\x00\x60" + strings.Repeat("\x00", 16)
	block := head + "r\x00\x00\x00" + "\x00\x70refs/replace/a\x01" + "\x00\x00\x1c\x00\x01"
	second := "r\x00\x00\x1a" + "\x00\x70refs/replace/b\x01" + "\x00\x00\x04\x00\x01"
	for name, tt := range map[string]struct {
		fill string
		want int
	}{
		"filled up":          {strings.Repeat("\x00", 0x60-len(block)), 2},
		"one after another":  {"", 2},
		"filled with others": {"x" + strings.Repeat("\x00", 0x60-len(block)-1), 1}, // no block of refs follows
	} {
		b := []byte(block + tt.fill + second)
		b[27] = byte(len(block))
		data := append(append(b, head...), make([]byte, 44)...)
		if got, err := tableRecords(data); err != nil || len(got) != tt.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// The index of a table, which may be of several levels, leads to its blocks of refs.
func TestTableIndex(t *testing.T) {
	table := tableOf("refs/heads/main", "refs/replace/01")
	at := len(table) - 24 - 44
	block := func(positions ...byte) string { // names in it are a, b …
		b := ""
		for i, p := range positions {
			b += "\x00\x08" + string(rune('a'+i))
			if p > 0x7f {
				b += "\x80"
			}
			b += string([]byte{p & 0x7f})
		}
		return "i\x00\x00" + string([]byte{byte(4 + len(b) + 5)}) + b + "\x00\x00\x04\x00\x01"
	}
	with := func(root int, index string) []byte {
		b := slices.Concat(table[:at], []byte(index), table[at:])
		b[len(b)-44+7] = byte(at + root)
		return b
	}
	one := block(0)
	levels := func(n int) []byte {
		index, root := one, 0
		for range n - 1 {
			next := block(byte(at + root))
			index, root = index+next, len(index)
		}
		return with(root, index)
	}
	for name, tt := range map[string]struct {
		data []byte
		ok   bool
	}{
		"to the block":                     {with(0, one), true},
		"twice":                            {with(0, block(0, 0)), true},
		"of two levels":                    {with(len(one), one+block(byte(at))), true},
		"of nine levels":                   {levels(9), true},
		"of ten levels":                    {levels(10), false},
		"to the block, and elsewhere":      {with(0, block(0, 7)), false},
		"behind the end":                   {with(0, block(127)), false},
		"that is cut":                      {with(0, one[:len(one)-3]), false},
		"with a position that has no end":  {with(0, "i\x00\x00\x0d\x00\x08a\x80\x00\x00\x04\x00\x01"), false},
		"that begins within another block": {with(2, one), false},
	} {
		if got, err := tableRecords(tt.data); (err == nil) != tt.ok || tt.ok && len(got) != 1 {
			t.Errorf("an index %s: %q, %v", name, got, err)
		}
	}
}

func TestTablesInForce(t *testing.T) {
	tables := map[string][]byte{"a": tableOf("refs/replace/1", "refs/replace/2"), "b": tableOf("-refs/replace/1"), "bad": []byte("x"), "../a": tableOf("refs/replace/3")}
	for list, want := range map[string]string{
		"": " / ", "\n\n": " / ", "a\n": "1 2 / ", "a": "1 2 / ", "a\nb\n": "2 / ", "b\na\n": "1 2 / ", "a\nbad\nnone\n": "1 2 / bad none", "a\n../a\n": "1 2 / ../a",
	} {
		lines, unread := TablesInForce([]byte(list), func(name string) []byte { return tables[name] })
		var got []string
		for _, line := range lines {
			value, ref, _ := strings.Cut(line, " ")
			if value != strings.Repeat("11", 20) {
				t.Errorf("%q: %q", list, line)
			}
			got = append(got, strings.TrimPrefix(ref, "refs/replace/"))
		}
		if all := strings.Join(got, " ") + " / " + strings.Join(unread, " "); all != want && " "+all != want {
			t.Errorf("%q: %q, want %q", list, all, want)
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
