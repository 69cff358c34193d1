package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Renewal is how a login in a file is renewed at its provider with a refresh token
// (RFC 6749, section 6). It happens outside. Keys are ways in the JSON of the file, as
// in the options of a CredentialSource.
type Renewal struct {
	URL     string // of the token endpoint: https, no query
	Client  string // client_id of the program
	Secret  string // client_secret that the program has, the same in every installation; "" for none
	JSON    bool   // requests are JSON instead of a form
	Refresh string // key of the refresh token
	ID      string // key of the id token; "" for none
	Ends    string // key of when the token ends, in milliseconds since 1970; "" where the token itself says it, or nothing does
	Time    string // key of when it was renewed, RFC 3339; "" for none
	Login   string // what to type outside to log in
}

// LoginFile is what the program finds inside instead of its login file: placeholders
// of the tokens, and the values of Keep as they are in the file outside.
type LoginFile struct {
	Path     string              // inside; in a preset the path of the source
	Variable string              // that holds the text instead of a file; "" for a file
	Keep     []string            // keys
	Also     []string            // keys that have the placeholder of the access token, too
	Claims   map[string][]string // by key of a token that is a JWT: the claims that the placeholder has, too; the names of one in another with a space between
}

// Login is a token endpoint as the network knows it. By the rule of the preset nothing
// that is sent there from inside leaves: a renewal is answered outside, and there is no
// login from inside. By a rule of the user's own, requests of other clients do.
type Login struct {
	Host       HostPort
	Path       string
	Credential string // that a renewal there is about; "" for none
	Title      string // of the program
	Text       string // what to type outside to log in
	Client     string // client_id of the program; "" for not known
}

// Endpoint is where the URL of a renewal leads. There is no error once a preset was read.
func (r Renewal) Endpoint() (h HostPort, path string, err error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" {
		return HostPort{}, "", fmt.Errorf("%q is not an address such as https://login.example.org/token: a refresh token is sent by https only", printable(r.URL))
	}
	if h, err = ParseHostPort(u.Host); err != nil {
		return HostPort{}, "", err
	}
	path, err = requestPath(u.EscapedPath())
	if strings.Contains(path, "*") {
		err = fmt.Errorf("%q has a star; the address of a token endpoint is given in full", printable(r.URL))
	}
	return h, path, err
}

// parseRenewal decodes how a login is renewed.
func (d *presetDecoder) parseRenewal(n *yaml.Node, o *offered) {
	const label = "renew of a credential"
	o.Renewal = &Renewal{}
	r := o.Renewal
	var body string
	d.mapping(label, n, []field{
		d.textField(label, "url", &r.URL, func(text string) (string, error) {
			_, _, err := Renewal{URL: text}.Endpoint()
			return text, err
		}),
		d.textField(label, "client", &r.Client, unchanged(lineText)),
		d.textField(label, "client-secret", &r.Secret, unchanged(lineText)),
		d.textField(label, "body", &body, choice("form of a request", "form", "json")),
		d.textField(label, "refresh", &r.Refresh, keyPath),
		d.textField(label, "id", &r.ID, keyPath),
		d.textField(label, "time", &r.Time, keyPath),
	})
	r.JSON = body == "json"
	if len(d.errs) == 0 && (r.URL == "" || r.Refresh == "") {
		d.fail(n, "for example {url: https://login.example.org/token, client: my-client, refresh: refresh_token}", "%s needs url and refresh", label)
	}
}

// parseLoginFile decodes what the program finds inside instead of its login file.
func (d *presetDecoder) parseLoginFile(n *yaml.Node, o *offered) {
	const label = "inside of a credential"
	o.Inside = &LoginFile{Claims: map[string][]string{}}
	f := o.Inside
	d.mapping(label, n, []field{
		d.textsField(label, "keep", &f.Keep, keyPath),
		d.textsField(label, "also", &f.Also, keyPath),
		d.textField(label, "variable", &f.Variable, placeholderName),
		{"claims", func(n *yaml.Node) {
			if n.Kind != yaml.MappingNode {
				d.fail(n, "for example claims: {id_token: [email]}", "claims of %s is %s; a mapping is expected", label, describe(n))
				return
			}
			for i := 0; i+1 < len(n.Content); i += 2 {
				var claims []string
				d.textsField(label, "claims", &claims, unchanged(claimText)).read(n.Content[i+1])
				f.Claims[n.Content[i].Value] = claims
			}
		}},
	})
}

// claimText checks the name of a claim, or the names of one in another.
func claimText(text string) error {
	if text == "" || strings.Join(strings.Fields(text), " ") != text || printable(text) != text {
		return fmt.Errorf("%q is not a claim such as email, or names with one space between", printable(text))
	}
	return nil
}

// checkLogin returns contradictions between what is said about a login.
func (o offered) checkLogin() error {
	switch {
	case o.Renewal == nil && o.Inside == nil:
		return nil
	case o.Source.Kind != "file" || o.Source.Options["key"] == "":
		return errors.New("renew and inside need a source with file and key: the login")
	case o.Renewal != nil && o.login == "":
		return errors.New("renew needs login: what to type when the provider refuses")
	}
	return nil
}

// parseLogin decodes an address at which the program begins a login.
func (d *presetDecoder) parseLogin(n *yaml.Node) {
	const label = "an entry of logins"
	var l Login
	d.mapping(label, n, []field{
		d.textField(label, "url", new(string), func(text string) (_ string, err error) {
			l.Host, l.Path, err = Renewal{URL: text}.Endpoint()
			return text, err
		}),
		d.textField(label, "login", &l.Text, unchanged(lineText)),
	})
	if len(d.errs) == 0 && (l.Path == "" || l.Text == "") {
		d.fail(n, "", "%s needs url and login: what to type outside", label)
	}
	d.preset.logins = append(d.preset.logins, madeLogin{l, d.origin(n)})
}

// madeLogin is an address at which a login begins, with where it was named.
type madeLogin struct {
	Login
	origin Origin
}

// WriteTime is how long to wait for a program that is writing its login file.
const WriteTime = 200 * time.Millisecond

// readLogin reads a login file, once more if it is not whole. One that is neither renewed
// nor made inside may be no JSON, or have comments.
func (a *agentPlan) readLogin(path string, c *offered) ([]byte, error) {
	data, err := readPolicy(path, a.host.UID, false)
	if err == nil && (c.Renewal != nil || c.Inside != nil) && !json.Valid(data) {
		a.wait(WriteTime)
		return readPolicy(path, a.host.UID, false)
	}
	return data, err
}

// logins are the token endpoints of the preset, with the credentials that were chosen,
// and the rules by which requests reach the answer. Nothing of them leaves.
func (a *agentPlan) logins() {
	for _, c := range a.preset.credentials {
		if c.Renewal == nil || !a.wanted(&c) {
			continue
		}
		host, path, err := c.Renewal.Endpoint()
		if err != nil {
			continue // checked when the preset was read
		}
		l := Login{Host: host, Path: path, Title: a.preset.Title, Text: c.login, Client: c.Renewal.Client}
		for _, e := range a.entries {
			if e.Key == "credentials" && e.Credential.Renewal == c.Renewal {
				l.Credential = c.Name
			}
		}
		a.answer(l, c.Origin)
	}
	for _, l := range a.preset.logins {
		l.Title = a.preset.Title
		a.answer(l.Login, l.origin)
	}
}

// withoutLogin notes the hosts of which a credential is missing. A host of which the
// program needs some paths serves others, too: there the rule is what is missing.
func (a *agentPlan) withoutLogin(missing map[string]string, done map[string]bool, places map[string]provider) {
	for _, c := range a.preset.credentials {
		if missing[c.Name] == "" || done[c.Name] {
			continue
		}
		for _, h := range placed(a.hostsOf(&c), places) {
			l := Login{Host: h, Title: a.preset.Title, Text: c.toType()}
			at := slices.IndexFunc(a.noLogin, func(have Login) bool { return have.Host == h })
			switch {
			case at >= 0 && c.login != "":
				a.noLogin[at] = l
			case at < 0 && len(c.Paths) == 0:
				a.noLogin = append(a.noLogin, l)
			}
		}
	}
}

// toType is what to type to have a credential.
func (o *offered) toType() string {
	switch {
	case o.login != "":
		return o.login
	case o.Source.Kind == "env":
		return "export " + o.Source.Value + "=…"
	}
	return "log in once outside"
}

// answer lets requests reach the answer at an endpoint.
func (a *agentPlan) answer(l Login, at Origin) {
	rule := HostRule{Host: l.Host.Host, Ports: []int{l.Host.Port}, Kind: TLS, Methods: []string{"POST"}, Paths: []string{l.Path}, Inspect: true, Answered: true}
	a.entries = append(a.entries, Entry{Key: "network.allow", Value: rule.String(), Rule: &rule, Origin: at, Base: "/"})
	a.endpoints = append(a.endpoints, l)
}

// parseVariables decodes variables that are handed in with a credential.
func (d *presetDecoder) parseVariables(n *yaml.Node, into *[]variableValue) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, "for example set: {USE_LOGIN: \"true\"}", "set of a credential is %s; a mapping of variables to texts is expected", describe(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		v := variableValue{name: n.Content[i].Value}
		d.text("set", printable(v.name), n.Content[i+1], func(text string) error {
			v.value = text
			if err := presetVariable(v.name); err != nil {
				return err
			}
			return lineText(text)
		})
		*into = append(*into, v)
	}
}
