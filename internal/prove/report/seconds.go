package report

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Seconds is a duration that is seconds with three decimals in JSON.
type Seconds time.Duration

// longest is the longest duration that is accepted, in seconds: thirty years.
const longest = 1e9

// String is the duration for people.
func (s Seconds) String() string {
	d := time.Duration(s)
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// decimal is the duration for XML and JSON.
func (s Seconds) decimal() string {
	return strconv.FormatFloat(time.Duration(s).Seconds(), 'f', 3, 64)
}

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) { return []byte(s.decimal()), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	var f float64
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("reading a duration: %w", err)
	}
	if f < 0 || f > longest {
		return fmt.Errorf("reading a duration: %v s is not between 0 and %v", f, float64(longest))
	}
	*s = Seconds(math.Round(f*1000)) * Seconds(time.Millisecond)
	return nil
}
