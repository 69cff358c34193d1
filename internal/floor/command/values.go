package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// TextFlag is a text that is not empty: an empty variable of a script must not
// turn into the default.
type TextFlag string

func (f *TextFlag) String() string { return string(*f) }

// Type implements the flag type of cobra.
func (f *TextFlag) Type() string { return "TEXT" }

// Set implements the flag type of cobra.
func (f *TextFlag) Set(value string) error {
	if value == "" {
		return errors.New("it is empty")
	}
	*f = TextFlag(value)
	return nil
}

// CountFlag is a number that is not negative.
type CountFlag int

func (f *CountFlag) String() string { return "" }

// Type implements the flag type of cobra.
func (f *CountFlag) Type() string { return "N" }

// Set implements the flag type of cobra.
func (f *CountFlag) Set(s string) error {
	var n int
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil || fmt.Sprint(n) != s || n < 0 || n > math.MaxInt32 {
		return errors.New("it must be a whole number, 0 or more")
	}
	*f = CountFlag(n)
	return nil
}

// WriteJSONLine writes a value in one line.
func WriteJSONLine(w io.Writer, value any) error { return encodeJSON(w, value, "") }

// WriteJSON writes a value in lines that are indented by two spaces.
func WriteJSON(w io.Writer, value any) error { return encodeJSON(w, value, "  ") }

func encodeJSON(w io.Writer, value any, indent string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}
