package approvals

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/cli/screen"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/command"
)

// approveScreen shows what waits until the user has seen enough of it.
func (a *app) approveScreen(c *cobra.Command, via string, untilEmpty bool) error {
	in, out, err := a.onTerminal()
	if err != nil {
		return err
	}
	p, err := a.approver(via)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGWINCH, syscall.SIGCONT)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	s, err := screen.NewFullScreen(in, out, a.Lookup("NO_COLOR") == "")
	if err != nil {
		return err
	}
	defer s.Leave() // also of a panic, which is printed after it
	d := &session{approver: p, screen: s, signals: signals, untilEmpty: untilEmpty, history: a.newHistory(), stderr: a.Stderr, screenState: screenState{quiet: time.Now()}}
	d.screenState.before = d.history.recentLines
	if untilEmpty {
		d.screenState.quietTime = quietPopup
	}
	err = d.run(ctx, cancel)
	if lerr := s.Leave(); err == nil {
		err = lerr
	}
	return err
}

// session joins the board with the terminal and the runs.
type session struct {
	*approver
	screenState screenState
	screen      *screen.FullScreen
	history     *history
	signals     chan os.Signal
	stderr      io.Writer
	untilEmpty  bool
	shown       string // which request the screen shows
}

// outcome is what became of an answer.
type outcome struct {
	answer consent.Answer
	err    error
}

// run shows and obeys until there is nothing more to do.
func (d *session) run(ctx context.Context, cancel context.CancelFunc) error {
	waits := make(chan []consent.Waiting)
	broken := make(chan error, 1)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		defer d.restoreTerminal()
		broken <- consent.FollowWaits(ctx, d.state, func(all []consent.Waiting) {
			select {
			case waits <- all:
			case <-ctx.Done():
			}
		})
	}()
	defer func() { cancel(); <-followed }()
	keys := make(chan screen.Key, 64)
	go d.screen.Keys(keys)
	results := make(chan outcome, 1)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for began := time.Now(); !d.empty(time.Since(began)); {
		if d.draw() != nil {
			return nil // the terminal is gone
		}
		select {
		case all := <-waits:
			d.screenState.show(all, time.Now())
			d.history.readForNew(d.screenState.requests)
		case k := <-keys:
			w := d.screenState.press(k)
			if w.quit {
				return nil
			}
			d.do(ctx, w, results)
		case r := <-results:
			d.screenState.answered(r.answer, r.err)
		case sig := <-d.signals:
			if end, err := d.signal(sig); end {
				return err
			}
		case <-d.history.changed:
		case <-tick.C:
		case err := <-broken:
			return err
		}
	}
	return nil
}

// emptyWait is how long a pop-up waits for the request that it was opened for.
const emptyWait = 2 * time.Second

// empty reports whether a pop-up has nothing more to show.
func (d *session) empty(after time.Duration) bool {
	return d.untilEmpty && len(d.screenState.requests) == 0 && !d.screenState.busy && after > emptyWait
}

// restoreTerminal gives the terminal back before a panic of another goroutine is printed.
func (d *session) restoreTerminal() {
	if r := recover(); r != nil {
		d.screen.Leave()
		panic(r)
	}
}

// draw shows the board. The time in which no key counts begins when a request is on the
// screen.
func (d *session) draw() error {
	now := time.Now()
	rows, cols := d.screen.Size()
	if err := d.screen.Draw(d.screenState.draw(rows, cols, now)); err != nil {
		return err
	}
	if d.shown != d.screenState.selected {
		d.shown, d.screenState.quiet = d.screenState.selected, time.Now()
	}
	return nil
}

// do carries out what a key led to.
func (d *session) do(ctx context.Context, w action, results chan<- outcome) {
	switch {
	case w.suspend:
		d.screen.Leave()
		screen.Suspend()
		d.resume()
	case w.redraw:
		d.screen.Forget()
	case w.answer != nil:
		answer := *w.answer
		go func() {
			defer d.restoreTerminal()
			results <- outcome{answer, d.answer(ctx, answer)}
		}()
	}
}

// resume takes the terminal again after a stop. What was typed meanwhile was
// typed for something else.
func (d *session) resume() {
	d.screen.Leave()
	d.screen.Enter() // where that fails, drawing does too
	d.shown = ""
	d.screenState.prompt = nil
}

// signal does what a signal means.
func (d *session) signal(sig os.Signal) (end bool, err error) {
	switch sig {
	case syscall.SIGWINCH:
		d.screen.Measure()
		return false, nil
	case syscall.SIGCONT:
		d.resume()
		return false, nil
	case syscall.SIGINT:
		return true, nil
	}
	s, _ := sig.(syscall.Signal)
	d.screen.Leave()
	fmt.Fprintf(d.stderr, "holdfast: ended by signal %d\n", int(s))
	return true, command.Exit(128 + int(s))
}
