package expr

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/canonical"
	"holdfast.dev/holdfast/internal/floor/event"
)

// value is of one of the types of package expr; which one, the checker knows.
type value struct {
	text string
	n    int64 // of an int; 1 of true; nanoseconds of a duration
	ref  any   // time.Time; list: []string or []value; map: map[string]string or ToolArguments
}

func boolValue(b bool) value {
	if b {
		return value{n: 1}
	}
	return value{}
}

func (v value) time() time.Time {
	t, _ := v.ref.(time.Time)
	return t
}

// length is of a list or a map.
func (v value) length() int {
	switch all := v.ref.(type) {
	case []string:
		return len(all)
	case []value:
		return len(all)
	case map[string]string:
		return len(all)
	case ToolArguments:
		return len(all)
	}
	return 0
}

// element is one of a list, which has it.
func (v value) element(i int) value {
	if all, ok := v.ref.([]string); ok {
		return value{text: all[i]}
	}
	return v.ref.([]value)[i]
}

func concatenate(a, b value) value {
	x, xTexts := a.ref.([]string)
	y, yTexts := b.ref.([]string)
	if xTexts && yTexts {
		return value{ref: slices.Concat(x, y)}
	}
	all := make([]value, 0, a.length()+b.length())
	for _, list := range []value{a, b} {
		for i := range list.length() {
			all = append(all, list.element(i))
		}
	}
	return value{ref: all}
}

// compare orders two values of one type that has an order.
func compare(a, b value) int {
	if a.ref != nil {
		return a.time().Compare(b.time())
	}
	return cmp.Or(strings.Compare(a.text, b.text), cmp.Compare(a.n, b.n))
}

// key looks up what a map has under a key; "" if it has nothing, so that a condition
// about a detail that only some events have need not ask for it first. It is an error
// if the key is there in different case: whether the program that gets the arguments
// distinguishes case is not known.
func (f *frame) key(of value, key string) (text string, found bool, err error) {
	if m, ok := of.ref.(map[string]string); ok {
		text, found = m[key]
		return text, found, nil
	}
	m, _ := of.ref.(ToolArguments)
	if text, found = m[key]; found {
		return text, true, nil
	}
	folded := canonical.FoldName(key)
	for other := range m {
		if err := f.spend(1 + len(other)); err != nil {
			return "", false, err
		}
		if canonical.FoldName(other) == folded {
			return "", false, fmt.Errorf("%q differs from the key %q only in case", key, other)
		}
	}
	return "", false, nil
}

// keys makes the list of a map's keys; a list stays as it is.
func (v value) keys() value {
	switch m := v.ref.(type) {
	case map[string]string:
		return value{ref: slices.Sorted(maps.Keys(m))}
	case ToolArguments:
		return value{ref: slices.Sorted(maps.Keys(m))}
	}
	return v
}

// empty is the value of a missing field.
func empty(t typ) value {
	switch {
	case t == tTime:
		return value{ref: time.Time{}}
	case t == tMap:
		return value{ref: map[string]string(nil)}
	case t.element() != "":
		return value{ref: []string(nil)}
	}
	return value{}
}

// convert makes a value of what a field has, and names its type: "" for what is
// of none.
func convert(v any) (value, typ) {
	switch x := v.(type) {
	case string:
		return value{text: x}, tText
	case []string:
		return value{ref: v}, tTexts
	case bool:
		return boolValue(x), tBool
	case int:
		return value{n: int64(x)}, tInt
	case map[string]string, ToolArguments:
		return value{ref: v}, tMap
	case event.Verdict:
		return value{text: x.String()}, tText
	case event.Sensor:
		return value{text: string(x)}, tText
	case int64:
		return value{n: x}, tInt
	case uint64:
		return value{n: int64(x)}, tInt
	case time.Time:
		return value{ref: v}, tTime
	}
	return value{}, ""
}
