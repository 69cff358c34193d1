package redact

import "strings"

// hit is a part of a text that is masked.
type hit struct {
	from, to int
	rank     rank
	mark     string
}

// rank decides which of two overlapping marks is written.
type rank int

const (
	byPlace rank = iota
	byShape
	byValue
)

// find finds what is masked in a text, in its order.
func (r *Redactor) find(t *table, s string) []hit { return r.scan(t, s, t.next(s, 1)) }

// scan is find, where at is the first pair in the text that means something.
//
// Secrets that are held are looked for everywhere. What is found by shape or
// place is passed over at once, so that the time is that of the text's length.
func (r *Redactor) scan(t *table, s string, at int) []hit {
	var hits []hit
	free := 0 // the beginning of what no shape or place has taken
	for ; at < len(s); at = t.next(s, at+1) {
		g := &t.groups[t.index[uint16(s[at-1])<<8|uint16(s[at])]]
		for _, n := range g.held {
			if strings.HasSuffix(s[:at+1], n.text) {
				hits = join(hits, hit{at + 1 - len(n.text), at + 1, byValue, n.mark})
			}
		}
		if at < free {
			continue
		}
		h, ok := r.shaped(g, s, at, free)
		if !ok && g.place {
			h, ok = r.findPlaced(s, at, free)
		}
		if !ok {
			continue
		}
		free = h.to
		if h.mark != "" {
			hits = join(hits, h)
		}
	}
	return hits
}

// shaped looks for the tokens of a group; none begins before free.
func (r *Redactor) shaped(g *group, s string, at, free int) (hit, bool) {
	for _, a := range g.shapes {
		from := at - a.back
		if from < free {
			continue
		}
		if begin, end := a.shape.match(s, from); end > 0 {
			token := s[begin:end]
			return hit{begin, end, byShape, mark(a.shape.kind, token, sum(token))}, true
		}
	}
	return hit{}, false
}

// join adds a hit. Those that it overlaps become one with it, with the mark of
// the highest rank.
func join(hits []hit, h hit) []hit {
	for len(hits) > 0 {
		last := hits[len(hits)-1]
		if last.to <= h.from {
			break
		}
		if last.rank > h.rank || last.rank == h.rank && last.to-last.from > h.to-h.from {
			h.mark, h.rank = last.mark, last.rank
		}
		h.from, h.to = min(h.from, last.from), max(h.to, last.to)
		hits = hits[:len(hits)-1]
	}
	return append(hits, h)
}

func replace(s string, hits []hit) string {
	if len(hits) == 0 {
		return s
	}
	var b strings.Builder
	done := 0
	for _, h := range hits {
		b.WriteString(s[done:h.from])
		b.WriteString(h.mark)
		done = h.to
	}
	b.WriteString(s[done:])
	return b.String()
}
