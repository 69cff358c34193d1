//go:build linux

package control

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

	"holdfast.dev/holdfast/internal/floor/sys"
)

// Name is that of the socket in the directory of a session.
const Name = "control"

const (
	// Timeout is how long one exchange may take.
	Timeout = 10 * time.Second

	maxBytes  = 256 << 10 // of an order; an answer that is signed has a reason in it
	maxOrders = 32        // that are served at a time
)

// Handler carries out one order, which is the line received. Its reply is sent as a
// line of JSON; nil only confirms it. The deadline of conn is that of one exchange: a
// handler that takes longer sets its own. ctx ends with the run.
type Handler func(ctx context.Context, conn *net.UnixConn, line []byte) (reply any, err error)

// server is the control socket of a run.
type server struct {
	handlers map[string]Handler
	ctx      context.Context
	slots    chan struct{} // one for each order that is served
}

// Listen takes orders in the directory of a session until stop is called, which waits
// for those that are under way. handlers has what carries them out, by verb.
func Listen(dir string, handlers map[string]Handler) (stop func(), err error) {
	var l *net.UnixListener
	err = sys.WithShortName(dir, func(short string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(short, Name)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("making the control socket of the run: %w", err)
	}
	l.SetUnlinkOnClose(false) // its name was short for a moment only
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{handlers: handlers, ctx: ctx, slots: make(chan struct{}, maxOrders)}
	var wg sync.WaitGroup
	wg.Go(func() { s.serve(l, &wg) })
	return func() {
		cancel()
		l.Close()
		wg.Wait()
		os.Remove(filepath.Join(dir, Name))
	}, nil
}

// serve takes orders until the listener is closed.
func (s *server) serve(l *net.UnixListener, wg *sync.WaitGroup) {
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
		case s.slots <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		wg.Go(func() {
			defer func() { conn.Close(); <-s.slots }()
			end := context.AfterFunc(s.ctx, func() { conn.SetDeadline(time.Now().Add(time.Second)) })
			defer end()
			s.handle(conn)
		})
	}
}

// handle reads one order, and sends its answer.
func (s *server) handle(conn *net.UnixConn) {
	conn.SetDeadline(time.Now().Add(Timeout))
	var order struct{ Do string }
	var reply any
	err := checkSender(conn)
	if err == nil {
		var line []byte
		if line, err = bufio.NewReader(io.LimitReader(conn, maxBytes)).ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &order)
		}
		switch h := s.handlers[order.Do]; {
		case err != nil:
			err = fmt.Errorf("reading the order: %w", err)
		case h == nil:
			err = fmt.Errorf("unknown order %q", order.Do)
		default:
			reply, err = h(s.ctx, conn, line)
		}
	}
	if err != nil {
		reply = failure{err.Error()}
	} else if reply == nil {
		reply = failure{}
	}
	json.NewEncoder(conn).Encode(reply)
}

// failure is what every answer has: the error, or "".
type failure struct{ Error string }

// checkSender refuses any sender other than this user outside of every boundary. No
// view shows the socket: this is in case one ever does.
func checkSender(conn *net.UnixConn) error {
	who, err := sys.Peer(conn)
	if err != nil {
		return fmt.Errorf("identifying the sender of the order: %w", err)
	}
	if int(who.Uid) != os.Geteuid() {
		return errors.New("the order comes from another user")
	}
	here, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return fmt.Errorf("identifying the sender of the order: %w", err)
	}
	there, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", who.Pid))
	if err != nil || there != here {
		return errors.New("the order comes from another user namespace: only a process outside every boundary may give one")
	}
	return nil
}
