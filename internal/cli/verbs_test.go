package cli

import (
	"testing"

	"holdfast.dev/holdfast/internal/floor/command"
)

// TestVerbs: a verb has the name by which it is looked for, and is the same alone.
func TestVerbs(t *testing.T) {
	a, err := command.New("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	whole := newRoot(a, nil)
	for _, v := range verbs() {
		if name := v.make(a).Name(); name != v.name {
			t.Errorf("the verb %q makes the command %q", v.name, name)
		}
		alone, _, err := newRoot(a, []string{v.name}).Find([]string{v.name})
		if err != nil {
			t.Errorf("%s: %v", v.name, err)
			continue
		}
		beside, _, err := whole.Find([]string{v.name})
		if err != nil || alone.UsageString() != beside.UsageString() {
			t.Errorf("%s alone: %v\n%s\nand beside all others:\n%s", v.name, err, alone.UsageString(), beside.UsageString())
		}
	}
	if n := len(newRoot(a, []string{"--help"}).Commands()); n != len(whole.Commands()) {
		t.Errorf("%d commands for --help, want %d", n, len(whole.Commands()))
	}
}
