package screen

import (
	"io"
	"time"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/text"
)

// Key is one key that was pressed.
type Key struct {
	Code  keyCode
	Rune  rune      // of keyRune
	At    time.Time // when it was read
	Paste bool      // it came in a paste, not from the keyboard
}

type keyCode int

const (
	keyNone keyCode = iota
	KeyRune
	KeyEnter
	KeyEscape
	KeyErase
	KeyClear // the whole line
	KeyUp
	KeyDown
	KeyPageUp
	KeyPageDown
	KeyHome
	KeyEnd
	KeyInterrupt
	KeySuspend
	KeyRedraw
	KeyGone // the terminal is
)

// escapeWait is how long the rest of a sequence may take after its first byte.
const escapeWait = 50 * time.Millisecond

// readKeys reads keys until the terminal is gone.
func readKeys(from io.Reader, to chan<- Key) {
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
				to <- Key{Code: KeyGone, At: time.Now()}
				return
			}
			p.rest = append(p.rest, chunk...)
		case <-late:
			p.whole = true
		}
		now := time.Now()
		for _, k := range p.parseKeys() {
			k.At = now
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
	"A": KeyUp, "B": KeyDown, "H": KeyHome, "F": KeyEnd, "1~": KeyHome, "4~": KeyEnd, "5~": KeyPageUp, "6~": KeyPageDown, "7~": KeyHome, "8~": KeyEnd,
}

// controls are keys that are one byte.
var controls = map[byte]keyCode{
	'\r': KeyEnter, '\n': KeyEnter, 0x7f: KeyErase, 0x08: KeyErase, 0x03: KeyInterrupt, 0x04: KeyInterrupt, 0x1a: KeySuspend,
	0x0c: KeyRedraw, 0x15: KeyClear, 0x10: KeyUp, 0x0e: KeyDown, 0x02: KeyPageUp, 0x06: KeyPageDown,
}

// parseKeys removes whole keys from the beginning of what was read.
func (p *keyParser) parseKeys() []Key {
	var out []Key
	for len(p.rest) > 0 {
		k, n := p.next()
		if n == 0 {
			return out
		}
		p.rest = p.rest[n:]
		if k.Code != keyNone {
			k.Paste = p.paste
			out = append(out, k)
		}
	}
	return out
}

// next is the first key and its length; 0 when more is to come.
func (p *keyParser) next() (Key, int) {
	b := p.rest
	if b[0] == 0x1b {
		return p.escape()
	}
	if b[0] < 0x20 || b[0] == 0x7f {
		return Key{Code: controls[b[0]]}, 1
	}
	if !utf8.FullRune(b) && !p.whole {
		return Key{}, 0
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError && n == 1 || text.Hidden(r) {
		return Key{}, n
	}
	return Key{Code: KeyRune, Rune: r}, n
}

// escape is a key that begins with ESC. An unknown sequence is dropped whole: its
// letters are not keys.
func (p *keyParser) escape() (Key, int) {
	b := p.rest
	if len(b) == 1 {
		if p.whole {
			return Key{Code: KeyEscape}, 1
		}
		return Key{}, 0
	}
	if b[1] == 'O' && len(b) > 2 {
		return Key{Code: sequences[string(b[2])]}, 3
	}
	if b[1] != '[' {
		if b[1] == 'O' && !p.whole {
			return Key{}, 0
		}
		if b[1] == 0x1b {
			return Key{Code: KeyEscape}, 1
		}
		return Key{}, 2 // Alt with a key
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
			return Key{Code: sequences[text]}, i + 1
		}
	}
	if p.whole || len(b) > 64 {
		return Key{}, len(b)
	}
	return Key{}, 0
}
