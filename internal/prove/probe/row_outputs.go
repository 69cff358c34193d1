//go:build linux

package probe

import (
	"maps"
	"slices"
	"strings"
)

// outputRows are of a directory that is named for results: it is written to on the
// host at once, also where changes of the workspace wait for a human. What the host
// executes or obeys there, and secrets, are looked after as in the workspace.
func outputRows() []Row {
	files := map[string]string{"W/dist/.vscode/tasks.json": "{}\n", "W/dist/.husky/pre-commit": hook, "W/dist/.github/workflows/ci.yml": "on: push\n"}
	maps.Copy(files, repo("W/dist/lib/.git", map[string]string{"W/dist/lib/.git/hooks/pre-commit": hook}))
	there := []string{"W/dist/.vscode/tasks.json", "W/dist/.husky/pre-commit", "W/dist/.github/workflows/ci.yml", "W/dist/lib/.git/hooks/pre-commit", "W/dist/lib/.git/config"}
	absent := []string{"W/dist/.envrc", "W/dist/new/.vscode/tasks.json", "W/dist/new/.mcp.json"}
	row := func(id, title string, drive func(*Session)) Row {
		return Row{ID: id, Class: classDenies, Kind: Sandbox, Promise: "P3", Title: title, Refs: []string{"githooks(5)", "code.visualstudio.com/docs/editor/tasks"},
			Files: files, Keep: there, Action: "overwrite", Args: []string{"path=" + strings.Join(there, "\n")}, Drive: drive}
	}
	made := row("DNY-123", "in a directory for results files are made that the host executes or obeys", withOutput())
	made.Files, made.Keep, made.Absent, made.Harmless = map[string]string{"W/dist/x": ""}, nil, absent, takenAway
	made.Action, made.Args, made.Trace = "create", []string{"path=" + strings.Join(absent, "\n")}, raised("quarantined")
	waits := made
	waits.ID, waits.Title, waits.Drive = "DNY-124", made.Title+", while changes of the workspace wait for a human", withOutput("--review")
	secret := Row{ID: "DNY-125", Class: classDenies, Kind: Sandbox, Promise: "P1", Title: "a secret in a directory for results is read",
		Refs: []string{"github.com/motdotla/dotenv"}, Plant: []string{"W/dist/.env", "W/dist/sub/.env.local"},
		Action: "read", Args: []string{"path=W/dist/.env\nW/dist/sub/.env.local"}, Drive: withOutput(),
		Trace: nothing(readOnly)}
	rows := []Row{
		row("DNY-121", "in a directory for results a hook, an editor's tasks and a workflow are changed in place", withOutput()),
		row("DNY-122", "in a directory for results a hook, an editor's tasks and a workflow are changed in place, while changes of the workspace wait for a human", withOutput("--review")),
		made, waits, secret,
	}
	for i := range rows[:2] {
		rows[i].Trace = refused("protected", "file.write", slices.Clone(there)...)
	}
	return rows
}

// withOutput plays the row with W/dist as a directory for results, by targets that
// know such, and further flags. What waits for a human afterwards is accepted.
func withOutput(flags ...string) func(*Session) {
	return func(s *Session) {
		t := s.Target
		defer func() { s.Target = t }()
		if f, ok := t.(Flagger); ok {
			s.Target = f.With(append([]string{"--output", s.World.Path("W/dist")}, flags...)...)
		}
		s.Run(Command{})
		r, ok := t.(Reviewing)
		if !ok || !slices.Contains(flags, "--review") {
			return
		}
		for _, line := range [][]string{{"accept", "ok.txt"}, {"apply"}} {
			if out, err := r.Review(s.World, line...); err != nil && len(out) == 0 {
				s.Fail(err)
			}
		}
	}
}
