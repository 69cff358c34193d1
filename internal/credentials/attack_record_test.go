package credentials

import (
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// TestDenialsDoNotFillTheRecord asks again and again for what is used up.
func TestDenialsDoNotFillTheRecord(t *testing.T) {
	d, at := &diary{}, newClock()
	cred := envCredential("forge", "TOKEN")
	cred.Uses = 1
	b := newBroker(t, Config{Credentials: []policy.Credential{cred}, Sink: d, Now: at.now, Env: environment("TOKEN", theSecret)})
	if _, err := b.Open(t.Context(), "forge", toAPI); err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		if _, err := b.Open(t.Context(), "forge", toAPI); err == nil {
			t.Fatal("it was opened twice")
		}
	}
	if n := d.count(event.Denied); n != denialsMinute {
		t.Errorf("%d records of one refusal", n)
	}
	at.advance(time.Minute)
	b.Open(t.Context(), "forge", toAPI)
	if n := d.count(event.Denied); n != denialsMinute+1 {
		t.Errorf("%d records a minute later", n)
	}
}
