package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/audit"
	"holdfast.dev/holdfast/internal/record/export"
)

func newLogExport(a *app) *cobra.Command {
	var x exportFlags
	formats := append([]string{"jsonl"}, export.Formats()...)
	c := &cobra.Command{
		Use:   "export --format FORMAT [SESSION]",
		Short: "Write records in a format for other systems",
		Long: `Write the record of a run to standard output, or to a file: jsonl is the record
itself, which can be verified; ocsf is one event of the Open Cybersecurity Schema
Framework a line; otlp is OpenTelemetry logs, one request of up to 512 events a line.`,
		Example: `  holdfast log export --format ocsf > run.json
  holdfast log export --format otlp --all --output logs.jsonl`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: archive.CompleteSessions(a.App, 0),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(formats, x.format) {
				hint := "the formats are " + strings.Join(formats, ", ")
				if x.format == "" {
					return command.Usage(errors.New("no format was given"), hint+"; for example: --format jsonl")
				}
				return command.Usage(fmt.Errorf("there is no format %s", text.Word(x.format)), hint)
			}
			ctx, stop := command.Interruptible(c)
			defer stop()
			return a.export(ctx, x, args)
		},
	}
	c.Flags().Var((*command.TextFlag)(&x.format), "format", "FORMAT: "+strings.Join(formats, ", "))
	c.Flags().Var((*command.TextFlag)(&x.output), "output", "FILE to write to, which must not exist")
	c.Flags().BoolVar(&x.all, "all", false, "the records of all runs, the oldest first")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return c
}

type exportFlags struct {
	format, output string
	all            bool
}

func (a *app) export(ctx context.Context, x exportFlags, args []string) (err error) {
	r, err := archive.Open(a.App)
	if err != nil {
		return err
	}
	infos, err := r.FindAll(args, x.all)
	if err != nil {
		return err
	}
	var to io.Writer = a.Stdout
	if x.output != "" {
		// Only this user may read it, and nothing is overwritten.
		f, err := os.OpenFile(x.output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("making the file: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		to = f
	}
	out := bufio.NewWriterSize(to, 64<<10)
	bad := false
	for _, info := range infos {
		if x.format == "jsonl" {
			err = copyLog(ctx, out, info.Path)
		} else {
			err = convertLog(ctx, out, x.format, info.Path)
		}
		if err = archive.WarnDamaged(a.App, info, err, &bad); err != nil {
			return errors.Join(fmt.Errorf("exporting %s: %w", text.Line(info.Session), err), out.Flush())
		}
	}
	if err = out.Flush(); err == nil && bad {
		err = command.Exit(command.ExitFailed)
	}
	return err
}

// copyLog copies a log to its last whole line: what follows may not be written yet.
func copyLog(ctx context.Context, out io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for in := bufio.NewReaderSize(f, 64<<10); ctx.Err() == nil; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			_, err = out.Write(line)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func convertLog(ctx context.Context, out io.Writer, format, path string) error {
	host, _ := os.Hostname() // "" is not known
	w, err := export.New(format, out, export.Options{Host: host, Version: command.Release()})
	if err != nil {
		return err
	}
	d := audit.NewDecoder()
	err = audit.Scan(ctx, path, runtime.GOMAXPROCS(0), nil, func(r *audit.Record) error {
		if err := d.Decode(r); err != nil {
			return err
		}
		return w.WriteRecord(d.Event, r.Raw())
	})
	return errors.Join(err, w.Close())
}
