package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// witness is a checkpoint that was kept outside of the log.
type witness struct {
	what   string // for messages
	signed string
	of     checkpoint
	err    error // it is not valid
}

// readWitnesses reads the checkpoints kept outside. It runs before the log is
// read, because each was written after the lines that it covers.
func (v *verifier) readWitnesses(path string, o VerifyOptions) []witness {
	var all []witness
	head, err := os.ReadFile(filepath.Join(o.Heads, strings.TrimSuffix(filepath.Base(path), suffix)+headSuffix))
	switch {
	case err == nil:
		all = append(all, witness{what: "the head kept outside the log", signed: string(head)})
	case errors.Is(err, fs.ErrNotExist):
		v.note("no head of this log was kept outside it to show whether its end was cut off")
	default:
		v.problem(Problem{Verdict: Unverifiable, What: "the head kept outside the log cannot be read: " + err.Error()})
	}
	if o.Anchored && len(o.Notes) == 0 {
		v.problem(Problem{Verdict: Unverifiable, What: "the anchor has no checkpoint of this log"})
	}
	for _, n := range o.Notes {
		all = append(all, witness{what: "an anchored checkpoint", signed: string(n)})
	}
	for i := range all {
		w := &all[i]
		w.of, w.err = parseCheckpoint(w.signed, v.keys)
		v.want[w.of.lines] = true
	}
	return all
}

// checkSession checks that the log is of the requested session: the whole,
// signed log of another run may have been put in its place, with its head.
func (v *verifier) checkSession(session string) {
	if session != "" && v.report.Session != "" && v.report.Session != session {
		v.problem(Problem{Verdict: Tampered, What: fmt.Sprintf("the log is of session %q, but is in the place of the log of %q", v.report.Session, session)})
	}
}

// checkWitness checks the log against a checkpoint that was kept outside of it.
func (v *verifier) checkWitness(w witness) {
	bad := func(verdict Verdict, format string, args ...any) {
		v.problem(Problem{Verdict: verdict, What: w.what + " " + fmt.Sprintf(format, args...)})
	}
	c := w.of
	switch {
	case w.err != nil:
		bad(Tampered, "is not valid: %v", w.err)
		return
	case v.report.Session != "" && c.session != v.report.Session:
		bad(Tampered, "belongs to session %q, the log to %q", c.session, v.report.Session)
		return
	case !c.signed && !v.unknown[c.key]:
		v.unknown[c.key] = true
		bad(Unverifiable, "is signed by the key %08x, which is not known here", c.key)
	}
	stop, found := v.stops[c.lines]
	switch {
	case found && stop.text() == c.text() && stop.key == c.key:
	case c.lines+1 > v.last.seq:
		least := "at least "
		if c.end {
			least = ""
		}
		bad(Tampered, "says that the log had %s%d records: %s%d are missing after record %d", least, c.lines+1, least, c.lines+1-v.last.seq, v.last.seq)
	case found:
		bad(Tampered, "has another hash of record %d", c.lines)
	default:
		bad(Tampered, "is of record %d, after which the log has no checkpoint", c.lines)
	}
}
