package main

import (
	"fmt"
	"math"
	"slices"
)

// pathPart is the name for -only of the part about a new user's path.
const pathPart = "path"

// The goals for `holdfast run AGENT` in somebody's first hour, with the login
// already there: flags, and questions of Holdfast and of the agent's first start.
const (
	pathFlagLimit     = 0
	pathQuestionLimit = 2
)

// pathAction is what one action has come to, as internal/testenv/realtest writes
// it.
type pathAction struct{ Action, Verdict string }

// agentPath is one agent's first hour.
type agentPath struct {
	Name, Version string
	Typed         []string       // what starts it
	Asked         map[string]int // questions, by who asks or about what
	Seconds       float64
	Status        string
	Actions       []pathAction
}

// sandboxActions are the actions as shell commands in one sandbox.
type sandboxActions struct {
	Name, Version string
	Actions       []pathAction
}

// pathFigures are the results of both tests.
type pathFigures struct {
	agents    []agentPath
	sandboxes []sandboxActions
}

// pathWorks is the verdict about an action that did what was asked.
const pathWorks = "works"

// pathUnexplained are the verdicts about actions that failed with no reason that
// says what to type.
var pathUnexplained = []string{"does not say why", "lost"}

func countVerdicts(actions []pathAction, verdicts ...string) int {
	n := 0
	for _, a := range actions {
		if slices.Contains(verdicts, a.Verdict) {
			n++
		}
	}
	return n
}

// flags are the words after `holdfast run AGENT`.
func (a agentPath) flags() int { return len(a.Typed) - 3 }

func (a agentPath) questions() int { return a.Asked["holdfast"] + a.Asked["onboarding"] }

// committed reports whether the last action, the commit, is there.
func (a agentPath) committed() bool {
	return len(a.Actions) > 0 && a.Actions[len(a.Actions)-1].Verdict == pathWorks
}

func (f *pathFigures) verdicts() []verdict {
	flags, questions, unexplained, without := math.NaN(), math.NaN(), math.NaN(), math.NaN()
	if len(f.agents) > 0 {
		flags, questions, unexplained, without = 0, 0, 0, 0
	}
	for _, a := range f.agents {
		flags, questions = max(flags, float64(a.flags())), max(questions, float64(a.questions()))
		unexplained += float64(countVerdicts(a.Actions, pathUnexplained...))
		if !a.committed() {
			without++
		}
	}
	return []verdict{
		judge("new user: flags, at most of an agent", pathFlagLimit, flags, "%.0f"),
		judge("new user: questions, at most of an agent", pathQuestionLimit, questions, "%.0f"),
		judge("new user: failures that say no reason, of all agents", 0, unexplained, "%.0f"),
		judge("new user: agents without a commit at the end", 0, without, "%.0f"),
	}
}

func (f *pathFigures) tables() []captioned {
	paths := table{header: []string{"agent", "s", "flags", "questions of Holdfast", "of its first start", "its own permissions", "works", "says why", "no reason", "commit"}}
	byAgent := table{header: []string{"action"}}
	var columns [][]pathAction
	for _, a := range f.agents {
		commit := "no"
		if a.committed() {
			commit = "yes"
		}
		paths.add(a.Name+" "+a.Version, fmt.Sprintf("%.0f", a.Seconds), fmt.Sprint(a.flags()), fmt.Sprint(a.Asked["holdfast"]), fmt.Sprint(a.Asked["onboarding"]), fmt.Sprint(a.Asked["permission"]),
			fmt.Sprint(countVerdicts(a.Actions, pathWorks)), fmt.Sprint(countVerdicts(a.Actions, "says why")), fmt.Sprint(countVerdicts(a.Actions, pathUnexplained...)), commit)
		byAgent.header, columns = append(byAgent.header, a.Name), append(columns, a.Actions)
	}
	addActions(&byAgent, columns)
	bySandbox := table{header: []string{"action"}}
	columns = nil
	for _, s := range f.sandboxes {
		bySandbox.header, columns = append(bySandbox.header, s.Name+" "+s.Version), append(columns, s.Actions)
	}
	addActions(&bySandbox, columns)
	return []captioned{
		{caption: "From `holdfast run AGENT` to a commit", table: paths},
		{caption: "The fourteen actions, by agent", table: byAgent},
		{caption: "The fourteen actions as shell commands, by sandbox", text: pathSandboxText, table: bySandbox},
	}
}

// addActions adds a row for each action, and one with how many work.
func addActions(t *table, columns [][]pathAction) {
	if len(columns) == 0 {
		return
	}
	last := []string{"**work**"}
	for i, a := range columns[0] {
		row := []string{a.Action}
		for _, c := range columns {
			row = append(row, c[i].Verdict)
		}
		t.add(row...)
	}
	for _, c := range columns {
		last = append(last, fmt.Sprint(countVerdicts(c, pathWorks)))
	}
	t.add(last...)
}

var pathIntro = []string{
	"A user with a repository, an identity in `~/.gitconfig` and the login of an agent types `holdfast run AGENT` in a terminal (of tmux), and one task. A scripted model asks for fourteen actions; the user answers what is asked with what is offered first, and leaves. The network is one of its own, in which the registry, a page of documentation and the model providers are stand-ins.",
	"*Works*: done, and there for the user afterwards. *Says why*: it fails, and a line of the program's or of the sandbox's names the sandbox and what to type. *Does not say why*: such a line is missing. *Lost*: done inside, and dropped at the end.",
	"The time is from the command to the shell's next prompt, with all that the model asks for.",
	"By `go test -run 'TestRoot(NewUser|FirstActions)' ./internal/testenv/realtest`, as root, which plays as an ordinary user.",
}

// pathReason is why one agent has no commit.
const pathReason = "the shell of Gemini CLI sets GIT_CONFIG_GLOBAL and GIT_CONFIG_SYSTEM to /dev/null, so that git knows no author, as it does not without Holdfast. The test lists it (newuser_shortfalls_test.go of internal/testenv/realtest), and fails where it works again."

const pathSandboxText = "Each as `SANDBOX bash -c ACTION`, in the order of the table, in one home and repository for each sandbox. srt has the complete example of its README as its settings; Codex's sandbox is `workspace-write`, as Codex starts in a repository. In its own terminal Codex asks whether a refused command shall run without the sandbox, and an agent that uses srt may ask for more: here nobody is asked."
