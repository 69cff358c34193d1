// Package agents is holdfast agents, which lists the agent programs with a preset and
// what they changed in their copies of settings ([Command]), and holdfast mcp, which
// runs a server for an agent ([MCP]). What a preset says is policy's to read; what
// runs, internal/cli/runs runs.
package agents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// app is the world of these verbs.
type app struct{ *command.App }

// Command makes the verb holdfast agents.
func Command(world *command.App) *cobra.Command {
	a := &app{world}
	var asJSON bool
	c := &cobra.Command{
		Use:   "agents",
		Short: "List the agents that have a preset, and which are installed",
		Long: `List the presets: the agent program of each, where it is installed, and its version.
The program reports the version itself, started with an empty home, and without network
unless this user cannot create namespaces. A preset is a file that you can write or
change: see docs/agents.md.`,
		Example: "  holdfast agents\n  holdfast agents --json\n  holdfast agents changes claude",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.Usage(fmt.Errorf("unknown command %q for holdfast agents", args[0]), "see 'holdfast agents --help'")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := a.agents(cmd.Context())
			if rows == nil && err != nil {
				return err
			}
			if asJSON {
				err = errors.Join(err, command.WriteJSON(a.Stdout, rows))
			} else {
				a.showAgents(rows)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON")
	c.AddCommand(newAgentChanges(a))
	return c
}

// listedAgent is a preset and its program as agents shows it.
type listedAgent struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Preset  string `json:"preset"`            // where the preset is from: built in, or a file
	Path    string `json:"path,omitempty"`    // of the program; "" where it is not installed
	Version string `json:"version,omitempty"` // as the program says; "" where it does not
	Install string `json:"install,omitempty"` // a command that installs it
	Pending int    `json:"pending"`           // runs whose changes wait
}

// agents reads the presets and looks for their programs. Presets that cannot be
// read are an error beside the rows of the others.
func (a *app) agents(ctx context.Context) ([]listedAgent, error) {
	host, err := policy.ThisHost(a.Env, a.Dir)
	if err != nil {
		return nil, err
	}
	presets, err := policy.Presets(policy.Options{Host: host})
	if presets == nil && err != nil {
		return nil, err
	}
	path := programs.Outside(a.Dir, a.Lookup("PATH"))
	rows := make([]listedAgent, len(presets))
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var wait sync.WaitGroup
	for i, p := range presets {
		rows[i] = listedAgent{Name: p.Name, Title: p.Title, Preset: p.Origin.String(), Install: p.Install}
		wait.Go(func() {
			if found := programs.Find(p.Name, path); found != "" {
				rows[i].Path = found
				rows[i].Version, _ = programs.Version(ctx, found, path, nil)
			}
		})
	}
	wait.Wait()
	if perr := a.countPending(host, rows); perr != nil {
		return rows, errors.Join(err, perr)
	}
	return rows, err
}

func (a *app) showAgents(rows []listedAgent) {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tPROGRAM\tVERSION\tPATH\tPRESET")
	for _, r := range rows {
		version, path := r.Version, r.Path
		switch {
		case path == "" && r.Install != "":
			version, path = "-", "not installed: "+r.Install
		case path == "":
			version, path = "-", "not installed"
		case version == "":
			version = "?"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", text.Line(r.Name), text.Line(r.Title), text.Line(version), text.Line(path), text.Line(r.Preset))
	}
	w.Flush()
	a.Stdout.Write(table.Bytes())
	for _, r := range rows {
		if r.Pending > 0 {
			fmt.Fprintf(a.Stdout, "\n%s: changes of %d runs wait: holdfast agents changes %s\n", text.Line(r.Title), r.Pending, text.Line(r.Name))
		}
	}
}
