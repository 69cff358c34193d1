package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/testenv"
)

// Keys.
const (
	ctrlC   = "\x03"
	ctrlD   = "\x04"
	ctrlZ   = "\x1a"
	ctrlBS  = "\x1c"
	escape  = "\x1b"
	ttyPath = `/dev/pts/\d+`
)

func TestTerminalOfEachStream(t *testing.T) {
	report := `for i in 0 1 2; do test -t $i && r="$r $i:tty" || r="$r $i:no"; done; echo $r > report`
	for name, row := range map[string]struct{ redirect, want string }{
		"all three are the terminal":       {"", "0:tty 1:tty 2:tty"},
		"input comes from nowhere":         {"</dev/null", "0:no 1:tty 2:tty"},
		"input is a pipe":                  {"< <(sleep 0.2)", "0:no 1:tty 2:tty"},
		"output goes to a file":            {">out", "0:tty 1:no 2:tty"},
		"errors go to a file":              {"2>err", "0:tty 1:tty 2:no"},
		"both outputs go to files":         {">out 2>err", "0:tty 1:no 2:no"},
		"only errors go to the terminal":   {"</dev/null >out", "0:no 1:no 2:tty"},
		"only output goes to the terminal": {"</dev/null 2>err", "0:no 1:tty 2:no"},
		"none is the terminal":             {"</dev/null >out 2>err", "0:no 1:no 2:no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.Need(t, testenv.Bash, nil)
			s := onScreen(t, "bash", "-c", `read -r; holdfast run -- bash -c '`+report+`; echo to-out; echo to-err >&2' `+row.redirect)
			before := s.modes()
			s.line("")
			if status := s.ended(); status != 0 {
				t.Fatalf("status %d; on the screen:\n%s", status, s.shown())
			}
			if got := s.file("report"); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
			// What is redirected goes there, the rest to the screen.
			expected := map[string]bool{}
			for stream, text := range map[string]string{"out": "to-out", "err": "to-err"} {
				where, _ := os.ReadFile(filepath.Join(s.ws, stream))
				redirected := strings.Contains(row.redirect, stream)
				if strings.Contains(string(where), text) != redirected {
					t.Errorf("file %s: %q", stream, where)
				}
				if !redirected {
					expected[text] = true
				}
			}
			for len(expected) > 0 {
				text := s.wait(`(to-out|to-err)\r\n`)[1]
				if !expected[text] {
					t.Fatalf("%s is on the screen:\n%s", text, s.shown())
				}
				delete(expected, text)
			}
			if after := s.modes(); after != before {
				t.Errorf("the terminal was %s and is %s", before, after)
			}
		})
	}
}

func TestTerminalIsItsOwn(t *testing.T) {
	t.Parallel()
	s := onShell(t)
	s.line(`echo "outer=$(tty)"`)
	outer := s.wait(`outer=(` + ttyPath + `)`)[1]
	s.line(`holdfast run -- sh -c 'echo "inner=$(tty) $(stat -c %d:%i $(tty)) $(ls /dev/pts | tr "\n" " ")"; echo controlling > /dev/tty'; stat -c 'host=%d:%i' ` + outer)
	inner := s.wait(`inner=` + ttyPath + ` (\d+:\d+) ([^\r]*)\r`)
	s.wait(`controlling`)
	if host := s.wait(`host=(\d+:\d+)`)[1]; host == inner[1] {
		t.Errorf("the terminal inside is the one outside: %s", host)
	}
	if strings.Contains(s.shown(), "cannot") {
		t.Errorf("on the screen:\n%s", s.shown())
	}
}

func TestTerminalTakesNoTypedKeys(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Python, nil)
	s := onShell(t)
	attack := `import fcntl, os, struct
for fd in (0, 1, 2, os.open("/dev/tty", os.O_RDWR)):
    for c in b"touch injected\n":
        for request in (0x5412, 0x5412 | 1 << 32, 0x5412 | 1 << 63):
            try:
                fcntl.ioctl(fd, request - (1 << 64) * (request >> 63), bytes([c]))
                print("typed 0", fd, hex(request))
            except (OSError, OverflowError) as e:
                error = e
    try:
        fcntl.ioctl(fd, 0x541C, b"\x03")
        print("typed by TIOCLINUX")
    except OSError as e:
        error = e
print("last", error)
`
	if err := os.WriteFile(filepath.Join(s.ws, "attack.py"), []byte(attack), 0o644); err != nil {
		t.Fatal(err)
	}
	// Answers of the terminal to questions of the program must not stay in
	// the queue of the shell either.
	s.line(`holdfast run -- python3 attack.py; read -t 0.5 -n 1 key; echo "key=[$key]" end`)
	s.wait(`last`)
	s.wait(`key=\[\] end`)
	if strings.Contains(s.shown(), "typed by") || strings.Contains(s.shown(), "typed 0") {
		t.Errorf("on the screen:\n%s", s.shown())
	}
	if _, err := os.Stat(filepath.Join(s.ws, "injected")); err == nil {
		t.Error("the shell outside executed what was typed inside")
	}
}

func TestTerminalResize(t *testing.T) {
	t.Parallel()
	s := onScreen(t, "holdfast", "run", "--", "bash", "-c", `trap 'told=told' WINCH; echo "first $(stty size)"; while test ! -e end; do sleep 0.05; echo "$told $(stty size)"; done`)
	s.wait(`first 24 80`)
	s.resize(50, 132)
	s.wait(`told 50 132`)
	s.resize(5, 20)
	s.wait(`told 5 20`)
	if err := os.WriteFile(filepath.Join(s.ws, "end"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if status := s.ended(); status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestTerminalKeysThatSignal(t *testing.T) {
	for name, row := range map[string]struct{ command, key, want string }{
		"Ctrl-C ends the command":               {`sh -c 'echo ready; exec sleep 60'`, ctrlC, "status=130"},
		"Ctrl-C is the command's to handle":     {`bash -c 'trap "echo caught; exit 7" INT; echo ready; while :; do sleep 0.05; done'`, ctrlC, "caught(?s:.*)status=7"},
		"Ctrl-C reaches the whole group":        {`bash -c 'echo ready; sleep 60 | sleep 61'`, ctrlC, "status=130"},
		"Ctrl-backslash quits":                  {`sh -c 'ulimit -c 0; echo ready; exec sleep 60'`, ctrlBS, "status=131"},
		"Ctrl-D is the end of the input":        {`sh -c 'echo ready; cat; echo eof'`, ctrlD, "eof(?s:.*)status=0"},
		"Ctrl-C is a byte for a raw program":    {`sh -c 'stty raw -echo; echo ready; head -c 1 | od -An -tx1; stty sane'`, ctrlC, " 03(?s:.*)status=0"},
		"a command that ignores it can be left": {`bash -c 'trap "" INT; echo ready; sleep 3; echo survived'`, ctrlC, "survived(?s:.*)status=0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := onShell(t)
			before := s.modes()
			s.line(`holdfast run -- ` + row.command + `; echo "status"=$?`)
			s.wait(`\nready`)
			time.Sleep(50 * time.Millisecond) // the program executes what comes after its word
			s.send(row.key)
			s.wait(row.want)
			s.wait(`outer> `)
			if after := s.modes(); after != before {
				t.Errorf("the terminal was %s and is %s", before, after)
			}
		})
	}
}

func TestTerminalStopAndContinue(t *testing.T) {
	t.Parallel()
	s := onShell(t)
	before := s.modes()
	for range 2 {
		s.line(`holdfast run -- sh -c 'echo ready; cat; echo bye; exit 6'`)
		s.wait(`\nready`)
		s.line("first")
		s.wait(`first\r\nfirst`)
		s.send(ctrlZ)
		s.wait(`Stopped`)
		s.wait(`outer> `)
		if got := s.modes(); got != before {
			t.Errorf("while stopped the terminal is %s, it was %s", got, before)
		}
		s.line(`echo "jobs: $(jobs | wc -l)"`)
		s.wait(`jobs: 1\r`)
		s.wait(`outer> `) // else it comes between what is typed and what that shows
		s.foreground(before)
		s.line("second")
		s.wait(`second\r\nsecond\r\n`)
		s.send(ctrlZ)
		s.wait(`Stopped`)
		s.wait(`outer> `)
		s.foreground(before)
		s.send(ctrlD)
		s.wait(`(?:^|\n|\^Z)bye\r`) // the echo of Ctrl-Z may have been under way when everything stopped
		s.wait(`outer> `)           // what is typed before is the command's
		s.line(`echo "status"=$?`)
		s.wait(`status=6`)
		s.wait(`outer> `)
	}
	if got := s.modes(); got != before {
		t.Errorf("afterwards the terminal is %s, it was %s", got, before)
	}
}

// foreground continues the job of the shell, and returns when it has the
// terminal as it wants it: it was as in cooked while the shell had it.
func (s *screen) foreground(cooked string) {
	s.t.Helper()
	s.line(`fg`)
	s.wait(`\nholdfast run[^\n]*\n`)
	for end := time.Now().Add(patience); s.modes() == cooked; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("the terminal is not raw again; on the screen:\n%s", s.shown())
		}
	}
}

func TestTerminalBackground(t *testing.T) {
	t.Parallel()
	s := onShell(t)
	s.line(`holdfast run -- sh -c 'until test -e seen; do sleep 0.02; done; echo "from"-behind' < /dev/null &`)
	s.line(`echo "the"-shell-goes-on`)
	s.wait(`the-shell-goes-on`)
	s.line(`touch seen`)
	s.wait(`from-behind`)
	s.line(`wait; echo "status"=$?`)
	s.wait(`status=0`)
}

func TestTerminalShellInside(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Bash, nil)
	s := onShell(t)
	before := s.modes()
	s.line(`holdfast run --env 'PS1=inner> ' -- bash --norc --noediting`)
	s.wait(`\ninner> `)
	if strings.Contains(s.shown(), "job control") {
		t.Fatalf("on the screen:\n%s", s.shown())
	}
	job := fmt.Sprint("sleep ", 100_000+os.Getpid()) // of this test alone
	s.line(job + ` & jobs`)
	s.wait(`\[1\]\+? +Running +` + job)
	s.line(`fg`)
	s.wait(job + `\r\n`)
	s.foregroundOf(job)
	s.send(ctrlZ)
	s.wait(`Stopped +` + job)
	s.line(`bg; jobs`)
	s.wait(`Running +` + job)
	s.line(`kill %1; wait; echo "to"-cat; cat`)
	s.wait(`to-cat`)
	s.line("echoed")
	s.wait(`echoed\r\nechoed`)
	s.send(ctrlC)
	s.wait(`inner> `)
	s.line(`echo "last"=$?`)
	s.wait(`last=130`)
	s.line(`exit 4`)
	s.wait(`outer> `)
	s.line(`echo "status"=$?`)
	s.wait(`status=4`)
	if got := s.modes(); got != before {
		t.Errorf("afterwards the terminal is %s, it was %s", got, before)
	}
}

func TestTerminalFullScreenPrograms(t *testing.T) {
	text := "the first line\n" + strings.Repeat("a line\n", 100)
	for name, row := range map[string]struct {
		need    testenv.Feature
		command string
		shows   string
		keys    []string
		want    string
	}{
		"vim edits a file": {testenv.Vim, "vim -u NONE -N text", "the first line", []string{"Inew ", escape, ":wq\r"}, "new the first line"},
		"less shows one":   {testenv.Less, "less text", "the first line", []string{" ", "q"}, "the first line"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.Need(t, row.need, nil)
			s := onShell(t)
			if err := os.WriteFile(filepath.Join(s.ws, "text"), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			before := s.modes()
			s.line(`holdfast run -- ` + row.command)
			s.wait(row.shows)
			for _, k := range row.keys {
				s.send(k)
				time.Sleep(100 * time.Millisecond) // after escape a program waits for the rest of a key
			}
			s.wait(`outer> `)
			s.line(`echo "status"=$?`)
			s.wait(`status=0`)
			if first, _, _ := strings.Cut(s.file("text"), "\n"); first != row.want {
				t.Errorf("the file begins with %q", first)
			}
			if got := s.modes(); got != before {
				t.Errorf("afterwards the terminal is %s, it was %s", got, before)
			}
		})
	}
}

func TestTerminalRestored(t *testing.T) {
	for name, command := range map[string]string{
		"the command made it raw and ended":      `sh -c 'stty raw -echo; exit 0'`,
		"the command made it raw and was killed": `sh -c 'stty raw -echo; kill -KILL $$'`,
		"a limit ended the command":              `--time 300ms sleep 60`,
		"nothing was started":                    `no-such-command`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := onShell(t)
			before := s.modes()
			flags, rest := "", command
			if strings.HasPrefix(command, "--") {
				flags, rest = "--time 300ms", "sleep 60"
			}
			s.line(`holdfast run ` + flags + ` -- ` + rest + `; echo "status"=$?`)
			s.wait(`status=\d+`)
			s.wait(`outer> `)
			if got := s.modes(); got != before {
				t.Errorf("afterwards the terminal is %s, it was %s", got, before)
			}
		})
	}
}

func TestTerminalHangUp(t *testing.T) {
	t.Parallel()
	s := onScreen(t, "holdfast", "run", "--", "sh", "-c", `echo ready; while :; do date +%N > beat; sleep 0.02; done`)
	s.wait(`ready`)
	s.file("beat")
	s.master.Close()
	s.ended()
	if ws := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() && ws.ExitStatus() == 0 {
		t.Error("the end of the terminal was no failure")
	}
	// It may have ended between emptying the file and writing to it.
	last, err := os.ReadFile(filepath.Join(s.ws, "beat"))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if now, err := os.ReadFile(filepath.Join(s.ws, "beat")); err != nil || string(now) != string(last) {
		t.Errorf("the command goes on without its terminal (%v)", err)
	}
}

func TestTerminalNothingRuns(t *testing.T) {
	t.Parallel()
	// Half of a program's question to the terminal is not answered to the
	// shell that comes after it, and colours appear where a person looks.
	s := onShell(t)
	s.line(`holdfast run --nope; echo "status"=$?`)
	s.wait("\x1b\\[31mholdfast: error:\x1b\\[0m")
	s.wait(`status=125`)
	s.wait(`outer> `) // what is typed before is shown before it
	s.line(`NO_COLOR=1 holdfast run --nope; echo "status"=$?`)
	s.wait(`\nholdfast: error: `)
	s.wait(`status=125`)
}

func TestTerminalPaste(t *testing.T) {
	t.Parallel()
	s := onScreen(t, "holdfast", "run", "--", "bash", "-c", `stty -echo; echo ready; cat > pasted; wc -c < pasted; sort -u pasted`)
	s.wait(`ready\r\n`)
	text := strings.Repeat("0123456789 a line of a paste\r", 5000)
	s.send(text)
	s.send(ctrlD)
	s.wait(`(?m)^` + strconv.Itoa(len(text)) + `\r$`)
	s.wait(`(?m)^0123456789 a line of a paste\r$`)
	if status := s.ended(); status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestTerminalAfterSupervisorIsKilled(t *testing.T) {
	t.Parallel()
	s := onShell(t)
	before := s.modes()
	s.line(`holdfast run -- sh -c 'echo "re"ady; exec sleep 60'`)
	s.wait(`ready`)
	s.send(ctrlZ)
	s.wait(`Stopped`)
	s.line(`p=$(jobs -p); kill -KILL %1; while test -e /proc/$p; do sleep 0.02; done`) // the shell reports it at its next prompt
	s.wait(`Killed`)
	s.line(`echo "still"-here`)
	s.wait(`still-here`)
	if got := s.modes(); got != before {
		t.Errorf("afterwards the terminal is %s, it was %s", got, before)
	}
}
