package policy

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// ownFile decodes a file that the run puts into view.
func (d *presetDecoder) ownFile(n *yaml.Node) {
	const label = "an entry of files"
	f := AgentFile{Origin: d.origin(n)}
	var drop []string
	d.mapping(label, n, []field{
		d.textField(label, "path", &f.Path, homeOrEtc),
		d.textField(label, "content", &f.Content, anyText),
		{"merge", func(n *yaml.Node) { d.truth(label, "merge", n, &f.Merge) }},
		d.textsField(label, "drop", &drop, keyPath),
		{"writable", func(n *yaml.Node) { d.truth(label, "writable", n, &f.Writable) }},
	})
	if len(d.errs) == 0 && (f.Path == "" || f.Content == "") {
		d.fail(n, "", "%s needs path and content", label)
	}
	f.Drop = keyPaths(drop)
	d.preset.files = append(d.preset.files, f)
}

func (d *presetDecoder) endpoint(n *yaml.Node) {
	const label = "an entry of endpoints"
	e := movedHost{origin: d.origin(n)}
	d.mapping(label, n, []field{
		d.textField(label, "variable", &e.variable, unchanged(variable)),
		{"host", func(n *yaml.Node) {
			d.text(label, "host", n, func(text string) (err error) { e.host, err = parseHostTemplate(text); return err })
		}},
	})
	if len(d.errs) == 0 && (e.variable == "" || e.host == "") {
		d.fail(n, "", "%s needs variable and host", label)
	}
	d.preset.endpoints = append(d.preset.endpoints, e)
}

// parseCredential decodes one credential that is used when its source is there.
func (d *presetDecoder) parseCredential(n *yaml.Node) {
	const label = "an entry of credentials"
	o := offered{Credential: Credential{Header: "Authorization", Format: "Bearer {}", TTL: defaultTTL, Origin: d.origin(n)}}
	common := slices.DeleteFunc(d.credentialFields(label, &o.Credential, new(string)), func(f field) bool { return f.name == "hosts" })
	d.mapping(label, n, append(common,
		field{"hosts", func(n *yaml.Node) { d.offerHosts(n, &o) }},
		field{"source", func(n *yaml.Node) { d.offerSource(n, &o) }},
		field{"always", func(n *yaml.Node) { d.truth(label, "always", n, &o.Always) }},
		d.textField(label, "sign", &o.Sign, choice("way to sign", awsSigV4)),
		d.textField(label, "when", &o.when, unchanged(variable)),
		d.textField(label, "login", &o.login, unchanged(lineText)),
		field{"renew", func(n *yaml.Node) { d.parseRenewal(n, &o) }},
		field{"inside", func(n *yaml.Node) { d.parseLoginFile(n, &o) }},
		field{"set", func(n *yaml.Node) { d.parseVariables(n, &o.set) }},
	))
	for _, above := range d.preset.credentials {
		if len(o.Hosts)+len(o.hosts)+len(o.Paths) == 0 && above.Name == o.Name {
			o.Hosts, o.hosts, o.Paths = above.Hosts, above.hosts, above.Paths
		}
	}
	if len(d.errs) == 0 {
		if err := o.complete(); err != nil {
			d.fail(n, "", "%s: %v", label, err)
		}
	}
	if o.Renewal != nil {
		o.Renewal.Ends, o.Renewal.Login = o.expires, o.login
	}
	if o.Inside != nil {
		o.Inside.Path = o.Source.Value
	}
	d.preset.credentials = append(d.preset.credentials, o)
}

func (o offered) complete() error {
	switch {
	case o.Name == "":
		return errors.New("it has no name")
	case o.Source.Kind == "":
		return errors.New("it has no source, such as {env: NAME}")
	case len(o.Hosts)+len(o.hosts) == 0:
		return errors.New("it has no hosts")
	case (o.Source.Kind == "command") != (o.loginFile != ""):
		return errors.New("a source with a command needs login, a file that is there when the program has a login, and no other source has one")
	case (o.Source.Kind == awsKeys) != (o.Sign != ""):
		return errors.New("a source {aws: keys} and sign need each other")
	case len(o.placeholders()) == 0 && o.Inside == nil && !o.Always:
		return errors.New("it has no env: the variable that holds the placeholder")
	}
	return o.checkLogin()
}

// offerHosts decodes the hosts of a credential, in which variables may stand.
func (d *presetDecoder) offerHosts(n *yaml.Node, o *offered) {
	d.texts("an entry of credentials", "hosts", n, false, func(text string) error {
		if strings.Contains(text, "${") {
			t, err := parseHostTemplate(text)
			o.hosts = append(o.hosts, t)
			return err
		}
		h, err := ParseHostPort(text)
		o.Hosts = append(o.Hosts, h)
		return err
	})
}

// offerSource decodes where the secret of an agent is: a variable of the
// caller's, a value in a JSON file of the agent's, or a line of such a file.
func (d *presetDecoder) offerSource(n *yaml.Node, o *offered) {
	const label = "source of a credential"
	var key, line, ends, where string
	d.mapping(label, n, []field{
		d.textField(label, "env", &o.Source.Value, func(text string) (string, error) {
			o.Source.Kind = "env"
			return text, variable(text)
		}),
		d.textField(label, "file", &o.Source.Value, func(text string) (string, error) {
			o.Source.Kind = "file"
			return homePath(text)
		}),
		{"command", func(n *yaml.Node) { o.Source.Kind = "command"; d.command(label, n, &o.Source) }},
		d.textField(label, "login", &o.loginFile, homePath),
		d.textsField(label, "instead", &o.instead, unchanged(variable)),
		d.textField(label, awsKeys, &o.Source.Value, func(text string) (string, error) {
			o.Source.Kind = awsKeys
			return text, oneOf(awsKeys, text, []string{"keys"})
		}),
		d.textField(label, "key", &key, keyPath),
		d.textField(label, "variable", &line, unchanged(variable)),
		d.textField(label, "ends", &ends, keyPath),
		d.textField(label, "where", &where, unchanged(conditionText)),
	})
	o.expires = ends
	if o.Source.Kind == "file" {
		o.Source.Options = options("key", key, "variable", line, "where", where)
	}
	if len(d.errs) == 0 && (o.Source.Kind == "file") != (key != "" || line != "") {
		d.fail(n, "for example {file: ~/.agent/auth.json, key: token}", "%s: a file needs key or variable, which say where in it the secret is; no other source has them", label)
	}
}

// conditionText checks a condition on a source: KEY=TEXT.
func conditionText(text string) error {
	if way, want, _ := strings.Cut(text, "="); way == "" || want == "" {
		return fmt.Errorf("%q is not a condition such as account.host=https://example.org", printable(text))
	}
	return nil
}

// ready says why the secret of c cannot be had now; "" when it can. The source of
// c is then the one that a plan needs.
func (a *agentPlan) ready(c *offered) string {
	if c.Source.Kind != "file" {
		return a.readyByVariable(c)
	}
	login := c.toType()
	path := a.hostPath(c.Source.Value)
	data, err := a.readLogin(path, c)
	defer clear(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a.preset.Title + " has no credential: " + a.other + login
	case err != nil:
		return fmt.Sprintf("%s: its credential cannot be used: %s", a.preset.Title, withHint(err))
	}
	c.Source.Value = path
	secret, err := SecretIn(data, c.Source.Options)
	defer clear(secret)
	var other errOther
	if errors.As(err, &other) && c.login != "" {
		return fmt.Sprintf("%s: the login in %s cannot be used: %v; %s", a.preset.Title, printable(path), err, login)
	}
	if errors.As(err, &other) {
		a.other = fmt.Sprintf("that in %s cannot be used: %v; ", printable(path), err)
		return a.preset.Title + " has no credential: " + a.other + login
	}
	if err != nil || len(secret) == 0 {
		return a.preset.Title + " has no credential: " + a.other + login
	}
	if c.Renewal != nil {
		if refresh, err := SecretIn(data, map[string]string{"key": c.Renewal.Refresh}); err == nil && len(refresh) > 0 {
			clear(refresh)
			return "" // it is renewed where it has ended
		}
	}
	if c.expires == "" {
		return ""
	}
	ends, err := SecretIn(data, map[string]string{"key": c.expires})
	var ms int64
	if _, scan := fmt.Sscan(string(ends), &ms); err != nil || scan != nil {
		return ""
	}
	if at := time.UnixMilli(ms); time.Until(at) < time.Minute {
		return fmt.Sprintf("the login of %s ended at %s: %s", a.preset.Title, at.UTC().Format(time.RFC3339), login)
	}
	return ""
}

// readyByVariable is ready for a secret that is not in a file of the agent's.
func (a *agentPlan) readyByVariable(c *offered) string {
	missing := a.preset.Title + " has no credential: "
	if c.Source.Kind == "command" {
		files, why := a.filesGiven(c.Origin, c.instead...)
		if why != "" {
			return missing + why
		}
		path := a.hostPath(c.loginFile)
		login := path
		for _, name := range c.instead { // the command has the caller's, and takes it before its own
			login = cmp.Or(a.host.lookup(name), login)
		}
		if _, err := os.Lstat(login); err != nil || !a.hasProgram(c.Source.Argv[0]) {
			return missing + a.other + c.login
		}
		a.obeyed = append(append(a.obeyed, files...), obeyed{named{path, c.Origin}, ""}) // the command is executed on the host
		return ""
	}
	if c.Source.Kind == awsKeys {
		why := a.awsSource(c)
		if why == "" {
			return ""
		}
		return missing + why + "; " + c.login
	}
	name := c.Source.Value
	switch s := a.settings[name]; {
	case s.value != "" && s.file != "":
		c.Source = CredentialSource{Kind: "file", Value: s.file, Options: options("key", s.key)}
		return ""
	case a.host.lookup(name) != "":
		return ""
	}
	return missing + c.toType()
}

// errNoSecret means that a file has no secret at the named place. It contains nothing
// of the file.
var errNoSecret = errors.New("the file has no such value")

// errOther means that a file has the secret of something else than is asked for.
type errOther string

func (e errOther) Error() string { return "its " + string(e) }

// SecretIn takes a value out of the text of a file: with the option key of a JSON
// file, the parts of the way with dots between; with the option variable of lines
// NAME=VALUE. Without either it is the text. The option where, KEY=TEXT, is a condition
// on the same JSON. No error holds anything of the text.
func SecretIn(data []byte, options map[string]string) ([]byte, error) {
	if name := options["variable"]; name != "" {
		return lineValue(data, name)
	}
	key := options["key"]
	if key == "" {
		return bytes.Clone(data), nil
	}
	if way, want, ok := strings.Cut(options["where"], "="); ok {
		if is, err := valueIn(data, way); err != nil {
			return nil, err
		} else if is != want {
			return nil, errOther(way + " is not " + want)
		}
	}
	value, err := valueIn(data, key)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case string:
		return []byte(v), nil
	case json.Number:
		return []byte(v), nil
	}
	return nil, errNoSecret
}

// valueIn takes a value out of a JSON text, by the parts of the way to it with dots
// between. In a part, {WAY} stands for the text at another way. Comment lines are
// ignored, as programs do in their own files.
func valueIn(data []byte, key string) (value any, err error) {
	lines := bytes.Split(data, []byte("\n"))
	lines = slices.DeleteFunc(lines, func(line []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(line), []byte("//")) })
	dec := json.NewDecoder(bytes.NewReader(bytes.Join(lines, []byte("\n"))))
	dec.UseNumber()
	if dec.Decode(&value) != nil {
		return nil, errNoSecret
	}
	parts := partsOf(key)
	for i := range parts {
		if parts[i], err = filledPart(value, parts[i]); err != nil {
			return nil, err
		}
	}
	return valueAt(value, parts)
}

// partsOf splits a way at the dots that are not in braces.
func partsOf(way string) (parts []string) {
	begun, inside := 0, false
	for i, c := range way {
		switch {
		case c == '{' || c == '}':
			inside = c == '{'
		case c == '.' && !inside:
			parts, begun = append(parts, way[begun:i]), i+1
		}
	}
	return append(parts, way[begun:])
}

// filledPart is a part of a way with the texts that it names.
func filledPart(root any, part string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(part, "{")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		inner, after, _ := strings.Cut(rest, "}")
		named, err := valueAt(root, strings.Split(inner, "."))
		word, ok := named.(string)
		if err != nil || !ok {
			return "", errNoSecret
		}
		out.WriteString(word)
		part = after
	}
}

func valueAt(value any, parts []string) (any, error) {
	for _, part := range parts {
		object, _ := value.(map[string]any)
		below, ok := object[part]
		if !ok {
			return nil, errNoSecret
		}
		value = below
	}
	return value, nil
}

// lineValue is the value of a variable in lines of NAME=VALUE, as programs that
// read .env files take them: export before it and quotes around it are no part.
func lineValue(data []byte, name string) ([]byte, error) {
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		line := strings.TrimPrefix(strings.TrimSpace(s.Text()), "export ")
		n, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(n) != name {
			continue
		}
		value = strings.TrimSpace(value)
		for _, quote := range []string{`"`, `'`} {
			if len(value) > 1 && strings.HasPrefix(value, quote) && strings.HasSuffix(value, quote) {
				value = value[1 : len(value)-1]
			}
		}
		if value == "" {
			break
		}
		return []byte(value), nil
	}
	return nil, errNoSecret
}
