package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// pages are the manual pages of a command and of all commands below it, by file
// name.
func pages(root *cobra.Command, source, date string) map[string]string {
	all := map[string]string{}
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		if !documented(c) {
			return
		}
		all[title(c)+".1"] = page(c, source, date)
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(root)
	return all
}

// documented reports whether c has a page. A verb that starts another program has
// none, because that program has its own.
func documented(c *cobra.Command) bool {
	return !c.Hidden && !c.DisableFlagParsing && !c.IsAdditionalHelpTopicCommand() && c.Name() != "completion" && c.Name() != "help"
}

// title is the name of a command's page: holdfast-log-show.
func title(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page is one page in man(7) format.
func page(c *cobra.Command, source, date string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"%s\" \"%s\" \"Holdfast\"\n", strings.ToUpper(roff(title(c))), date, source)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(title(c)), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", roff(c.UseLine()))
	long := c.Long
	if long == "" {
		long = c.Short
	}
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s", paragraphs(long))
	options(&b, "OPTIONS", c.NonInheritedFlags())
	options(&b, "OPTIONS OF ALL VERBS", c.InheritedFlags())
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(strings.TrimRight(c.Example, "\n")))
	}
	if c.Name() == "run" {
		b.WriteString(".SH EXIT STATUS\n" + paragraphs("That of the command. 124: Holdfast failed after the command had begun. 125: nothing was started. 126: the command is not executable. 127: the command was not found."))
	}
	related(&b, c)
	return b.String()
}

// paragraphs fills lines, but keeps indented ones unchanged.
func paragraphs(s string) string {
	var b strings.Builder
	verbatim := false
	for line := range strings.Lines(strings.TrimSpace(s) + "\n") {
		line = strings.TrimRight(line, "\n")
		if indented := strings.HasPrefix(line, " "); indented != verbatim {
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[indented])
			verbatim = indented
		}
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roff(line) + "\n")
	}
	if verbatim {
		b.WriteString(".fi\n")
	}
	return b.String()
}

func options(b *strings.Builder, heading string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", heading)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			value = " \\fI" + roff(value) + "\\fR"
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR%s\n%s\n", roff(name), value, roff(usage))
	})
}

// related names the pages above and below.
func related(b *strings.Builder, c *cobra.Command) {
	var names []string
	if c.HasParent() {
		names = append(names, title(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if documented(sub) {
			names = append(names, title(sub))
		}
	}
	if !c.HasParent() && c.Name() == "holdfast" {
		names = append(names, "holdfast-prove")
	}
	if len(names) == 0 {
		return
	}
	for i, name := range names {
		names[i] = "\\fB" + roff(name) + "\\fR(1)"
	}
	fmt.Fprintf(b, ".SH SEE ALSO\n%s\n", strings.Join(names, ",\n"))
}

// roff escapes what man(7) would interpret.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
