//go:build linux

package cli

import (
	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/prove/probe"
)

// listedRow is a row and what a record must have of it.
type listedRow struct {
	ID      string          `json:"id"`
	Class   string          `json:"class"`
	Title   string          `json:"title"`
	Promise string          `json:"promise,omitempty"`
	Core    bool            `json:"core,omitempty"`
	Rules   []string        `json:"rules,omitempty"`  // alerts that it raises
	Denied  []deniedAttempt `json:"denied,omitempty"` // attempts that are in a record
}

// deniedAttempt is an attempt that a boundary denies. Object may begin with the
// letter of a directory of the row's world.
type deniedAttempt struct {
	Action string `json:"action"`
	Object string `json:"object,omitempty"`
	Layer  string `json:"layer,omitempty"`
}

func newRowsCommand(a *app) *cobra.Command {
	var p prover
	var recorded, asJSON bool
	c := &cobra.Command{
		Use:     "rows",
		Short:   "List the rows, or what a record must contain of each",
		Example: "  holdfast prove rows --class exec.git\n  holdfast prove rows --json >rows.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return probe.WriteRows(a.Stdout)
			}
			if !recorded {
				return proveHint(a.listRows(p))
			}
			rows, err := p.selection.Rows(probe.All())
			if err != nil {
				return proveHint(err)
			}
			all := make([]listedRow, len(rows))
			for i, r := range rows {
				all[i] = listedRow{ID: r.ID, Class: r.Class, Title: r.Title, Promise: string(r.Promise), Core: r.Core, Rules: r.Trace.Rules}
				for _, e := range r.Trace.Events {
					if e.Verdict == "denied" {
						all[i].Denied = append(all[i].Denied, deniedAttempt{e.Action, e.Object, e.Layer})
					}
				}
			}
			return command.WriteJSON(a.Stdout, all)
		},
	}
	rowFlags(c, &p)
	c.Flags().BoolVar(&asJSON, "json", false, "print the data of all rows as JSON, for a runner of your own (docs/formats/rows.md)")
	c.Flags().BoolVar(&recorded, "record", false, "print what a record must contain of each, as JSON")
	c.MarkFlagsMutuallyExclusive("json", "record")
	return c
}
