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
	var o options
	flag.BoolVar(&o.quick, "quick", false, "small inputs and few rounds, to see that it works; writes no file unless -o is given")
	flag.StringVar(&o.only, "only", "", "measure only the workload of this `name`")
	flag.IntVar(&o.rounds, "n", 20, "rounds of each workload (short ones take more)")
	flag.StringVar(&o.out, "o", "", "write the report to this `file` (default bench/RESULTS.md of the module, none with -quick or -only)")
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
	only   string // name of a workload; "" for all
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
	rep, err := b.all()
	if err != nil {
		return err
	}
	text := rep.markdown()
	fmt.Print(text)
	if o.out != "" {
		if err := os.WriteFile(o.out, []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	if n := rep.failures(); n > 0 {
		return fmt.Errorf("%d of the workloads could not be measured, see the report", n)
	}
	return nil
}
