package detect

import (
	"reflect"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// TestAnAlertOfTheRecordIsTheAlert, except for its process, of which only the numbers remain.
func TestAnAlertOfTheRecordIsTheAlert(t *testing.T) {
	for _, want := range []Alert{
		{
			N: 3, Rule: "acme", Title: "T", Severity: High, Technique: []string{"T1083", "T1041"}, Session: "s", Time: time.Unix(1, 0).UTC(),
			Key: "k\xff", Count: 10, Events: []uint64{4, 7}, Process: event.Process{PID: 5, Exec: 2}, Object: "/o\n", Explanation: "e",
		},
		{N: 1, Session: "s", Time: time.Unix(1, 0).UTC(), Count: 1},
	} {
		e := want.Event()
		e.N, e.Session, e.Time = want.N, want.Session, want.Time
		if got := AlertOf(e); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nwant %+v", got, want)
		}
	}
}
