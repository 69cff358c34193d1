package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/export"
)

// topic is one table of the program that the command reference prints.
type topic struct {
	name, about string
	text        func() (string, error) // in Markdown
}

// always adapts a text that cannot fail.
func always(text func() string) func() (string, error) {
	return func() (string, error) { return text(), nil }
}

// topics are the tables of holdfast.
func topics() []topic {
	return append([]topic{
		{"policy", "every key of a policy", always(policy.Reference)},
		{"rule-sets", "the rule sets of ask and deny, and what a condition can name", policy.GateReference},
		{"rules", "the detection rules, and how to write one", always(detect.Reference)},
		{"events", "fields, actions and details of events, and their names in OCSF and OpenTelemetry", always(export.Reference)},
	}, systemTopics()...)
}

// newReferenceCommand prints tables as Markdown. They are made from the data that the
// program itself uses, so they always describe this version.
func newReferenceCommand(a *app, of string, all []topic) *cobra.Command {
	var dir string
	var names []cobra.Completion
	var list strings.Builder
	for _, t := range all {
		names = append(names, cobra.CompletionWithDesc(t.name, t.about))
		fmt.Fprintf(&list, "  %-10s  %s\n", t.name, t.about)
	}
	c := &cobra.Command{
		Use:   "reference [TOPIC [NAME]]",
		Short: "Print a table of " + of + " as Markdown",
		Long: "Print a table of " + of + ", as this version uses it. With NAME, print only the section\nwith that heading. Without TOPIC, list the topics:\n\n" +
			strings.TrimRight(list.String(), "\n"),
		Example:     "  " + of + " reference\n  " + of + " reference " + all[0].name + "\n  " + of + " reference --output DIR",
		Args:        cobra.MaximumNArgs(2),
		ValidArgs:   names,
		Annotations: map[string]string{ownArguments: ""},
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case dir != "":
				if len(args) > 0 {
					return &usageError{errors.New("--output writes all topics"), "leave out " + quoted(args[0])}
				}
				return writeTopics(dir, all)
			case len(args) == 0:
				_, err := io.WriteString(a.Stdout, list.String())
				return err
			}
			return a.printTopic(of, all, args)
		},
	}
	c.Flags().VarP((*textFlag)(&dir), "output", "o", "DIR to write all topics to, a file each")
	return c
}

// printTopic prints the topic args[0], or its section args[1].
func (a *app) printTopic(of string, all []topic, args []string) error {
	for _, t := range all {
		if t.name != args[0] {
			continue
		}
		text, err := t.text()
		if err != nil {
			return err
		}
		if len(args) > 1 {
			if text = section(text, args[1]); text == "" {
				return &usageError{fmt.Errorf("the topic %s has no section %s", t.name, quoted(args[1])), of + " reference " + t.name + " | grep '^#'"}
			}
		}
		_, err = io.WriteString(a.Stdout, text)
		return err
	}
	return &usageError{fmt.Errorf("there is no topic %s", quoted(args[0])), of + " reference"}
}

// section returns the part of a Markdown text below the heading name, with the
// sections below it; "" if there is none.
func section(text, name string) string {
	var b strings.Builder
	level := 0
	for line := range strings.Lines(text) {
		title := strings.TrimLeft(line, "#")
		if depth := len(line) - len(title); depth > 0 {
			switch {
			case level > 0 && depth <= level:
				return b.String()
			case level == 0 && strings.Trim(strings.TrimSpace(title), "`") == name:
				level = depth
			}
		}
		if level > 0 {
			b.WriteString(line)
		}
	}
	return b.String()
}

// writeTopics writes each topic to a file of its own below dir.
func writeTopics(dir string, all []topic) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, t := range all {
		text, err := t.text()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, t.name+".md"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
