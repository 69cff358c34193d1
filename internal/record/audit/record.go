package audit

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Record is a line of a log that was found to be in canonical form. Its fields
// are decoded when they are asked for. It is valid only until the function that
// got it returns.
type Record struct {
	line       []byte // without the newline
	seq, n     uint64
	prev       int  // where the hash of the line before begins
	checkpoint span // the signed note; to is 0 when the line is an event
	at         [members]span
}

// Raw is the line as it stands in the log, without its newline.
func (r *Record) Raw() []byte { return r.line }

// Seq is the record's place in the log, from 1.
func (r *Record) Seq() uint64 { return r.seq }

// Field decodes one field, by the names that conditions use: a string, an int,
// a time.Time, a []string for "argv", a map[string]string for "detail". It
// reports false for one that the record does not have, but for the verdict,
// which is then "unknown".
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
		return r.time(), true
	case mN, mPID, mExec, mParent, mParentExec:
		return int(r.number(m)), true
	case mArgv:
		return r.argv(), true
	case mDetail:
		return r.detail(), true
	}
	return r.text(m), true
}

// Event decodes the whole record.
func (r *Record) Event() (event.Event, error) {
	if r.checkpoint.to != 0 {
		return event.Event{}, errNoEvent
	}
	e := event.Event{
		Seq: r.seq, Time: r.time(), Session: r.text(mSession), Sensor: event.Sensor(r.text(mSensor)), N: r.n,
		Action: r.text(mAction), Object: r.text(mObject), Resolved: r.text(mResolved),
		Layer: r.text(mLayer), Rule: r.text(mRule), Error: r.text(mError),
		Process: event.Process{
			PID: int(r.number(mPID)), Exec: r.number(mExec), Parent: int(r.number(mParent)), ParentExec: r.number(mParentExec),
			Executable: r.text(mExecutable), SHA256: r.text(mSHA256), Cwd: r.text(mCwd), Argv: r.argv(),
		},
		Detail: r.detail(),
	}
	if r.at[mVerdict].to != 0 {
		if err := e.Verdict.UnmarshalText(r.value(mVerdict)); err != nil {
			return event.Event{}, fmt.Errorf("reading record %d: %w", r.seq, err)
		}
	}
	return e, nil
}

func (r *Record) value(m int) []byte { return r.line[r.at[m].from:r.at[m].to] }

func (r *Record) time() time.Time {
	t, _ := parseTime(r.value(mTime)) // the parser accepted it
	return t
}

func (r *Record) number(m int) uint64 {
	n, _ := strconv.ParseUint(string(r.value(m)), 10, 64) // none is 0
	return n
}

// text is a string of the record, with the bytes that it had where JSON could
// not hold them.
func (r *Record) text(m int) string {
	if r.at[m].to == 0 {
		return ""
	}
	return r.exact(memberNames[m], r.at[m])
}

// decode is the string that stands at s.
func (r *Record) decode(s span) (value string) {
	if !s.escaped {
		return string(r.line[s.from:s.to])
	}
	json.Unmarshal(r.line[s.from-1:s.to+1], &value) // the parser accepted it
	return value
}

// exact is the string that stands at s, with the bytes that it had where "raw" has
// them under its name.
func (r *Record) exact(name string, s span) (value string) {
	found := false
	if r.at[mRaw].to != 0 {
		r.pairs(mRaw, func(key string, s span) bool {
			if found = key == name; found {
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

func (r *Record) argv() []string {
	if r.at[mArgv].to == 0 {
		return nil
	}
	var argv []string
	r.strings(func(s span) {
		argv = append(argv, r.exact("argv."+strconv.Itoa(len(argv)), s))
	})
	return argv
}

func (r *Record) detail() map[string]string {
	if r.at[mDetail].to == 0 {
		return nil
	}
	d := map[string]string{}
	r.pairs(mDetail, func(key string, s span) bool {
		d[key] = r.exact("detail."+key, s)
		return true
	})
	return d
}
