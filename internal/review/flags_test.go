//go:build linux

package review

import (
	"testing"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

func TestNamesThatAreNotWhatTheySeem(t *testing.T) {
	for name, flagged := range map[string]bool{
		"p\u0430ckage.json": true, "src/\u0430\u0440\u0440/x": true, "M\u0391KEFILE": true, "\uff45nv": true, "\u0406\u041e": true,
		"a\u034fb": true, "a\u2800b": true, "a\u17b4b": true, "a\U00016fe4b": true, "a\u115fb": true, "a\u200bb": true, "a\ufe0fb": true,
		"a\u202eb": true, "a\tb": true, "a\u00a0b": true, "-rf": true, "src/-x": true,
		"a": false, "a b": false, "caf\u00e9.txt": false, "cafe\u0301.txt": false, "\u0444\u0430\u0439\u043b.txt": false, "\u65e5\u672c\u8a9e.md": false,
		"\u05e9\u05dc\u05d5\u05dd.txt": false, "back\\slash": false, "many      spaces": false, "bad\xff": false,
	} {
		c := &Change{Kind: Added, Path: workspace.Name(name), Type: File}
		if c.judge("/ws"); c.Flagged() != flagged {
			t.Errorf("%q: flags %+v", name, c.Flags)
		}
	}
	// What was there before the run says nothing about the run.
	c := &Change{Kind: Modified, Path: "p\u0430ckage.json", OldType: File, Type: File}
	if c.judge("/ws"); c.Flagged() {
		t.Errorf("%+v", c.Flags)
	}
}
