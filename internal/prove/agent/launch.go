package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/paths"
)

// Params describes one launch. All paths are absolute, and as the agent will see
// them.
type Params struct {
	Program   Installed
	Home      string
	Workspace string // the directory it starts in
	BaseURL   string // of the model server: scheme, address and port
	Key       string // a dummy
	Prompt    string
	Posture   string // "" for default
	Model     string // "" for the version's default
	Servers   []Server
	Secrets   []string // names of variables that the agent's own sandbox is to hide from its commands, if it can
	Path      []string // directories of programs; the agent's own come before them
	Env       []string // additional NAME=value
}

// Server is an MCP server that the agent starts itself and uses over standard
// input and output.
type Server struct {
	Name    string
	Command []string
	Env     map[string]string
}

// Launch is what to write and to start.
type Launch struct {
	Env   []string // the whole environment, sorted
	Files []Output
	Argv  []string
	Dir   string
	Needs []string // programs of the host by name, and devices by path
}

// Output is a file to write. Missing parent directories are made.
type Output struct {
	Path    string
	Content []byte
	Mode    fs.FileMode
}

// Launch expands the spec for one start.
func (s Spec) Launch(p Params) (Launch, error) {
	if p.Posture == "" {
		p.Posture = "default"
	}
	posture, err := s.Posture(p.Posture)
	if err != nil {
		return Launch{}, err
	}
	if err := p.check(); err != nil {
		return Launch{}, err
	}
	if s.Node != "" && p.Program.Dir != "" && p.Program.Node == "" {
		return Launch{}, fmt.Errorf("%s %s needs Node.js %s or later", s.Agent, s.Version, s.Node)
	}
	if slices.Contains(posture.Lacks, "mcp") {
		p.Servers = nil
	}
	x := s.expander(p)
	l := Launch{Dir: p.Workspace, Needs: slices.Clone(posture.Needs)}
	if l.Env, err = s.environment(p, posture, x); err != nil {
		return Launch{}, err
	}
	if l.Files, err = s.outputs(p, posture, x); err != nil {
		return Launch{}, err
	}
	l.Argv, err = s.arguments(p, posture, x)
	return l, err
}

func (p Params) check() error {
	for _, f := range []struct{ name, value string }{{"home", p.Home}, {"workspace", p.Workspace}, {"program", p.Program.Program}} {
		if !filepath.IsAbs(f.value) {
			return fmt.Errorf("the %s must be an absolute path, not %q", f.name, f.value)
		}
	}
	if p.BaseURL == "" {
		return errors.New("the address of the model server is missing")
	}
	seen := map[string]bool{}
	for _, s := range p.Servers {
		if !isPlain(s.Name) || seen[s.Name] || len(s.Command) == 0 {
			return fmt.Errorf("MCP server %q: a server needs a command and a unique name of letters and digits", s.Name)
		}
		seen[s.Name] = true
	}
	return nil
}

func (s Spec) expander(p Params) expander {
	model := p.Model
	if model == "" {
		model = s.Model
	}
	return expander{
		"home": p.Home, "workspace": p.Workspace, "state": path.Join(p.Home, s.State.Dir),
		"base": strings.TrimSuffix(p.BaseURL, "/") + s.Suffix, "key": p.Key, "model": model, "prompt": p.Prompt,
		"program": p.Program.Program, "install": p.Program.Dir,
	}
}

func (s Spec) environment(p Params, posture Posture, x expander) ([]string, error) {
	var dirs []string
	for _, d := range s.Path {
		if p.Program.Dir != "" {
			dirs = append(dirs, filepath.Join(p.Program.Dir, filepath.FromSlash(platform(d))))
		}
	}
	if p.Program.Node != "" {
		dirs = append(dirs, filepath.Dir(p.Program.Node))
	}
	dirs = append(dirs, p.Path...)
	env := map[string]string{
		"HOME": p.Home, "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/bash",
		"LANG": "C.UTF-8", "TERM": "dumb", "PATH": strings.Join(dirs, ":"),
	}
	for _, m := range []map[string]string{s.Env, posture.Env} {
		for k, v := range m {
			value, err := x.text(v)
			if err != nil {
				return nil, fmt.Errorf("variable %s: %w", k, err)
			}
			env[k] = value
		}
	}
	for _, kv := range p.Env {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("%q is not NAME=value", kv)
		}
		env[k] = v
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list, nil
}

func (s Spec) outputs(p Params, posture Posture, x expander) ([]Output, error) {
	var out []Output
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		f := s.Files[name]
		where, err := x.text(f.Path)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", name, err)
		}
		tree := mergeTrees(f.Tree, posture.Files[name])
		if s.Servers.File == name && len(p.Servers) > 0 {
			tree = mergeTrees(tree, map[string]any{s.Servers.At: s.Servers.entries(p.Servers)})
		}
		content, err := f.encode(tree, x, p.Secrets)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", name, err)
		}
		if !paths.Within(p.Home, where) && !paths.Within(p.Workspace, where) {
			return nil, fmt.Errorf("file %s: %s is neither below the home nor the workspace", name, where)
		}
		out = append(out, Output{Path: where, Content: content, Mode: 0o600})
	}
	return out, nil
}

// entries are the servers for the agent's file. Their arguments are not
// templates, so that braces in them are kept.
func (v Servers) entries(servers []Server) map[string]any {
	all := map[string]any{}
	for _, s := range servers {
		e := maps.Clone(v.With)
		if e == nil {
			e = map[string]any{}
		}
		if v.Joined {
			e["command"] = literals(s.Command)
		} else {
			e["command"], e["args"] = literal(s.Command[0]), literals(s.Command[1:])
		}
		env := map[string]any{}
		for k, val := range s.Env {
			env[k] = literal(val)
		}
		key := v.Env
		if key == "" {
			key = "env"
		}
		e[key] = env
		all[s.Name] = e
	}
	return all
}

func (s Spec) arguments(p Params, posture Posture, x expander) ([]string, error) {
	argv := []string{p.Program.Program}
	if p.Program.Node != "" {
		argv = []string{p.Program.Node, p.Program.Program}
	}
	var words []string
	for _, a := range s.Argv {
		switch a {
		case "{posture}":
			words = append(words, posture.Argv...)
		case "{servers}":
			if len(p.Servers) > 0 {
				words = append(words, s.Servers.Argv...)
			}
		default:
			words = append(words, a)
		}
	}
	for _, a := range words {
		w, err := x.text(a)
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", a, err)
		}
		argv = append(argv, w)
	}
	return argv, nil
}
