package logs

import (
	"errors"
	"fmt"
	"time"
)

// ageFlag is a time span: a number of h, m and s as Go writes them, or of days
// and weeks.
type ageFlag time.Duration

func (f *ageFlag) String() string { return "" }

func (f *ageFlag) Type() string { return "DURATION" }

func (f *ageFlag) Set(s string) error {
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		var n int
		if _, err := fmt.Sscanf(s, "%d"+suffix, &n); err == nil && fmt.Sprint(n)+suffix == s && n >= 0 && n < 100_000 {
			*f = ageFlag(time.Duration(n) * unit)
			return nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return errors.New("it is not a time span such as 30d, 2w or 12h")
	}
	*f = ageFlag(d)
	return nil
}
