package credentials

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"slices"
)

// detector finds many texts at once. It looks at the last bytes of a window and
// skips ahead by as much as no text can end earlier (S. Wu, U. Manber, "A fast
// algorithm for multi-pattern searching", 1994).
type detector struct {
	window  int                 // bytes at the end of each text that are searched for
	shift   []uint8             // by the last two bytes of the window; nil without texts
	buckets map[uint16][]needle // of the windows that end in these two bytes
}

// needle is a text that betrays a credential.
type needle struct {
	text       []byte
	credential string
}

// widest is the maximum of bytes of a window. It lies in the tail of a text,
// which distinguishes the text from others of its kind.
const widest = 16

func newDetector(all []needle) *detector {
	d := &detector{window: widest, buckets: map[uint16][]needle{}}
	if len(all) == 0 {
		return d
	}
	for _, n := range all {
		d.window = min(d.window, len(n.text))
	}
	d.shift = bytes.Repeat([]byte{uint8(d.window - 1)}, 1<<16)
	for _, n := range all {
		tail := n.text[len(n.text)-d.window:]
		for i := 1; i < d.window; i++ {
			block := uint16(tail[i-1])<<8 | uint16(tail[i])
			d.shift[block] = min(d.shift[block], uint8(d.window-1-i))
		}
		last := uint16(tail[d.window-2])<<8 | uint16(tail[d.window-1])
		d.buckets[last] = append(d.buckets[last], n)
	}
	return d
}

// forms are the forms of a text that are searched for as they are: plain, and
// in base64 of both alphabets, wherever in the encoded bytes it begins.
func forms(text string) [][]byte {
	out := [][]byte{[]byte(text)}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			encoded := encoding.EncodeToString(append(make([]byte, before), text...))
			// Only letters that this text alone determines: six bits each.
			first, last := (before*8+5)/6, (before+len(text))*8/6
			out = append(out, []byte(encoded[first:last]))
		}
	}
	slices.SortFunc(out, bytes.Compare)
	return slices.CompactFunc(out, bytes.Equal)
}

// find names the credentials whose texts are in data, each once, in order.
func (d *detector) find(data []byte) []string {
	if d.shift == nil {
		return nil
	}
	found := d.scan(nil, data)
	for range 2 { // percent-encoding, and percent-encoding of that
		if !bytes.ContainsRune(data, '%') {
			break
		}
		data = unescape(data)
		found = d.scan(found, data)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (d *detector) scan(found []string, data []byte) []string {
	for at := d.window - 1; at < len(data); {
		block := uint16(data[at-1])<<8 | uint16(data[at])
		if skip := d.shift[block]; skip > 0 {
			at += int(skip)
			continue
		}
		for _, n := range d.buckets[block] {
			if bytes.HasSuffix(data[:at+1], n.text) {
				found = append(found, n.credential)
			}
		}
		at++
	}
	return found
}

// unescape decodes percent-encoding and leaves the rest, including incomplete escapes.
func unescape(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		var b [1]byte
		if data[i] == '%' && i+2 < len(data) {
			if _, err := hex.Decode(b[:], data[i+1:i+3]); err == nil {
				out = append(out, b[0])
				i += 2
				continue
			}
		}
		out = append(out, data[i])
	}
	return out
}
