package detect

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/holdfast/internal/detect/baseline"
	"holdfast.dev/holdfast/internal/floor/expr"
)

var (
	idForm        = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{2,63}$`) })
	techniqueForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(T\d{4}(\.\d{3})?|AML\.T\d{4}(\.\d{3})?)$`) })
)

// ValidID reports whether id can be that of a rule.
func ValidID(id string) bool { return idForm().MatchString(id) }

// ValidTechnique reports whether id has the form of a technique of ATT&CK or ATLAS.
func ValidTechnique(id string) bool { return techniqueForm().MatchString(id) }

// check looks at the rules of one file as a whole.
func (p *parser) check(known []Rule) error {
	ids := map[string]*Rule{}
	for i := range known {
		ids[known[i].ID] = &known[i]
	}
	for i := range p.rules {
		r, n := &p.rules[i], p.nodes[i]
		if !ValidID(r.ID) {
			return p.fail(p.keyNode(n, "id"), "%q is not a valid id: use 3 to 64 lower-case letters, digits and hyphens, beginning with a letter", r.ID)
		}
		if old := ids[r.ID]; old != nil {
			where := old.Where
			if where == "" {
				where = "the built-in rules"
			}
			return p.fail(p.keyNode(n, "id"), "the rule %s is already defined in %s", r.ID, where)
		}
		ids[r.ID] = r
	}
	for i := range p.rules {
		if err := p.checkRule(&p.rules[i], p.nodes[i], ids); err != nil {
			return err
		}
	}
	return nil
}

// keyNode is the value of a key, or the mapping where there is none.
func (p *parser) keyNode(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return n
}

func (p *parser) checkRule(r *Rule, n *yaml.Node, ids map[string]*Rule) error {
	for _, must := range []struct{ key, value string }{
		{"title", r.Title}, {"severity", string(r.Severity)}, {"explanation", r.Explanation}, {"false_positives", r.FalsePositives},
	} {
		if must.value == "" {
			return p.fail(n, "the rule %s has no %s", r.ID, must.key)
		}
	}
	if len(r.Technique) == 0 {
		return p.fail(n, "the rule %s names no technique of ATT&CK or ATLAS", r.ID)
	}
	for _, id := range r.Technique {
		if !ValidTechnique(id) {
			return p.fail(p.keyNode(n, "technique"), "%q is not a technique: use an id such as T1552.001 or AML.T0051", id)
		}
	}
	if len(r.Tests.Raises) == 0 || len(r.Tests.Honest) == 0 {
		return p.fail(n, "the rule %s has no tests: a session that raises it, and a similar honest one that does not", r.ID)
	}
	for _, f := range r.Key {
		if !isField(f) {
			return p.fail(p.keyNode(n, "key"), "%q is not a field that can distinguish alerts", f)
		}
	}
	if r.Correlation != nil {
		return p.checkCorrelation(r, p.keyNode(n, "correlation"), n, ids)
	}
	return p.checkMatch(r.Match, n)
}

func (p *parser) checkMatch(m Match, n *yaml.Node) error {
	if len(m.Actions) == 0 {
		return p.fail(n, "it names no actions")
	}
	for _, a := range m.Actions {
		if actionOf(a) == 0 {
			return p.fail(p.keyNode(n, "actions"), "%q is not an action that a rule can be about", a)
		}
	}
	if m.Verdict != "" && m.Verdict != "denied" && m.Verdict != "allowed" && m.Verdict != "unknown" {
		return p.fail(p.keyNode(n, "verdict"), "%q is not a verdict; these are: denied, allowed, unknown", m.Verdict)
	}
	for key, list := range map[string][]string{"marks": m.Marks, "unless": m.Unless} {
		for _, w := range list {
			if markOf(strings.TrimPrefix(w, toPrefix)) == 0 && (traitOf(w) == 0 || !slices.Equal(m.Actions, []string{"proc.exec"})) {
				return p.fail(p.keyNode(n, key), "%q is not a mark of what these actions are about", w)
			}
		}
	}
	for _, w := range m.New {
		if _, ok := baseline.KindOf(w); !ok {
			return p.fail(p.keyNode(n, "new"), "%q is not a kind of thing that a baseline knows; these are: %s", w, kindNames())
		}
	}
	if len(m.Marks) == 0 && len(m.Unless) == 0 && len(m.New) == 0 && len(m.Objects) == 0 && m.Condition == "" && m.Verdict == "" && len(m.Actions) > 1 {
		return p.fail(n, "it has neither marks nor a condition")
	}
	if m.Condition == "" {
		return nil
	}
	_, err := expr.Compile(m.Condition)
	var bad *expr.Error
	at := p.keyNode(n, "condition")
	switch {
	case errors.As(err, &bad) && at.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return &LoadError{p.file, at.Line + bad.Line, bad.Problem}
	case err != nil:
		return p.fail(at, "%v", err)
	}
	return nil
}

// kindNames are the kinds of things that a baseline knows, for messages.
func kindNames() string {
	var names []string
	for _, k := range baseline.Kinds() {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

func (p *parser) checkCorrelation(r *Rule, at, n *yaml.Node, ids map[string]*Rule) error {
	c := r.Correlation
	if c.Window <= 0 {
		return p.fail(at, "it has no window")
	}
	for _, f := range c.By {
		if !isField(f) {
			return p.fail(p.keyNode(at, "by"), "%q is not a field", f)
		}
	}
	switch c.Type {
	case eventCount, valueCount:
		if c.AtLeast < 2 || len(c.Steps) > 0 {
			return p.fail(at, "a count has at_least, 2 or more, and no steps")
		}
		if (c.Field != "") != (c.Type == valueCount) || c.Field != "" && !isField(c.Field) {
			return p.fail(at, "value_count needs field, and no other type has it")
		}
		return p.checkMatch(r.Match, n)
	case temporal, temporalOrdered:
		if len(c.Steps) < 2 || len(c.Steps) > maxSteps || c.AtLeast != 0 || c.Field != "" || !r.Match.empty() {
			return p.fail(at, "%s has two to %d steps, and no events of its own", c.Type, maxSteps)
		}
	default:
		return p.fail(at, "%q is not a type; these are: event_count, value_count, temporal, temporal_ordered", c.Type)
	}
	steps := p.keyNode(at, "steps").Content
	for i, s := range c.Steps {
		for _, id := range s.Rules {
			if other := ids[id]; other == nil || other.isTemporal() {
				return p.fail(steps[i], "%q is not a rule that a step can name", id)
			}
		}
		if len(s.Rules) == 0 || !s.Match.empty() {
			if err := p.checkMatch(s.Match, steps[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Rule) isTemporal() bool { return r.Correlation != nil && len(r.Correlation.Steps) > 0 }
