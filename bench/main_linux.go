package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
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
	flag.BoolVar(&o.all, "all", false, "measure every part, also those that a usual run leaves out")
	flag.StringVar(&o.only, "only", "", "measure only the part, or the workload, of this `name`: "+strings.Join(partNames(), ", "))
	flag.IntVar(&o.rounds, "n", 20, "rounds of each workload (short ones take more)")
	flag.StringVar(&o.out, "o", "", "write the report to this `file` (default: each part into bench/RESULTS.md of the module; none with -quick or a workload)")
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
	all    bool
	only   string // name of a part or a workload; "" for the usual parts
	rounds int    // of each workload, before its own factor
	out    string // file of the report; "" for the default
}

// run measures, prints the report and writes it. It removes everything else that
// it makes, also if it fails or is interrupted.
func run(ctx context.Context, o options) (err error) {
	if o.quick {
		o.rounds = min(o.rounds, 3)
	}
	root, err := moduleRoot()
	if err != nil {
		return err
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
	chosen, err := b.chosenParts()
	if err != nil {
		return err
	}
	failures := 0
	for _, p := range chosen {
		began := time.Now()
		m, err := b.measure(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		b.logf("%s took %s", p.name, time.Since(began).Round(time.Second))
		failed, absent := m.troubles()
		failures += failed
		if err := b.write(m, absent); err != nil {
			return err
		}
	}
	if failures > 0 {
		return fmt.Errorf("%d of the measurements failed, see the report", failures)
	}
	return nil
}

// write prints a part and puts it into the report, if there is one. A part that
// could not be measured does not replace an earlier one.
func (b *bench) write(m measured, absent bool) error {
	text := m.markdown()
	fmt.Print(text)
	at := b.options.out
	if at == "" {
		if b.options.quick || absent || b.workloadAlone() {
			return nil
		}
		at = filepath.Join(b.root, "bench", "RESULTS.md")
	}
	report, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		report = []byte(reportTitle)
	} else if err != nil {
		return fmt.Errorf("reading the existing report: %w", err)
	}
	if err := os.WriteFile(at, []byte(withPart(string(report), m.heading(), text)), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
