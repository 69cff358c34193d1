package agent

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Spec is an agent program in one version. Texts that are passed to it are
// templates: {home}, {state}, {workspace}, {base}, {key}, {model}, {prompt},
// {program} and {arch} are replaced; other braces are kept only if they contain
// no name.
type Spec struct {
	Agent   string `yaml:"-"`
	Version string `yaml:"-"`

	Dialect  string   `yaml:"dialect"`  // anthropic, responses, chat, gemini
	Programs []string `yaml:"programs"` // below the directory of the install; the first that exists. {arch} is x64 or arm64, {cpu} x86_64 or aarch64
	Node     string   `yaml:"node"`     // minimum version of node that runs it; "" for a native program
	Path     []string `yaml:"path"`     // directories below the install that the program needs first in PATH
	Suffix   string   `yaml:"suffix"`   // of the model server's address, such as /v1
	Model    string   `yaml:"model"`    // the name that gives the usual set of tools

	Env      map[string]string   `yaml:"env"`
	Files    map[string]File     `yaml:"files"`
	Argv     []string            `yaml:"argv"` // {posture} and {servers}, as whole words, become their arguments
	Postures map[string]Posture  `yaml:"postures"`
	Servers  Servers             `yaml:"servers"`
	State    State               `yaml:"state"`
	Tools    map[string][]string `yaml:"tools"`   // operation (shell, read, write, edit, patch, fetch, spawn): names of its tools
	Layers   map[Layer][]string  `yaml:"layers"`  // patterns in a result when that layer refused
	Void     map[string]string   `yaml:"void"`    // pattern in the agent's output: why nothing was tried then
	Reaches  []string            `yaml:"reaches"` // hosts that it tries to reach even with all opt-outs set
	Leaves   []string            `yaml:"leaves"`  // processes or files that it leaves behind
}

// File is written before the start.
type File struct {
	Path   string         `yaml:"path"`   // template, below {home} or {workspace}
	Format string         `yaml:"format"` // json, toml or text
	Tree   map[string]any `yaml:"tree"`   // of json and toml; strings are templates
	Text   string         `yaml:"text"`   // of text
}

// Posture is a configuration of how an agent handles its model's requests.
type Posture struct {
	Title string                    `yaml:"title"` // one line
	Own   bool                      `yaml:"own"`   // the agent's own sandbox is on
	Asks  bool                      `yaml:"asks"`  // it would ask a human; if there is none, it refuses. False where prompts are bypassed or not needed
	Once  bool                      `yaml:"once"`  // the first refusal ends the session
	Argv  []string                  `yaml:"argv"`
	Env   map[string]string         `yaml:"env"`
	Files map[string]map[string]any `yaml:"files"` // laid over the trees of the files of that name
	Needs []string                  `yaml:"needs"` // programs of the host, or devices
	Lacks []string                  `yaml:"lacks"` // what it cannot do then: mcp
}

// Servers describes how to configure MCP servers for the agent. Each becomes an
// entry of a map in a file.
type Servers struct {
	File   string         `yaml:"file"`   // of Files
	At     string         `yaml:"at"`     // key of the map
	Joined bool           `yaml:"joined"` // the command is one list, program and arguments
	Env    string         `yaml:"env"`    // key of the environment; "" for env
	With   map[string]any `yaml:"with"`   // additional keys of each
	Argv   []string       `yaml:"argv"`
}

// State is where the agent keeps its state.
type State struct {
	Dir      string   `yaml:"dir"`      // below the home, if nothing moves it
	Variable string   `yaml:"variable"` // environment variable that moves it; "" if there is none
	Others   []string `yaml:"others"`   // further directories, below the home or absolute, that it must write
}

// Layer is the layer that refused a tool call.
type Layer string

// The layers.
const (
	Permission Layer = "permission" // the agent's rules or its missing human, before anything was tried
	Sandbox    Layer = "sandbox"    // the agent's own sandbox, mostly a kernel error
	Proxy      Layer = "proxy"      // the proxy of the agent's sandbox
	ToolItself Layer = "tool"       // the tool's own checks
)

// layerOrder: if patterns of several layers match, the more specific layer comes
// first.
var layerOrder = []Layer{Permission, Proxy, ToolItself, Sandbox}

// postureOrder is the order in matrices.
var postureOrder = []string{"default", "auto", "bypass", "hardened", "bare"}

// PostureNames returns the postures that this version has, of: default (the
// agent's defaults, with no human to ask), auto (its own sandbox on, and commands
// in it run without asking), bypass (its own sandbox on, and all prompts
// bypassed), hardened (its own sandbox at its strictest), bare (without its own
// sandbox, and all prompts bypassed).
func (s Spec) PostureNames() []string {
	var names []string
	for _, n := range postureOrder {
		if _, ok := s.Postures[n]; ok {
			names = append(names, n)
		}
	}
	return names
}

// Posture returns the posture of that name.
func (s Spec) Posture(name string) (Posture, error) {
	if p, ok := s.Postures[name]; ok {
		return p, nil
	}
	return Posture{}, fmt.Errorf("%s %s has no posture %q; it has: %s", s.Agent, s.Version, name, strings.Join(s.PostureNames(), ", "))
}

// Refusal returns the layer that refused according to a tool's result, and the
// pattern that matched; nothing if none matches. It is a hint, not evidence,
// because the text comes from the agent.
func (s Spec) Refusal(text string) (Layer, string) {
	for _, layer := range layerOrder {
		for _, p := range s.Layers[layer] {
			if re, err := compiled(p); err == nil && re.MatchString(text) {
				return layer, p
			}
		}
	}
	return "", ""
}

// Voided says why a session proves nothing, according to the agent's output or a
// tool's result; "" if nothing known matches.
func (s Spec) Voided(text string) string {
	for _, p := range slices.Sorted(maps.Keys(s.Void)) {
		if re, err := compiled(p); err == nil && re.MatchString(text) {
			return s.Void[p]
		}
	}
	return ""
}

var patterns sync.Map // string: *regexp.Regexp

func compiled(pattern string) (*regexp.Regexp, error) {
	if re, ok := patterns.Load(pattern); ok {
		return re.(*regexp.Regexp), nil
	}
	re, err := regexp.Compile(pattern)
	if err == nil {
		patterns.Store(pattern, re)
	}
	return re, err
}

// clone copies what a range may overwrite.
func (s Spec) clone() Spec {
	s.Env = maps.Clone(s.Env)
	s.Files = maps.Clone(s.Files)
	s.Postures = maps.Clone(s.Postures)
	s.Tools = maps.Clone(s.Tools)
	s.Layers = maps.Clone(s.Layers)
	s.Void = maps.Clone(s.Void)
	return s
}

// check finds missing and unknown values.
func (s Spec) check() error {
	if !slices.Contains([]string{"anthropic", "responses", "chat", "gemini"}, s.Dialect) {
		return fmt.Errorf("unknown dialect %q", s.Dialect)
	}
	if len(s.Programs) == 0 || len(s.Argv) == 0 {
		return errors.New("programs and argv must not be empty")
	}
	for name, f := range s.Files {
		if !slices.Contains([]string{"json", "toml", "text"}, f.Format) {
			return fmt.Errorf("file %s: unknown format %q", name, f.Format)
		}
	}
	for name, p := range s.Postures {
		if !slices.Contains(postureOrder, name) {
			return fmt.Errorf("unknown posture %q", name)
		}
		if p.Title == "" {
			return fmt.Errorf("posture %s has no title", name)
		}
		for f := range p.Files {
			if _, ok := s.Files[f]; !ok {
				return fmt.Errorf("posture %s: there is no file %q", name, f)
			}
		}
	}
	if _, ok := s.Postures["bare"]; !ok {
		return errors.New("the posture bare is missing")
	}
	if s.Servers.File != "" {
		if _, ok := s.Files[s.Servers.File]; !ok {
			return fmt.Errorf("servers: there is no file %q", s.Servers.File)
		}
	}
	return s.checkPatterns()
}

func (s Spec) checkPatterns() error {
	for layer, list := range s.Layers {
		if !slices.Contains(layerOrder, layer) {
			return fmt.Errorf("unknown layer %q", layer)
		}
		for _, p := range list {
			if _, err := compiled(p); err != nil {
				return fmt.Errorf("layer %s: %w", layer, err)
			}
		}
	}
	for p := range s.Void {
		if _, err := compiled(p); err != nil {
			return fmt.Errorf("void: %w", err)
		}
	}
	return nil
}
