// Command agents installs the agent programs that tests run, and lists the known
// ones, for tools/needs and the Makefile. The versions are only in
// internal/prove/agent/drivers.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/prove/agent"
)

const usage = `usage: agents list                         NAME VERSION,VERSION… a line, the oldest first
       agents install DIRECTORY NAME…      the latest of each that was driven`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "agents: error:", err)
		var h interface{ Hint() string }
		if errors.As(err, &h) {
			fmt.Fprintln(os.Stderr, "agents: hint:", h.Hint())
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "list":
		all, err := agent.Drivers()
		for _, d := range all {
			fmt.Println(d.Name, strings.Join(append(d.Tried, d.Latest), ","))
		}
		return err
	case len(args) > 2 && args[0] == "install":
		dir, err := filepath.Abs(args[1])
		if err != nil {
			return err
		}
		for _, name := range args[2:] {
			if err := install(ctx, dir, name); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New(usage)
}

func install(ctx context.Context, dir, name string) error {
	d, err := agent.Named(name)
	if err != nil {
		return err
	}
	i, err := agent.Install(ctx, agent.Request{Driver: d, Dir: dir})
	if err != nil {
		return err
	}
	fmt.Println("agents:", i.Agent, i.Version, "in", i.Dir)
	return nil
}
