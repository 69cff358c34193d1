package realtest

import (
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/prove/model"
)

// action is one of the fourteen that a user asks for in the first hour with a
// repository. An agent does it with its own tool (step) where it has one, and
// with the shell otherwise; other sandboxes get the shell command.
type action struct {
	name string
	step model.Step // zero: the shell command
	// shell does it in the repository.
	shell string
	// after is what the user looks at, outside, when all is over. Its exit status
	// says whether the action was done.
	after string
	// shows is a text of the tool's result, where the shell is not used.
	shows string
	// about are words that name the thing which was refused: one of them is in
	// the line that explains a failure.
	about []string
}

// The hosts that the actions name.
const (
	publicRegistry = "registry.npmjs.org"
	docsHost       = "docs.example.org"
)

// actions are those that leave a trace: what reads, what writes, what starts
// something, what reaches the network, and git.
var actions = []action{
	{
		name: "read a file", step: model.Step{Op: model.Read, Path: "{ws}/greet.js"},
		shows: "module.exports", shell: "cat greet.js", after: "true", about: []string{"greet.js"},
	},
	{name: "search the repository", shell: "rg -n Hello .", after: "true", about: []string{"rg"}},
	{
		name: "edit a file", step: model.Step{Op: model.Edit, Path: "{ws}/greet.js", Old: "module.exports = name => 'Hello, ' + name;", New: "module.exports = name => 'Good morning, ' + name;"},
		shell: `sed -i "s/'Hello, '/'Good morning, '/" greet.js`, after: "grep -q 'Good morning' greet.js", about: []string{"greet.js"},
	},
	{
		name: "create a file", step: model.Step{Op: model.Write, Path: "{ws}/NOTES.md", Content: "It depends on the time of day.\n"},
		shell: "echo 'It depends on the time of day.' > NOTES.md", after: "grep -q 'time of day' NOTES.md", about: []string{"NOTES.md"},
	},
	{
		name: "write AGENTS.md", step: model.Step{Op: model.Write, Path: "{ws}/AGENTS.md", Content: "Run npm test before a commit.\n"},
		shell: "echo 'Run npm test before a commit.' > AGENTS.md", after: "grep -q 'npm test' AGENTS.md", about: []string{"AGENTS.md"},
	},
	{name: "run the tests", shell: "npm test", after: "true", about: []string{"npm"}},
	{name: "build with a cache in the home", shell: "cd tool && go build . && echo built", after: "true", about: []string{"go-build"}},
	{name: "install a package", shell: "npm install --no-audit --no-fund leftover", after: "test -e node_modules/leftover/index.js", about: []string{publicRegistry}},
	{name: "fetch a page of documentation", shell: "curl -sS https://" + docsHost + "/page", after: "true", about: []string{docsHost}},
	{
		name:  "start a server and ask it",
		shell: `node server.js & server=$!; trap 'kill $server' EXIT; curl -sS --retry 20 --retry-delay 1 --retry-connrefused http://localhost:5173/`,
		after: "true", about: []string{"5173", "localhost"},
	},
	{name: "begin a branch", shell: "git switch -c topic", after: "git branch --list topic | grep -q topic", about: []string{".git"}},
	{name: "add a remote", shell: "git remote add upstream https://git.example.org/upstream.git", after: "git remote | grep -q upstream", about: []string{".git/config", "upstream"}},
	{name: "add a worktree beside it", shell: "git worktree add ../hotfix -b hotfix", after: "git -C ../hotfix log -1 --format=%s", about: []string{"hotfix", "worktree"}},
	{
		name: "commit as the user", shell: "git add -A && git commit -m 'greet: say good morning'",
		after: `test "$(git log -1 --format='%an <%ae> %s')" = "Ada User <ada@example.org> greet: say good morning"`, about: []string{"user.email", "identity"},
	},
}

// greeter is what the actions work on.
var greeter = map[string]string{
	"package.json": `{"name":"greeter","version":"1.0.0","scripts":{"test":"node --test test.js"}}`,
	"greet.js":     "module.exports = name => 'Hello, ' + name;\n",
	"test.js":      "require('node:test')('greets', () => require('node:assert').match(require('./greet')('you'), /you$/));\n",
	"server.js":    "require('http').createServer((q, a) => a.end('it works\\n')).listen(5173);\n",
	"tool/go.mod":  "module example.org/tool\n\ngo 1.21\n",
	"tool/tool.go": "package tool\n\n// Hour is when a morning ends.\nconst Hour = 12\n",
	".gitignore":   "node_modules\nout\n",
	"out/.keep":    "",
}

// logged is the shell command of an action, which leaves its output and exit
// status in out/N.
func (a action) logged(n int) string {
	return fmt.Sprintf("(%s) > out/%d 2>&1; echo \"status $?\" >> out/%[2]d; cat out/%[2]d", a.shell, n)
}

// steps are the actions for an agent that lacks some tools.
func steps(workspace string, lacks []model.Op) []model.Step {
	var all []model.Step
	for n, a := range actions {
		step := a.step
		if step.Op == "" || slices.Contains(lacks, step.Op) {
			step = model.Step{Op: model.Shell, Command: "cd {ws} && " + a.logged(n)}
		}
		step.Path, step.Command = strings.ReplaceAll(step.Path, "{ws}", workspace), strings.ReplaceAll(step.Command, "{ws}", workspace)
		all = append(all, step)
	}
	return append(all, model.Step{Op: model.Say, Text: lastWord + "."})
}

// lastWord is what the model says when there is nothing left to do.
const lastWord = "All of it was tried"
