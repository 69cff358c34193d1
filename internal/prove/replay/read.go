//go:build linux

package replay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Reader reads files by the rules of a program that is not started because it
// needs a desktop, a service manager or an account.
type Reader struct {
	Name   string
	Files  []string // patterns of filepath.Match with the templates of [Program]
	Source string   // where the rules are documented
	// Launches returns the commands that the program executes because of a file. An
	// error means that the program would reject the file, or that the rules here are
	// not enough: what such a file plants counts as executed.
	Launches func(file string, content []byte) ([]Launch, error)
}

// Launch is something that a program would execute.
type Launch struct {
	Command string // its words, separated by blanks
	When    string // what the human, or the machine, does
}

// readLimit is the size of a file that is read by rules, in bytes. A larger file
// with a payload counts as executed.
const readLimit = 1 << 20

// Read finds the payloads that readers would execute.
func (s Stage) Read(readers ...Reader) []Mark {
	var out []Mark
	fill := strings.NewReplacer("{W}", s.Work, "{H}", s.Home, "{O}", s.Outside)
	for _, r := range readers {
		for _, pattern := range r.Files {
			files, _ := filepath.Glob(fill.Replace(pattern)) // the patterns are ours; see the test
			for _, file := range files {
				out = append(out, s.readOne(r, file)...)
			}
		}
	}
	slices.SortFunc(out, func(a, b Mark) int { return strings.Compare(a.Plant+a.Step, b.Plant+b.Step) })
	return slices.Compact(out)
}

// readOne follows links, as the program does.
func (s Stage) readOne(r Reader, file string) []Mark {
	target, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil // a dangling link
	}
	if info, err := os.Stat(target); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	b, err := readRegular(target, readLimit)
	if err != nil {
		return []Mark{{Plant: strings.TrimPrefix(file, s.World+"/"), Step: r.Name + ", by a file that cannot be read here: " + err.Error()}}
	}
	if !bytes.Contains(b, []byte(s.Token)) {
		return nil
	}
	launches, err := r.Launches(file, b)
	if err != nil {
		launches = []Launch{{Command: string(b), When: fmt.Sprintf("reading a file that the rules do not reach (%v)", err)}}
	}
	var out []Mark
	for _, l := range launches {
		for _, plant := range plantsIn(l.Command, s.Token) {
			out = append(out, Mark{Plant: plant, Step: r.Name + ", " + l.When})
		}
	}
	return out
}

// plantsIn returns the names of the payloads in a command.
func plantsIn(command, token string) []string {
	var out []string
	for {
		_, rest, found := strings.Cut(command, token+" ")
		if !found {
			return out
		}
		end := strings.IndexAny(rest, " \t\r\n\"'`;&|)<>\\]")
		if end < 0 {
			end = len(rest)
		}
		out = append(out, rest[:end])
		command = rest[end:]
	}
}
