// Command attacks runs the attack steps of public collections, each as a separate
// session inside holdfast in a temporary workspace and home, and prints the
// alerts that they raise, as a Markdown table. It uses checkouts of the
// collections and contains nothing of theirs:
//
//	go run ./tools/attacks -falco DIR -atomic DIR > table.md
//
// -falco is a checkout of falcosecurity/event-generator, -atomic one of
// redcanaryco/atomic-red-team, neither below anyone's home. Prerequisites and
// clean-up steps are not run. An action that raises nothing needs a reason in
// reasons.txt; the status is 1 while one has none.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	silent, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "attacks: error:", err)
	}
	if err != nil || silent > 0 {
		stop()
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	falco, atomic string // checkouts; "" for none
	holdfast      string // program; "" to build it
	only          string // regular expression of ids and names
	limit         time.Duration
}

// read parses the command line.
func (o *options) read() error {
	flag.StringVar(&o.falco, "falco", "", "`DIR` of a checkout of falcosecurity/event-generator")
	flag.StringVar(&o.atomic, "atomic", "", "`DIR` of a checkout of redcanaryco/atomic-red-team")
	flag.StringVar(&o.holdfast, "holdfast", "", "`PROGRAM` to run them in (default: built from here)")
	flag.StringVar(&o.only, "only", "", "run only the actions whose id or name matches this `REGEXP`")
	flag.DurationVar(&o.limit, "limit", 30*time.Second, "end an action after this `TIME`")
	flag.Parse()
	if flag.NArg() > 0 || o.falco == "" && o.atomic == "" {
		return errors.New("usage: attacks -falco DIR -atomic DIR [-only REGEXP] [-limit TIME] [-holdfast PROGRAM]")
	}
	return nil
}

func run(ctx context.Context) (silent int, err error) {
	var o options
	if err := o.read(); err != nil {
		return 0, err
	}
	reasons, err := readReasons(reasonsText)
	if err != nil {
		return 0, err
	}
	home, err := os.UserHomeDir() // where homes are, so that the view treats it like one
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp(home, "holdfast-attacks-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	all, err := o.actions(ctx, dir)
	if err != nil {
		return 0, err
	}
	if o.holdfast == "" {
		o.holdfast = filepath.Join(dir, "holdfast")
		build := exec.CommandContext(ctx, "go", "build", "-o", o.holdfast, "holdfast.dev/holdfast/cmd/holdfast")
		if out, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("building holdfast: %w: %s", err, out)
		}
	} else if o.holdfast, err = filepath.Abs(o.holdfast); err != nil {
		return 0, err
	}
	t := table{w: os.Stdout}
	if err := o.playAll(ctx, dir, all, reasons, &t); err != nil {
		return 0, errors.Join(t.end(), err)
	}
	return t.silent, t.end()
}

// playAll plays the actions one after another; in parallel they would use up each
// other's limits.
func (o options) playAll(ctx context.Context, dir string, all []action, reasons reasons, t *table) error {
	for i, a := range all {
		fmt.Fprintf(os.Stderr, "attacks: %d of %d: %s %s\n", i+1, len(all), a.id, a.name)
		r, err := o.play(ctx, filepath.Join(dir, fmt.Sprint(i)), a)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.status = "nothing is known: " + err.Error()
		}
		r.reason = reasons.reasonFor(a)
		if err := t.add(r); err != nil {
			return err
		}
	}
	return nil
}

// actions are those of both collections that the flags select. Programs for them
// are built in dir.
func (o options) actions(ctx context.Context, dir string) ([]action, error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	var all []action
	if o.falco != "" {
		some, err := falco(ctx, o.falco, dir)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if o.atomic != "" {
		some, err := atomic(o.atomic)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	var out []action
	for _, a := range all {
		if only.MatchString(a.id) || only.MatchString(a.name) {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no action matches")
	}
	return out, nil
}
