package audit

import "encoding/binary"

// The members of a line, in their order.
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

// memberNames are their names in the line, in queries and, for strings, in "raw".
var memberNames = [members]string{
	"time", "session", "sensor", "n", "action", "verdict", "object", "resolved", "layer", "rule", "error",
	"process", "pid", "exec", "parent", "parent_exec", "executable", "sha256", "cwd", "argv", "detail", "raw",
}

// inProcess reports whether member m is in the object "process".
func inProcess(m int) bool { return mProcess < m && m < mDetail }

// memberAfter reads the name of a member with its colon and returns the member, which
// is after last and in the same object; -1 if there is none. Members have one order,
// so it is seldom far. Names are compared by their first eight bytes, then the rest.
func (p *parser) memberAfter(last int, process bool) int {
	var padded [8]byte
	rest := p.b[p.at:]
	begin := rest
	if len(begin) < len(padded) {
		copy(padded[:], begin)
		begin = padded[:]
	}
	eight := binary.LittleEndian.Uint64(begin)
	for m := last + 1; m < members; m++ {
		k := &memberKeys[m]
		if eight&k.mask == k.begin && inProcess(m) == process && (len(k.text) <= 8 || len(rest) >= len(k.text) && string(rest[8:len(k.text)]) == k.text[8:]) {
			p.at += len(k.text)
			return m
		}
	}
	return -1
}

// memberKeys are the names of members as they are in a line.
var memberKeys = func() (keys [members]struct {
	text        string // with quotes and colon
	begin, mask uint64 // of its first eight bytes, little-endian
}) {
	for m, name := range memberNames {
		k := &keys[m]
		k.text = `"` + name + `":`
		var begin, mask [8]byte
		for i := range copy(begin[:], k.text) {
			mask[i] = 0xff
		}
		k.begin, k.mask = binary.LittleEndian.Uint64(begin[:]), binary.LittleEndian.Uint64(mask[:])
	}
	return keys
}()

// name reads the name of a member with its colon. If there is none, nothing is
// consumed, so that an error names its place.
func (p *parser) name() []byte {
	if p.err != nil || p.at >= len(p.b) || p.b[p.at] != '"' {
		return nil
	}
	rest := p.b[p.at+1:]
	for i, c := range rest[:min(len(rest), maxKey+1)] {
		if c == '"' {
			if i+1 >= len(rest) || rest[i+1] != ':' {
				return nil
			}
			p.at += i + 3
			return rest[:i]
		}
	}
	return nil
}
