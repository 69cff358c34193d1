package audit

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// The members of a line, in the order in which they stand.
const (
	mTime = iota
	mSession
	mSensor
	mN
	mAction
	mVerdict
	mObject
	mResolved
	mLayer
	mRule
	mError
	mProcess
	mPID
	mExec
	mParent
	mParentExec
	mExecutable
	mSHA256
	mCwd
	mArgv
	mDetail
	mRaw
	members
)

// topMember is the number of a member of a line by its name; -1 for none.
func topMember(name []byte) int {
	switch string(name) {
	case "time":
		return mTime
	case "session":
		return mSession
	case "sensor":
		return mSensor
	case "n":
		return mN
	case "action":
		return mAction
	case "verdict":
		return mVerdict
	case "object":
		return mObject
	case "resolved":
		return mResolved
	case "layer":
		return mLayer
	case "rule":
		return mRule
	case "error":
		return mError
	case "process":
		return mProcess
	case "detail":
		return mDetail
	case "raw":
		return mRaw
	}
	return -1
}

// processMember is likewise for the object "process".
func processMember(name []byte) int {
	switch string(name) {
	case "pid":
		return mPID
	case "exec":
		return mExec
	case "parent":
		return mParent
	case "parent_exec":
		return mParentExec
	case "executable":
		return mExecutable
	case "sha256":
		return mSHA256
	case "cwd":
		return mCwd
	case "argv":
		return mArgv
	}
	return -1
}

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

// fieldMembers is what Field knows by name, apart from "seq".
var fieldMembers = map[string]int{
	"time": mTime, "session": mSession, "sensor": mSensor, "n": mN, "action": mAction, "verdict": mVerdict,
	"object": mObject, "resolved": mResolved, "layer": mLayer, "rule": mRule, "error": mError,
	"pid": mPID, "exec": mExec, "parent": mParent, "parent_exec": mParentExec,
	"executable": mExecutable, "sha256": mSHA256, "cwd": mCwd, "argv": mArgv, "detail": mDetail,
}

// Field decodes one field, by the names that conditions use: a string, an int,
// a time.Time, a []string for "argv", a map[string]string for "detail". It
// reports false for one that the record does not have, but for the verdict,
// which is then "unknown".
func (r *Record) Field(name string) (any, bool) {
	if name == "seq" {
		return int(r.seq), true
	}
	m, known := fieldMembers[name]
	if !known {
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
	t, _ := time.Parse(time.RFC3339Nano, string(r.value(mTime))) // the parser accepted it
	return t.UTC()
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
	if r.at[mRaw].to != 0 {
		if exact, found := r.exact(memberNames[m]); found {
			return exact
		}
	}
	return r.decode(r.at[m])
}

// decode is the string that stands at s.
func (r *Record) decode(s span) string {
	b := r.line[s.from:s.to]
	if !s.escaped {
		return string(b)
	}
	return unescape(b)
}

// unescape undoes the escapes of appendString.
func unescape(b []byte) string {
	var out strings.Builder
	out.Grow(len(b))
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			out.Write(b)
			return out.String()
		}
		out.Write(b[:i])
		switch c := b[i+1]; c {
		case 'u':
			out.WriteByte(unhex(b[i+4])<<4 | unhex(b[i+5]))
			b = b[i+6:]
			continue
		case 'b', 't', 'n', 'f', 'r':
			out.WriteByte("\b\t\n\f\r"[strings.IndexByte("btnfr", c)])
		default:
			out.WriteByte(c)
		}
		b = b[i+2:]
	}
}

// exact finds the bytes of a string under its name in "raw".
func (r *Record) exact(name string) (value string, found bool) {
	r.pairs(mRaw, func(key string, s span) bool {
		if found = key == name; found {
			b, _ := base64.StdEncoding.DecodeString(string(r.line[s.from:s.to])) // the parser accepted it
			value = string(b)
		}
		return !found
	})
	return value, found
}

func (r *Record) argv() []string {
	if r.at[mArgv].to == 0 {
		return nil
	}
	var argv []string
	r.strings(func(s span) {
		a := r.decode(s)
		if r.at[mRaw].to != 0 {
			if exact, found := r.exact("argv." + strconv.Itoa(len(argv))); found {
				a = exact
			}
		}
		argv = append(argv, a)
	})
	return argv
}

func (r *Record) detail() map[string]string {
	if r.at[mDetail].to == 0 {
		return nil
	}
	d := map[string]string{}
	r.pairs(mDetail, func(key string, s span) bool {
		v := r.decode(s)
		if r.at[mRaw].to != 0 {
			if exact, found := r.exact("detail." + key); found {
				v = exact
			}
		}
		d[key] = v
		return true
	})
	return d
}
