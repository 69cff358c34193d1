//go:build linux

package task

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
	"strconv"
	"sync"
	"time"
)

// controlSocket is where a run takes orders from its user: in the session's
// directory, which only the user can enter and which no view shows.
const controlSocket = "control"

// order is one request on the control socket, a line of JSON; answer the answer.
type (
	order  struct{ Do string }
	answer struct{ Error string }
)

// orderTime is how long one exchange on the control socket may take.
const orderTime = 10 * time.Second

// answer takes orders until the function that it returns is called.
func (t *Task) answer(s *session, n *network) (stop func(), err error) {
	var l net.Listener
	err = inDirectory(s.dir, func(dir string) (err error) {
		l, err = net.Listen("unix", filepath.Join(dir, controlSocket))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("making the control socket of the run: %w", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // its name was short for a moment only
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				t.obey(c, n)
			}
		}
	})
	return func() {
		l.Close()
		wg.Wait()
		os.Remove(filepath.Join(s.dir, controlSocket))
	}, nil
}

// inDirectory calls f with a short name of dir: the address of a Unix socket has
// 108 bytes (unix(7)).
func inDirectory(dir string, f func(short string) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return f("/proc/self/fd/" + strconv.Itoa(int(d.Fd())))
}

func (t *Task) obey(c net.Conn, n *network) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(orderTime))
	var o order
	var a answer
	line, err := bufio.NewReader(io.LimitReader(c, 4096)).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &o)
	}
	switch {
	case err != nil:
		a.Error = "the order was not understood: " + err.Error()
	case o.Do == "reload":
		if err := t.reload(n); err != nil {
			a.Error = err.Error()
		}
	default:
		a.Error = fmt.Sprintf("the order %q is not known", o.Do)
	}
	json.NewEncoder(c).Encode(a)
}

// reload loads the policy again and lets its destinations hold. On any error the
// old ones stay.
func (t *Task) reload(n *network) error {
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

func command(ctx context.Context, dir string, o order) error {
	var c net.Conn
	err := inDirectory(dir, func(short string) (err error) {
		c, err = (&net.Dialer{Timeout: orderTime}).DialContext(ctx, "unix", filepath.Join(short, controlSocket))
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errNobody, err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(orderTime))
	if err := json.NewEncoder(c).Encode(o); err != nil {
		return fmt.Errorf("giving the order: %w", err)
	}
	var a answer
	if err := json.NewDecoder(c).Decode(&a); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	return nil
}
