package report

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Seconds is a duration that JSON has as seconds with three decimals.
type Seconds time.Duration

// longest is the longest duration that is read, in seconds: thirty years.
const longest = 1e9

// String is the duration as a person reads it.
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

// decimal is the duration as XML and JSON have it.
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
