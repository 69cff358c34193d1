//go:build linux

package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// Sessions are the directories of the sessions below a state directory that take
// orders, by name.
func Sessions(state string) (map[string]string, error) {
	sockets, err := filepath.Glob(filepath.Join(state, "sessions", "*", Name))
	if err != nil {
		return nil, fmt.Errorf("looking for running sessions: %w", err)
	}
	dirs := map[string]string{}
	for _, path := range sockets {
		dirs[filepath.Base(filepath.Dir(path))] = filepath.Dir(path)
	}
	return dirs, nil
}

// ErrEnded means that the run of a session is over.
var ErrEnded = errors.New("no run answers")

// ErrSilent means that a run is there and does not answer: it is stopped, or serves as
// many orders as it can.
var ErrSilent = errors.New("it does not answer")

// Exchange gives an order to the run of the session in dir, and reads its answer into
// reply, which may be nil. What the run says is wrong is the error.
func Exchange(ctx context.Context, dir string, order, reply any) error {
	c, err := Dial(ctx, dir)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(Timeout))
	if err := json.NewEncoder(c).Encode(order); err != nil {
		return fmt.Errorf("%w: giving the order: %w", ErrSilent, err)
	}
	var line json.RawMessage
	var f failure
	err = json.NewDecoder(c).Decode(&line)
	if err == nil {
		err = json.Unmarshal(line, &f)
	}
	if err != nil {
		return fmt.Errorf("%w: reading the answer: %w", ErrSilent, err)
	}
	if f.Error != "" {
		return errors.New(f.Error)
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(line, reply); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return nil
}

// Dial connects to the run of the session in dir.
func Dial(ctx context.Context, dir string) (net.Conn, error) {
	var c net.Conn
	err := sys.WithShortName(dir, func(short string) (err error) {
		c, err = (&net.Dialer{Timeout: Timeout}).DialContext(ctx, "unix", filepath.Join(short, Name))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return c, nil
}
