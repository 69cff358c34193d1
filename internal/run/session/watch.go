//go:build linux

package session

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// settleTick is how often a long settling reports what it does.
const settleTick = 3 * time.Second

// User is notified of what takes long when trees are settled, and may end it.
type User struct {
	Signals  <-chan os.Signal
	Progress func(line string) // nil for not
}

// watch reports what a long settling does, and lets the user end it: an interrupt shows
// what would stay unexamined, a second one ends it, and so does a request to terminate.
// What was not looked at is then listed as a whole.
func (u User) watch(b *workspace.Budget) (done func()) {
	ended := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		tick := time.NewTicker(settleTick)
		defer tick.Stop()
		asked := false
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				u.reportProgress(fmt.Sprintf("examining what the run left: %d files so far, in %s", b.Files(), b.At()))
			case s := <-u.Signals:
				asked = u.handleSignal(b, s, asked)
			}
		}
	})
	return func() { close(ended); watcher.Wait() }
}

// handleSignal answers a signal that arrives while a run is settled.
func (u User) handleSignal(b *workspace.Budget, s os.Signal, asked bool) bool {
	switch {
	case s == syscall.SIGTERM || s == syscall.SIGINT && asked:
		b.Stop()
		u.reportProgress("ended: what was not examined is listed as unexamined")
	case s == syscall.SIGINT:
		left := "what is left to do"
		if trees := b.Left(); len(trees) > 0 {
			left = "what was not examined in " + strings.Join(trees, ", ")
		}
		u.reportProgress(fmt.Sprintf("still examining what the run left: %d files so far, in %s; ended now, %s would stay unexamined, "+
			"with whatever the host would execute in it: Ctrl-C again ends it", b.Files(), b.At(), left))
		return true
	}
	return asked
}

func (u User) reportProgress(line string) {
	if u.Progress != nil {
		u.Progress(line)
	}
}
