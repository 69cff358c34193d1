package audit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// interval is a range of numbers, both ends included.
type interval struct{ from, to uint64 }

// ranges is a set of numbers: intervals in ascending order that do not touch.
type ranges []interval

// add puts the numbers of i into the set.
func (r *ranges) add(i interval) {
	s := *r
	if n := len(s); n == 0 || i.from > s[n-1].to {
		if n > 0 && i.from == s[n-1].to+1 {
			s[n-1].to = i.to
		} else {
			*r = append(s, i)
		}
		return
	}
	// s[a:b] are those that i overlaps or touches.
	a, _ := slices.BinarySearchFunc(s, i.from, func(x interval, from uint64) int {
		if x.to+1 < from {
			return -1
		}
		return 1
	})
	b := a
	for b < len(s) && s[b].from <= i.to+1 {
		i = interval{min(i.from, s[b].from), max(i.to, s[b].to)}
		b++
	}
	*r = slices.Replace(s, a, b, i)
}

// unionOf makes a set of intervals in any order, and returns the numbers that
// were there twice.
func unionOf(runs []interval) (r, twice ranges) {
	slices.SortFunc(runs, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	for _, i := range runs {
		if n := len(r); n > 0 && i.from <= r[n-1].to {
			twice.add(interval{i.from, min(i.to, r[n-1].to)})
			if i.to <= r[n-1].to {
				continue
			}
			i.from = r[n-1].to + 1
		}
		r.add(i)
	}
	return r, twice
}

// without returns the numbers of r that are not in o.
func (r ranges) without(o ranges) ranges {
	var out ranges
	for _, i := range r {
		for len(o) > 0 && o[0].to < i.from {
			o = o[1:]
		}
		for _, x := range o {
			if x.from > i.to {
				break
			}
			if x.from > i.from {
				out = append(out, interval{i.from, x.from - 1})
			}
			i.from = x.to + 1
		}
		if i.from <= i.to {
			out = append(out, i)
		}
	}
	return out
}

// count returns how many numbers there are.
func (r ranges) count() uint64 {
	n := uint64(0)
	for _, i := range r {
		n += i.to - i.from + 1
	}
	return n
}

// String formats the set as in "4,6-90".
func (r ranges) String() string {
	var b strings.Builder
	for n, i := range r {
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(i.from, 10))
		if i.to > i.from {
			b.WriteByte('-')
			b.WriteString(strconv.FormatUint(i.to, 10))
		}
	}
	return b.String()
}

// parseRanges reads what String writes.
func parseRanges(s string) (ranges, bool) {
	var r ranges
	last := uint64(0)
	for part := range strings.SplitSeq(s, ",") {
		a, b, both := strings.Cut(part, "-")
		if !both {
			b = a
		}
		from, err1 := strconv.ParseUint(a, 10, 63)
		to, err2 := strconv.ParseUint(b, 10, 63)
		if err1 != nil || err2 != nil || from <= last || to < from {
			return nil, false
		}
		r.add(interval{from, to})
		last = to
	}
	return r, true
}

// Numbers formats a set of numbers as records do: "4,6-90". If that takes too
// many ranges, the last one also includes the gaps between the remaining numbers.
func Numbers(all []uint64) string {
	var r ranges
	for _, n := range all {
		r.add(interval{n, n})
	}
	if len(r) > maxRanges {
		r[maxRanges-1].to = r[len(r)-1].to
		r = r[:maxRanges]
	}
	return r.String()
}

// HasNumber reports whether a set, as Numbers formats it, has n; true for a
// text that is not a set.
func HasNumber(set string, n uint64) bool {
	r, ok := parseRanges(set)
	return !ok || slices.ContainsFunc(r, func(i interval) bool { return i.from <= n && n <= i.to })
}
