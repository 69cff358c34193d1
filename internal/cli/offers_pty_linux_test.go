package cli_test

import (
	"errors"
	"os"
	"os/exec"
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
	s.wait(`outer> `)
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
	if strings.Contains(s.shown(), "accept --git") {
		t.Error("the command for what was asked is there")
	}
	if strings.Contains(s.shown(), "\x1b[2J") {
		t.Error("an escape sequence of a file reached the terminal")
	}
	s.line("exit")
	s.ended()
}

// What the question cannot show is named after it, and nothing before it that it offers. A
// line that the command left open is none of ours.
func TestOfferOfPart(t *testing.T) {
	t.Parallel()
	s := onShell(t)
	s.line(`holdfast run -- sh -c 'printf "\0" > QWEN.md; echo x > .cursorrules; printf "left"" open"'; echo "end"of it`)
	s.wait(`left open\r+\n\S*holdfast: quarantined`)
	s.wait(`take over 1 file that`)
	if strings.Contains(s.shown(), "take it over: holdfast review") {
		t.Error("the command for what is asked is there")
	}
	s.line("y")
	s.wait(`applied.* .cursorrules`)
	s.wait(`later:.*holdfast review \d`)
	s.wait(`endof it`)
	s.line(`holdfast run -- sh -c 'echo x > GEMINI.md' < /dev/null; echo "not"asked`)
	s.wait(`take it over: holdfast review \d`)
	s.wait(`notasked`)
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

// What ends the process while it waits for the terminal to be still leaves the terminal its
// modes, and ends it.
func TestOfferEnds(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]string{"TERM": "143", "HUP": "129"} {
		s := onShell(t)
		const outer = `sh -c 'echo $$ > ../pid; exec holdfast run -- sh -c "echo obey > AGENTS.md"'
echo "status"=$?; stty -a | grep -ow -e "-*echo" -e "-*icanon" -e "-*isig" | tr "\n" " "; echo "end"of it
`
		if err := os.WriteFile(filepath.Join(s.ws, "outer"), []byte(outer), 0o644); err != nil {
			t.Fatal(err)
		}
		s.line(`sh ./outer`) // a shell with a prompt would mend the modes itself
		s.wait(`\+obey`)
		for range 3 { // the wait goes on
			time.Sleep(200 * time.Millisecond)
			s.send("y")
		}
		pid := strings.TrimSpace(s.file("../pid"))
		if out, err := exec.Command("kill", "-"+name, pid).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		s.wait(`status=` + status)
		s.wait(`endof it`)
		if shown := s.shown(); strings.Contains(shown, "take over") || !strings.Contains(shown, "isig icanon echo") || strings.Contains(shown, "-isig") {
			t.Errorf("%s:\n%s", name, shown)
		}
		s.line("exit")
		s.ended()
	}
}

// What a program leaves on in the terminal does not hide what the question shows.
func TestOfferIsSeen(t *testing.T) {
	t.Parallel()
	s := onShell(t)
	rows := []struct{ left, undone string }{ // the last is in effect when the program ends, and keeps what follows from being read
		{"\x1b[?1049h", "\x1b[?1047l"},        // the other screen
		{"\x1b[5;6r", "\x1b[r"},               // a region that scrolls
		{"\x1b[?69h", "\x1b[?69l"},            // margins beside it
		{"\x1b[?7l", "\x1b[?7h"},              // lines do not wrap
		{"\x1b[4h", "\x1b[4l"},                // insertion
		{"\x1b[?25l", "\x1b[?25h"},            // no cursor
		{"\x1b[8;30;40m", "\x1b[0m"},          // text that is not seen
		{"\x1b]4;2;#000\a", "\x1b]104\x1b\\"}, // green is black
		{"\x1b]10;#000\a", "\x1b]110\x1b\\"},  // text is black
		{"\x1b]11;#000\a", "\x1b]111\x1b\\"},  // and what it stands on
		{"\x1b(0", "\x1b(B"},                  // lines for letters
		{"\x0e", "\x0f"},
		{"\x1b%@", "\x1b%G"},
		{"\x1b[?2026h", "\x1b[?2026l"}, // output waits
		{"\x1b]0;", "\x18"},
	}
	var left strings.Builder
	for _, r := range rows {
		left.WriteString(r.left)
	}
	program := "#!/bin/sh\necho obey > AGENTS.md\ncat left\n"
	if err := errors.Join(os.WriteFile(filepath.Join(s.ws, "left"), []byte(left.String()), 0o644), programs.Write(filepath.Join(s.ws, "agent"), []byte(program), 0o755)); err != nil {
		t.Fatal(err)
	}
	s.line(`holdfast run -- ./agent`)
	s.wait(`\+obey`)
	shown := s.shown()
	shown = shown[:max(0, strings.LastIndex(shown, "AGENTS.md: most"))] // where the offer begins
	began, restored := strings.LastIndex(shown, "\x18"), strings.LastIndex(shown, "\x1b8")
	for _, r := range rows {
		on, off := strings.LastIndex(shown, r.left), strings.LastIndex(shown, r.undone)
		if on < 0 || off < on || off < began {
			t.Errorf("%q was left on, and is not undone by %q:\n%q", r.left, r.undone, shown)
		}
		if strings.HasSuffix(r.undone, "m") && off < restored { // ESC 8 brings colours back
			t.Errorf("%q is brought back:\n%q", r.left, shown)
		}
	}
	s.wait(`take over 1 file that`)
	s.line("")
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
	if strings.Contains(s.shown(), "To look at it") {
		t.Error("the command for what was asked is there")
	}
	if got := settings(); !strings.Contains(got, "Bash") {
		t.Errorf("the settings are %s", got)
	}
	if _, err := os.Lstat(filepath.Join(s.ws, "AGENTS.md")); err == nil {
		t.Error("with the settings, files were taken over")
	}
	s.line("exit")
	s.ended()
}
