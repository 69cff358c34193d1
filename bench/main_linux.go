package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "peer" {
		if err := peer(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench: error:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.BoolVar(&o.quick, "quick", false, "small inputs and few rounds, to see that it works; writes no file unless -o is given")
	flag.StringVar(&o.only, "only", "", "measure only the workload of this `name`, or a part: egress (connections), record, log, detection, prove, agents, review-diff or gate")
	flag.IntVar(&o.rounds, "n", 20, "rounds of each workload (short ones take more)")
	flag.StringVar(&o.out, "o", "", "write the report to this `file` (default bench/RESULTS.md of the module, with -only and a part that part of it, none with -quick or another -only)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench: error:", err)
		stop()
		os.Exit(1)
	}
}

type options struct {
	quick  bool
	only   string // name of a workload or a part; "" for all
	rounds int    // of each workload, before its own factor
	out    string // file of the report; "" for the default
}

// run measures, prints the report and writes it. Everything that it makes in
// between is gone afterwards, also when it fails or is interrupted.
func run(ctx context.Context, o options) (err error) {
	if o.quick {
		o.rounds = min(o.rounds, 3)
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	if o.out == "" && !o.quick && o.only == "" {
		o.out = filepath.Join(root, "bench", "RESULTS.md")
	}
	b, err := newBench(ctx, o, root)
	if err != nil {
		return err
	}
	defer func() {
		if e := b.remove(); e != nil && err == nil {
			err = e
		}
	}()
	if measure := b.part(o.only); measure != nil {
		return b.onlyPart(measure)
	}
	rep, err := b.all()
	if err != nil {
		return err
	}
	text := rep.markdown()
	if err := o.write(text); err != nil {
		return err
	}
	if n := rep.failures(); n > 0 {
		return fmt.Errorf("%d of the workloads could not be measured, see the report", n)
	}
	return nil
}

// write prints a report and writes it to its file, if it has one.
func (o options) write(text string) error {
	fmt.Print(text)
	if o.out == "" {
		return nil
	}
	if err := os.WriteFile(o.out, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// measured is a part of the report.
type measured interface {
	heading() string
	markdown() string
	troubles() (failed int, absent bool)
}

// part is how a part of the report is measured by itself; nil for a name that
// is none.
func (b *bench) part(name string) func() (measured, error) {
	of := func(f func() (*section, error)) func() (measured, error) {
		return func() (measured, error) { return f() }
	}
	switch name {
	case egressPart:
		return func() (measured, error) { return b.connections() }
	case recordPart:
		return of(b.recording)
	case logPart:
		return of(b.logging)
	case detectionPart:
		return of(b.detection)
	case provePart:
		return of(b.proving)
	case agentsPart:
		return of(b.agents)
	case reviewPart:
		return of(b.reviewing)
	case reviewDiffPart:
		return of(b.reviewDiff)
	case gatePart:
		return of(b.gates)
	}
	return nil
}

// onlyPart measures a part and puts it into the report of the module, where no
// other file is asked for.
func (b *bench) onlyPart(measure func() (measured, error)) error {
	m, err := measure()
	if err != nil {
		return err
	}
	text := m.markdown()
	if err := b.options.write(text); err != nil {
		return err
	}
	failed, absent := m.troubles()
	if failed > 0 {
		return fmt.Errorf("%d of the measurements failed, see the report", failed)
	}
	if b.options.out != "" || b.options.quick || absent {
		return nil
	}
	at := filepath.Join(b.root, "bench", "RESULTS.md")
	report, err := os.ReadFile(at)
	if err != nil {
		return fmt.Errorf("reading the report that this is a part of: %w", err)
	}
	if err := os.WriteFile(at, []byte(withPart(string(report), m.heading(), text)), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
