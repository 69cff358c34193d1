// Command manual writes a manual page for each verb of both programs, and their
// completions for shells.
//
//	go run ./tools/manual -version 1.2.3 -date 2026-11-27 DIR
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	holdfast "holdfast.dev/holdfast/internal/cli"
	prove "holdfast.dev/holdfast/internal/prove/cli"
)

func main() {
	version := flag.String("version", "development", "the release that the pages name")
	date := flag.String("date", "", "the `day` that the pages name")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "manual: error: no directory is given\nmanual: hint: go run ./tools/manual DIR")
		os.Exit(2)
	}
	if err := write(flag.Arg(0), *version, *date); err != nil {
		fmt.Fprintln(os.Stderr, "manual: error:", err)
		os.Exit(1)
	}
}

// write makes the files below dir, laid out as below a prefix such as /usr.
func write(dir, version, date string) error {
	for _, program := range []func() (*cobra.Command, error){holdfast.Commands, prove.Commands} {
		root, err := program()
		if err != nil {
			return err
		}
		for name, text := range pages(root, "holdfast "+version, date) {
			if err := save(filepath.Join(dir, "share/man/man1", name), []byte(text)); err != nil {
				return err
			}
		}
		if err := completions(dir, root); err != nil {
			return err
		}
	}
	return nil
}

// completions writes completions to where each shell looks for those of packages.
func completions(dir string, root *cobra.Command) error {
	name := root.Name()
	files := map[string]func(path string) error{
		"share/bash-completion/completions/" + name:         func(path string) error { return root.GenBashCompletionFileV2(path, true) },
		"share/zsh/site-functions/_" + name:                 root.GenZshCompletionFile,
		"share/fish/vendor_completions.d/" + name + ".fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
	}
	var failed error
	for path, generate := range files {
		path = filepath.Join(dir, path)
		failed = cmp.Or(failed, os.MkdirAll(filepath.Dir(path), 0o755))
		failed = cmp.Or(failed, generate(path))
	}
	return failed
}

func save(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
