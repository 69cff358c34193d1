// Package screen is the user's terminal: a question with its answer ([Ask]), and, for
// one command at a time, all of it with rows that are drawn and keys that are read
// ([NewFullScreen]). What was typed before something was shown counts for nothing.
// It knows no verb; text that it draws was made safe by its caller.
package screen

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Ask prints a question on out and reads a line from the terminal in. Every question
// of a command goes through it: what was typed, or put into the terminal by what ran
// there, before the question was shown answers nothing.
func Ask(in *os.File, out io.Writer, question string) (string, error) {
	if err := sys.FlushInput(in); err != nil {
		return "", fmt.Errorf("asking on the terminal: %w", err)
	}
	if _, err := io.WriteString(out, question+" "); err != nil {
		return "", fmt.Errorf("asking on the terminal: %w", err)
	}
	return readLine(in)
}

// readLine reads a line byte by byte, so that nothing of the next is taken.
func readLine(from io.Reader) (string, error) {
	var line []byte
	buf := make([]byte, 1)
	for len(line) < 4096 {
		n, err := from.Read(buf)
		if n == 1 {
			if buf[0] == '\n' {
				return strings.TrimSpace(string(line)), nil
			}
			line = append(line, buf[0])
			continue
		}
		if err != nil {
			return "", err
		}
	}
	return "", errors.New("the line is too long")
}
