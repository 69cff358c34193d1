package network

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestWildcardsAreLimited(t *testing.T) {
	w := newNameWorld(t, Off, Limits{Labels: 40, NamesMinute: 3, BytesHour: 60})
	now := time.Now()
	w.guard.now = func() time.Time { return now }
	for _, tt := range []struct {
		name, ask string
		later     time.Duration
		says      string // "" for answered
	}{
		{"the first name", "a.wild.test.", 0, ""},
		{"the same name costs nothing", "A.wild.test.", 0, ""},
		{"a label that is too long", strings.Repeat("x", 41) + ".wild.test.", 0, "a label of 41 bytes"},
		{"the second name", "b.wild.test.", 0, ""},
		{"the third name", "c.wild.test.", 0, ""},
		{"the fourth within a minute", "d.wild.test.", 0, "3 different names a minute"},
		{"a name that was admitted before", "a.wild.test.", 0, ""},
		{"a name that a rule gives in full", "full.wild.test.", 0, ""},
		{"a minute later", strings.Repeat("y", 40) + ".wild.test.", time.Minute, ""},
		{"more bytes than an hour has", strings.Repeat("z", 40) + ".wild.test.", time.Minute, "60 bytes of different names an hour"},
		{"an hour later", strings.Repeat("z", 40) + ".wild.test.", time.Hour, ""},
	} {
		now = now.Add(tt.later)
		m := w.ask(t, ednsQuery(tt.ask, dns.TypeA))
		if tt.says == "" {
			if len(m.Answer) != 1 {
				t.Errorf("%s: got %v", tt.name, m)
			}
			continue
		}
		if ede := edeOf(m); m.Rcode != dns.RcodeRefused || ede == nil || !strings.Contains(ede.ExtraText, tt.says) {
			t.Errorf("%s: got %v", tt.name, m)
		}
		if last := w.recorded[len(w.recorded)-1]; last.Answered || !strings.Contains(last.Reason, tt.says) || last.Rule != "policy.yaml:2" {
			t.Errorf("%s: recorded %+v", tt.name, last)
		}
	}
}

func TestFloodOfQueries(t *testing.T) {
	w := newNameWorld(t, Off, Limits{Queries: 100})
	now := time.Now()
	w.now = func() time.Time { return now }
	codes := map[int]int{}
	for i := range 10_000 {
		codes[w.ask(t, ednsQuery(strings.Repeat("q", i%60+1)+".wild.test.", dns.TypeA)).Rcode]++
	}
	if codes[dns.RcodeSuccess] > 100 || codes[dns.RcodeRefused] < 9_900 {
		t.Errorf("codes %v", codes)
	}
	if len(w.recorded) > 110 {
		t.Errorf("%d were recorded", len(w.recorded))
	}
	now = now.Add(time.Second)
	if m := w.ask(t, ednsQuery("allowed.test.", dns.TypeA)); m.Rcode != dns.RcodeSuccess {
		t.Errorf("a second later: %v", m)
	}
}

func TestFloodOfNamesHoldsNoMemory(t *testing.T) {
	w := newNameWorld(t, Through, Limits{Queries: 1 << 20})
	now := time.Now()
	w.now = func() time.Time { return now }
	for i := range 20_000 {
		now = now.Add(time.Millisecond)
		w.ask(t, ednsQuery(fmt.Sprintf("n%d.example.", i), dns.TypeA))
		w.recorded = nil
	}
	if n := len(w.nameServer.recorded); n > recordMost {
		t.Errorf("%d recordings are remembered", n)
	}
	if n := len(w.names.names); n > mapNames {
		t.Errorf("%d names have an address", n)
	}
	if m := w.ask(t, ednsQuery("one.more.example.", dns.TypeA)); m.Rcode != dns.RcodeRefused || !strings.Contains(edeOf(m).ExtraText, "too many different names") {
		t.Errorf("got %v", m)
	}
	if m := w.ask(t, ednsQuery("allowed.test.", dns.TypeA)); len(m.Answer) != 1 {
		t.Errorf("a name that a rule gives in full got %v", m)
	}
}
