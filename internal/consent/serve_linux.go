//go:build linux

package consent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"holdfast.dev/holdfast/internal/supervise/control"
)

// Waiting is what a run asks, and what it was granted, at one moment.
type Waiting struct {
	Session  string
	Requests []Request
	Grants   []Grant
}

// Orders about approvals.
const (
	listOrder   = "approvals"
	watchOrder  = "approvals.watch"
	answerOrder = "approvals.answer"
	revokeOrder = "approvals.revoke"
)

// watchPause is the least time between two states that are sent to a watcher.
const watchPause = 20 * time.Millisecond

var errNothingAsked = errors.New("this run asks nothing: its policy has no rule under ask")

// order is an order about approvals, and reply its answer; an order to watch
// gets one after the other.
type (
	order struct {
		Do     string
		Signed *Signed `json:",omitempty"`
	}
	reply struct {
		Error   string
		Waiting *Waiting `json:",omitempty"`
	}
)

// Handlers carry out the orders about approvals that a run gets over its control
// socket. q is nil for a run that never asks.
func Handlers(session string, q *Queue) map[string]control.Handler {
	s := &server{session, q}
	return map[string]control.Handler{
		listOrder: s.list, watchOrder: s.watch,
		answerOrder: func(_ context.Context, _ *net.UnixConn, line []byte) (any, error) {
			return nil, s.pass(line, (*Queue).Answer)
		},
		revokeOrder: func(_ context.Context, _ *net.UnixConn, line []byte) (any, error) {
			return nil, s.pass(line, (*Queue).Revoke)
		},
	}
}

// server serves orders for the queue of one run.
type server struct {
	session string
	queue   *Queue // nil when nothing is ever asked
}

func (s *server) list(context.Context, *net.UnixConn, []byte) (any, error) {
	if s.queue == nil {
		return nil, errNothingAsked
	}
	w := s.waiting()
	return reply{Waiting: &w}, nil
}

// pass passes the signed answer of an order to the queue.
func (s *server) pass(line []byte, to func(*Queue, Signed) error) error {
	if s.queue == nil {
		return errNothingAsked
	}
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("the command was not understood: %w", err)
	}
	if o.Signed == nil {
		return errors.New("the command has no signed answer")
	}
	return to(s.queue, *o.Signed)
}

// waiting returns what is asked now.
func (s *server) waiting() Waiting {
	return Waiting{Session: s.session, Requests: s.queue.Pending(), Grants: s.queue.Grants()}
}

// watch sends what is asked, now and whenever it changes, until the watcher
// leaves or the run ends. Meanwhile the run counts as attended.
func (s *server) watch(ctx context.Context, conn *net.UnixConn, _ []byte) (any, error) {
	if s.queue == nil {
		return nil, errNothingAsked
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn.SetDeadline(time.Time{})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		defer cancel()
		io.Copy(io.Discard, conn) // a watcher sends nothing more
	}()
	defer func() { conn.SetReadDeadline(time.Now()); <-left }()
	changed := s.queue.Watch(ctx)
	leave := s.queue.Attend()
	defer leave()
	out := json.NewEncoder(conn)
	for {
		w := s.waiting()
		conn.SetWriteDeadline(time.Now().Add(control.Timeout))
		if err := out.Encode(reply{Waiting: &w}); err != nil {
			return nil, err
		}
		time.Sleep(watchPause)
		select {
		case <-ctx.Done():
			return nil, errRunOver
		case _, more := <-changed:
			if !more {
				return nil, errRunOver
			}
		}
	}
}

var errRunOver = errors.New("the run is over")
