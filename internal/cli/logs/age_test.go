package logs

import (
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	for s, want := range map[string]time.Duration{"30d": 720 * time.Hour, "2w": 336 * time.Hour, "12h": 12 * time.Hour, "0d": 0, "-1d": -1, "d": -1, "1.5d": -1, "x": -1, "-1h": -1, "": -1} {
		var f ageFlag
		err := f.Set(s)
		if got := time.Duration(f); (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q is %v, %v", s, got, err)
		}
	}
}
