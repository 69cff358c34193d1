package credentials

import (
	"bytes"
	b32 "encoding/base32"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
)

// Decoy is the value of a honeytoken, which no one has a reason to send anywhere.
type Decoy struct {
	Kind  string // such as "aws"
	Value string // random, 16 bytes or more
}

// Decoys finds values of honeytokens in outgoing data. It needs no Broker: a
// run has honeytokens even if it has no credentials.
type Decoys struct {
	find func() *detector // made at the first search
}

// NewDecoys returns a finder of these values. It costs nothing until something
// is searched.
func NewDecoys(all []Decoy) *Decoys {
	return &Decoys{find: sync.OnceValue(func() *detector {
		var needles []needle
		for _, d := range all {
			for _, piece := range pieces(d.Value) {
				for _, form := range decoyForms(piece) {
					needles = append(needles, needle{form, d.Kind})
				}
			}
		}
		return newDetector(needles)
	})}
}

// Detect names the kinds of which a value is in data, each once, in order: as
// it is or reversed, in capitals or small letters, percent-encoded up to twice,
// in hexadecimal, base32 or base64; or a piece of one of 31 bytes.
func (d *Decoys) Detect(data []byte) []string { return d.find().find(data) }

// A value that is sent in several parts is found by one of its pieces. The
// beginning of a value may be common to all of its kind.
const (
	pieceSize  = 16
	pieceFirst = 8
	pieceMost  = 64 // of a value of a kilobyte: the longest is a token of some 340 characters
)

func pieces(value string) []string {
	if len(value) < pieceSize {
		return nil // it could be anywhere
	}
	if len(value) < pieceFirst+pieceSize {
		return []string{value}
	}
	var out []string
	for at := pieceFirst; at+pieceSize <= len(value) && len(out) < pieceMost; at += pieceSize {
		out = append(out, value[at:at+pieceSize])
	}
	return out
}

// decoyForms are the forms of a piece that are searched for.
func decoyForms(text string) [][]byte {
	out := forms(text)
	for _, form := range slices.Clone(out) { // names of hosts and headers have no capitals
		out = append(out, bytes.ToLower(form))
	}
	back := []byte(text)
	slices.Reverse(back)
	digits := hex.EncodeToString([]byte(text))
	out = append(out, []byte(strings.ToUpper(text)), back, []byte(digits), []byte(strings.ToUpper(digits)))
	encoding := b32.StdEncoding.WithPadding(b32.NoPadding)
	for before := range 5 {
		encoded := encoding.EncodeToString(append(make([]byte, before), text...))
		// Only letters that this text alone determines: five bits each.
		form := encoded[(before*8+4)/5 : (before+len(text))*8/5]
		out = append(out, []byte(form), []byte(strings.ToLower(form)))
	}
	slices.SortFunc(out, bytes.Compare)
	return slices.CompactFunc(out, bytes.Equal)
}
