//go:build linux

package workspace

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// baseNames are the names that a split index (gitformat-index(5)) leaves out of its
// entries: they are in a second file, which shared reads by its name. It is nil if data
// is not a split index, or git cannot read it either.
func baseNames(data []byte, hash int, shared func(name string) []byte) []string {
	if !bytes.Contains(data, []byte("link")) {
		return nil // most indexes, without another pass over them
	}
	at, nameless := 12, false
	if eachIndexed(data, hash, func(name, entry []byte) {
		at += len(entry)
		nameless = nameless || len(name) == 0
	}) != nil || !nameless {
		return nil
	}
	var names []string
	eachTable(data[:len(data)-hash], at, func(name string, body []byte) {
		if name == "link" && names == nil {
			names = namesOfBase(body, hash, shared)
		}
	})
	return names
}

// namesOfBase are the names that the table "link" of a split index takes from the
// second file, whose own name it begins with.
func namesOfBase(table []byte, hash int, shared func(name string) []byte) []string {
	if len(table) < hash {
		return nil
	}
	var all []string
	base := shared("sharedindex." + hex.EncodeToString(table[:hash]))
	if eachIndexed(base, hash, func(name, _ []byte) { all = append(all, string(name)) }) != nil {
		return nil
	}
	_, rest, ok := ewah(table[hash:], len(all)) // what is deleted
	if !ok {
		return nil
	}
	replaced, _, ok := ewah(rest, len(all))
	if !ok {
		return nil
	}
	names := make([]string, 0, len(replaced))
	for _, i := range replaced {
		names = append(names, all[i])
	}
	return names
}

// ewah reads a compressed bitmap: the bits below limit that are set. A bitmap with
// other bits set is invalid.
func ewah(b []byte, limit int) (set []int, rest []byte, ok bool) {
	if len(b) < 12 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint32(b[4:]))
	if n > (len(b)-12)/8 {
		return nil, nil, false
	}
	rest, b = b[8+8*n+4:], b[8:8+8*n]
	next := func() uint64 {
		w := binary.BigEndian.Uint64(b)
		b = b[8:]
		return w
	}
	for at := 0; len(b) > 0; {
		w := next()
		run, literal := int(w>>1&0xffffffff)*64, int(w>>33)
		if w&1 != 0 {
			if run > limit-at {
				return nil, nil, false
			}
			for i := range run {
				set = append(set, at+i)
			}
		}
		for at += run; literal > 0 && len(b) > 0; literal, at = literal-1, at+64 {
			for w := next(); w != 0; w &= w - 1 {
				i := at + bits.TrailingZeros64(w)
				if i >= limit {
					return nil, nil, false
				}
				set = append(set, i)
			}
		}
		if at > limit+64 {
			return set, rest, len(b) == 0
		}
	}
	return set, rest, true
}
