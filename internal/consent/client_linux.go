//go:build linux

package consent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/supervise/control"
)

// lookPause is the interval of looking for new runs while approvals are watched.
const lookPause = 200 * time.Millisecond

// Waits lists what the running sessions below a state directory ask, in the order
// in which they began. Those whose policy asks nothing are left out. A session
// that does not answer is part of the error, and the others are still listed.
func Waits(ctx context.Context, state string) ([]Waiting, error) {
	dirs, err := control.Sessions(state)
	if err != nil {
		return nil, err
	}
	var out []Waiting
	var silent []error
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		var a reply
		err := control.Exchange(ctx, dirs[name], order{Do: listOrder}, &a)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, control.ErrSilent) {
			silent = append(silent, fmt.Errorf("what the run %s is asking about is not known: %w", name, err))
		}
		if err == nil && a.Waiting != nil { // a run may end meanwhile
			out = append(out, *a.Waiting)
		}
	}
	return out, errors.Join(silent...)
}

// AnswerRequest sends a signed answer to the run of a session.
func AnswerRequest(ctx context.Context, state, session string, s Signed) error {
	return send(ctx, state, session, order{Do: answerOrder, Signed: &s})
}

// RevokeGrant sends a signed revocation to the run of a session.
func RevokeGrant(ctx context.Context, state, session string, s Signed) error {
	return send(ctx, state, session, order{Do: revokeOrder, Signed: &s})
}

func send(ctx context.Context, state, session string, o order) error {
	if session == "" || strings.ContainsRune(session, '/') || strings.HasPrefix(session, ".") {
		return fmt.Errorf("%q is not a session", session)
	}
	err := control.Exchange(ctx, filepath.Join(state, "sessions", session), o, nil)
	if errors.Is(err, control.ErrEnded) {
		return fmt.Errorf("the run %s is over", session)
	}
	return err
}

// FollowWaits calls show with what the running sessions ask, now and whenever
// it changes, until the context ends. Meanwhile each of them counts as
// attended. Calls come one after the other.
func FollowWaits(ctx context.Context, state string, show func([]Waiting)) error {
	if _, err := os.Stat(state); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("looking for running sessions: %w", err)
	}
	leave, err := announcePresence(state)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := follower{ctx: ctx, news: make(chan news), now: map[string]*Waiting{}}
	look := time.NewTicker(lookPause)
	defer look.Stop()
	first := true
	for {
		if err := f.refreshSessions(state); err != nil {
			return err
		}
		if first {
			show(f.snapshot())
			first = false
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case n := <-f.news:
				if f.applyNews(n) {
					show(f.snapshot())
				}
			case <-look.C:
				waiting = false
			}
		}
	}
}

// follower is one call of FollowWaits.
type follower struct {
	ctx  context.Context
	news chan news
	now  map[string]*Waiting // by session; nil where nothing is known yet, or nothing is ever asked
}

// news is what one session sent; over if nothing more follows, and gone if that
// is because the run has ended.
type news struct {
	session    string
	waiting    *Waiting
	over, gone bool
}

// refreshSessions starts listening to new sessions, and forgets those that ended.
func (f *follower) refreshSessions(state string) error {
	dirs, err := control.Sessions(state)
	if err != nil {
		return err
	}
	for name, dir := range dirs {
		if _, known := f.now[name]; !known {
			f.now[name] = nil
			go f.listenTo(name, dir)
		}
	}
	return nil
}

func (f *follower) applyNews(n news) (changed bool) {
	before := f.now[n.session]
	switch {
	case n.gone:
		delete(f.now, n.session)
	case n.over:
		f.now[n.session] = nil
	default:
		f.now[n.session] = n.waiting
		return true
	}
	return before != nil
}

// snapshot returns what is asked, in the order in which the sessions began.
func (f *follower) snapshot() []Waiting {
	out := []Waiting{}
	for _, name := range slices.Sorted(maps.Keys(f.now)) {
		if w := f.now[name]; w != nil {
			out = append(out, *w)
		}
	}
	return out
}

// listenTo passes on what one session sends, until its end.
func (f *follower) listenTo(name, dir string) {
	end := news{session: name, over: true, gone: true}
	defer func() {
		select {
		case f.news <- end:
		case <-f.ctx.Done():
		}
	}()
	c, err := control.Dial(f.ctx, dir)
	if err != nil {
		return
	}
	defer context.AfterFunc(f.ctx, func() { c.Close() })()
	defer c.Close()
	if json.NewEncoder(c).Encode(order{Do: watchOrder}) != nil {
		return
	}
	for in := json.NewDecoder(c); ; {
		var a reply
		if in.Decode(&a) != nil {
			return
		}
		if a.Waiting == nil { // it never asks, or knows no such order
			end.gone = a.Error == errRunOver.Error()
			return
		}
		select {
		case f.news <- news{session: name, waiting: a.Waiting}:
		case <-f.ctx.Done():
			return
		}
	}
}
