package audit

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestTime: what is accepted is exactly what package time reads and appendTime writes.
func TestTime(t *testing.T) {
	check := func(v string) {
		t.Helper()
		var want time.Time
		valid := want.UnmarshalText([]byte(v)) == nil && string(appendTime(nil, want)) == v
		if got, ok := parseTime([]byte(v)); ok != valid || ok && !got.Equal(want) {
			t.Errorf("%q: %v, %v, want %v, %v", v, got, ok, want, valid)
		}
	}
	for at := time.Date(0, 1, 1, 23, 59, 59, 1, time.UTC); at.Year() < 10_000; at = at.AddDate(0, 0, 13) {
		check(string(appendTime(nil, at)))
	}
	for _, v := range strings.Fields(`2024-02-29T00:00:00Z 2023-02-29T00:00:00Z 1900-02-29T00:00:00Z 2000-02-29T00:00:00Z 2024-02-30T00:00:00Z 2024-04-31T00:00:00Z
		2024-00-01T00:00:00Z 2024-13-01T00:00:00Z 2024-01-00T00:00:00Z 2024-01-32T00:00:00Z 2024-01-01T24:00:00Z 2024-01-01T00:60:00Z 2024-01-01T00:00:60Z
		2024-01-01T00:00:00.Z 2024-01-01T00:00:00.0Z 2024-01-01T00:00:00.10Z 2024-01-01T00:00:00.000000001Z 2024-01-01T00:00:00.0000000001Z 2024-01-01T00:00:00,1Z
		2024-01-01T00:00:00z 2024-01-01t00:00:00Z 2024-01-01T00:00:00 2024-01-01T00:00:00+00:00 2024-1-01T00:00:00Z 2024-01-01T0:00:00Z -001-01-01T00:00:00Z
		10000-01-01T00:00:00Z 0000-01-01T00:00:00Z 9999-12-31T23:59:59.999999999Z Z`) {
		check(v)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 { // one or two bytes changed
		v := appendTime(nil, time.Unix(random.Int64N(1<<36)-1<<34, random.Int64N(1e9)))
		for range 1 + random.IntN(2) {
			v[random.IntN(len(v))] = "0123456789-:.TZ+ "[random.IntN(17)]
		}
		check(string(v))
	}
	check("")
}
