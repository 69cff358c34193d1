//go:build linux

package task

import (
	"context"

	"holdfast.dev/holdfast/internal/broker"
	"holdfast.dev/holdfast/internal/egress"
)

// lent lets package egress use the leases of package broker: neither knows the
// other.
type lent struct{ *broker.Broker }

// credentials are the leases as the egress takes them; nil for none.
func (n *network) credentials() egress.Credentials {
	if n.leases == nil {
		return nil
	}
	return lent{n.leases}
}

func (l lent) Bound(name string, port int) []egress.Binding {
	var out []egress.Binding
	for _, b := range l.Broker.Bound(name, port) {
		out = append(out, egress.Binding(b))
	}
	return out
}

func (l lent) Open(ctx context.Context, credential string, use egress.Use) (egress.Secret, error) {
	s, err := l.Broker.Open(ctx, credential, broker.Use(use))
	return egress.Secret{Value: s.Value, Fields: s.Fields}, err
}
