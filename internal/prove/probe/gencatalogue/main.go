// Command gencatalogue prints the list of cases of an escape catalogue. Package
// probe keeps a copy, to find cases that have no row:
//
//	go run ./internal/prove/probe/gencatalogue catalogue.json >internal/prove/probe/catalogue.tsv
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gencatalogue:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the catalogue; got %d", len(args))
	}
	b, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var cases []struct {
		ID, Class, Title, Kind string
		Core                   bool
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		return fmt.Errorf("reading %s: %w", args[0], err)
	}
	out := bufio.NewWriter(os.Stdout)
	for _, c := range cases {
		core := "-"
		if c.Core {
			core = "core"
		}
		fmt.Fprintln(out, strings.Join([]string{c.ID, c.Class, c.Kind, core, c.Title}, "\t"))
	}
	return out.Flush()
}
