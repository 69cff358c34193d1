package screen

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// Offer is something that waits, and may be taken over as a whole.
type Offer struct {
	Key   string       // the answer that takes this one alone
	What  string       // such as "2 files that programs here obey"
	Text  string       // all of what would be taken, in lines that are safe on a terminal
	Later string       // the command that decides later
	Part  bool         // something waits there that Text does not show
	Take  func() error // takes what Text shows, and nothing else
}

// Limits of what is shown before the question without being asked for.
const (
	maxLines = 60
	maxBytes = 6000
)

// MaxText is how many bytes "look" shows. What is longer is no answer's to take.
const MaxText = 1 << 20

// patience is how long the question waits for an answer.
const patience = 5 * time.Minute

// The terminal has to be still for quiet before a question, for what is typed to be meant
// for it, and becomes so within maxKeys, or nothing is asked.
const (
	quiet   = time.Second
	maxKeys = 10 * time.Second
)

// neutral ends what a program may have left on in the terminal and what could hide text:
// a sequence or string without an end, output that waits, the other screen, margins (setting
// them moves the cursor, which is saved meanwhile), lines that do not wrap, insertion, a
// cursor that is not seen, colours and what each looks like, other alphabets and bytes; and
// what is below the cursor (ECMA-48, ISO 2022, xterm's control sequences).
const neutral = "\x18\x1b\\\x1b[?2026l\x1b[?1047l" +
	"\x1b7\x1b[?69l\x1b[r\x1b8" +
	"\x1b[?7h\x1b[4l\x1b[?25h\x1b[0m\x0f\x1b(B\x1b%G" +
	"\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b[J"

// AskOffers shows offers on the terminal in and asks about them: the one question at the
// end of a run. Nothing is taken that was not
// shown in full, and no answer is no.
func AskOffers(a *command.App, in *os.File, all []Offer) error {
	var text strings.Builder
	var what []string
	keys := ""
	for _, o := range all {
		text.WriteString(o.Text)
		what = append(what, o.What)
		if len(all) > 1 {
			keys += "/" + o.Key
		}
	}
	if len(all) == 0 || text.Len() > MaxText {
		sayLater(a, all)
		return nil
	}
	io.WriteString(a.Stderr, neutral)
	shown := text.Len() <= maxBytes && strings.Count(text.String(), "\n") <= maxLines
	if shown {
		io.WriteString(a.Stderr, text.String())
	}
	question := "take over " + strings.Join(what, " and ") + "?"
	for {
		answer := ask(a, in, question+" [y/N/look"+keys+"]")
		chosen, rest := all, []Offer(nil)
		for i := range all {
			if answer == all[i].Key && len(all) > 1 {
				answer, chosen, rest = "y", all[i:i+1], slices.Concat(all[:i], all[i+1:])
			}
		}
		switch {
		case answer == "look" || answer == "l", answer == "y" && !shown:
			io.WriteString(a.Stderr, text.String())
			shown = true
		case answer == "y" || answer == "yes":
			var errs []error
			for _, o := range chosen {
				errs = append(errs, o.Take())
				if o.Part {
					rest = append(rest, o)
				}
			}
			sayLater(a, rest)
			return errors.Join(errs...)
		default:
			sayLater(a, all)
			return nil
		}
	}
}

// Offered reports whether the question is about what has this key. It names the command
// that decides later, where not all is taken.
func Offered(all []Offer, key string) bool {
	return slices.ContainsFunc(all, func(o Offer) bool { return o.Key == key })
}

// sayLater names the commands that decide about offers that were not taken, each once.
func sayLater(a *command.App, all []Offer) {
	for i, o := range all {
		if !slices.ContainsFunc(all[:i], func(before Offer) bool { return before.Later == o.Later }) {
			a.Note(command.Cyan, "later", "%s", o.Later)
		}
	}
}

// awaitQuiet reports whether the terminal became quiet. A signal ends the wait without an
// answer, and what ends the process does so when the terminal has its modes again.
func awaitQuiet(in *os.File) bool {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	still, err := sys.AwaitQuiet(in, quiet, maxKeys)
	signal.Stop(signals)
	select {
	case s := <-signals:
		if s != syscall.SIGINT {
			_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
			time.Sleep(time.Second) // it is delivered meanwhile
		}
		return false
	default:
		return err == nil && still
	}
}

// ask returns the answer to a question; "" for none, after Ctrl-C, and where keys that were
// meant for something else go on.
func ask(a *command.App, in *os.File, question string) string {
	if !awaitQuiet(in) {
		return ""
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT)
	defer signal.Stop(interrupted)
	answered := make(chan string, 1)
	go func() { // a read of a terminal cannot be ended: where nobody answers, the process does
		answer, err := Ask(in, a.Stderr, a.Paint(command.Bold+";"+command.Cyan, "holdfast: "+question))
		if err != nil {
			answer = ""
		}
		answered <- answer
	}()
	select {
	case answer := <-answered:
		return answer
	case <-interrupted:
	case <-time.After(patience):
	}
	fmt.Fprintln(a.Stderr)
	return ""
}
