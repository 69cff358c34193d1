package alerts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/detect/alert"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
)

func newAlertsRelay(a *app) *cobra.Command {
	var own, source string
	c := &cobra.Command{
		Use:   "relay",
		Short: "Record the alerts of another program, and send them to your sinks",
		Long: `Record alerts that another program writes to standard input, one JSON object a line, and
send them to the sinks of your policy. The log is a session of its own. Standard output
reports that the log is open, and then, for each alert, that it is recorded, or why not.
The command runs until the input ends. The format is in docs/alerts.md.`,
		Example: `  my-check --json | holdfast alerts relay --for my-check
  my-check --json | holdfast alerts relay --policy ci.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			return a.relay(ctx, own, source)
		},
	}
	c.Flags().Var((*command.TextFlag)(&own), "policy", "policy FILE that says where alerts go, instead of your own")
	c.Flags().Var((*command.TextFlag)(&source), "for", "what the alerts are about, in a few WORDS; log list shows them")
	return c
}

// relayAnswer is a line of the standard output of alerts relay.
type relayAnswer struct {
	Ready    bool   `json:"ready,omitempty"`
	Session  string `json:"session,omitempty"`
	Recorded bool   `json:"recorded,omitempty"`
	ID       string `json:"id,omitempty"`
	Error    string `json:"error,omitempty"`
}

// mostFor is the most characters that --for may have.
const mostFor = 100

// relay records what comes in until the input ends, or the user wants an end.
func (a *app) relay(ctx context.Context, own, source string) error {
	if len([]rune(source)) > mostFor {
		return command.Usage(fmt.Errorf("--for has more than %d characters", mostFor), "name the program alone: holdfast alerts relay --for my-check")
	}
	if source == "" {
		source = "alerts relay"
	}
	r, err := archive.Open(a.App)
	if err != nil {
		return err
	}
	options, err := a.alertOptions(own)
	if err != nil {
		return err
	}
	relay, err := alert.NewRelay(alert.RelayOptions{Options: options, Log: r.Logs, Keys: r.Keys, For: source})
	if err != nil {
		return err
	}
	ok, err := a.relayAll(ctx, relay)
	missed, cerr := relay.Close()
	for _, u := range missed {
		a.Note(command.Yellow, "warning", "%s", text.Line(u.Error()))
	}
	if len(alert.Detail(missed)) > 0 {
		a.Note(command.Cyan, "hint", "send the alerts again: holdfast alerts resend %s", relay.Session())
	}
	if err = errors.Join(err, cerr); err != nil {
		a.Note(command.Red, "error", "%s", text.Line(err.Error()))
		ok = false
	}
	if !ok {
		return command.Exit(command.ExitFailed)
	}
	return nil
}

// relayAll answers each line of the input. It reports whether all were recorded. An
// error ends it: nothing more can be recorded, read or answered.
func (a *app) relayAll(ctx context.Context, relay *alert.Relay) (ok bool, err error) {
	if err := command.WriteJSONLine(a.Stdout, relayAnswer{Ready: true, Session: relay.Session()}); err != nil {
		return false, fmt.Errorf("writing the answer: %w", err)
	}
	lines, ended := inputLines(a.Stdin)
	ok = true
	for {
		select {
		case <-ctx.Done():
			return ok, nil
		case err := <-ended:
			if err != nil {
				err = errors.Join(err, command.WriteJSONLine(a.Stdout, relayAnswer{Error: err.Error()}))
			}
			return ok, err
		case line := <-lines:
			answer, broken := relayOne(relay, line)
			ok = ok && answer.Recorded
			if err := errors.Join(broken, command.WriteJSONLine(a.Stdout, answer)); err != nil {
				return false, err
			}
		}
	}
}

// relayOne records one line. An error means that no other can be recorded either.
func relayOne(relay *alert.Relay, line []byte) (relayAnswer, error) {
	one, err := alert.ParseRelayed(line)
	if err != nil {
		return relayAnswer{Error: text.Line(err.Error())}, nil
	}
	id, err := relay.Raise(one)
	if err != nil {
		return relayAnswer{Error: text.Line(err.Error())}, err
	}
	return relayAnswer{Recorded: true, ID: id}, nil
}

// inputLines reads lines on a goroutine, which may be left behind: a read cannot be
// interrupted. ended gets nil at the end of the input.
func inputLines(r io.Reader) (lines <-chan []byte, ended <-chan error) {
	out, end := make(chan []byte), make(chan error)
	go func() {
		s := bufio.NewScanner(r)
		s.Buffer(nil, alert.RelayedBytes)
		for s.Scan() {
			if len(bytes.TrimSpace(s.Bytes())) > 0 {
				out <- bytes.Clone(s.Bytes())
			}
		}
		if errors.Is(s.Err(), bufio.ErrTooLong) {
			end <- fmt.Errorf("a line has more than %d bytes", alert.RelayedBytes)
			return
		}
		end <- s.Err()
	}()
	return out, end
}
