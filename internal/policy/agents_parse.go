package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// policyParts are the keys of a policy that a preset may have, with their meaning
// there.
var policyParts = []string{"network", "environment", "filesystem"}

// parsePreset reads the bytes of a preset strictly. file is how it is called in
// messages. extends is the built-in preset that it adds to; "" for none.
func parsePreset(name, file string, data []byte) (_ Preset, extends string, err error) {
	p := Preset{Name: name, Title: name, Origin: Origin{File: file}}
	sum := sha256.Sum256(data)
	p.SHA256 = hex.EncodeToString(sum[:])
	if err := plainText(file, data); err != nil {
		return Preset{}, "", err
	}
	root, err := document(file, data)
	if err != nil {
		return Preset{}, "", err
	}
	var inner File
	inner.Name = file
	d := &presetDecoder{decoder: decoder{file: &inner, base: "/"}, preset: &p}
	if !d.shallow(root, 1) {
		return Preset{}, "", d.errs.orNil()
	}
	given := map[string]bool{}
	d.mapping("a preset", root, d.fields(given, &extends))
	if len(d.errs) == 0 && !d.versioned {
		d.fail(root, "add the line: version: 1", "the key version is missing")
	}
	if extends != "" { // what the base says holds where this file is silent
		if !given["title"] {
			p.Title = ""
		}
	}
	p.entries = inner.Entries
	return p, extends, d.errs.orNil()
}

type presetDecoder struct {
	decoder
	preset *Preset
}

func (d *presetDecoder) fields(given map[string]bool, extends *string) []field {
	const label = "a preset"
	p := d.preset
	all := []field{
		{"version", func(n *yaml.Node) { k, _ := lookup("version"); d.version(k, n) }},
		d.textField(label, "extends", extends, unchanged(presetName)),
		d.textField(label, "title", &p.Title, unchanged(lineText)),
		d.textField(label, "install", &p.Install, unchanged(lineText)),
		d.textField(label, "sandbox", &p.Sandbox, unchanged(lineText)),
		{"moved", d.parseMoved},
		{"keep", func(n *yaml.Node) { d.each("keep", n, d.parseKeep) }},
		{"read", func(n *yaml.Node) {
			d.each("read", n, func(n *yaml.Node) { p.read = append(p.read, named{d.homePath("read", n), d.origin(n)}) })
		}},
		{"copy", func(n *yaml.Node) { d.each("copy", n, d.parseCopy) }},
		{"files", func(n *yaml.Node) { d.each("files", n, d.ownFile) }},
		{"settings", func(n *yaml.Node) { d.each("settings", n, d.settingsFile) }},
		{"variables", func(n *yaml.Node) {
			d.each("variables", n, func(n *yaml.Node) {
				d.text("variables", "an entry", n, func(text string) error {
					p.variables = append(p.variables, variableName{text, d.origin(n)})
					return presetVariable(text)
				})
			})
		}},
		d.textsField(label, "trust", &p.trust, unchanged(variable)),
		{"endpoints", func(n *yaml.Node) { d.each("endpoints", n, d.endpoint) }},
		{"credentials", func(n *yaml.Node) { d.each("credentials", n, d.parseCredential) }},
		{"logins", func(n *yaml.Node) { d.each("logins", n, d.parseLogin) }},
	}
	for _, part := range policyParts {
		all = append(all, field{part, func(n *yaml.Node) { d.section(part, n, 2) }})
	}
	for i, f := range all {
		read := f.read
		all[i].read = func(n *yaml.Node) { given[f.name] = true; read(n) }
	}
	return all
}

// each decodes the elements of a list.
func (d *presetDecoder) each(what string, n *yaml.Node, one func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, "", "%s is %s; a list is expected", what, describe(n))
		return
	}
	for _, item := range n.Content {
		if d.plain(item) {
			one(item)
		}
	}
}

// lineText checks a text that is shown or executed unchanged.
func lineText(text string) error {
	if len(text) > 500 || strings.ContainsAny(text, "\n\r\t") {
		return errors.New("one line of at most 500 bytes is expected")
	}
	return nil
}

// presetVariable checks a variable that an agent is handed in: it may look like
// one of a provider's, but not like a secret's or the host's.
func presetVariable(name string) error {
	if err := variable(name); err != nil {
		return err
	}
	c := environment()
	for _, list := range [][]string{c.Ours, c.HostSockets} {
		if matchName(list, name) != "" {
			return fmt.Errorf("a preset cannot name the variable %s", name)
		}
	}
	for _, end := range []string{"_KEY", "TOKEN", "SECRET", "PASSWORD", "LD_PRELOAD"} {
		if strings.HasSuffix(strings.ToUpper(name), end) {
			return fmt.Errorf("%s looks like a secret: list it under credentials", name)
		}
	}
	return nil
}

// Words of a path that represent the working directory of a run. Several directories
// can have one slug: alone it is for programs that use it that way.
const (
	slugWord  = "{slug}"      // each sign but letters and digits is a -
	hashWord  = "{sha256}"    // its SHA-256, hex
	shortWord = "{sha256:12}" // the first 12 digits of that
)

// homePath checks a path of the agent's: in the home, and not all of it.
func homePath(text string) (string, error) {
	rest, ok := strings.CutPrefix(text, "~/")
	if !ok || rest == "" || rest == "." || filepath.Clean(rest) != rest || strings.HasPrefix(rest, "..") {
		return "", fmt.Errorf("%q is not a path in the home, such as ~/.agent", printable(text))
	}
	bare := strings.NewReplacer(slugWord, "x", hashWord, "x", shortWord, "x").Replace(rest)
	if strings.ContainsAny(bare, "{}") {
		return "", fmt.Errorf("%q has an unknown word in braces; known: %s, %s, %s", printable(text), slugWord, hashWord, shortWord)
	}
	return text, pathText("~/" + bare)
}

// homeOrEtc checks a path in the home, or below /etc.
func homeOrEtc(text string) (string, error) {
	if _, err := homePath(text); err == nil {
		return text, nil
	}
	if filepath.Clean(text) != text || !strings.HasPrefix(text, "/etc/") {
		return "", fmt.Errorf("%q is neither in the home nor below /etc", printable(text))
	}
	return text, pathText(text)
}

func (d *presetDecoder) homePath(what string, n *yaml.Node) (path string) {
	d.text(what, "an entry", n, func(text string) (err error) { path, err = homePath(text); return err })
	return path
}

func (d *presetDecoder) parseMoved(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, "for example ~/.agent: $AGENT_HOME", "moved is %s; a mapping of paths to variables is expected", describe(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		var m moved
		m.path = d.homePath("moved", key)
		d.text("moved", printable(key.Value), value, func(text string) error {
			name, rest, _ := strings.Cut(text, "/")
			var ok bool
			if m.variable, ok = strings.CutPrefix(name, "$"); !ok {
				return errors.New("$VARIABLE or $VARIABLE/path is expected")
			}
			m.rest = rest
			return variable(m.variable)
		})
		d.preset.moved = append(d.preset.moved, m)
	}
}

func (d *presetDecoder) parseKeep(n *yaml.Node) {
	k := keptDir{origin: d.origin(n)}
	if n.Kind == yaml.ScalarNode {
		k.path = d.homePath("keep", n)
	} else {
		const label = "an entry of keep"
		d.mapping(label, n, []field{d.textField(label, "path", &k.path, homePath), d.textField(label, "from", &k.from, homePath)})
		if k.path == "" && len(d.errs) == 0 {
			d.fail(n, "", "an entry of keep has no path")
		}
	}
	d.preset.keep = append(d.preset.keep, k)
}

func (d *presetDecoder) parseCopy(n *yaml.Node) {
	c := AgentCopy{Origin: d.origin(n)}
	if n.Kind == yaml.ScalarNode {
		c.Path = d.homePath("copy", n)
	} else {
		const label = "an entry of copy"
		var drop, only, notable, quiet, remember []string
		d.mapping(label, n, []field{
			d.textField(label, "path", &c.Path, homePath),
			d.textsField(label, "except", &c.Except, unchanged(patternText)),
			d.textsField(label, "drop", &drop, keyPath),
			d.textsField(label, "only", &only, keyPath),
			d.textsField(label, "notable", &notable, keyPath),
			d.textsField(label, "quiet", &quiet, keyPath),
			d.textsField(label, "remember", &remember, keyPath),
			{"tell", func(n *yaml.Node) { d.truth(label, "tell", n, &c.Tell) }},
			{"set", func(n *yaml.Node) { d.values(label, n, &c.Set) }},
		})
		c.Drop, c.Only, c.Notable, c.Quiet, c.Remember = keyPaths(drop), keyPaths(only), keyPaths(notable), keyPaths(quiet), keyPaths(remember)
		if c.Path == "" && len(d.errs) == 0 {
			d.fail(n, "", "an entry of copy has no path")
		}
	}
	d.preset.copies = append(d.preset.copies, c)
}

// values decodes keys of a JSON file with the values that they are set to.
func (d *presetDecoder) values(what string, n *yaml.Node, into *[]AgentValue) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, "", "set of %s is %s; a mapping is expected", what, describe(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		v := AgentValue{Key: strings.Split(n.Content[i].Value, ".")}
		if err := n.Content[i+1].Decode(&v.Value); err != nil {
			d.fail(n.Content[i+1], "", "set of %s: %v", what, err)
			continue
		}
		*into = append(*into, v)
	}
}

// keyPath checks the way to a value in a JSON file.
func keyPath(text string) (string, error) {
	for part := range strings.SplitSeq(text, ".") {
		if part == "" {
			return "", fmt.Errorf("%q is not the path of a value, such as servers.*.token", printable(text))
		}
	}
	return text, nil
}

func keyPaths(texts []string) (out [][]string) {
	for _, t := range texts {
		out = append(out, strings.Split(t, "."))
	}
	return out
}
