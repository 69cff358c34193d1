package detect

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Limits of a file of rules, far above what a person writes.
const (
	maxRules     = 1 << 20 // bytes of a file
	maxCount     = 256     // events that a count keeps
	maxWindow    = 24 * time.Hour
	maxSteps     = 6
	maxRuleFiles = 200
)

// LoadError says what is wrong with a file of rules, and where.
type LoadError struct {
	File string
	Line int // 0 for the file as a whole
	Msg  string
}

func (e *LoadError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Hint is what to do next.
func (e *LoadError) Hint() string {
	return "correct it; then check it with: holdfast alerts test " + e.File
}

// LoadPath reads a file of rules, or the files *.yaml of a directory in the
// order of their names. Messages name files with path before them. Anything
// that is not understood, and an id that occurs twice or is that of a built-in
// rule, is a *LoadError.
func LoadPath(path string) ([]Rule, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading rules: %w", err)
	}
	if st.IsDir() {
		return loadDir(os.DirFS(path), path)
	}
	data, err := readRuleFile(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	if err != nil {
		return nil, err
	}
	return ParseRules(path, data, builtin())
}

func loadDir(dir fs.FS, called string) ([]Rule, error) {
	files, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("looking for rules: %w", err)
	}
	if len(files) > maxRuleFiles {
		return nil, &LoadError{called, 0, fmt.Sprintf("it has %d rule files, more than the %d that are read", len(files), maxRuleFiles)}
	}
	var all []Rule
	for _, name := range files {
		data, err := readRuleFile(dir, name)
		if err != nil {
			return nil, err
		}
		rules, err := ParseRules(filepath.Join(called, name), data, slices.Concat(builtin(), all))
		if err != nil {
			return nil, err
		}
		all = append(all, rules...)
	}
	return all, nil
}

// readRuleFile reads at most one byte more than a file of rules may have.
func readRuleFile(dir fs.FS, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading rules: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRules+1))
	if err != nil {
		return nil, fmt.Errorf("reading rules: %w", err)
	}
	return data, nil
}

// ParseRules reads one file of rules, which is called name in messages. Its rules
// may refer to each other and to known ones.
func ParseRules(name string, data []byte, known []Rule) ([]Rule, error) {
	p := parser{file: name}
	if len(data) > maxRules {
		return nil, p.fail(nil, "it is too long; a file of rules may have %d bytes", maxRules)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, p.syntax(err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	list := doc.Content[0]
	if list.Kind != yaml.SequenceNode {
		return nil, p.fail(list, "a file of rules is a list; a rule begins with '- id:'")
	}
	for _, n := range list.Content {
		r, err := p.rule(n)
		if err != nil {
			return nil, err
		}
		p.rules, p.nodes = append(p.rules, r), append(p.nodes, n)
	}
	if err := p.check(known); err != nil {
		return nil, err
	}
	return p.rules, nil
}

// parser reads one file.
type parser struct {
	file  string
	rules []Rule
	nodes []*yaml.Node
}

func (p *parser) fail(at *yaml.Node, format string, args ...any) error {
	e := &LoadError{File: p.file, Msg: fmt.Sprintf(format, args...)}
	if at != nil {
		e.Line = at.Line
	}
	return e
}

// syntax converts an error of the YAML reader to the form of all others.
func (p *parser) syntax(err error) error {
	e := &LoadError{File: p.file, Msg: strings.TrimPrefix(err.Error(), "yaml: ")}
	if n, _ := fmt.Sscanf(e.Msg, "line %d:", &e.Line); n == 1 {
		_, e.Msg, _ = strings.Cut(e.Msg, ": ")
	}
	return e
}

// fields calls set for each key of a mapping; every key must be in set, and
// none may occur twice.
func (p *parser) fields(n *yaml.Node, what string, set map[string]func(*yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return p.fail(n, "%s is a mapping of names to values", what)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		f, ok := set[k.Value]
		switch {
		case !ok:
			return p.fail(k, "%q is not a key of %s; these are: %s", k.Value, what, keysOf(set))
		case seen[k.Value]:
			return p.fail(k, "%q is given twice", k.Value)
		case v.Kind == yaml.AliasNode:
			return p.fail(v, "aliases are not accepted")
		}
		seen[k.Value] = true
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

func keysOf(set map[string]func(*yaml.Node) error) string {
	var all []string
	for k := range set {
		all = append(all, k)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// text reads one value.
func (p *parser) text(into *string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode {
			return p.fail(n, "a single value is expected here")
		}
		*into = strings.TrimSpace(n.Value)
		return nil
	}
}

// texts reads a list of values.
func (p *parser) texts(into *[]string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			return p.fail(n, "a list is expected here")
		}
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode {
				return p.fail(c, "a single value is expected here")
			}
			*into = append(*into, c.Value)
		}
		return nil
	}
}

func (p *parser) number(into *int, max int) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if err := n.Decode(into); err != nil || *into < 1 || *into > max {
			return p.fail(n, "a number from 1 to %d is expected here", max)
		}
		return nil
	}
}

func (p *parser) duration(into *time.Duration, max time.Duration) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		d, err := time.ParseDuration(n.Value)
		if err != nil || d < 0 || d > max {
			return p.fail(n, "a duration such as 30s or 5m is expected here, of at most %s", max)
		}
		*into = d
		return nil
	}
}

// rule reads one rule.
func (p *parser) rule(n *yaml.Node) (Rule, error) {
	r := Rule{Where: fmt.Sprintf("%s:%d", p.file, n.Line)}
	set := p.match(&r.Match)
	set["id"], set["title"], set["note"] = p.text(&r.ID), p.text(&r.Title), p.text(&r.Note)
	set["explanation"], set["false_positives"] = p.text(&r.Explanation), p.text(&r.FalsePositives)
	set["technique"], set["key"] = p.texts(&r.Technique), p.texts(&r.Key)
	set["severity"] = func(n *yaml.Node) error {
		if r.Severity = Severity(n.Value); r.Severity.Level() == 0 {
			return p.fail(n, "%q is not a severity; these are: info, low, medium, high, critical", n.Value)
		}
		return nil
	}
	set["correlation"] = func(n *yaml.Node) error { return p.correlation(n, &r) }
	set["tests"] = func(n *yaml.Node) error { return p.tests(n, &r.Tests) }
	return r, p.fields(n, "a rule", set)
}

func (p *parser) match(m *Match) map[string]func(*yaml.Node) error {
	return map[string]func(*yaml.Node) error{
		"actions": p.texts(&m.Actions), "objects": p.texts(&m.Objects), "verdict": p.text(&m.Verdict), "marks": p.texts(&m.Marks), "unless": p.texts(&m.Unless), "new": p.texts(&m.New), "condition": p.text(&m.Condition),
	}
}

func (p *parser) correlation(n *yaml.Node, r *Rule) error {
	c := &Correlation{}
	r.Correlation = c
	return p.fields(n, "a correlation", map[string]func(*yaml.Node) error{
		"type": p.text(&c.Type), "window": p.duration(&c.Window, maxWindow), "at_least": p.number(&c.AtLeast, maxCount),
		"field": p.text(&c.Field), "by": p.texts(&c.By),
		"steps": func(n *yaml.Node) error {
			if n.Kind != yaml.SequenceNode {
				return p.fail(n, "a list is expected here")
			}
			for _, one := range n.Content {
				var s Step
				set := p.match(&s.Match)
				set["rules"] = p.texts(&s.Rules)
				if err := p.fields(one, "a step", set); err != nil {
					return err
				}
				c.Steps = append(c.Steps, s)
			}
			return nil
		},
	})
}
