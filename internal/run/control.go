//go:build linux

package run

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// controlSocket is where a run takes orders from its user: in the session's
// directory, which only the user can enter and which no view shows.
const controlSocket = "control"

// order is one request on the control socket, a line of JSON; answer the answer,
// of which an order to watch gets one after the other.
type (
	order struct {
		Do     string
		Signed *consent.Signed `json:",omitempty"` // of orders about approvals
	}
	answer struct {
		Error   string
		Waiting *Waiting `json:",omitempty"` // of orders about approvals
	}
)

const (
	orderTime  = 10 * time.Second // that one exchange on the control socket may take
	orderBytes = 256 << 10        // of an order; an answer that is signed has a reason in it
	orders     = 32               // that are listened to at a time
)

// control is the control socket of a run.
type control struct {
	task   *Task
	net    *networking
	desk   Approvals // nil when nothing is ever asked
	ctx    context.Context
	admits chan struct{} // one for each order that is listened to
}

// answer takes orders until the function that it returns is called.
func (t *Task) answer(s *session, n *networking, desk Approvals) (stop func(), err error) {
	var l *net.UnixListener
	err = sys.WithShortName(s.dir, func(dir string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, controlSocket)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("making the control socket of the run: %w", err)
	}
	l.SetUnlinkOnClose(false) // its name was short for a moment only
	ctx, cancel := context.WithCancel(context.Background())
	c := &control{task: t, net: n, desk: desk, ctx: ctx, admits: make(chan struct{}, orders)}
	var wg sync.WaitGroup
	wg.Go(func() { c.serve(l, &wg) })
	return func() {
		cancel()
		l.Close()
		wg.Wait()
		os.Remove(filepath.Join(s.dir, controlSocket))
	}, nil
}

// serve takes orders until the listener is closed.
func (c *control) serve(l *net.UnixListener, wg *sync.WaitGroup) {
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // no descriptors are left: some will be
			continue
		}
		select {
		case c.admits <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		wg.Go(func() {
			defer func() { conn.Close(); <-c.admits }()
			end := context.AfterFunc(c.ctx, func() { conn.SetDeadline(time.Now().Add(time.Second)) })
			defer end()
			c.obey(conn)
		})
	}
}

func (c *control) obey(conn *net.UnixConn) {
	conn.SetDeadline(time.Now().Add(orderTime))
	var o order
	var a answer
	err := ours(conn)
	if err == nil {
		var line []byte
		if line, err = bufio.NewReader(io.LimitReader(conn, orderBytes)).ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &o)
		}
		if err != nil {
			err = fmt.Errorf("the order was not understood: %w", err)
		}
	}
	switch {
	case err != nil:
	case o.Do == "reload":
		err = c.task.recordReload(c.task.reload(c.net))
	case o.Do == watchApprovals:
		err = c.watch(conn)
	default:
		a.Waiting, err = c.decide(o)
	}
	if err != nil {
		a.Error = err.Error()
	}
	json.NewEncoder(conn).Encode(a)
}

// reload loads the policy again and lets its destinations hold. On any error the
// old ones stay.
func (t *Task) reload(n *networking) error {
	if t.Replan == nil {
		return errors.New("the policy of this run cannot be loaded again")
	}
	if !n.serving() {
		return errNotBegun
	}
	plan, err := t.Replan()
	if err != nil {
		return err
	}
	return n.reload(plan)
}

// Reloaded is what became of one run that was told to load its policy again.
type Reloaded struct {
	Session string
	Err     error // nil when the new destinations hold
}

// Reload tells the running sessions below a state directory to load their policy
// again. Runs that end meanwhile are left out.
func Reload(ctx context.Context, state string) ([]Reloaded, error) {
	dirs, err := filepath.Glob(filepath.Join(state, "sessions", "*", controlSocket))
	if err != nil {
		return nil, fmt.Errorf("looking for running sessions: %w", err)
	}
	var out []Reloaded
	for _, path := range dirs {
		dir := filepath.Dir(path)
		err := command(ctx, dir, order{Do: "reload"})
		if errors.Is(err, errNobody) {
			continue
		}
		out = append(out, Reloaded{filepath.Base(dir), err})
	}
	return out, nil
}

// errNobody says that the run of a session is over.
var errNobody = errors.New("nobody answers")

// errSilent says that a run is there and does not answer: it is stopped, or listens
// to as many as it can.
var errSilent = errors.New("it does not answer")

func command(ctx context.Context, dir string, o order) error {
	_, err := exchange(ctx, dir, o)
	return err
}

// exchange gives an order to a run and returns the answer.
func exchange(ctx context.Context, dir string, o order) (answer, error) {
	c, err := dialControl(ctx, dir)
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(orderTime))
	if err := json.NewEncoder(c).Encode(o); err != nil {
		return answer{}, fmt.Errorf("%w: giving the order: %w", errSilent, err)
	}
	var a answer
	if err := json.NewDecoder(c).Decode(&a); err != nil {
		return answer{}, fmt.Errorf("%w: reading the answer: %w", errSilent, err)
	}
	if a.Error != "" {
		return answer{}, errors.New(a.Error)
	}
	return a, nil
}

func dialControl(ctx context.Context, dir string) (net.Conn, error) {
	var c net.Conn
	err := sys.WithShortName(dir, func(short string) (err error) {
		c, err = (&net.Dialer{Timeout: orderTime}).DialContext(ctx, "unix", filepath.Join(short, controlSocket))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNobody, err)
	}
	return c, nil
}
