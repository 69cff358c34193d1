package audit

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// origin is the first line of every checkpoint: only a log of this form is signed.
const origin = "holdfast.dev/log/v1"

// The last line of a checkpoint's text: whether the log goes on after it.
const (
	stateOpen = "open"
	stateEnd  = "end"
)

// checkpoint is what a signature states: the log of this session had this many
// lines, the last of which has this hash.
type checkpoint struct {
	session string
	lines   uint64
	head    string // 64 hexadecimal digits
	time    time.Time
	end     bool
	key     uint32 // hash of the key that is named
	signed  bool   // by a key that is known
}

func (c *checkpoint) text() string {
	state := stateOpen
	if c.end {
		state = stateEnd
	}
	return origin + "\n" + c.session + "\n" + strconv.FormatUint(c.lines, 10) + "\n" + c.head + "\n" +
		string(appendTime(nil, c.time)) + "\n" + state + "\n"
}

// sign makes the signed note of c.
func (c *checkpoint) sign(k note.Signer) ([]byte, error) {
	return note.Sign(&note.Note{Text: c.text()}, k)
}

// signatureLine begins the line of a signature.
const signatureLine = "— "

// parseCheckpoint reads a signed note in its only spelling, and checks its
// signature if the key is among keys. An error means that it is not one of ours
// or that the signature is wrong.
func parseCheckpoint(signed string, keys note.Verifiers) (checkpoint, error) {
	var c checkpoint
	text, signature, found := strings.Cut(signed, "\n\n")
	lines := strings.Split(text, "\n")
	if !found || len(lines) != 6 || lines[0] != origin {
		return c, fmt.Errorf("it is not a checkpoint of a log")
	}
	var err error
	c.session, c.head, c.end = lines[1], lines[3], lines[5] == stateEnd
	if c.lines, err = strconv.ParseUint(lines[2], 10, 63); err != nil {
		return c, fmt.Errorf("its number of lines is %q", lines[2])
	}
	if c.time, err = time.Parse(time.RFC3339Nano, lines[4]); err != nil {
		return c, fmt.Errorf("its time is %q", lines[4])
	}
	if c.text() != text+"\n" || !ValidSession(c.session) || len(c.head) != hashLen {
		return c, fmt.Errorf("it is not in canonical form")
	}
	name, encoded, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(signature, signatureLine), "\n"), " ")
	sig, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(sig) != 4+64 || signature != signatureLine+name+" "+base64.StdEncoding.EncodeToString(sig)+"\n" || name != keyName {
		return c, fmt.Errorf("its signature is not in canonical form")
	}
	c.key = uint32(sig[0])<<24 | uint32(sig[1])<<16 | uint32(sig[2])<<8 | uint32(sig[3])
	v, err := keys.Verifier(name, c.key)
	if err != nil {
		return c, nil // an unknown key says nothing about the note
	}
	if !v.Verify([]byte(c.text()), sig[4:]) {
		return c, fmt.Errorf("its signature by the key %08x is wrong", c.key)
	}
	c.signed = true
	return c, nil
}
