package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// target is a listener on loopback that counts its connections.
type target struct {
	at    netip.AddrPort
	count atomic.Int64
}

func listenAt(t testing.TB, address string) *target {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	tg := &target{at: l.Addr().(*net.TCPAddr).AddrPort()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			tg.count.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return tg
}

// twoTargets listen at the same port: one plays a public host, the other is a
// service of this host's loopback.
func twoTargets(t testing.TB) (open, secret *target) {
	t.Helper()
	for range 50 {
		open = listenAt(t, "127.1.1.1:0")
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", open.at.Port()))
		if err != nil {
			continue // that port is already in use
		}
		l.Close()
		return open, listenAt(t, l.Addr().String())
	}
	t.Fatal("no port is free at both addresses")
	return nil, nil
}

// worldDialer resolves with lookup; the address of open counts as public.
func worldDialer(open *target, lookup func(name string) []netip.Addr) (*dialer, *atomic.Int64) {
	asked := &atomic.Int64{}
	limits := Limits{}.withDefaults()
	dl := newDialer(func(_ context.Context, name string) ([]netip.Addr, error) {
		asked.Add(1)
		if found := lookup(name); found != nil {
			return found, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}, newNameGuard(limits), limits)
	dl.time = testWait
	if open != nil {
		dl.exempt = func(a netip.AddrPort) bool { return a == open.at }
	}
	return dl, asked
}

func resolvesTo(addrs ...string) func(string) []netip.Addr {
	var list []netip.Addr
	for _, a := range addrs {
		list = append(list, netip.MustParseAddr(a))
	}
	return func(string) []netip.Addr { return list }
}

func TestDialRefusesAddresses(t *testing.T) {
	secret := listenAt(t, "127.0.0.1:0")
	port := int(secret.at.Port())
	for _, tt := range []struct {
		name, host string
		found      []string
		internal   bool
		want       string // part of the error
		hint       bool
	}{
		{"a public name for loopback", "nip.test", []string{"127.0.0.1"}, false, "nip.test is at 127.0.0.1, a loopback address", true},
		{"loopback in IPv6", "nip.test", []string{"::1"}, false, "nip.test is at ::1, the loopback address", true},
		{"loopback of IPv4 inside IPv6", "nip.test", []string{"::ffff:127.0.0.1"}, false, "nip.test is at 127.0.0.1, a loopback address", true},
		{"this host by no address", "nip.test", []string{"0.0.0.0"}, true, "nip.test is at 0.0.0.0, this host", false},
		{"this host by no address in IPv6", "nip.test", []string{"::"}, true, "nip.test is at ::, the unspecified address", false},
		{"a metadata service", "metadata.test", []string{"169.254.169.254"}, true, "metadata.test is at 169.254.169.254, the metadata service", false},
		{"a metadata service behind NAT64", "metadata.test", []string{"64:ff9b::a9fe:a9fe"}, true, "169.254.169.254", false},
		{"several of them", "many.test", []string{"127.0.0.1", "10.0.0.1", "::1", "fe80::1"}, false, "many.test is at 10.0.0.1", true},
		{"loopback as a literal", "127.0.0.1", nil, false, "127.0.0.1 is a loopback address", true},
		{"IPv6 loopback as a literal", "::1", nil, false, "::1 is the loopback address", true},
		{"a metadata service as a literal", "169.254.169.254", nil, true, "169.254.169.254 is the metadata service", false},
		{"an address with a zone", "fe80::1%lo", nil, true, "not taken", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dl, asked := worldDialer(nil, resolvesTo(tt.found...))
			c, err := dl.Dial(t.Context(), Destination{Name: tt.host, Port: port}, Permit{Internal: tt.internal})
			if err == nil {
				c.Close()
				t.Fatal("connected")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want %q", err, tt.want)
			}
			var ae *AddressError
			if got := errors.As(err, &ae) && ae.Hint() != ""; got != tt.hint {
				t.Errorf("a hint: %v, want %v", got, tt.hint)
			}
			if got := asked.Load(); got > 1 || tt.found == nil && got > 0 {
				t.Errorf("%d lookups", got)
			}
		})
	}
	if n := secret.count.Load(); n != 0 {
		t.Errorf("loopback got %d connections", n)
	}
}

func TestDialConnects(t *testing.T) {
	open, _ := twoTargets(t)
	for _, tt := range []struct {
		name, host string
		found      []string
		internal   bool
	}{
		{"a public host", "public.test", []string{"127.1.1.1"}, false},
		{"a host with internal: true", "local.test", []string{"127.0.0.1"}, true},
		{"a literal with internal: true", "127.0.0.1", nil, true},
		{"a single label", "db", []string{"127.1.1.1"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dl, asked := worldDialer(open, resolvesTo(tt.found...))
			c, err := dl.Dial(t.Context(), Destination{Name: tt.host, Port: int(open.at.Port())}, Permit{Internal: tt.internal})
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			if want := min(len(tt.found), 1); asked.Load() != int64(want) {
				t.Errorf("%d lookups, want %d", asked.Load(), want)
			}
		})
	}
}

// The name's owner answers with a public address and with loopback in turn.
func TestRebindingReachesNothing(t *testing.T) {
	open, secret := twoTargets(t)
	flips := 0
	dl, asked := worldDialer(open, func(string) []netip.Addr {
		flips++
		if flips%2 == 0 {
			return []netip.Addr{secret.at.Addr()}
		}
		return []netip.Addr{open.at.Addr()}
	})
	connected := 0
	for range 100 {
		c, err := dl.Dial(t.Context(), Destination{Name: "flip.test", Port: int(open.at.Port())}, Permit{})
		var ae *AddressError
		switch {
		case err == nil:
			connected++
			c.Close()
		case !errors.As(err, &ae):
			t.Fatal(err)
		}
	}
	if connected != 50 || asked.Load() != 100 || secret.count.Load() != 0 {
		t.Errorf("%d of 100 connected with %d lookups, and loopback got %d connections", connected, asked.Load(), secret.count.Load())
	}
}

func TestMixedAnswersReachThePublicAddress(t *testing.T) {
	for _, found := range [][]string{{"127.0.0.1", "127.1.1.1"}, {"::1", "127.1.1.1"}, {"127.1.1.1", "127.0.0.1", "::1"}} {
		open, secret := twoTargets(t)
		dl, _ := worldDialer(open, resolvesTo(found...))
		for range 20 {
			c, err := dl.Dial(t.Context(), Destination{Name: "mixed.test", Port: int(open.at.Port())}, Permit{})
			if err != nil {
				t.Fatal(err)
			}
			if got := c.RemoteAddr().(*net.TCPAddr).AddrPort(); got != open.at {
				t.Errorf("connected to %v", got)
			}
			c.Close()
		}
		if secret.count.Load() != 0 {
			t.Errorf("%v: loopback got %d connections", found, secret.count.Load())
		}
	}
}

func TestWhatIsNotLookedUp(t *testing.T) {
	for _, tt := range []struct {
		name, host, wildcard string
		want                 string
	}{
		{"a name that is not in normal form", "A.test", "", "normal form"},
		{"a NUL", "a.test\x00.b.test", "", "not taken"},
		{"what inet_aton reads", "127.1", "", "not taken"},
		{"a port in the name", "a.test:80", "", "not taken"},
		{"a long label below a wildcard", strings.Repeat("x", 64-1) + ".wild.test", "wild.test", "a label of 63 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dl, asked := worldDialer(nil, func(string) []netip.Addr { return nil })
			dl.guard.label = 40
			_, err := dl.Dial(t.Context(), Destination{Name: tt.host, Port: 443}, Permit{Wildcard: tt.wildcard})
			if err == nil || !strings.Contains(err.Error(), tt.want) || asked.Load() != 0 {
				t.Errorf("%d lookups, %v; want %q", asked.Load(), err, tt.want)
			}
		})
	}
}

func TestLookupFailures(t *testing.T) {
	for _, tt := range []struct {
		name  string
		found []netip.Addr
		want  string
	}{
		{"the name does not exist", nil, "resolving gone.test: lookup gone.test: no such host"},
		{"the name has no address", []netip.Addr{}, "resolving gone.test: it has no address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dl, _ := worldDialer(nil, func(string) []netip.Addr { return tt.found })
			_, err := dl.Dial(t.Context(), Destination{Name: "gone.test", Port: 443}, Permit{})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestDialKeepsItsTime(t *testing.T) {
	limits := Limits{}.withDefaults()
	dl := newDialer(func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, newNameGuard(limits), limits)
	dl.time = 10 * time.Millisecond
	if _, err := dl.Dial(t.Context(), Destination{Name: "slow.test", Port: 443}, Permit{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestInterleave(t *testing.T) {
	for _, tt := range []struct {
		name     string
		in, want []string
	}{
		{"one family stays in order", []string{"192.0.2.1", "192.0.2.2"}, []string{"192.0.2.1", "192.0.2.2"}},
		{"families take turns", []string{"2001:db8::1", "2001:db8::2", "192.0.2.1"}, []string{"2001:db8::1", "192.0.2.1", "2001:db8::2"}},
		{"IPv4 inside IPv6 is IPv4", []string{"::ffff:192.0.2.1", "192.0.2.2"}, []string{"192.0.2.1", "192.0.2.2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := interleave(resolvesTo(tt.in...)("")); !slices.Equal(got, resolvesTo(tt.want...)("")) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	many := make([]netip.Addr, 100)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
	}
	if got := interleave(many); len(got) != dialMost {
		t.Errorf("of 100 addresses %d are tried", len(got))
	}
}

func TestRace(t *testing.T) {
	addrs := resolvesTo("192.0.2.1", "192.0.2.2", "192.0.2.3")("")
	for _, tt := range []struct {
		name string
		does []string // of each address: fails, hangs, late (hangs, then connects), connects
		want int      // which one wins; -1 for none
	}{
		{"the first connects", []string{"connects", "connects", "connects"}, 0},
		{"the first fails", []string{"fails", "connects", "connects"}, 1},
		{"the first hangs", []string{"hangs", "connects", "connects"}, 1},
		{"all but the last fail", []string{"fails", "fails", "connects"}, 2},
		{"one that comes late is closed", []string{"late", "connects", "connects"}, 1},
		{"all fail", []string{"fails", "fails", "fails"}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ends := make([]net.Conn, len(addrs))
			gone := make(chan struct{})
			c, err := race(t.Context(), addrs, func(ctx context.Context, a netip.Addr) (net.Conn, error) {
				i := slices.Index(addrs, a)
				if tt.does[i] == "fails" {
					return nil, fmt.Errorf("%v failed", a)
				}
				if tt.does[i] != "connects" {
					<-ctx.Done()
				}
				if tt.does[i] == "hangs" {
					return nil, ctx.Err()
				}
				mine, far := net.Pipe()
				ends[i] = mine
				if tt.does[i] == "late" {
					go func() { far.Read(make([]byte, 1)); close(gone) }()
				}
				return mine, nil
			})
			if tt.want < 0 {
				for _, a := range addrs {
					if err == nil || !strings.Contains(err.Error(), a.String()+" failed") {
						t.Errorf("got %v", err)
					}
				}
				return
			}
			if err != nil || c != ends[tt.want] {
				t.Fatalf("got %v, %v", c, err)
			}
			if slices.Contains(tt.does, "late") {
				select {
				case <-gone:
				case <-time.After(testWait):
					t.Error("it is still open")
				}
			}
		})
	}
}

func BenchmarkDialLoopback(b *testing.B) {
	open := listenAt(b, "127.1.1.1:0")
	dl, _ := worldDialer(open, resolvesTo("127.1.1.1"))
	for b.Loop() {
		c, err := dl.Dial(b.Context(), Destination{Name: "public.test", Port: int(open.at.Port())}, Permit{})
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}
