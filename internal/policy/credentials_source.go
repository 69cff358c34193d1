package policy

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// CredentialSource says where a secret comes from. Exactly one of its kinds.
type CredentialSource struct {
	Kind    string            // env, file, command, vault or github-app
	Value   string            // env: the variable; file: absolute path; vault: path of the secret
	Argv    []string          // command: executed on the host, without a shell
	Options map[string]string // vault: address, and where given field, namespace and token-file; github-app: app-id, installation-id, key-file, repositories (names, a comma between), permissions (name=level, a comma between), and where given api; files are absolute paths
}

// The levels of a permission of a GitHub app.
var appLevels = []string{"read", "write", "admin"}

// source decodes where a secret comes from: a mapping of one key.
func (d *decoder) source(of string, n *yaml.Node, s *CredentialSource) {
	what := "the source of " + of
	given := 0
	kind := func(name string, read func(n *yaml.Node)) field {
		return field{name, func(n *yaml.Node) {
			given++
			s.Kind = name
			read(n)
		}}
	}
	before := len(d.errs)
	d.mapping(what, n, []field{
		kind("env", d.textField(what, "env", &s.Value, unchanged(variable)).read),
		kind("file", d.textField(what, "file", &s.Value, fileText).read),
		kind("command", func(n *yaml.Node) { d.command(what, n, s) }),
		kind("vault", func(n *yaml.Node) { d.vault("vault of "+what, n, s) }),
		kind("github-app", func(n *yaml.Node) { d.githubApp("github-app of "+what, n, s) }),
	})
	if len(d.errs) == before && given != 1 {
		d.fail(n, "for example source: {env: NAME}", "%s has %d kinds; it needs exactly one", what, given)
	}
}

func (d *decoder) command(what string, n *yaml.Node, s *CredentialSource) {
	if n.Kind == yaml.ScalarNode {
		var err error
		if s.Argv, err = splitWords(n.Value); err != nil {
			d.fail(n, "write a list, such as [gh, auth, token], or name a script", "command of %s: %v", what, err)
		}
		return
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		d.fail(n, "for example [gh, auth, token]", "command of %s is %s; a text or a list of words is expected", what, describe(n))
		return
	}
	for _, item := range n.Content {
		switch {
		case !d.plain(item):
		case item.Kind != yaml.ScalarNode || item.ShortTag() == "!!null":
			d.fail(item, "", "a word of the command of %s is %s; text is expected", what, describe(item))
		case strings.ContainsRune(item.Value, 0):
			d.fail(item, "", "a word of the command of %s contains a NUL", what)
		default:
			s.Argv = append(s.Argv, item.Value)
		}
	}
	if len(s.Argv) > 0 && s.Argv[0] == "" {
		d.fail(n, "", "the command of %s has no program", what)
	}
}

func (d *decoder) vault(what string, n *yaml.Node, s *CredentialSource) {
	var name, address, token, namespace string
	before := len(d.errs)
	d.mapping(what, n, []field{
		d.textField(what, "path", &s.Value, vaultPath),
		d.textField(what, "field", &name, vaultField),
		d.textField(what, "address", &address, ServiceURL),
		d.textField(what, "token-file", &token, fileText),
		d.textField(what, "namespace", &namespace, vaultPath),
	})
	if len(d.errs) == before && s.Value == "" {
		d.fail(n, "for example {path: secret/data/ci, field: token}", "%s needs path", what)
		return
	}
	s.Options = options("field", name, "address", address, "token-file", token, "namespace", namespace)
}

func (d *decoder) githubApp(what string, n *yaml.Node, s *CredentialSource) {
	var app, installation, key, api string
	var repositories, permissions []string
	before := len(d.errs)
	d.mapping(what, n, []field{
		d.textField(what, "app-id", &app, idText),
		d.textField(what, "installation-id", &installation, idText),
		d.textField(what, "key-file", &key, fileText),
		d.textsField(what, "repositories", &repositories, repositoryName),
		{"permissions", func(n *yaml.Node) { permissions = d.permissions(what, n) }},
		d.textField(what, "api", &api, ServiceURL),
	})
	if len(d.errs) == before && (app == "" || installation == "" || key == "" || repositories == nil || permissions == nil) {
		d.fail(n, "for example {app-id: 1, installation-id: 2, key-file: ~/app.pem, repositories: [widget], permissions: {contents: read}}",
			"%s needs app-id, installation-id, key-file, repositories and permissions, since a token is limited to those", what)
		return
	}
	s.Options = options("app-id", app, "installation-id", installation, "key-file", key, "api", api,
		"repositories", strings.Join(repositories, ","), "permissions", strings.Join(permissions, ","))
}

// permissions reads a mapping of names to levels, sorted by name.
func (d *decoder) permissions(what string, n *yaml.Node) (out []string) {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		d.fail(n, "for example {contents: read}", "permissions of %s is %s; a mapping with at least one is expected", what, describe(n))
		return nil
	}
	var fields []field
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			d.fail(n.Content[i], "", "permissions of %s: %q is not a permission such as contents or pull_requests", what, printable(name))
			return nil
		}
		fields = append(fields, field{name, func(n *yaml.Node) {
			d.text(what, name, n, func(level string) error {
				out = append(out, name+"="+level)
				return oneOf("level", level, appLevels)
			})
		}})
	}
	d.mapping("permissions of "+what, n, fields)
	slices.Sort(out)
	return out
}

// full is the complete text of a source, for a user who is asked to trust it.
func (s CredentialSource) full() string {
	text := ": " + strings.Join(append([]string{s.Value}, s.Argv...), " ")
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		text += " " + name + "=" + s.Options[name]
	}
	return strings.ReplaceAll(text, ":  ", ": ")
}

// options is a map of the pairs whose value is not empty.
func options(pairs ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out[pairs[i]] = pairs[i+1]
		}
	}
	return out
}

func idText(text string) (string, error) {
	if _, err := wholeNumber(text); err != nil {
		return "", fmt.Errorf("%q is not a number", printable(text))
	}
	return text, nil
}

// repositoryName checks the name of a repository without its owner, which the
// installation says.
func repositoryName(text string) (string, error) {
	if len(text) > 100 || strings.Trim(text, alphanumeric+"._-") != "" || strings.Trim(text, ".") == "" {
		return "", fmt.Errorf("%q is not the name of a repository; it is written without the owner", printable(text))
	}
	return text, nil
}

func vaultPath(text string) (string, error) {
	for segment := range strings.SplitSeq(text, "/") {
		if segment == "" || segment == "." || segment == ".." || strings.Trim(segment, alphanumeric+"._-@+=") != "" {
			return "", fmt.Errorf("%q is not a path in Vault such as secret/data/ci", printable(text))
		}
	}
	return text, nil
}

func vaultField(text string) (string, error) {
	if len(text) > 128 || strings.Trim(text, alphanumeric+"._-") != "" {
		return "", fmt.Errorf("%q is not the name of a field", printable(text))
	}
	return text, nil
}

// ServiceURL checks the address of a service that gives out secrets: https, or
// http on loopback.
func ServiceURL(text string) (string, error) {
	u, err := url.Parse(text)
	if text == "" {
		return "", errors.New("it is empty")
	}
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return "", fmt.Errorf("%q is not an address such as https://vault.example.org", printable(text))
	}
	address, bad := netip.ParseAddr(u.Hostname())
	if u.Scheme != "https" && !(u.Scheme == "http" && (u.Hostname() == "localhost" || bad == nil && address.IsLoopback())) {
		return "", errors.New("secrets are fetched over https only; http is allowed on loopback")
	}
	return strings.TrimSuffix(text, "/"), nil
}

// splitWords splits a command that is written as one text. It knows spaces and quotes
// only. Characters with a meaning to a shell are refused, so that the text is not taken
// for a line of a shell.
func splitWords(text string) ([]string, error) {
	const special = "$`|;&<>()*?[\\\n\r"
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	for _, r := range text {
		switch {
		case quote == 0 && (r == ' ' || r == '\t'):
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
			continue
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inWord = r, true
			continue
		case r == quote:
			quote = 0
			continue
		case quote == 0 && strings.ContainsRune(special, r), quote == '"' && strings.ContainsRune("$`\\", r):
			return nil, fmt.Errorf("the command contains %q, but no shell reads it", string(r))
		case r == 0:
			return nil, fmt.Errorf("the command contains a NUL")
		}
		word.WriteRune(r)
		inWord = true
	}
	if quote != 0 {
		return nil, fmt.Errorf("the command has an unclosed quote")
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, fmt.Errorf("the command is empty")
	}
	return words, nil
}

func sourceShape() map[string]any {
	text := textShape()
	number := map[string]any{"type": []string{"string", "integer"}}
	argv := map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1}
	return map[string]any{"oneOf": []any{
		closed([]string{"env"}, map[string]any{"env": text}),
		closed([]string{"file"}, map[string]any{"file": text}),
		closed([]string{"command"}, map[string]any{"command": map[string]any{"oneOf": []any{text, argv}}}),
		closed([]string{"vault"}, map[string]any{"vault": closed([]string{"path"},
			map[string]any{"path": text, "field": text, "address": text, "token-file": text, "namespace": text})}),
		closed([]string{"github-app"}, map[string]any{"github-app": closed([]string{"app-id", "installation-id", "key-file", "repositories", "permissions"},
			map[string]any{"app-id": number, "installation-id": number, "key-file": text, "repositories": some(text), "api": text,
				"permissions": map[string]any{"type": "object", "minProperties": 1, "additionalProperties": map[string]any{"enum": appLevels}}})}),
	}}
}
