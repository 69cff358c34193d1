package approvals

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/cli/screen"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/event"
)

// quietBefore is the time without typing, after a request began to be shown, before a
// key counts for it: continued typing is meant for something else.
const quietBefore = 700 * time.Millisecond

// quietPopup is quietBefore for a screen that opens unprompted where a user may be
// typing.
const quietPopup = 2 * time.Second

// screenState is what holdfast approve shows, and what keys do. It knows no terminal.
type screenState struct {
	requests  []consent.Request
	sessions  int
	selected  string        // which of them; "" for none
	top       int           // line of the details that is shown first
	seen      int           // lines of what would happen that were shown, from the first
	needed    int           // lines of what would happen, at the present width
	height    int           // lines of details that fit
	lines     int           // lines of details
	quiet     time.Time     // time of the last key that did not count, or since when the request is shown
	quietTime time.Duration // instead of quietBefore; 0 for that
	prompt    *question
	message   string
	busy      bool // an answer is under way
	before    func(session string) []string
}

// question is a question to the approver, before an answer is sent.
type question struct {
	request consent.Request
	answer  consent.Answer
	minutes bool // it asks for how many minutes, and not for the reason
	text    []rune
}

// action is what a key led to.
type action struct {
	quit, suspend, redraw bool
	answer                *consent.Answer
}

func nameOf(r consent.Request) string { return r.Session + "/" + r.ID }

// show takes over what waits now.
func (b *screenState) show(all []consent.Waiting, now time.Time) {
	b.requests, b.sessions = waitingRequests(all), len(all)
	if _, at := b.current(); at < 0 {
		b.pick(0, now)
	}
	if b.prompt == nil {
		return
	}
	for _, r := range b.requests {
		if nameOf(r) == nameOf(b.prompt.request) && r.Nonce == b.prompt.request.Nonce {
			return
		}
	}
	b.message = b.prompt.request.ID + " no longer waits: no answer was given here"
	b.prompt = nil
}

// current is the selected request and its index; -1 for none.
func (b *screenState) current() (consent.Request, int) {
	for i, r := range b.requests {
		if nameOf(r) == b.selected {
			return r, i
		}
	}
	return consent.Request{}, -1
}

// pick selects the request at a place. Keys do not count for it yet.
func (b *screenState) pick(at int, now time.Time) {
	b.selected, b.top, b.seen, b.quiet = "", 0, 0, now
	if len(b.requests) > 0 {
		b.selected = nameOf(b.requests[max(0, min(at, len(b.requests)-1))])
	}
}

// press does what a key means.
func (b *screenState) press(k screen.Key) action {
	switch k.Code {
	case screen.KeyInterrupt, screen.KeyGone:
		return action{quit: true}
	case screen.KeySuspend:
		return action{suspend: true}
	case screen.KeyRedraw:
		return action{redraw: true}
	}
	if b.prompt != nil {
		return b.write(k)
	}
	b.message = ""
	if k.Paste {
		return action{}
	}
	if b.move(k) {
		return action{}
	}
	if k.Code == screen.KeyRune && (k.Rune == 'q' || k.Rune == 'Q') {
		return action{quit: true}
	}
	if k.Code == screen.KeyRune {
		b.decide(k)
	}
	return action{}
}

// move does what keys do that answer nothing.
func (b *screenState) move(k screen.Key) bool {
	_, at := b.current()
	switch {
	case k.Code == screen.KeyUp || k.Code == screen.KeyRune && k.Rune == 'k':
		at--
	case k.Code == screen.KeyDown || k.Code == screen.KeyRune && k.Rune == 'j':
		at++
	case k.Code == screen.KeyPageDown || k.Code == screen.KeyRune && k.Rune == ' ':
		b.top = min(b.top+max(1, b.height-1), max(0, b.lines-b.height))
		return true
	case k.Code == screen.KeyPageUp || k.Code == screen.KeyRune && k.Rune == 'b':
		b.top = max(0, b.top-max(1, b.height-1))
		return true
	case k.Code == screen.KeyHome:
		b.top = 0
		return true
	case k.Code == screen.KeyEnd:
		b.top = max(0, b.lines-b.height)
		return true
	default:
		return false
	}
	if at >= 0 && at < len(b.requests) && nameOf(b.requests[at]) != b.selected {
		b.pick(at, k.At)
	}
	return true
}

// decide begins an answer, where the key is one for it.
func (b *screenState) decide(k screen.Key) {
	q := &question{}
	switch k.Rune {
	case 'a':
		q.answer.Allow, q.answer.Scope = true, consent.Once
	case 's', 'S':
		q.answer.Allow, q.answer.Scope, q.answer.Directory = true, consent.Session, k.Rune == 'S'
	case 'm', 'M':
		q.answer.Allow, q.answer.Scope, q.answer.Directory, q.minutes = true, consent.For, k.Rune == 'M', true
	case 'd':
	default: // a word is being typed
		b.ignoreKeysFrom(k.At)
		return
	}
	r, at := b.current()
	quiet := k.At.Sub(b.quiet) >= cmp.Or(b.quietTime, quietBefore)
	switch {
	case at < 0:
		return
	case b.busy:
		b.message = "the last answer is still being sent"
		return
	case !quiet:
		b.ignoreKeysFrom(k.At)
		b.message = "that key was too early: look at what would happen first"
		return
	case q.answer.Allow && b.seen < b.needed:
		b.message = fmt.Sprintf("%d lines of what would happen were not shown yet: PgDn or space", b.needed-b.seen)
		return
	case q.answer.Directory && r.Attempt.Kind != event.KindFile:
		b.message = "only a file has a directory that could be allowed"
		return
	case q.answer.Allow && q.answer.Scope != consent.Once && r.Limited() != "":
		b.message = "it can be allowed only once: " + r.Limited()
		return
	}
	answer := r.Answer()
	answer.Allow, answer.Scope, answer.Directory = q.answer.Allow, q.answer.Scope, q.answer.Directory
	q.request, q.answer = r, answer
	b.prompt = q
}

// ignoreKeysFrom notes that something was typed: keys count again after a pause.
func (b *screenState) ignoreKeysFrom(at time.Time) {
	if at.After(b.quiet) {
		b.quiet = at
	}
}

// write is a key while something is asked.
func (b *screenState) write(k screen.Key) action {
	q := b.prompt
	switch k.Code {
	case screen.KeyEscape:
		b.prompt = nil
	case screen.KeyErase:
		q.text = q.text[:max(0, len(q.text)-1)]
	case screen.KeyClear:
		q.text = nil
	case screen.KeyRune:
		if len(q.text) < 500 {
			q.text = append(q.text, k.Rune)
		}
	case screen.KeyEnter:
		if k.Paste {
			return action{}
		}
		return b.enter()
	}
	return action{}
}

// enter ends what was typed.
func (b *screenState) enter() action {
	q := b.prompt
	if q.minutes {
		n, err := strconv.Atoi(string(q.text))
		if err != nil || n < 1 || time.Duration(n)*time.Minute > consent.Longest {
			b.message = fmt.Sprintf("type a number of minutes from 1 to %d", int(consent.Longest.Minutes()))
			return action{}
		}
		q.minutes, q.text, q.answer.For, b.message = false, nil, time.Duration(n)*time.Minute, ""
		return action{}
	}
	q.answer.Reason = string(q.text)
	b.prompt, b.busy = nil, true
	return action{answer: &q.answer}
}

// answered takes in what became of an answer.
func (b *screenState) answered(a consent.Answer, err error) {
	b.busy = false
	switch {
	case err != nil:
		b.message = consent.Visible(err.Error())
	case a.Allow:
		b.message = a.Request + ": allowed " + scopeText(a.Scope, a.For)
	default:
		b.message = a.Request + ": denied"
	}
}

// label is what the line of a question begins with.
func (q *question) label() string {
	what := "deny"
	if q.answer.Allow {
		what = "allow " + scopeText(q.answer.Scope, q.answer.For)
		if q.answer.Directory {
			what += ", the whole directory"
		}
	}
	if q.minutes {
		return "allow " + q.request.ID + " for how many minutes? "
	}
	return what + " " + q.request.ID + ", reason: "
}
