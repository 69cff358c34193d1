package network

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// TestRefusalsDoNotFillTheRecord refuses what is always the same, and what is
// always another; then comes what matters.
func TestRefusalsDoNotFillTheRecord(t *testing.T) {
	w := start(t, nil, permits("a.example.org", 443, policy.TLS))
	now := time.Now()
	w.throttle.now = func() time.Time { return now }
	same := Destination{Name: "b.example.org", Port: 443, Door: Intercepted}
	for range 5000 {
		w.refuse(same, "no rule allows it")
	}
	for i := range 50_000 {
		w.refuse(Destination{Name: fmt.Sprintf("n%d.example.org", i), Port: 443, Door: Connect}, "no rule allows it")
	}
	recorded := func() (n int) {
		for _, e := range w.sink.all() {
			if e.Action != event.RecordDrop {
				n++
			}
		}
		return n
	}
	if n := recorded(); n > refusedMinute {
		t.Errorf("%d records", n)
	}
	w.refuse(Destination{Name: "a.example.org", Port: 443, Door: Intercepted}, "request smuggling: of a test", highSeverity)
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
	if n := recorded(); n > refusedMost+1 {
		t.Errorf("%d records of one run", n)
	}
}

// TestAFloodHidesNoAlarm refuses more grave attempts than are recorded; then a
// honeytoken and a placeholder are on their way out. The record counts the refusals
// that are not in it.
func TestAFloodHidesNoAlarm(t *testing.T) {
	w := start(t, nil, permits("a.example.org", 443, policy.TLS))
	now := time.Now()
	w.throttle.now = func() time.Time { return now }
	const flood = 10_000
	for i := range flood {
		w.refuse(Destination{Name: fmt.Sprintf("a\x00%d", i), Port: 443, Door: Socks}, "it is not taken as a host name", highSeverity)
	}
	x := &exchange{httpConn: &httpConn{engine: w.Engine, to: Destination{Name: "a.example.org", Port: 443}}}
	x.denyLeak(&leak{credential: "demo", where: "in its URL"})
	w.decoySent("a.example.org:443", "github", "in its body", Intercepted, "/")
	for range 50 {
		w.refuse(Destination{Name: "b.example.org", Port: 443, Door: Intercepted}, "no rule allows it")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	seen, lost, same := map[string]int{}, 0, 0
	for _, e := range w.sink.all() {
		seen[e.Action]++
		n, _ := strconv.Atoi(e.Detail["count"])
		lost += n
		if e.Object == "b.example.org:443" {
			n, _ := strconv.Atoi(e.Detail["again"])
			same += 1 + n
		}
	}
	if seen[event.CredentialAlert] != 1 || seen[event.HoneySent] != 1 {
		t.Errorf("the alarms are not in the record: %v", seen)
	}
	if want := flood - refusedMinute; lost != want {
		t.Errorf("%d are said to be lost, want %d: %v", lost, want, seen)
	}
	if same != 50 {
		t.Errorf("%d refusals of the same, want 50", same)
	}
}
