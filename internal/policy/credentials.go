package policy

import (
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// credentialKeys is the key of credentials.
var credentialKeys = []key{
	{name: "credentials", kind: &secrets, project: clears,
		example: "[{name: github, source: {command: gh auth token}, hosts: [api.github.com], env: GITHUB_TOKEN}]",
		doc:     credentialsDoc},
}

var secrets = kind{
	takes:   "a list of credentials",
	many:    true,
	element: (*decoder).credential,
	schema:  func(key) map[string]any { return list(credentialShape()) },
}

// credentialsDoc describes a credential in full.
const credentialsDoc = "Secrets that never enter the boundary. Inside there is a placeholder; in requests to the hosts of the credential it is replaced in one header. Each is a mapping:\n\n" +
	"| key | meaning |\n| --- | --- |\n" +
	"| `name` | its name in rules and records: letters, digits, `-` and `_` |\n" +
	"| `source` | where the secret comes from, see below |\n" +
	"| `hosts` | where it may go, as `HOST` (port 443) or `HOST:PORT`; no wildcards. Each must be in `network.allow` with kind `tls`. The hosts of rules that name it in `credential` are added |\n" +
	"| `paths` | of requests that may carry it, as in `network.allow`; without it all |\n" +
	"| `header` | the only header that may carry it, with `{}` for the secret; default `Authorization: Bearer {}` |\n" +
	"| `env` | variable inside that holds the placeholder, or a list of them |\n" +
	"| `always` | `true`: the header is set on every request to the hosts, placeholder or not. That is the default without `env` |\n" +
	"| `sign` | `aws-sigv4`: requests are re-signed instead. `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` inside are placeholders; no `header`, `env`, `always` or `shape` then |\n" +
	"| `shape` | how the placeholder begins, for programs that check it; known for some hosts, such as `ghp_` for GitHub |\n" +
	"| `ttl` | how long a lease lasts; default `15m`, and at most that in the profiles `ci` and `production` |\n" +
	"| `uses` | how many requests a lease is good for; without it any number |\n\n" +
	"A source is one of:\n\n" +
	"| source | where the secret is |\n| --- | --- |\n" +
	"| `{env: NAME}` | a variable of the caller |\n" +
	"| `{file: PATH}` | a file outside everything in view |\n" +
	"| `{command: TEXT}` or `{command: [PROGRAM, ARGUMENT, …]}` | what a program on the host prints. A text is split at spaces, with quotes, and no shell reads it |\n" +
	"| `{vault: {path, field, address, namespace, token-file}}` | HashiCorp Vault; what is left out is the caller's `VAULT_ADDR`, `VAULT_NAMESPACE` and `VAULT_TOKEN` or `~/.vault-token`. With `sign` a `path` of the AWS engine needs no `field` |\n" +
	"| `{github-app: {app-id, installation-id, key-file, repositories, permissions, api}}` | an installation token, made for the `repositories` (a list of names) and `permissions` (such as `{contents: read}`) alone |\n\n" +
	"A credential of a later source replaces an earlier one of the same name."

// Credential is a secret that never enters the boundary: inside there is a
// placeholder, which is replaced on the way to the hosts that the secret is for.
type Credential struct {
	Name   string           // as the policy calls it: letters, digits, - and _
	Source CredentialSource // where the secret comes from
	Hosts  []HostPort       // where it may go; each is also in a rule of Plan.Allow with this credential
	Paths  []string         // of requests that may carry it, as HostRule.Paths; empty means all
	Header string           // name of the only header that may contain it, canonical, such as "Authorization"
	Format string           // value of that header with {} for the secret, such as "Bearer {}"; with Always it is what is set
	Always bool             // the header is set on every request to Hosts, with or without a placeholder
	Sign   string           // "" or "aws-sigv4": requests are re-signed instead of a secret being put in
	Env    []string         // variables inside that hold the placeholder; with Sign aws-sigv4 the three of AWS are set
	Shape  string           // how the placeholder begins, such as "ghp_", so that tools take it
	TTL    time.Duration    // how long a lease lasts; never 0
	Uses   int64            // how many requests a lease is good for; 0 means any number
	Origin Origin

	Renewal *Renewal   // how the login that it is from is renewed; nil for not. Only presets say it
	Inside  *LoginFile // what takes the place of its login file inside; nil for nothing
}

// HostPort is a place that a credential may go to.
type HostPort struct {
	Host string // in normal form; never a wildcard
	Port int
}

const (
	awsSigV4   = "aws-sigv4"
	defaultTTL = 15 * time.Minute // of a lease; the most that the profiles ci and production take
)

// awsVariables are those that signing for AWS speaks for.
var awsVariables = []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}

// credential decodes one element of credentials.
func (d *decoder) credential(key string, n *yaml.Node) bool {
	what := "a credential"
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == "name" && credentialName(n.Content[i+1].Value) == nil {
				what = "the credential " + n.Content[i+1].Value
			}
		}
	}
	c := Credential{Header: "Authorization", Format: "Bearer {}", TTL: defaultTTL}
	var header string
	var always *bool
	before := len(d.errs)
	d.mapping(what, n, append(d.credentialFields(what, &c, &header),
		field{"source", func(n *yaml.Node) { d.source(what, n, &c.Source) }},
		field{"always", func(n *yaml.Node) { always = new(bool); d.truth(what, "always", n, always) }},
		d.textField(what, "sign", &c.Sign, choice("way to sign", awsSigV4)),
		field{"ttl", func(n *yaml.Node) {
			d.text(what, "ttl", n, func(text string) (err error) { c.TTL, err = leaseTime(text); return err })
		}},
		field{"uses", func(n *yaml.Node) {
			d.text(what, "uses", n, func(text string) (err error) { c.Uses, err = useCount(text); return err })
		}},
	))
	if len(d.errs) > before {
		return true
	}
	if err := c.complete(header != "", always); err != nil {
		d.fail(n, "", "%s: %v", what, err)
		return true
	}
	d.add(n, Entry{Key: key, Value: c.Name, Credential: &c})
	return true
}

// credentialFields are the keys that a credential of a policy and one that a preset
// offers have in common. header is what was written of it.
func (d *decoder) credentialFields(what string, c *Credential, header *string) []field {
	return []field{
		d.textField(what, "name", &c.Name, unchanged(credentialName)),
		{"hosts", func(n *yaml.Node) {
			d.texts(what, "hosts", n, false, func(text string) error {
				h, err := ParseHostPort(text)
				c.Hosts = append(c.Hosts, h)
				return err
			})
		}},
		d.textsField(what, "paths", &c.Paths, requestPath),
		d.textField(what, "header", header, func(text string) (_ string, err error) {
			c.Header, c.Format, err = headerText(text)
			return text, err
		}),
		d.nameField(what, "env", &c.Env, placeholderName),
		d.textField(what, "shape", &c.Shape, shapeText),
	}
}

// complete fills in what follows from the rest, and returns contradictions as an error.
func (c *Credential) complete(header bool, always *bool) error {
	switch {
	case c.Name == "":
		return errors.New("it has no name")
	case c.Source.Kind == "":
		return errors.New("it has no source, such as {env: NAME}")
	case c.Sign != "" && (header || always != nil || len(c.Env) > 0 || c.Shape != ""):
		return errors.New("sign cannot be combined with header, always, env or shape: it signs the whole request and uses the variables of AWS")
	case c.Sign == "" && c.Source.Kind == "vault" && c.Source.Options["field"] == "":
		return errors.New("vault needs path and field")
	case c.Sign != "":
		c.Format = ""
		return nil
	case always != nil && !*always && len(c.Env) == 0:
		return errors.New("with always: false and without env nothing inside could use it")
	}
	c.Always = len(c.Env) == 0 || always != nil && *always
	return nil
}

// credentialName checks how a policy calls a credential.
func credentialName(text string) error {
	if text == "" || len(text) > 64 || strings.Trim(text, alphanumeric+"-_") != "" || strings.ContainsAny(text[:1], "-_") {
		return fmt.Errorf("%q is not the name of a credential: letters, digits, - and _, at most 64", printable(text))
	}
	return nil
}

// ParseHostPort reads HOST or HOST:PORT of a credential.
func ParseHostPort(text string) (HostPort, error) {
	host, port, hasPort, err := splitPort(text)
	if err != nil {
		return HostPort{}, err
	}
	h := HostPort{Port: 443}
	if h.Host, err = hostName(host); err != nil {
		return HostPort{}, err
	}
	if strings.HasPrefix(h.Host, "*") {
		return HostPort{}, fmt.Errorf("%q is a wildcard; the hosts of a credential are named in full", printable(text))
	}
	if hasPort {
		h.Port, err = portNumber(port)
	}
	return h, err
}

// unfitHeaders decide where a request goes, how long it is, or what is done on
// the way; a secret has no place there (RFC 9110 sections 7.2, 7.6 and 8.6).
var unfitHeaders = []string{
	"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade", "Te", "Trailer", "Expect", "Via",
	"Forwarded", "Content-Type", "Content-Encoding", "Range", "Referer", "Origin", "User-Agent", "Accept", "Accept-Encoding",
	"Proxy-Authorization", "Proxy-Connection", "Proxy-Authenticate", "X-Real-Ip",
}

// headerText reads "Name: value with {}".
func headerText(text string) (name, format string, err error) {
	name, format, ok := strings.Cut(text, ":")
	format = strings.Trim(format, " ")
	switch {
	case !ok || name == "" || len(name) > 64 || strings.Trim(name, alphanumeric+"-") != "":
		return "", "", fmt.Errorf("%q is not a header such as \"Authorization: Bearer {}\"", printable(text))
	case strings.Count(format, "{}") != 1:
		return "", "", fmt.Errorf("%q has %d places for the secret; write {} exactly once", printable(text), strings.Count(format, "{}"))
	case len(format) > 256 || strings.ContainsFunc(format, func(r rune) bool { return r < ' ' || r > '~' }):
		return "", "", fmt.Errorf("%q has characters other than printable ASCII, or is too long", printable(text))
	}
	name = textproto.CanonicalMIMEHeaderKey(name)
	if slices.Contains(unfitHeaders, name) || strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "Sec-") {
		return "", "", fmt.Errorf("the header %s cannot hold a credential", name)
	}
	return name, format, nil
}

// placeholderName checks a variable that is to hold a placeholder.
func placeholderName(text string) (string, error) {
	if err := setVariable(text, ""); err != nil {
		return "", err
	}
	for _, p := range []string{"PATH", "SHELL", "LD_*", "*_PROXY", "SSL_CERT_*", "*_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_*", "BASH_ENV", "ENV", "IFS"} {
		if matchName([]string{p}, text) != "" {
			return "", fmt.Errorf("%s controls how programs run inside (%s)", text, p)
		}
	}
	return text, nil
}

func shapeText(text string) (string, error) {
	if len(text) > 32 || strings.Trim(text, alphanumeric+"._-") != "" {
		return "", fmt.Errorf("%q is not the beginning of a token: letters, digits, ., _ and -, at most 32", printable(text))
	}
	return text, nil
}

func leaseTime(text string) (time.Duration, error) {
	n, err := parseSpan(text)
	if err != nil || n < int64(time.Second) {
		return 0, fmt.Errorf("%q is not a duration such as 15m, of a second or more", printable(text))
	}
	return time.Duration(n), nil
}

func useCount(text string) (int64, error) {
	n, err := wholeNumber(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number above 0; leave it out for any number", printable(text))
	}
	return n, nil
}

// credentialShape is the schema of a credential.
func credentialShape() map[string]any {
	text := textShape()
	variable := map[string]any{"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}
	return closed([]string{"name", "source"}, map[string]any{
		"name":   credentialNameShape(),
		"source": sourceShape(),
		"hosts":  some(text),
		"paths":  some(pathShape()),
		"header": map[string]any{"type": "string", "pattern": `^[A-Za-z0-9-]+: [^{}]*\{\}[^{}]*$`},
		"env":    oneOrSome(variable),
		"always": map[string]any{"type": "boolean"},
		"sign":   map[string]any{"enum": []string{awsSigV4}},
		"shape":  map[string]any{"type": "string", "pattern": "^[A-Za-z0-9._-]{1,32}$"},
		"ttl":    spanShape(),
		"uses":   map[string]any{"type": "integer", "minimum": 1},
	})
}

func credentialNameShape() map[string]any {
	return map[string]any{"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$"}
}

// String is a credential in one line: where it is from and where it goes.
func (c Credential) String() string {
	from := c.Source.Kind
	if c.Source.Kind == "env" {
		from += " " + c.Source.Value
	}
	parts := []string{c.Name, "from " + from}
	for _, h := range c.Hosts {
		host := HostRule{Host: h.Host, Ports: []int{h.Port}}
		parts = append(parts, "to "+host.String())
	}
	if len(c.Paths) > 0 {
		parts = append(parts, strings.Join(c.Paths, ","))
	}
	switch {
	case c.Sign != "":
		parts = append(parts, "sign "+c.Sign)
	case c.Always:
		parts = append(parts, "always in "+c.Header)
	default:
		parts = append(parts, "in "+c.Header)
	}
	if len(c.Env) > 0 {
		parts = append(parts, "as "+strings.Join(c.Env, ","))
	}
	if c.Renewal != nil {
		parts = append(parts, "renewed at "+c.Renewal.URL)
	}
	parts = append(parts, "for "+shortSpan(c.TTL))
	if c.Uses > 0 {
		parts = append(parts, strconv.FormatInt(c.Uses, 10)+" uses")
	}
	return strings.Join(parts, " ")
}

func credentialRows(p Plan) []Row {
	return rowsOf("credentials", p.Credentials, func(c Credential) (fmt.Stringer, Origin) { return c, c.Origin })
}
