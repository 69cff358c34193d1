//go:build linux

package run

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"

	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/network/egress"
	"holdfast.dev/holdfast/internal/supervise/control"
)

// reloadOrder is the verb of an order to load the policy again.
const reloadOrder = "reload"

// takeOrders listens at the control socket of the session in dir until stop is called.
func (t *Task) takeOrders(dir string, n *egress.Egress, q *consent.Queue) (stop func(), err error) {
	handlers := consent.Handlers(t.bus.Session(), q)
	handlers[reloadOrder] = func(context.Context, *net.UnixConn, []byte) (any, error) {
		return nil, t.recordReload(t.reload(n))
	}
	return control.Listen(dir, handlers)
}

// reload loads the policy again and lets its destinations hold. On any error the
// old ones stay.
func (t *Task) reload(n *egress.Egress) error {
	if t.Replan == nil {
		return errors.New("the policy of this run cannot be loaded again")
	}
	if !n.Serving() {
		return errors.New("the run has not begun")
	}
	plan, err := t.Replan()
	if err != nil {
		return err
	}
	return n.Reload(plan)
}

// Reloaded is what became of one run that was told to load its policy again.
type Reloaded struct {
	Session string
	Err     error // nil when the new destinations hold
}

// Reload tells the running sessions below a state directory to load their policy
// again. Runs that end meanwhile are left out.
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
