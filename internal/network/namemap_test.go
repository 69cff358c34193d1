package network

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
)

func TestNameMap(t *testing.T) {
	m := NewNameMap()
	a, err := m.Address("a.test", wildName)
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Address("b.test", wildName)
	if err != nil || a == b {
		t.Fatalf("two names at %v and %v, %v", a, b, err)
	}
	if again, _ := m.Address("a.test", wildName); again != a {
		t.Errorf("a name moved from %v to %v", a, again)
	}
	for _, addr := range []netip.Addr{a, netip.AddrFrom16(a.As16())} {
		if name, ok := m.Name(addr); !ok || name != "a.test" {
			t.Errorf("%v is %q, %v", addr, name, ok)
		}
	}
	if name, ok := m.Name(netip.MustParseAddr("192.0.2.1")); ok {
		t.Errorf("an address outside is %q", name)
	}
}

func TestNameMapsBeginElsewhere(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for range 64 {
		a, err := NewNameMap().Address("a.test", wildName)
		if err != nil {
			t.Fatal(err)
		}
		seen[a] = true
	}
	if len(seen) < 60 { // of 131072; 64 draws agree in more than 4 with a chance below 10⁻¹⁰
		t.Errorf("64 maps begin at %d addresses", len(seen))
	}
}

func TestNameMapIsBounded(t *testing.T) {
	m := NewNameMap()
	m.start = 1<<17 - 100 // so that it runs over the end
	seen := map[netip.Addr]bool{}
	fill := func(prefix string, n int, as nameClass) {
		for i := range n {
			a, err := m.Address(fmt.Sprintf("%s%d.test", prefix, i), as)
			if err != nil {
				t.Fatalf("name %d: %v", i, err)
			}
			last := a.As4()[3]
			if seen[a] || !synthetic.Contains(a) || last == 0 || last == 255 {
				t.Fatalf("name %d has %v", i, a)
			}
			seen[a] = true
		}
	}
	fill("wild", mapNames, wildName)
	if _, err := m.Address("one-more.test", wildName); !errors.Is(err, errMapFull) {
		t.Errorf("a full map says %v", err)
	}
	if _, err := m.Address("wild7.test", wildName); err != nil {
		t.Errorf("a name that is in it: %v", err)
	}
	fill("exact", mapReserved, fullName)
	if _, err := m.Address("another.test", fullName); !errors.Is(err, errMapFull) {
		t.Errorf("a map that is full of rules says %v", err)
	}
}

func TestNameMapConcurrently(t *testing.T) {
	m := NewNameMap()
	var wg sync.WaitGroup
	got := make([][]netip.Addr, 8)
	for g := range got {
		wg.Go(func() {
			for i := range 200 {
				a, err := m.Address(fmt.Sprintf("n%d.test", i), wildName)
				if err != nil {
					t.Error(err)
				}
				if name, ok := m.Name(a); !ok || name != fmt.Sprintf("n%d.test", i) {
					t.Errorf("%v is %q", a, name)
				}
				got[g] = append(got[g], a)
			}
		})
	}
	wg.Wait()
	for g := range got {
		for i := range got[g] {
			if got[g][i] != got[0][i] {
				t.Fatalf("name %d has %v and %v", i, got[g][i], got[0][i])
			}
		}
	}
}
