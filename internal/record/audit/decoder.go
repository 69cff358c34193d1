package audit

import (
	"bytes"
	"hash/maphash"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Decoder decodes records, one after the other, into one event. It is for logs
// of a million records, whose texts repeat. It is for one goroutine.
type Decoder struct {
	Event  event.Event // the record that was decoded last; Detail and Argv change with the next
	texts  texts
	detail []byte // of Event, as in its line
}

// NewDecoder makes a decoder.
func NewDecoder() *Decoder { return &Decoder{texts: texts{seed: maphash.MakeSeed()}} }

// Decode decodes a record into Event.
func (d *Decoder) Decode(r *Record) error {
	r.texts = &d.texts
	same := r.at[mRaw].to == 0 && len(d.detail) > 0 && bytes.Equal(r.value(mDetail), d.detail)
	if !same {
		d.detail = d.detail[:0]
		if r.at[mRaw].to == 0 {
			d.detail = append(d.detail, r.value(mDetail)...)
		}
		clear(d.Event.Detail)
	}
	return r.decodeInto(&d.Event, same)
}

// texts keeps one text per hash, so that few are made twice.
type texts struct {
	seed maphash.Seed
	by   [4096]string
}

// longestKept is the length limit of kept texts, in bytes: longer ones seldom repeat.
const longestKept = 256

func (t *texts) intern(b []byte) string {
	if len(b) > longestKept {
		return string(b)
	}
	kept := &t.by[maphash.Bytes(t.seed, b)%uint64(len(t.by))]
	if *kept != string(b) {
		*kept = string(b)
	}
	return *kept
}
