//go:build linux

package replay

import (
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// Program is something that a human starts after a run. Paths and arguments are
// templates: {W} is the workspace, {H} the home, {O} the directory outside,
// {TRIP} the tripwire with its token, to be followed by the name of a plant.
type Program struct {
	Name  string
	Needs []string // programs that must be in the system's directories
	Reads string   // which of the files it finds it obeys, with the source
	Steps []Step
}

// Step is one start. Dir is a template, "" for the workspace.
type Step struct {
	Argv     []string
	Dir      string
	Env      []string
	Input    string
	Terminal bool
}

// Missing returns the programs of p that this machine does not have.
func (p Program) Missing() []string {
	var out []string
	for _, need := range p.Needs {
		if !inside.OnSystemPath(need) {
			out = append(out, need)
		}
	}
	return out
}

// In returns p with each step in dir, a template.
func (p Program) In(dir string) Program {
	steps := make([]Step, len(p.Steps))
	for i, s := range p.Steps {
		s.Dir = dir
		steps[i] = s
	}
	p.Steps = steps
	return p
}

func (p Program) steps(s Stage) []inside.Step {
	fill := strings.NewReplacer("{W}", s.Work, "{H}", s.Home, "{O}", s.Outside, "{TRIP}", filepath.Join(s.Outside, tripName)+" "+s.Token)
	var out []inside.Step
	for _, step := range p.Steps {
		argv, env := make([]string, len(step.Argv)), make([]string, len(step.Env))
		for i := range argv {
			argv[i] = fill.Replace(step.Argv[i])
		}
		for i := range env {
			env[i] = fill.Replace(step.Env[i])
		}
		dir := fill.Replace(step.Dir)
		if dir == "" {
			dir = s.Work
		}
		name := strings.Join(step.Argv, " ")
		if dir != s.Work {
			name += " in " + strings.TrimPrefix(dir, s.World+"/")
		}
		out = append(out, inside.Step{Name: name, Argv: argv, Dir: dir, Env: env, Input: fill.Replace(step.Input), Terminal: step.Terminal})
	}
	return out
}
