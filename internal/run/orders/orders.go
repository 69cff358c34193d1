//go:build linux

package orders

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"

	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/supervise/control"
)

// reloadOrder is the verb of an order to load the policy again.
const reloadOrder = "reload"

// Listen takes orders at the control socket of the session in dir until stop is
// called: those about approvals, which q carries out, and to load the policy again. q is
// nil for a run that never asks.
func Listen(dir, session string, q *consent.Queue, reload func() error) (stop func(), err error) {
	handlers := consent.Handlers(session, q)
	handlers[reloadOrder] = func(context.Context, *net.UnixConn, []byte) (any, error) { return nil, reload() }
	return control.Listen(dir, handlers)
}

// Reloaded is the answer of one run that was ordered to reload its policy.
type Reloaded struct {
	Session string
	Err     error // nil when the new destinations hold
}

// Reload makes the running sessions below a state directory reload their policy. Runs
// that end meanwhile are left out.
func Reload(ctx context.Context, state string) ([]Reloaded, error) {
	dirs, err := control.Sessions(state)
	if err != nil {
		return nil, err
	}
	var out []Reloaded
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		err := control.Exchange(ctx, dirs[name], map[string]string{"Do": reloadOrder}, nil)
		if errors.Is(err, control.ErrEnded) {
			continue
		}
		out = append(out, Reloaded{name, err})
	}
	return out, nil
}
