//go:build linux

package cli

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
)

// policyFlags are the flags of `holdfast run` that select the policy. They are
// passed to holdfast as given; only holdfast interprets them.
type policyFlags struct {
	workspace string
	given     []string // flags and values, in order, without --workspace
}

// runTexts and runSwitches name the policy flags of `holdfast run`;
// TestPolicyFlagsAreThoseOfRun compares them with its help.
var (
	runTexts = []string{"profile", "policy", "preset", "ro", "rw", "hide", "show", "allow", "host-port", "output", "worktrees", "ask", "deny", "env",
		"without", "publish", "record", "memory", "processes", "files", "disk", "filesize", "cpus", "time"}
	runSwitches = []string{"review", "scratch"}
)

func (f *policyFlags) bind(c *cobra.Command) {
	set := c.Flags()
	set.Var((*command.TextFlag)(&f.workspace), "workspace", "DIR that may be changed (default: the current directory)")
	for _, name := range runTexts {
		set.Var(&passedFlag{f, "--" + name, false}, name, "as for holdfast run")
	}
	for _, name := range runSwitches {
		set.Var(&passedFlag{f, "--" + name, true}, name, "as for holdfast run")
		set.Lookup(name).NoOptDefVal = "true"
	}
}

// arguments returns the flags for a holdfast that works in dir.
func (f *policyFlags) arguments(dir string) []string {
	args := []string{}
	if f.workspace != "" {
		args = append(args, "--workspace", inDir(dir, f.workspace))
	}
	for i, one := range f.given {
		if i > 0 {
			switch f.given[i-1] {
			case "--ro", "--rw":
				if !strings.HasPrefix(one, "~") {
					one = inDir(dir, one)
				}
			case "--policy":
				one = inDir(dir, one)
			}
		}
		args = append(args, one)
	}
	return args
}

func inDir(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// passedFlag is a flag that is passed on.
type passedFlag struct {
	to       *policyFlags
	name     string
	switches bool
}

func (p *passedFlag) String() string { return "" }

func (p *passedFlag) Type() string {
	if p.switches {
		return "bool"
	}
	return "TEXT"
}

func (p *passedFlag) Set(value string) error {
	switch {
	case p.switches:
		p.to.given = append(p.to.given, p.name+"="+value)
		return nil
	case value == "":
		return errors.New("it is empty")
	}
	p.to.given = append(p.to.given, p.name, value)
	return nil
}
