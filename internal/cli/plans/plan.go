// Package plans makes the plan of a command line: [Flags] are the flags that say
// which policy applies, and [Compile] makes the plan that run would enforce, for every
// verb that runs, explains or shows one. It starts nothing and prints nothing but a
// warning about a preset.
package plans

import (
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/policy"
)

// Compile makes the plan that run would enforce.
func Compile(o policy.Options) (policy.Effective, policy.Plan, error) {
	e, err := policy.Load(o)
	if err != nil {
		return policy.Effective{}, policy.Plan{}, err
	}
	plan, err := policy.Compile(e, o.Host)
	return e, plan, err
}

// Preset is the preset that applies to a command by its name; "" for none. A program of
// the workspace gets none by its name: otherwise the author of the workspace would
// choose which program gets the credential.
func Preset(a *command.App, o policy.Options, program string) string {
	name := filepath.Base(program)
	if !policy.HasPreset(o.Host, name) {
		return ""
	}
	if !strings.Contains(program, "/") {
		return name
	}
	workspace := o.Workspace
	if workspace == "" {
		workspace = policy.WorkspaceAt(o.Host)
	}
	for _, path := range []*string{&workspace, &program} {
		if !filepath.IsAbs(*path) {
			*path = filepath.Join(a.Dir, *path)
		}
		if real, err := filepath.EvalSymlinks(*path); err == nil {
			*path = real
		}
	}
	if paths.Within(workspace, program) {
		a.Note(command.Yellow, "warning", "%s is a program of the workspace, and is run without the preset %s; if it is the agent, say so: --preset %s", program, name, name)
		return ""
	}
	return name
}
