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

// Spec is an agent program in one version. Texts that are handed to it are
// templates: {home}, {state}, {workspace}, {base}, {key}, {model}, {prompt},
// {program} and {arch} are replaced; other braces stand for themselves only
// where they hold no name.
type Spec struct {
	Agent   string `yaml:"-"`
	Version string `yaml:"-"`

	Dialect  string   `yaml:"dialect"`  // anthropic, responses, chat, gemini
	Programs []string `yaml:"programs"` // below the directory of the install; the first that exists. {arch} is x64 or arm64, {cpu} x86_64 or aarch64
	Node     string   `yaml:"node"`     // the least version of node that runs it; "" for a program of the machine's own
	Path     []string `yaml:"path"`     // directories below that of the install that the program wants first in PATH
	Suffix   string   `yaml:"suffix"`   // of the model server's address, such as /v1
	Model    string   `yaml:"model"`    // the name that gives the usual set of tools

	Env      map[string]string   `yaml:"env"`
	Files    map[string]File     `yaml:"files"`
	Argv     []string            `yaml:"argv"` // {posture} and {servers} alone stand for the arguments of these
	Postures map[string]Posture  `yaml:"postures"`
	Servers  Servers             `yaml:"servers"`
	State    State               `yaml:"state"`
	Tools    map[string][]string `yaml:"tools"`   // operation (shell, read, write, edit, patch, fetch, spawn): names of its tools
	Layers   map[Layer][]string  `yaml:"layers"`  // patterns of what a result says when that layer said no
	Void     map[string]string   `yaml:"void"`    // pattern of what the agent says: why nothing was tried then
	Reaches  []string            `yaml:"reaches"` // hosts that it tries to reach though all opt-outs are set
	Leaves   []string            `yaml:"leaves"`  // what is left running or lying about when it ends
}

// File is written before the start.
type File struct {
	Path   string         `yaml:"path"`   // template, below {home} or {workspace}
	Format string         `yaml:"format"` // json, toml or text
	Tree   map[string]any `yaml:"tree"`   // of json and toml; strings are templates
	Text   string         `yaml:"text"`   // of text
}

// Posture is how an agent is told to treat what its model asks for.
type Posture struct {
	Title string                    `yaml:"title"` // one line
	Own   bool                      `yaml:"own"`   // the agent's own sandbox is on
	Asks  bool                      `yaml:"asks"`  // it would ask a human; with nobody there it refuses. False where prompts are bypassed or not needed
	Once  bool                      `yaml:"once"`  // the first refusal ends the session
	Argv  []string                  `yaml:"argv"`
	Env   map[string]string         `yaml:"env"`
	Files map[string]map[string]any `yaml:"files"` // laid over the trees of the files of that name
	Needs []string                  `yaml:"needs"` // programs of the host, or devices
	Lacks []string                  `yaml:"lacks"` // what it cannot do so: mcp
}

// Servers says how MCP servers are named to the agent. Each becomes an entry of
// a map in a file.
type Servers struct {
	File   string         `yaml:"file"`   // of Files
	At     string         `yaml:"at"`     // key of the map
	Joined bool           `yaml:"joined"` // the command is one list, program and arguments
	Env    string         `yaml:"env"`    // key of the environment; "" for env
	With   map[string]any `yaml:"with"`   // further keys of each
	Argv   []string       `yaml:"argv"`
}

// State is where the agent keeps what it remembers.
type State struct {
	Dir      string   `yaml:"dir"`      // below the home, when nothing moves it
	Variable string   `yaml:"variable"` // of the environment, that moves it; "" when there is none
	Others   []string `yaml:"others"`   // further directories below the home, or absolute, that it must write to
}

// Layer is what said no to a tool call.
type Layer string

// The layers.
const (
	Permission Layer = "permission" // the agent's rules or its missing human, before anything was tried
	Sandbox    Layer = "sandbox"    // the agent's own sandbox, mostly an error of the kernel
	Proxy      Layer = "proxy"      // what the agent's sandbox lets connections through
	ToolItself Layer = "tool"       // the tool's own checks
)

// layerOrder: where texts of two layers are met, the more telling comes first.
var layerOrder = []Layer{Permission, Proxy, ToolItself, Sandbox}

// postureOrder is that of matrices.
var postureOrder = []string{"default", "auto", "bypass", "hardened", "bare"}

// PostureNames returns the postures that this version has, of: default (as it
// comes, with nobody to ask), auto (its own sandbox on, and what runs in it is
// not asked about), bypass (its own sandbox on, and all questions bypassed),
// hardened (its own sandbox at its strictest), bare (no sandbox of its own, and
// all questions bypassed).
func (s Spec) PostureNames() []string {
	var names []string
	for _, n := range postureOrder {
		if _, ok := s.Postures[n]; ok {
			names = append(names, n)
		}
	}
	return names
}

// Posture returns one by its name.
func (s Spec) Posture(name string) (Posture, error) {
	if p, ok := s.Postures[name]; ok {
		return p, nil
	}
	return Posture{}, fmt.Errorf("%s %s has no posture %q; it has: %s", s.Agent, s.Version, name, strings.Join(s.PostureNames(), ", "))
}

// Refusal says which layer said no in the text of a tool's result, and the
// pattern that tells; nothing where no pattern is met. It is a hint and no
// evidence: the text is the agent's.
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

// Voided says why a session proves nothing, by what the agent wrote or what it
// sent as a tool's result; "" where nothing known is met.
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

// clone copies what a range may write into.
func (s Spec) clone() Spec {
	s.Env = maps.Clone(s.Env)
	s.Files = maps.Clone(s.Files)
	s.Postures = maps.Clone(s.Postures)
	s.Tools = maps.Clone(s.Tools)
	s.Layers = maps.Clone(s.Layers)
	s.Void = maps.Clone(s.Void)
	return s
}

// check finds what is missing or of no known kind.
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
		return errors.New("there is no posture bare")
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
