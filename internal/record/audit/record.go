package audit

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Record is a line of a log in canonical form. Its fields are decoded on
// demand. It is valid only until the function that got it returns.
type Record struct {
	line       []byte // without the newline
	seq, n     uint64
	time       time.Time
	prev       int  // where the hash of the line before begins
	checkpoint span // the signed note; to is 0 when the line is an event
	at         [members]span

	words map[string]any // decoded from the same block; nil for a line outside any block
	texts *texts         // of the decoder; nil for none
}

// Raw is the line as it is in the log, without its newline.
func (r *Record) Raw() []byte { return r.line }

// Seq is the record's place in the log, from 1.
func (r *Record) Seq() uint64 { return r.seq }

// Field decodes one field, by its name in conditions: a string, an int, a time.Time,
// a []string for "argv", a map[string]string for "detail". It reports false for a
// field that the record does not have, except the verdict, which is then "unknown".
func (r *Record) Field(name string) (any, bool) {
	if name == "seq" {
		return int(r.seq), true
	}
	m := slices.Index(memberNames[:], name)
	if m < 0 || m == mProcess || m == mRaw {
		return nil, false
	}
	if r.at[m].to == 0 {
		if m == mVerdict {
			return event.Unknown.String(), true
		}
		return nil, false
	}
	switch m {
	case mTime:
		return r.time, true
	case mN, mPID, mExec, mParent, mParentExec:
		return int(r.number(m)), true
	case mArgv:
		return r.argv(nil), true
	case mDetail:
		return r.detail(nil), true
	case mSession, mSensor, mAction, mVerdict, mLayer, mError:
		return r.word(m), true
	}
	return r.stringMember(m), true
}

// word is a string that many records of a log share: one copy is kept for a block.
func (r *Record) word(m int) any {
	if r.words == nil || r.at[mRaw].to != 0 || r.at[m].escaped {
		return r.stringMember(m)
	}
	w, known := r.words[string(r.value(m))]
	if !known {
		value := string(r.value(m))
		w = value
		r.words[value] = w
	}
	return w
}

// IsAction reports whether the record has one of some actions.
func (r *Record) IsAction(some ...string) bool {
	return slices.ContainsFunc(some, func(a string) bool { return string(r.value(mAction)) == a })
}

// Event decodes the whole record.
func (r *Record) Event() (event.Event, error) {
	var e event.Event
	err := r.decodeInto(&e, false)
	return e, err
}

// decodeInto decodes the whole record. If sameDetail is set, e already has its
// details, which are those of the record before; else the details of e are empty.
func (r *Record) decodeInto(e *event.Event, sameDetail bool) error {
	if r.checkpoint.to != 0 {
		return errNoEvent
	}
	*e = event.Event{
		Seq: r.seq, Time: r.time, Session: r.repeatedMember(mSession, e.Session), Sensor: event.Sensor(r.repeatedMember(mSensor, string(e.Sensor))), N: r.n,
		Action: r.repeatedMember(mAction, e.Action), Object: r.stringMember(mObject), Resolved: r.stringMember(mResolved),
		Layer: r.stringMember(mLayer), Rule: r.stringMember(mRule), Error: r.stringMember(mError),
		Process: event.Process{
			PID: int(r.number(mPID)), Exec: r.number(mExec), Parent: int(r.number(mParent)), ParentExec: r.number(mParentExec),
			Executable: r.stringMember(mExecutable), SHA256: r.stringMember(mSHA256), Cwd: r.stringMember(mCwd), Argv: r.argv(e.Process.Argv[:0]),
		},
		Detail: e.Detail,
	}
	if !sameDetail {
		e.Detail = r.detail(e.Detail)
	}
	switch string(r.value(mVerdict)) { // the parser accepts no others
	case "allowed":
		e.Verdict = event.Allowed
	case "denied":
		e.Verdict = event.Denied
	}
	return nil
}

func (r *Record) value(m int) []byte { return r.line[r.at[m].from:r.at[m].to] }

func (r *Record) number(m int) (n uint64) {
	for _, digit := range r.value(m) { // the parser accepted it; none is 0
		n = n*10 + uint64(digit-'0')
	}
	return n
}

// stringMember is a string of the record, with its original bytes where JSON could
// not hold them.
func (r *Record) stringMember(m int) string {
	if r.at[m].to == 0 {
		return ""
	}
	return r.exact("", memberNames[m], r.at[m])
}

// repeatedMember is a string that often equals that of the record before.
func (r *Record) repeatedMember(m int, before string) string {
	if !r.at[m].escaped && r.at[mRaw].to == 0 && string(r.value(m)) == before {
		return before
	}
	return r.stringMember(m)
}

// decode is the string at s.
func (r *Record) decode(s span) string {
	switch {
	case s.escaped:
		return unquote(r.line[s.from-1 : s.to+1])
	case r.texts != nil:
		return r.texts.intern(r.line[s.from:s.to])
	}
	return string(r.line[s.from:s.to])
}

// unquote is separate from decode, which allocates nothing else.
func unquote(quoted []byte) (value string) {
	json.Unmarshal(quoted, &value) // the parser accepted it
	return value
}

// exact is the string at s, with its original bytes if "raw" has them under its
// name, prefix+name.
func (r *Record) exact(prefix, name string, s span) (value string) {
	found := false
	if r.at[mRaw].to != 0 {
		r.pairs(mRaw, func(key string, s span) bool {
			if found = key == prefix+name; found {
				b, _ := base64.StdEncoding.DecodeString(string(r.line[s.from:s.to])) // the parser accepted it
				value = string(b)
			}
			return !found
		})
	}
	if !found {
		value = r.decode(s)
	}
	return value
}

// argv appends the arguments to a list; nil if there are none.
func (r *Record) argv(argv []string) []string {
	if r.at[mArgv].to == 0 {
		return argv
	}
	r.strings(func(s span) {
		argv = append(argv, r.exact("argv.", strconv.Itoa(len(argv)), s))
	})
	return argv
}

// detail adds the details to a map, which is made if there is none.
func (r *Record) detail(d map[string]string) map[string]string {
	if r.at[mDetail].to == 0 {
		return d
	}
	if d == nil {
		d = map[string]string{}
	}
	r.pairs(mDetail, func(key string, s span) bool {
		d[key] = r.exact("detail.", key, s)
		return true
	})
	return d
}
