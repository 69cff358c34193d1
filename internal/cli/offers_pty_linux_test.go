package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// One question at the end of a run takes over what was held back: what it shows, for an
// answer that was typed after it, and nothing else.
func TestOfferOnTerminal(t *testing.T) {
	t.Parallel()
	s := onShell(t)
	there := func(name string) bool {
		_, err := os.Lstat(filepath.Join(s.ws, name))
		return err == nil
	}
	const make = `echo obey > AGENTS.md; mkdir -p .github/workflows; printf "on: \\033[2Jpush\\n" > .github/workflows/ci.yml`

	// What was typed before, or put there by what ran inside, answers nothing.
	s.line(`holdfast run -- sh -c '` + make + `; stty -echo; echo "rea"dy; sleep 0.5; printf "\\033[c"'`)
	s.wait(`ready`)
	s.line("y")
	s.wait(`\+on: .*\\x1b.*\[2Jpush`)
	s.wait(`\+obey`)
	s.wait(`take over 2 files that programs on this machine obey\? \[y/N/look\]`)
	time.Sleep(100 * time.Millisecond)
	if there("AGENTS.md") || there(".github/workflows") {
		t.Fatal("what was typed before the question answered it")
	}
	s.line("")
	s.wait(`later:.*holdfast review \d`)
	s.wait(`outer> `)
	if there("AGENTS.md") {
		t.Fatal("no answer took a file over")
	}
	s.line(`holdfast review | grep -c held`)
	s.wait(`\n2`)

	// yes takes all of it, and the status is the command's.
	s.line(`holdfast run -- sh -c '` + make + `; exit 3'; echo "status"=$?`)
	s.wait(`take over 2 files`)
	s.line("y")
	s.wait(`applied.* .github/workflows/ci.yml`)
	s.wait(`applied.* AGENTS.md`)
	s.wait(`status=3`)
	if got := s.file("AGENTS.md"); got != "obey" {
		t.Errorf("AGENTS.md holds %q", got)
	}
	if !strings.Contains(s.file(".github/workflows/ci.yml"), "push") {
		t.Error("the workflow was not taken over")
	}

	// What is long is not taken before it was shown.
	s.line(`holdfast run -- sh -c 'seq 2000 > CLAUDE.md'`)
	s.wait(`take over 1 file that`)
	if strings.Contains(s.shown(), "+1999") {
		t.Error("a long file was shown at once")
	}
	s.line("y")
	s.wait(`\+1999`)
	s.wait(`take over 1 file that`)
	if there("CLAUDE.md") {
		t.Fatal("a file was taken over before it was shown")
	}
	s.line("y")
	s.wait(`applied.* CLAUDE.md`)
	s.wait(`outer> `)

	// Ctrl-C is no, and without a terminal nothing is asked.
	s.line(`holdfast run -- sh -c 'echo x > GEMINI.md; exit 4'; echo "status"=$?`)
	s.wait(`take over 1 file that`)
	s.send(ctrlC)
	s.wait(`status=4`)
	s.line(`holdfast run -- sh -c 'echo x > GEMINI.md' < /dev/null; echo "not"asked`)
	s.wait(`notasked`)
	if strings.Count(s.shown(), "take over 1 file") != 3 || there("GEMINI.md") {
		t.Errorf("on the screen:\n%s", s.shown())
	}

	// Settings of git are taken over by the same question.
	s.line(`git init -q; holdfast run -- git remote add fork https://example.org/x.git`)
	s.wait(`config: remote "fork": url = https://example.org/x.git`)
	s.wait(`take over 1 setting of git\? \[y/N/look\]`)
	s.line("y")
	s.wait(`accepted .*fork`)
	s.line(`git config remote.fork.url; echo "end"of it`)
	s.wait(`https://example.org/x.git\r?\nendof it`) // the shell may prompt late
	s.line(`holdfast run -- sh -c 'git remote add g https://example.org/g; echo x > QWEN.md'`)
	s.wait(`take over 1 file that programs on this machine obey and 1 setting of git\? \[y/N/look/files/git\]`)
	s.line("n")
	s.wait(`later:.*holdfast review \d`)
	s.line(`echo "end"of it`)
	s.wait(`endof it`)
	if all := s.shown(); strings.Count(all[strings.LastIndex(all, "files/git]"):], "later:") != 1 {
		t.Error("the command that decides later is not there once")
	}
	if strings.Contains(s.shown(), "\x1b[2J") {
		t.Error("an escape sequence of a file reached the terminal")
	}
	s.line("exit")
	s.ended()
}

// Keys that are meant for what ran inside, and come when it has ended, answer nothing.
func TestOfferWhileKeysCome(t *testing.T) {
	t.Parallel()
	s := onShell(t)
	const work = `holdfast run -- sh -c 'echo obey > AGENTS.md'`
	s.line(work)
	s.wait(`\+obey`)
	for range 6 { // keys that are meant for what ran inside go on
		time.Sleep(300 * time.Millisecond)
		if strings.Contains(s.shown(), "take over") {
			t.Fatal("it is asked while keys come")
		}
		s.send("y")
	}
	s.send("\r")
	s.wait(`take over 1 file`)
	s.line("")
	s.wait(`later:.*holdfast review \d`)
	s.wait(`outer> `)

	// Where they do not end, nothing is asked.
	s.line(work)
	s.wait(`\+obey`)
	before := s.shown()
	for end := time.Now().Add(patience); s.shown() == before && time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		s.send("y")
	}
	s.wait(`later:.*holdfast review \d`)
	if strings.Contains(strings.TrimPrefix(s.shown(), before), "take over") {
		t.Fatal("it was asked while keys came")
	}
	s.wait(`outer> `)
	s.send("\x15") // what the shell was given of the keys
	if _, err := os.Lstat(filepath.Join(s.ws, "AGENTS.md")); err == nil {
		t.Error("a key took a file over")
	}
	s.line("exit")
	s.ended()
}

// The question is one for both: files of the workspace, and settings of the agent, each of
// which can be taken alone.
func TestOfferOfSettings(t *testing.T) {
	t.Parallel()
	s := onShell(t)
	for _, dir := range []string{"../bin", "../home/.claude"} {
		if err := os.MkdirAll(filepath.Join(s.ws, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	err := programs.Write(filepath.Join(s.ws, "../bin/claude"), []byte("#!/bin/sh\nexec sh \"$@\"\n"), 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.ws, "../home/.claude/settings.json"), []byte("{}\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	settings := func() string { return s.file("../home/.claude/settings.json") }
	s.line(`PATH=$PWD/../bin:$PATH`)
	const work = `holdfast run claude -c 'echo "{\"permissions\":{\"allow\":[\"Bash\"]}}" > ~/.claude/settings.json; echo x > AGENTS.md'`
	const question = `take over 1 file that programs on this machine obey and 1 changed file of claude's settings in your home\? \[y/N/look/files/settings\]`
	s.line(work)
	s.wait(`\+ permissions.allow = \["Bash"\]`)
	s.wait(question)
	s.line("files")
	s.wait(`applied.* AGENTS.md`)
	s.wait(`later:.*holdfast agents changes claude`)
	s.wait(`outer> `)
	if got := settings(); got != "{}" {
		t.Errorf("with the files, settings were taken over: %s", got)
	}
	s.line(`rm AGENTS.md; ` + work)
	s.wait(question)
	s.line("settings")
	s.wait(`settings.json: changed`)
	s.wait(`later:.*holdfast review \d`)
	s.wait(`outer> `)
	if got := settings(); !strings.Contains(got, "Bash") {
		t.Errorf("the settings are %s", got)
	}
	if _, err := os.Lstat(filepath.Join(s.ws, "AGENTS.md")); err == nil {
		t.Error("with the settings, files were taken over")
	}
	s.line("exit")
	s.ended()
}
