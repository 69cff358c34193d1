//go:build linux

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// Approvals is where the requests of a run wait and are answered.
type Approvals interface {
	Pending() []consent.Request
	Grants() []consent.Grant
	Answer(consent.Signed) error
	Revoke(consent.Signed) error
	// Watch tells that something changed, until the context ends.
	Watch(context.Context) <-chan struct{}
	// Attend says that somebody is there to answer, until leave is called.
	Attend() (leave func())
}

// Waiting is what a run asks, and what it was granted, at one moment.
type Waiting struct {
	Session  string
	Requests []consent.Request
	Grants   []consent.Grant
}

// Orders about approvals.
const (
	listApprovals  = "approvals"
	watchApprovals = "approvals.watch"
	answerApproval = "approvals.answer"
	revokeApproval = "approvals.revoke"
)

// watchPause is the least time between two states that a watcher is sent.
const watchPause = 20 * time.Millisecond

var errNothingAsked = errors.New("this run asks nothing: its policy has no rule under ask")

// decide carries out an order about approvals.
func (c *control) decide(o order) (*Waiting, error) {
	switch o.Do {
	case listApprovals, answerApproval, revokeApproval:
	default:
		return nil, fmt.Errorf("the order %q is not known", o.Do)
	}
	switch {
	case c.desk == nil:
		return nil, errNothingAsked
	case o.Do == listApprovals:
		w := c.waiting()
		return &w, nil
	case o.Signed == nil:
		return nil, errors.New("the order has no signed answer")
	case o.Do == answerApproval:
		return nil, c.desk.Answer(*o.Signed)
	}
	return nil, c.desk.Revoke(*o.Signed)
}

// waiting is what is asked now.
func (c *control) waiting() Waiting {
	return Waiting{Session: c.task.record.session, Requests: c.desk.Pending(), Grants: c.desk.Grants()}
}

// watch sends what is asked, now and whenever it changes, until the watcher
// leaves or the run ends. Meanwhile somebody is there to answer.
func (c *control) watch(conn *net.UnixConn) error {
	if c.desk == nil {
		return errNothingAsked
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	conn.SetDeadline(time.Time{})
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		defer cancel()
		io.Copy(io.Discard, conn) // a watcher says nothing more
	}()
	defer func() { conn.SetReadDeadline(time.Now()); <-left }()
	changed := c.desk.Watch(ctx)
	leave := c.desk.Attend()
	defer leave()
	out := json.NewEncoder(conn)
	for {
		w := c.waiting()
		conn.SetWriteDeadline(time.Now().Add(orderTime))
		if err := out.Encode(answer{Waiting: &w}); err != nil {
			return err
		}
		time.Sleep(watchPause)
		select {
		case <-ctx.Done():
			return errRunOver
		case _, more := <-changed:
			if !more {
				return errRunOver
			}
		}
	}
}

var errRunOver = errors.New("the run is over")

// ours refuses whoever is not this user outside of every boundary. No view shows
// the socket: this is for the day on which one does.
func ours(conn *net.UnixConn) error {
	who, err := sys.Peer(conn)
	if err != nil {
		return fmt.Errorf("asking who gives the order: %w", err)
	}
	if int(who.Uid) != os.Geteuid() {
		return errors.New("another user gives orders to this run")
	}
	here, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return fmt.Errorf("asking who gives the order: %w", err)
	}
	there, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", who.Pid))
	if err != nil || there != here {
		return errors.New("the order comes from another user namespace: only who is outside of every boundary may give one")
	}
	return nil
}
