package audit

import "time"

// appendTime appends t in UTC as RFC 3339 with as many digits of the second's
// fraction as it needs.
func appendTime(b []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(b, time.RFC3339Nano)
}

// time accepts what appendTime writes.
func (p *parser) time(v []byte) {
	var t time.Time
	var spelled [len(time.RFC3339Nano)]byte
	if err := t.UnmarshalText(v); err != nil || string(appendTime(spelled[:0], t)) != string(v) {
		p.fail("this is no time in UTC, in the only spelling of RFC 3339 that a record has")
	}
}
