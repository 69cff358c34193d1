//go:build linux

package review

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/rogpeppe/go-internal/diff"
)

// sharedLines counts the lines at the beginning of two texts that are equal, and the
// bytes of them and of all but the last keep of them.
func sharedLines(a, b []byte, keep int) (lines, start int) {
	n := min(len(a), len(b))
	same := 0
	for same < n && a[same] == b[same] {
		same++
	}
	same = bytes.LastIndexByte(a[:same], '\n') + 1
	lines = bytes.Count(a[:same], []byte("\n"))
	for keep = min(keep, lines); keep > 0; keep-- {
		same = bytes.LastIndexByte(a[:same-1], '\n') + 1
		lines--
	}
	return lines, same
}

// tail returns how many bytes at the end of two texts are equal lines, except for the
// first keep of these.
func tail(a, b []byte, keep int) int {
	n := min(len(a), len(b))
	same := 0
	for same < n && a[len(a)-1-same] == b[len(b)-1-same] {
		same++
	}
	end := a[len(a)-same:]
	if same < len(a) || same < len(b) { // the first line is whole only if both had a newline before it
		for ; keep >= 0; keep-- {
			at := bytes.IndexByte(end, '\n') + 1
			if at == 0 {
				return 0
			}
			end = end[at:]
		}
	}
	return len(end)
}

// hunks compares two texts. What both begin and end with is left away first:
// the library looks at every line.
func hunks(from, to []byte) []Hunk {
	const context = 3
	if bytes.Equal(from, to) {
		return nil
	}
	before, start := sharedLines(from, to, context)
	from, to = from[start:], to[start:]
	end := tail(from, to, context)
	from, to = from[:len(from)-end], to[:len(to)-end]
	out := diff.Diff("a", from, "b", to)
	for range 3 { // its own header
		_, out, _ = bytes.Cut(out, []byte("\n"))
	}
	var list []Hunk
	for len(out) > 0 {
		var h Hunk
		var head []byte
		head, out, _ = bytes.Cut(out, []byte("\n"))
		if _, err := fmt.Sscanf(string(head), "@@ -%d,%d +%d,%d @@", &h.OldStart, &h.OldLines, &h.NewStart, &h.NewLines); err != nil {
			return list // it writes no other line here
		}
		if h.OldLines > 0 {
			h.OldStart += before
		}
		if h.NewLines > 0 {
			h.NewStart += before
		}
		out = h.read(out)
		list = append(list, h)
	}
	return list
}

// read takes the lines of a hunk, and its ID from them, and returns the rest.
func (h *Hunk) read(out []byte) []byte {
	h.Lines = make([]Line, 0, h.OldLines+h.NewLines)
	sum := sha256.New()
	fmt.Fprintf(sum, "%d,%d,%d\n", h.OldStart, h.OldLines, h.NewLines)
	var mark []byte
	for n, m := h.OldLines, h.NewLines; n > 0 || m > 0; {
		l := Line{Op: out[0]}
		var text []byte
		text, out, _ = bytes.Cut(out, []byte("\n"))
		l.Text = text[1:]
		// The mark has no column in front of it, so that no line of a file can
		// pass for it.
		if len(out) > 0 && out[0] == '\\' {
			l.NoEOL = true
			_, out, _ = bytes.Cut(out, []byte("\n"))
		}
		if l.Op != '+' {
			n--
		}
		if l.Op != '-' {
			m--
		}
		mark = append(mark[:0], l.Op)
		mark = strconv.AppendBool(strconv.AppendInt(mark, int64(len(l.Text)), 10), l.NoEOL)
		sum.Write(mark)
		sum.Write(l.Text)
		h.Lines = append(h.Lines, l)
	}
	h.ID = hex.EncodeToString(sum.Sum(nil)[:8])
	return out
}

// patch returns from with the hunks that pick accepts. They are those of
// hunks(from, …), in order.
func patch(from []byte, list []Hunk, pick func(Hunk) bool) []byte {
	var out []byte
	line := 1
	skip := func(n int, keep bool) {
		for ; n > 0 && len(from) > 0; n-- {
			end := bytes.IndexByte(from, '\n') + 1
			if end == 0 {
				end = len(from)
			}
			if keep {
				out = append(out, from[:end]...)
			}
			from = from[end:]
			line++
		}
	}
	for _, h := range list {
		if !pick(h) {
			continue
		}
		skip(max(h.OldStart, 1)-line, true)
		for _, l := range h.Lines {
			switch l.Op {
			case ' ':
				skip(1, true)
			case '-':
				skip(1, false)
			case '+':
				out = append(out, l.Text...)
				if !l.NoEOL {
					out = append(out, '\n')
				}
			}
		}
	}
	return append(out, from...)
}
