package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// environmentKeys are those of the section environment.
var environmentKeys = []key{
	{name: "environment",
		doc: "The environment inside is built from this list. HOME, USER, LOGNAME, SHELL, PATH, PWD, TMPDIR and PYTHONDONTWRITEBYTECODE are set by Holdfast."},
	{name: "environment.pass", kind: &names, project: subset, example: "[LANG, LC_*]",
		doc: "Variables of the caller that are handed in when set. `PREFIX*` stands for all that begin with the prefix, except those that look like a secret or make programs execute something."},
	{name: "environment.set", kind: &variables, project: never, example: "{CI: \"true\"}",
		doc: "Variables with their value in full; the way to hand in one whose name or value looks like a secret."},
}

var (
	names = kind{
		takes: "a list of names, or `PREFIX*`",
		many:  true,
		text: func(k key, text string) (Entry, string, error) {
			return Entry{Key: k.name, Value: text}, passHint(text), passable(text)
		},
		schema: func(key) map[string]any {
			return list(map[string]any{"type": "string", "pattern": `^[A-Za-z_][A-Za-z0-9_]*\*?$`})
		},
	}
	variables = kind{
		takes: "a mapping of names to values",
		many:  true,
		value: (*decoder).vars,
		text: func(k key, text string) (Entry, string, error) {
			name, value, _ := strings.Cut(text, "=")
			return Entry{Key: k.name, Value: name, Text: value}, "", setVariable(name, value)
		},
		schema: func(key) map[string]any {
			return map[string]any{
				"type":                 "object",
				"propertyNames":        map[string]any{"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
				"additionalProperties": map[string]any{"type": []string{"string", "number", "boolean"}},
			}
		},
	}
)

// vars decodes variables with their values. A value is the text as written:
// DEBUG: 1 and DEBUG: "1" are the same.
func (d *decoder) vars(k key, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, "for example "+last(k.name)+": "+k.example, "%s is %s; a mapping of variables is expected", k.name, describe(n))
		return
	}
	if len(n.Content) == 0 {
		d.add(n, Entry{Key: k.name, Clear: true})
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		variable, value := n.Content[i], n.Content[i+1]
		if !d.plain(variable) || !d.plain(value) {
			continue
		}
		if variable.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode || value.ShortTag() == "!!null" {
			d.fail(value, "write \"\" for an empty value", "%s in %s is %s; text is expected", printable(variable.Value), k.name, describe(value))
			continue
		}
		if seen[variable.Value] {
			d.fail(variable, "", "the variable %q is repeated", printable(variable.Value))
			continue
		}
		seen[variable.Value] = true
		if err := setVariable(variable.Value, value.Value); err != nil {
			d.fail(variable, "", "%s: %v", k.name, err)
			continue
		}
		d.add(variable, Entry{Key: k.name, Value: variable.Value, Text: value.Value})
	}
}

// setVariable checks a variable whose value is given in full.
func setVariable(name, value string) error {
	if err := variable(name); err != nil {
		return err
	}
	if matchName(environment().Ours, name) != "" {
		return fmt.Errorf("%s is set by holdfast, because it describes the inside", name)
	}
	if strings.ContainsRune(value, 0) {
		return fmt.Errorf("the value of %s contains a NUL", name)
	}
	if len(value) > 128<<10-len(name)-2 { // MAX_ARG_STRLEN, execve(2)
		return fmt.Errorf("the value of %s is longer than the 128 KiB that the kernel allows", name)
	}
	return nil
}

// passable checks an entry of environment.pass by its name alone.
func passable(name string) error {
	base, wild := strings.CutSuffix(name, "*")
	if wild && base == "" {
		return errors.New("* would hand in the whole environment")
	}
	if err := variable(base); err != nil {
		return err
	}
	if wild {
		return nil // its matches are checked one by one, and left out if refused
	}
	if slices.Contains(TrustVariables, name) {
		return nil // it names the run's own bundle inside, whatever it is outside
	}
	return refusedName(name)
}

// refusedName says why a variable of the caller is not handed in by its name.
func refusedName(name string) error {
	c := environment()
	if matchName(c.Ours, name) != "" {
		return fmt.Errorf("%s is set by holdfast, because it describes the inside", name)
	}
	if p := matchName(c.HostSockets, name); p != "" {
		return fmt.Errorf("%s leads to a helper of the host (%s)", name, p)
	}
	if p := matchName(c.SecretNames, name); p != "" {
		return fmt.Errorf("%s looks like a secret (%s)", name, p)
	}
	if p := matchName(c.Dangerous, name); p != "" && matchName(c.SaysWho, name) == "" {
		return fmt.Errorf("%s makes programs load or execute something (%s)", name, p)
	}
	return nil
}

// secretValue reports whether text has the shape of a known kind of secret.
func secretValue(text string) bool {
	for _, s := range environment().SecretValues {
		if slices.ContainsFunc(s.Has, func(part string) bool { return strings.Contains(text, part) }) &&
			regexp.MustCompile(s.Shape).MatchString(text) {
			return true
		}
	}
	return false
}

// Env is one variable of the environment inside.
type Env struct {
	Name, Value string
	Origin      Origin
}

// environment builds the whole environment inside.
func (p *Plan) environment(e Effective, h Host, v *view) error {
	out := map[string]Env{}
	ours := Origin{File: "holdfast"}
	for _, kv := range [][2]string{
		{"HOME", h.Home}, {"USER", h.Name}, {"LOGNAME", h.Name}, {"TMPDIR", "/tmp"},
		{"PWD", p.Dir}, {"PATH", v.searchPath()}, {"SHELL", v.shell()},
		// Compiled python is executed instead of its source, and is not read by people:
		// if honest programs write none, planted files are noticed.
		{"PYTHONDONTWRITEBYTECODE", "1"},
	} {
		out[kv[0]] = Env{kv[0], kv[1], ours}
	}
	if p.Scratch {
		out["HOLDFAST_SCRATCH"] = Env{"HOLDFAST_SCRATCH", ScratchDir, ours}
	}
	if len(e.entriesFor("workspace.outputs")) > 0 {
		out["HOLDFAST_OUTPUT"] = Env{"HOLDFAST_OUTPUT", p.Outputs[0], ours}
	}
	for _, one := range v.env {
		out[one.Name] = one
	}
	for _, one := range e.entriesFor("environment.pass") {
		if err := p.pass(one, h, out); err != nil {
			return err
		}
	}
	for _, one := range e.entriesFor("environment.set") {
		if err := setVariable(one.Value, one.Text); err != nil {
			return fault(one.Origin, "", "%v", err)
		}
		out[one.Value] = Env{one.Value, one.Text, one.Origin}
	}
	if err := p.credentialVariables(e, out); err != nil {
		return err
	}
	for _, one := range out {
		p.Env = append(p.Env, one)
	}
	slices.SortFunc(p.Env, func(a, b Env) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// pass hands in the variables of one entry of environment.pass. A name given in full
// whose value is a secret is an error; a secret that matches a wildcard is left out and
// noted.
func (p *Plan) pass(one Entry, h Host, out map[string]Env) error {
	prefix, wild := strings.CutSuffix(one.Value, "*")
	if !wild {
		return p.passOne(one, h, out)
	}
	for _, kv := range h.Env {
		name, _, _ := strings.Cut(kv, "=")
		value, found := h.find(name)
		if !found || !strings.HasPrefix(name, prefix) {
			continue
		}
		if variable(name) != nil || refusedName(name) != nil || secretValue(value) || strings.ContainsAny(value, "\x00\n") {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: %s is left out: it looks like a secret or makes programs execute something", one.Origin, printable(name)))
			continue
		}
		out[name] = Env{name, value, one.Origin}
	}
	return nil
}

func (p *Plan) passOne(one Entry, h Host, out map[string]Env) error {
	name := one.Value // which was found passable when it was parsed
	value, found := h.find(name)
	if !found && one.Origin.File == "--env" {
		return fault(one.Origin, "give a value: --env "+name+"=VALUE", "%s is not set here", name)
	}
	if !found {
		return nil
	}
	if secretValue(value) || strings.ContainsAny(value, "\x00\n") {
		if strings.HasPrefix(one.Origin.File, "profile ") {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: %s is left out: its value looks like a secret", one.Origin, name))
			return nil
		}
		return fault(one.Origin, "give the value in full: --env "+name+"=VALUE, or environment.set", "the value of %s looks like a secret, or has a line break", name)
	}
	out[name] = Env{name, value, one.Origin}
	return nil
}

func environmentRows(p Plan) []Row {
	return rowsOf("environment", p.Env, func(e Env) (fmt.Stringer, Origin) { return cellText(e.Name + "=" + shownValue(e)), e.Origin })
}

func shownValue(e Env) string {
	if matchName(environment().SecretNames, e.Name) != "" || secretValue(e.Value) {
		return fmt.Sprintf("(%d bytes, not shown)", len(e.Value))
	}
	return printable(e.Value)
}

// variableIn is the value of a variable; "" where it is not set.
func variableIn(env []Env, name string) string {
	for _, e := range env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}
