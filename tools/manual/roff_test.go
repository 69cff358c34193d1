package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestPage(t *testing.T) {
	root := &cobra.Command{Use: "fort", Short: "Hold fast"}
	run := &cobra.Command{Use: "run CMD", Short: `Run a "command"`, Long: "First.\n\n  kept as it is\n.not a request\nC:\\dir", Run: func(*cobra.Command, []string) {}}
	run.Flags().BoolP("quick", "q", false, "leave out `what` is slow")
	hidden := &cobra.Command{Use: "settle", Hidden: true, Run: run.Run}
	passed := &cobra.Command{Use: "prove", DisableFlagParsing: true, Run: run.Run}
	root.AddCommand(run, hidden, passed)
	got := pages(root, "fort 1.2.3", "2026-11-27")
	if len(got) != 2 || got["fort.1"] == "" {
		t.Fatalf("pages: %q", got)
	}
	for _, want := range []string{
		".TH FORT\\-RUN 1 \"2026-11-27\" \"fort 1.2.3\"", "fort\\-run \\- Run a \"command\"",
		"First.\n.PP\n.nf\n  kept as it is\n.fi\n\\&.not a request\nC:\\edir\n",
		".TP\n\\fB\\-q, \\-\\-quick\\fR \\fIwhat\\fR\nleave out what is slow\n", "\\fBfort\\fR(1)",
	} {
		if !strings.Contains(got["fort-run.1"], want) {
			t.Errorf("%q is not in %q", want, got["fort-run.1"])
		}
	}
}
