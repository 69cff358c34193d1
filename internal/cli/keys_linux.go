package cli

import (
	"io"
	"time"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/text"
)

// key is one key that was pressed.
type key struct {
	code  keyCode
	r     rune      // of keyRune
	at    time.Time // when it was read
	paste bool      // it came in a paste: nobody pressed it
}

type keyCode int

const (
	keyNone keyCode = iota
	keyRune
	keyEnter
	keyEscape
	keyErase
	keyClear // the whole line
	keyUp
	keyDown
	keyPageUp
	keyPageDown
	keyHome
	keyEnd
	keyInterrupt
	keySuspend
	keyRedraw
	keyGone // the terminal is
)

// escapeWait is how long the rest of a sequence may take after its first byte.
const escapeWait = 50 * time.Millisecond

// readKeys reads keys until the terminal is gone.
func readKeys(from io.Reader, to chan<- key) {
	bytes := make(chan []byte)
	go func() {
		defer close(bytes)
		for {
			buf := make([]byte, 256)
			n, err := from.Read(buf)
			if n > 0 {
				bytes <- buf[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	var p keyParser
	for {
		var late <-chan time.Time
		if len(p.rest) > 0 {
			late = time.After(escapeWait)
		}
		select {
		case chunk, ok := <-bytes:
			if !ok {
				to <- key{code: keyGone, at: time.Now()}
				return
			}
			p.rest = append(p.rest, chunk...)
		case <-late:
			p.whole = true
		}
		now := time.Now()
		for _, k := range p.take() {
			k.at = now
			to <- k
		}
		p.whole = false
	}
}

// keyParser makes keys of what a terminal sends.
type keyParser struct {
	rest  []byte
	whole bool // nothing more belongs to rest
	paste bool
}

// sequences are those that terminals send for keys, without "ESC [" or "ESC O".
var sequences = map[string]keyCode{
	"A": keyUp, "B": keyDown, "H": keyHome, "F": keyEnd, "1~": keyHome, "4~": keyEnd, "5~": keyPageUp, "6~": keyPageDown, "7~": keyHome, "8~": keyEnd,
}

// controls are keys that are one byte.
var controls = map[byte]keyCode{
	'\r': keyEnter, '\n': keyEnter, 0x7f: keyErase, 0x08: keyErase, 0x03: keyInterrupt, 0x04: keyInterrupt, 0x1a: keySuspend,
	0x0c: keyRedraw, 0x15: keyClear, 0x10: keyUp, 0x0e: keyDown, 0x02: keyPageUp, 0x06: keyPageDown,
}

// take removes whole keys from the beginning of what was read.
func (p *keyParser) take() []key {
	var out []key
	for len(p.rest) > 0 {
		k, n := p.next()
		if n == 0 {
			return out
		}
		p.rest = p.rest[n:]
		if k.code != keyNone {
			k.paste = p.paste
			out = append(out, k)
		}
	}
	return out
}

// next is the first key and its length; 0 when more is to come.
func (p *keyParser) next() (key, int) {
	b := p.rest
	if b[0] == 0x1b {
		return p.escape()
	}
	if b[0] < 0x20 || b[0] == 0x7f {
		return key{code: controls[b[0]]}, 1
	}
	if !utf8.FullRune(b) && !p.whole {
		return key{}, 0
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 || text.Hidden(r) {
		return key{}, n
	}
	return key{code: keyRune, r: r}, n
}

// escape is a key that begins with ESC. What is not known is dropped whole: its
// letters are no keys.
func (p *keyParser) escape() (key, int) {
	b := p.rest
	if len(b) == 1 {
		if p.whole {
			return key{code: keyEscape}, 1
		}
		return key{}, 0
	}
	if b[1] == 'O' && len(b) > 2 {
		return key{code: sequences[string(b[2])]}, 3
	}
	if b[1] != '[' {
		if b[1] == 'O' && !p.whole {
			return key{}, 0
		}
		if b[1] == 0x1b {
			return key{code: keyEscape}, 1
		}
		return key{}, 2 // Alt with a key
	}
	for i := 2; i < len(b); i++ {
		if c := b[i]; c >= 0x40 && c <= 0x7e {
			text := string(b[2 : i+1])
			switch text {
			case "200~":
				p.paste = true
			case "201~":
				p.paste = false
			}
			return key{code: sequences[text]}, i + 1
		}
	}
	if p.whole || len(b) > 64 {
		return key{}, len(b)
	}
	return key{}, 0
}
