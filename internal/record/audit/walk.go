package audit

import "strconv"

// each calls f with every string of the record that may be in "raw", by its name there.
func (r *Record) each(f func(name string, s span)) {
	for _, m := range [...]int{mSession, mSensor, mAction, mObject, mResolved, mLayer, mRule, mError, mExecutable, mSHA256, mCwd} {
		if r.at[m].to != 0 {
			f(memberNames[m], r.at[m])
		}
	}
	if r.at[mArgv].to != 0 {
		i := 0
		r.strings(func(s span) {
			f("argv."+strconv.Itoa(i), s)
			i++
		})
	}
	if r.at[mDetail].to != 0 {
		r.pairs(mDetail, func(key string, s span) bool {
			f("detail."+key, s)
			return true
		})
	}
}

// strings calls f with each string of argv.
func (r *Record) strings(f func(span)) {
	at := r.at[mArgv].from
	for r.line[at] != ']' { // at is on "[" or ","
		s := r.stringAt(at + 1)
		f(s)
		at = s.to + 1
	}
}

// pairs calls f with each key and value of the object m until it returns false.
func (r *Record) pairs(m int, f func(key string, s span) bool) {
	at := r.at[m].from
	for r.line[at] != '}' { // at is on "{" or ","
		k := r.stringAt(at + 1)
		s := r.stringAt(k.to + 2)
		if !f(r.decode(k), s) {
			return
		}
		at = s.to + 1
	}
}

// stringAt is the string whose opening quote is at from.
func (r *Record) stringAt(from int32) span {
	s := span{from: from + 1}
	for i := s.from; ; i++ {
		switch r.line[i] {
		case '\\':
			s.escaped = true
			i++
		case '"':
			s.to = i
			return s
		}
	}
}
