package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/floor/text"
)

const (
	dialHead  = 300 * time.Millisecond // before the next address is tried beside (RFC 8305, 5)
	dialMost  = 16                     // addresses of one name that are tried
	keepAlive = 30 * time.Second
)

// dialer connects to destinations that rules permit. It looks a name up once, and
// judges each address just before the kernel gets it: between what is judged and what
// is dialled there is no second lookup with a different result.
type dialer struct {
	lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	guard  *nameGuard
	time   time.Duration
	own    func() ([]netip.Addr, error)

	// exempt, when not nil, is asked about an address that would be refused. Only tests
	// set it: their public hosts are on loopback.
	exempt func(netip.AddrPort) bool
}

// newDialer makes a dialer; a nil lookup means the host's resolver, and no limit
// is zero.
func newDialer(lookup func(context.Context, string) ([]netip.Addr, error), guard *nameGuard, limits Limits) *dialer {
	if lookup == nil {
		lookup = hostLookup
	}
	return &dialer{lookup: lookup, guard: guard, time: limits.DialTime, own: ownAddresses}
}

// hostLookup asks the resolver of the host. The final dot keeps it from trying
// the host's search domains: a name means the same wherever a run takes place.
func hostLookup(ctx context.Context, name string) ([]netip.Addr, error) {
	resolver := net.Resolver{PreferGo: true}
	return resolver.LookupNetIP(ctx, "ip", name+".")
}

// Dial connects to d. An address that the permit does not reach is an *AddressError, a
// name that would reveal too much is a *LimitError; if a name has several addresses,
// the refused ones are skipped, and named when none of the others answers.
func (dl *dialer) Dial(ctx context.Context, d Destination, p Permit) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dl.time)
	defer cancel()
	addrs, err := dl.addresses(ctx, d.Name, p)
	if err != nil {
		return nil, err
	}
	return race(ctx, addrs, func(ctx context.Context, a netip.Addr) (net.Conn, error) {
		return dl.connect(ctx, d, p, netip.AddrPortFrom(a, uint16(d.Port)))
	})
}

// addresses are where a name is, in the order in which they are tried.
func (dl *dialer) addresses(ctx context.Context, name string, p Permit) ([]netip.Addr, error) {
	if a, err := parseLiteral(name); err == nil {
		return []netip.Addr{a}, nil
	}
	normal, err := Normalize(name)
	if err != nil {
		return nil, err
	}
	if normal != name {
		return nil, &NameError{Name: name, Reason: "it is not in normal form"}
	}
	if err := dl.guard.admit(name, p.Wildcard); err != nil {
		return nil, err
	}
	found, err := dl.lookup(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("resolving %s: %w", name, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("resolving %s: it has no address", name)
	}
	return interleave(found), nil
}

// interleave takes the families in turn, beginning with that of the first
// address, so that a broken one costs one attempt (RFC 8305, 4).
func interleave(addrs []netip.Addr) []netip.Addr {
	var first, second []netip.Addr
	for _, a := range addrs {
		if a = a.Unmap(); a.Is4() == addrs[0].Unmap().Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	var all []netip.Addr
	for len(first)+len(second) > 0 && len(all) < dialMost {
		if len(first) > 0 {
			all, first = append(all, first[0]), first[1:]
		}
		first, second = second, first
	}
	return all
}

type attempt struct {
	conn net.Conn
	err  error
}

// race tries one address after the other, the next when one fails or takes long,
// and keeps the first connection.
func race(ctx context.Context, addrs []netip.Addr, connect func(context.Context, netip.Addr) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if len(addrs) == 1 {
		return connect(ctx, addrs[0])
	}
	results := make(chan attempt, len(addrs)) // late results are not waited for
	next, open := 0, 0
	start := func() {
		a := addrs[next]
		next, open = next+1, open+1
		go func() {
			c, err := connect(ctx, a)
			results <- attempt{c, err}
		}()
	}
	head := time.NewTimer(dialHead)
	defer head.Stop()
	var failed []error
	for start(); open > 0; {
		select {
		case <-head.C:
		case r := <-results:
			open--
			if r.err == nil {
				go closeLate(results, open)
				return r.conn, nil
			}
			failed = append(failed, r.err)
		}
		if next < len(addrs) && ctx.Err() == nil {
			start()
			head.Reset(dialHead)
		}
	}
	return nil, errors.Join(failed...)
}

// closeLate closes connections that were made after another one won.
func closeLate(results <-chan attempt, open int) {
	for range open {
		if r := <-results; r.conn != nil {
			r.conn.Close()
		}
	}
}

// connect makes one attempt.
func (dl *dialer) connect(ctx context.Context, d Destination, p Permit, at netip.AddrPort) (net.Conn, error) {
	nd := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive / 2, Count: 6},
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return dl.check(d.Name, p, network, address)
		},
	}
	nd.SetMultipathTCP(false) // MPTCP lets a server name addresses that the kernel then dials (RFC 8684, 3.4)
	c, err := nd.DialContext(ctx, "tcp", at.String())
	if err != nil {
		var refused *AddressError
		if errors.As(err, &refused) {
			return nil, refused // without the wrapping, which has the address once more
		}
		return nil, fmt.Errorf("connecting to %s: %w", d.String(), err)
	}
	return c, nil
}

// check judges what the kernel is about to connect to.
func (dl *dialer) check(name string, p Permit, network, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%s %s is not an address that can be connected to", network, text.Cut(address, nameBytes))
	}
	err = checkAddress(name, at.Addr(), p.Internal, dl.own)
	if err != nil && dl.exempt != nil && dl.exempt(netip.AddrPortFrom(at.Addr().Unmap(), at.Port())) {
		return nil
	}
	return err
}
