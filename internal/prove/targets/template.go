//go:build linux

package targets

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/prove/probe"
)

// Template is a target with a command line from the user. Make one with
// [Command].
type Template struct {
	Words   []string // {} for the command, {W} and {H} for the workspace and the home
	Version []string // words of a command that prints its version; may be nil
}

// Command makes a target from a command line such as `PROG --flags -- {}`. Words
// are split as a shell does it, but no shell runs. A word {} becomes the words of
// the command; within a word, as in `sh -c 'exec {}'`, it becomes quoted text
// that a shell splits into these words again. {W} and {H} are replaced by the
// workspace and the home. version is a command that prints the target's version,
// or "".
//
// How such a target limits, hides or shows more is unknown: rows that need it are
// not played. How it refuses is unknown too, so what it declines to start is
// inconclusive.
func Command(template, version string) (probe.Target, error) {
	words, err := split(template)
	if err != nil {
		return nil, hinted{fmt.Errorf("the target's command: %w", err), "it is run without a shell; for one write: sh -c '…'"}
	}
	if !strings.Contains(strings.Join(words, " "), "{}") {
		return nil, hinted{errors.New("the target's command has no place for the command to run"),
			"put {} where the command to run goes, for example --target-cmd '" + strings.TrimSpace(template+" -- {}'")}
	}
	if words[0] == "{}" {
		return nil, hinted{errors.New("the target's command has no program"), "--target none runs the command as it is"}
	}
	of, err := split(version)
	if err != nil {
		return nil, fmt.Errorf("the command for the target's version: %w", err)
	}
	found, err := exec.LookPath(words[0])
	if err != nil {
		return nil, hinted{fmt.Errorf("the target's command: %w: %w", ErrNotHere, err), "give the path of the program"}
	}
	// A relative path would be another program in each workspace.
	if words[0], err = filepath.Abs(found); err != nil {
		return nil, err
	}
	return Template{Words: words, Version: of}, nil
}

// Name implements [probe.Target].
func (t Template) Name() string { return filepath.Base(t.Words[0]) }

// Run implements [probe.Target].
func (t Template) Run(ctx context.Context, w *probe.World, c probe.Command, argv []string) probe.Observation {
	if err := missingOption(c.Options, "env terminal"); err != nil {
		return probe.Observation{Err: err}
	}
	return probe.Start(ctx, w, c, t.line(w, argv), c.Options.Env)
}

func (t Template) line(w *probe.World, argv []string) []string {
	quoted := make([]string, len(argv))
	for i, a := range argv {
		quoted[i] = text.Quote(a)
	}
	fill := strings.NewReplacer("{}", strings.Join(quoted, " "), "{W}", w.W, "{H}", w.Home())
	var out []string
	for _, word := range t.Words {
		if word == "{}" {
			out = append(out, argv...)
			continue
		}
		out = append(out, fill.Replace(word))
	}
	return out
}

// split splits words as sh(1) does (POSIX, 2.2 "Quoting"), and refuses what would
// need a shell.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == 0 && strings.IndexByte(" \t\n", c) >= 0:
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
			continue
		case quote == 0 && strings.IndexByte("|&;<>()$`*?[#~!", c) >= 0 && (strings.IndexByte("#~!", c) < 0 || !in),
			quote == '"' && (c == '$' || c == '`'):
			return nil, fmt.Errorf("%q, at position %d, needs a shell", c, i+1)
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'':
			if i++; i == len(line) {
				return nil, errors.New("nothing follows the last \\")
			}
			if quote == '"' && strings.IndexByte("$`\"\\\n", line[i]) < 0 {
				word.WriteByte(c)
			}
			if line[i] != '\n' { // a backslash before a newline continues the line
				word.WriteByte(line[i])
			}
		default:
			word.WriteByte(c)
		}
		in = true
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}
