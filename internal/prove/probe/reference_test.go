package probe

import (
	"strings"
	"testing"
)

// TestReference looks for each row in the output.
func TestReference(t *testing.T) {
	text := Reference()
	for _, r := range All() {
		if !strings.Contains(text, "\n### "+r.ID+"\n") {
			t.Errorf("the reference lacks %s", r.ID)
		}
	}
	if Reference() != text {
		t.Error("the reference differs from call to call")
	}
}
