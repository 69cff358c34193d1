package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// An example is one block of a document: commands, or what they print.
type example struct {
	line    int
	lang    string // of the fence; "" for none
	before  string // the last line of text before the fence
	content []string
}

// notRun, as a comment before a block, says that its commands are not executed
// by this test, and why.
const notRun = "<!-- not run: "

// forRunners is the document whose readers are root, as most runners of CI are.
// Those of all others are ordinary users.
const forRunners = "docs/ci.md"

// TestDocuments runs what README.md and docs/ show: every line of every block
// that is marked sh, in a repository with one commit of a Go program that
// belongs to a user with an SSH key, and each must end well, or with the status that
// its comment says. A block after a text that ends with "prints:" must be in the
// output of the block before it, in any order, for two streams have none. A target of make need only be there.
func TestDocuments(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.UserNS, nil)
	testenv.Need(t, testenv.Git, nil)
	root := testenv.ModuleRoot(t)
	documents := []string{filepath.Join(root, "README.md")}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, more...)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range documents {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		if os.Getenv(testenv.Twice) != "" && (name == forRunners) != (os.Geteuid() == 0) {
			continue // the other pass plays it
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, examples(string(text)), string(makefile))
		})
	}
}

func examples(text string) []example {
	var all []example
	var before string
	var open *example
	for i, line := range strings.Split(text, "\n") {
		lang, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &example{line: i + 1, lang: lang, before: before}
		case fence:
			all = append(all, *open)
			open, before = nil, ""
		case open != nil:
			open.content = append(open.content, line)
		case strings.TrimSpace(line) != "":
			before = line
		}
	}
	return all
}

// joined is the lines of a block with those that a backslash continues in one,
// at the place of the first; the places of the others are empty.
func joined(content []string) []string {
	lines := slices.Clone(content)
	for i := len(lines) - 2; i >= 0; i-- {
		if start, more := strings.CutSuffix(lines[i], "\\"); more {
			lines[i], lines[i+1] = start+strings.TrimSpace(lines[i+1]), ""
		}
	}
	return lines
}

// playsLookups matches commands that play rows which look for files outside the
// view against Holdfast.
var playsLookups = regexp.MustCompile(`holdfast prove --(core|class fs)`)

// play runs the examples of one document in order, in one directory.
func play(t *testing.T, all []example, makefile string) {
	home, env, dir := household(t)
	output := ""
	for _, e := range all {
		switch {
		case strings.HasPrefix(e.before, notRun):
			output = ""
		case e.lang == "sh":
			output = ""
			for i, line := range joined(e.content) {
				if line == "" {
					continue
				}
				if target, ok := strings.CutPrefix(line, "make "); ok {
					target, _, _ = strings.Cut(target, " ")
					if !strings.Contains("\n"+makefile, "\n"+target+":") {
						t.Errorf("line %d: make has no target %s", e.line+1+i, target)
					}
					continue
				}
				if playsLookups.MatchString(line) && !testenv.Have(testenv.FUSE) {
					// Rows that look for files are held there, and leave no trace.
					t.Run(fmt.Sprintf("line %d", e.line+1+i), func(t *testing.T) { testenv.Need(t, testenv.FUSE, nil) })
					continue
				}
				output += command(t, e.line+1+i, line, env, dir)
			}
		case e.lang == "" && strings.HasSuffix(e.before, "prints:"):
			for _, want := range e.content {
				want = regexp.QuoteMeta(strings.ReplaceAll(want, "/home/you", home))
				if !regexp.MustCompile(`(?m)^` + strings.ReplaceAll(want, "…", ".*") + `$`).MatchString(output) {
					t.Errorf("line %d: %q is not in what the commands print:\n%s", e.line, want, output)
				}
			}
		}
	}
}

// household is a user's home with a key, and a repository beside it.
func household(t *testing.T) (home string, env []string, dir string) {
	t.Helper()
	home = testenv.TempHome(t)
	dir = filepath.Join(filepath.Dir(home), "app")
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	env = append(testenv.HomeEnv(home), "PATH="+binDir(t)+":"+filepath.Dir(tool)+":"+systemPath, "LANG=C.UTF-8", "TERM=dumb", "GOTOOLCHAIN=local")
	command(t, 0, "mkdir -p ~/.ssh && echo key > ~/.ssh/id_ed25519 && git init -q '"+dir+"'", env, home)
	command(t, 0, `mkdir -p cmd/app && printf 'module app.example.org\n\ngo 1.26\n' >go.mod && printf 'package main\n\nfunc main() { println("hello") }\n' >cmd/app/main.go`, env, dir)
	command(t, 0, "git add . && git -c user.name=n -c user.email=n@example.org commit -q -m first", env, dir)
	return home, env, dir
}

// saysStatus matches the comment of a command that does not end with 0.
var saysStatus = regexp.MustCompile(`\s# .*\bstatus ([1-9])\b`)

// saysWhy matches what a reader of the first line of a failure must know: rows that
// became weaker, and errors.
var saysWhy = regexp.MustCompile(`(?m)^.*(?: → |    reason | error: ).*$`)

// command runs one line of a document with the program under test.
func command(t *testing.T, number int, line string, env []string, dir string) string {
	t.Helper()
	line = strings.ReplaceAll(line, "go run ./cmd/holdfast", "holdfast")
	line = strings.ReplaceAll(line, "bin/holdfast", "holdfast")
	cmd := exec.Command("sh", "-eu", "-c", line)
	cmd.Dir, cmd.Env = dir, append(env, "PWD="+dir)
	out, err := cmd.CombinedOutput()
	want := 0
	if m := saysStatus.FindStringSubmatch(line); m != nil {
		want, _ = strconv.Atoi(m[1])
	}
	if strings.HasPrefix(line, "holdfast log verify") && !strings.Contains(line, "--allow-partial") && !testenv.Have(testenv.FUSE) {
		want = 1 // what it says is PARTIAL there
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		why := strings.Join(saysWhy.FindAllString(string(out), -1), "; ")
		t.Errorf("line %d: %s: status %d, want %d: %v: %s\n%s", number, line, got, want, err, why, out)
	}
	return string(out)
}
