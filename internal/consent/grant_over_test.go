package consent

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// TestWhatStandsOnAGrantEndsWithIt gives answers of each scope, and checks when
// what they allowed must end.
func TestWhatStandsOnAGrantEndsWithIt(t *testing.T) {
	for name, row := range map[string]struct {
		answer           func(*Answer)
		revoke, unbooked bool
		ends             bool
	}{
		"once":                                {answer: nil},
		"its time":                            {answer: func(a *Answer) { a.Scope, a.For = For, time.Minute }, ends: true},
		"its time, used up at once":           {answer: func(a *Answer) { a.Scope, a.For, a.Uses = For, time.Minute, 1 }, ends: true},
		"its time, used up later":             {answer: func(a *Answer) { a.Scope, a.For, a.Uses = For, time.Minute, 2 }, ends: true},
		"for the run":                         {answer: func(a *Answer) { a.Scope = Session }},
		"taken back":                          {answer: func(a *Answer) { a.Scope = Session }, revoke: true, ends: true},
		"taken back before its time":          {answer: func(a *Answer) { a.Scope, a.For = For, time.Hour }, revoke: true, ends: true},
		"taken back, which nobody can record": {answer: func(a *Answer) { a.Scope = Session }, revoke: true, unbooked: true, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTestQueue(t, nil)
				_, end := o.ask(push())
				if err := o.Answer(o.reply(o.waits(), true, row.answer)); err != nil {
					t.Fatal(err)
				}
				over := []<-chan struct{}{(<-end).Over}
				if r, _ := o.ask(push()); r.Verdict == event.Allowed {
					over = append(over, r.Over)
				}
				ended := func() (n int) {
					for _, c := range over {
						select {
						case <-c:
							n++
						default:
						}
					}
					return n
				}
				if n := ended(); n != 0 {
					t.Errorf("%d have ended before anything did", n)
				}
				if row.revoke {
					if row.unbooked {
						o.book.breaks(event.ApprovalRevoke)
					}
					err := o.Revoke(Sign(Answer{Session: "s1", Grant: o.Grants()[0].ID, By: "bob"}, o.key))
					if (err != nil) != row.unbooked || errors.Is(err, ErrUnknown) {
						t.Error(err)
					}
				} else {
					time.Sleep(time.Minute)
					synctest.Wait()
				}
				if n := ended(); row.ends && n != len(over) || !row.ends && n != 0 {
					t.Errorf("%d of %d have ended", n, len(over))
				}
			})
		})
	}
}
