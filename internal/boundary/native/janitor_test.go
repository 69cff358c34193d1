//go:build linux

package native

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestTheJanitorDiesBeforeItIsWatched has the janitor end right after it made the
// first process inside, which asks for its death signal only then: that one must
// end too, and the command must not be executed.
func TestTheJanitorDiesBeforeItIsWatched(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	dir := temporary(t)
	testenv.NoLeaks(t, dir)
	spec, err := scene(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := &Backend{tamper: func(p *program) {
		n := -1
		for i := len(p.ops) - 1; i >= 0; i-- {
			switch p.ops[i].name {
			case "report first process":
				p.ops[i] = op{name: "end", nr: unix.SYS_EXIT_GROUP, judge: ignore, args: [6]uint64{1}}
			case "die with parent":
				n = i
			}
		}
		standBefore(p, n)
		p.ops[n].args[0] = p.words(0, uint64(200*time.Millisecond))
	}}
	p, err := b.Start(t.Context(), spec)
	if err == nil {
		p.Kill("")
		p.Wait()
		t.Error("the run went on without its janitor")
	}
	if _, err := os.Stat(spec.Plan.Workspace + "/ran"); err == nil {
		t.Error("the command was executed")
	}
}
