package egress

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

// TestRefusalsDoNotFillTheRecord refuses what is always the same, and what is
// always another; then comes what matters.
func TestRefusalsDoNotFillTheRecord(t *testing.T) {
	w := start(t, nil, permits("a.example.org", 443, policy.TLS))
	now := time.Now()
	w.often.now = func() time.Time { return now }
	same := Destination{Name: "b.example.org", Port: 443, Door: Intercepted}
	for range 5000 {
		w.refuse(same, "no rule allows it")
	}
	for i := range 50_000 {
		w.refuse(Destination{Name: fmt.Sprintf("n%d.example.org", i), Port: 443, Door: Connect}, "no rule allows it")
	}
	if n := len(w.sink.all()); n > refusedMinute {
		t.Errorf("%d records", n)
	}
	w.refuse(Destination{Name: "a.example.org", Port: 443, Door: Intercepted}, "request smuggling: of a test", high)
	all := w.sink.all()
	if last := all[len(all)-1]; last.Detail["severity"] != "high" {
		t.Errorf("the last record is %+v", last)
	}
	if n := w.Stats().Refused; n != 55_001 {
		t.Errorf("%d were counted", n)
	}
	now = now.Add(2 * time.Minute)
	w.refuse(same, "no rule allows it")
	all = w.sink.all()
	if last := all[len(all)-1]; !strings.HasPrefix(last.Object, "b.example.org") || last.Detail["again"] != "4980" {
		t.Errorf("the last record is %+v", last)
	}
	for range 200 {
		now = now.Add(time.Minute)
		for i := range 1000 {
			w.refuse(Destination{Name: netip.AddrFrom4([4]byte{byte(i), byte(i >> 8), byte(now.Unix()), byte(now.Unix() >> 8)}).String(), Port: 25}, "no name maps to that address")
		}
	}
	if n := len(w.sink.all()); n > refusedMost+1 {
		t.Errorf("%d records of one run", n)
	}
}
