package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/text"
)

// A Topic is one table of a program that its command reference prints.
type Topic struct {
	Name, About string
	Text        func() (string, error) // in Markdown
}

// Always adapts a text that cannot fail.
func Always(text func() string) func() (string, error) {
	return func() (string, error) { return text(), nil }
}

// NewReference makes the command that prints tables of a program as Markdown. They are made from the data that the
// program itself uses, so they always describe this version.
func NewReference(a *App, of string, all []Topic) *cobra.Command {
	var dir string
	var names []cobra.Completion
	var list strings.Builder
	for _, t := range all {
		names = append(names, cobra.CompletionWithDesc(t.Name, t.About))
		fmt.Fprintf(&list, "  %-10s  %s\n", t.Name, t.About)
	}
	c := &cobra.Command{
		Use:   "reference [TOPIC [NAME]]",
		Short: "Print a table of " + of + " as Markdown",
		Long: "Print a table of " + of + ", as this version uses it. With NAME, print only the section\nwith that heading. Without TOPIC, list the topics:\n\n" +
			strings.TrimRight(list.String(), "\n"),
		Example:     "  " + of + " reference\n  " + of + " reference " + all[0].Name + "\n  " + of + " reference --output DIR",
		Args:        cobra.MaximumNArgs(2),
		ValidArgs:   names,
		Annotations: map[string]string{OwnArguments: ""},
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case dir != "":
				if len(args) > 0 {
					return Usage(errors.New("--output writes all topics"), "leave out "+text.Quote(args[0]))
				}
				return writeTopics(dir, all)
			case len(args) == 0:
				_, err := io.WriteString(a.Stdout, list.String())
				return err
			}
			return a.printTopic(of, all, args)
		},
	}
	c.Flags().VarP((*TextFlag)(&dir), "output", "o", "DIR to write all topics to, one file each")
	return c
}

// printTopic prints the topic args[0], or its section args[1].
func (a *App) printTopic(of string, all []Topic, args []string) error {
	for _, t := range all {
		if t.Name != args[0] {
			continue
		}
		table, err := t.Text()
		if err != nil {
			return err
		}
		if len(args) > 1 {
			if table = section(table, args[1]); table == "" {
				return Usage(fmt.Errorf("the topic %s has no section %s", t.Name, text.Quote(args[1])), of+" reference "+t.Name+" | grep '^#'")
			}
		}
		_, err = io.WriteString(a.Stdout, table)
		return err
	}
	return Usage(fmt.Errorf("there is no topic %s", text.Quote(args[0])), of+" reference")
}

// section returns the part of a Markdown text below the heading name, with the
// sections below it; "" if there is none.
func section(table, name string) string {
	var b strings.Builder
	level := 0
	for line := range strings.Lines(table) {
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
func writeTopics(dir string, all []Topic) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, t := range all {
		table, err := t.Text()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, t.Name+".md"), []byte(table), 0o644); err != nil {
			return err
		}
	}
	return nil
}
