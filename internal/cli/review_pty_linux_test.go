package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Going through changes on a terminal: a key each, what is flagged wants a whole
// word, and what was typed before a question was asked answers nothing.
func TestReviewOnTerminal(t *testing.T) {
	t.Parallel()
	s := onShell(t)
	for name, text := range map[string]string{"letters": "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\n", "old": "x\n"} {
		if err := os.WriteFile(filepath.Join(s.ws, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.line(`holdfast run --review -- sh -c 'sed -i s/b/B/\;s/m/M/ letters; rm old; echo all: > Makefile; echo n > new; printf "\033]0;x\007\033[2J\n" > esc'`)
	s.wait(`5 changes wait for review, 1 of them flagged`)
	s.wait(`outer> `)
	s.line("holdfast review -i")

	s.wait(`FLAGGED: accept Makefile\? \[yes,`)
	s.line("y")
	s.wait(`type the whole word yes`)
	s.wait(`FLAGGED: accept Makefile\?`)
	s.line("n")

	s.wait(`\\x1b.*\]0;x.*\\x07.*\\x1b.*\[2J`)
	s.wait(`accept esc\? `)
	s.line("?")
	s.wait(`take|accept`)
	s.wait(`accept esc\? `)
	s.line("y")

	s.wait(`accept letters\? \[y,n,s,`)
	s.line("s")
	s.wait(`accept hunk 1 of 2 of letters\?`)
	s.line("n")
	s.wait(`accept hunk 2 of 2 of letters\?`)
	s.line("y")

	s.wait(`accept new\? `)
	s.line("k")
	s.wait(`accept old\? `)
	s.line("q")

	s.wait(`apply 2 accepted changes now\? \[y/n\]`)
	s.line("y")
	s.wait(`applied.*letters`)
	s.wait(`outer> `)
	s.line("echo status $?")
	s.wait(`status 1`)
	if got := s.file("letters"); !strings.Contains(got, "M") || strings.Contains(got, "B") {
		t.Errorf("letters holds %q", got)
	}
	for name, want := range map[string]bool{"esc": true, "new": false, "old": true, "Makefile": false} {
		if _, err := os.Lstat(filepath.Join(s.ws, name)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
	if strings.Contains(s.shown(), "\x1b]0;x") || strings.Contains(s.shown(), "\x1b[2J") {
		t.Error("an escape sequence of a file reached the terminal")
	}

	// What was skipped is asked about again; the end of input decides nothing.
	s.line("holdfast review -i")
	s.wait(`\(1/2\) accept new\? `)
	s.send("\x04")
	s.wait(`outer> `)
	s.line("holdfast review | grep -c accepted; holdfast review drop 2")
	s.wait(`type yes: `)
	s.line("no")
	s.wait(`nothing was dropped`)
	s.wait(`outer> `)
	s.line("echo wait; sleep 0.5; holdfast review drop 2")
	s.wait(`wait`)
	s.line("yes") // before the question
	s.wait(`forget .*type yes: `)
	s.line("n")
	s.wait(`nothing was dropped`)
	s.wait(`outer> `)
	s.line("holdfast review drop 2")
	s.wait(`forget .*type yes: `)
	s.line("yes")
	s.wait(`outer> `)
	s.line("holdfast review")
	s.wait(`nothing waits for review`)
	s.wait(`outer> `)
	s.line("exit")
	s.ended()
}

// What was typed before holdfast policy trust asks does not trust a file.
func TestTrustOnTerminal(t *testing.T) {
	t.Parallel()
	s := onShell(t)
	if err := os.WriteFile(filepath.Join(s.ws, "holdfast.yaml"), []byte("version: 1\nfilesystem:\n  read: [/opt]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.line("echo wait; sleep 0.5; holdfast policy trust")
	s.wait(`wait`)
	s.line("y")
	s.wait(`trust these bytes\? \[y/N\] `)
	s.line("n")
	s.wait(`not trusted`)
	s.wait(`outer> `)
	s.line("holdfast policy trust")
	s.wait(`trust these bytes\? `)
	s.line("Y")
	s.wait(`\ntrusted`)
	s.wait(`outer> `)
	s.line("exit")
	s.ended()
}
