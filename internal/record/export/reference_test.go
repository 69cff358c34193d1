package export

import (
	"strings"
	"testing"
)

// TestReference looks for each field, action and detail in the output.
func TestReference(t *testing.T) {
	text := Reference()
	for _, f := range fields {
		if !strings.Contains(text, "\n| `"+f.name+"` |") {
			t.Errorf("the reference lacks the field %s", f.name)
		}
	}
	for _, a := range actions {
		if !strings.Contains(text, "\n| `"+a.name+"` |") {
			t.Errorf("the reference lacks the action %s", a.name)
		}
	}
	for _, d := range details {
		if !strings.Contains(text, "\n| `"+d.key+"` |") {
			t.Errorf("the reference lacks the detail %s", d.key)
		}
	}
	if Reference() != text {
		t.Error("the reference differs from call to call")
	}
}
