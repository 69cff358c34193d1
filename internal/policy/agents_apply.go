package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// agentPlan is a preset while it becomes part of a policy.
type agentPlan struct {
	preset    Preset
	host      Host
	wait      func(time.Duration)
	dir       string // the working directory inside
	claimed   map[string]bool
	settings  map[string]setting // variables that the program sets for itself, by name
	obeyed    []obeyed           // files of the host that decided something: no command may change them
	entries   []Entry
	missing   []string
	endpoints []Login
	noLogin   []Login
	other     string // why a login of the program cannot be used: it is at another host, or is a command
}

// preset puts a preset between the profile and what the user says. later are the
// user's own sources, whose credentials and variables take the place of the
// preset's.
func (e *Effective) preset(o Options, later []File) error {
	p, err := PresetNamed(o, o.Preset)
	if err != nil {
		return err
	}
	a := &agentPlan{preset: p, host: o.Host, dir: e.Dir, claimed: map[string]bool{}, wait: time.Sleep}
	for _, f := range later {
		for _, one := range f.Entries {
			a.claim(one)
		}
	}
	a.entries = slices.Clone(p.entries)
	a.readSettings()
	a.passVariables()
	if err := a.brokered(); err != nil {
		return err
	}
	e.apply(File{Name: p.Origin.File, SHA256: p.SHA256, Entries: a.entries})
	e.agent, e.agentRank = a, len(e.Sources)
	return nil
}

// claim notes what the user's own sources speak for.
func (a *agentPlan) claim(one Entry) {
	switch {
	case one.Credential != nil:
		a.claimed["credential "+one.Credential.Name] = true
		for _, name := range one.Credential.placeholders() {
			a.claimed[name] = true
		}
	case one.Key == "environment.set", one.Key == "environment.pass":
		a.claimed[one.Value] = true
	}
}

// passVariables passes the variables of the caller that the agent knows.
func (a *agentPlan) passVariables() {
	for _, v := range a.preset.variables {
		value, found := a.find(v.name)
		if !found || value == "" || secretValue(value) || strings.ContainsAny(value, "\x00\n") {
			continue
		}
		a.set(v.name, value, v.origin)
	}
}

func (a *agentPlan) set(name, value string, at Origin) {
	if a.claimed[name] {
		return
	}
	a.entries = append(a.entries, Entry{Key: "environment.set", Value: name, Text: value, Origin: at, Base: "/"})
}

// brokered adds the credentials whose source is there, with their hosts.
func (a *agentPlan) brokered() error {
	places, err := a.readProviders()
	if err != nil {
		return err
	}
	done, missing := map[string]bool{}, map[string]string{}
	chosen := false // a provider was chosen by a variable, so those after it are not used
	for _, c := range a.preset.credentials {
		if !a.wanted(&c) || chosen && c.when == "" {
			continue
		}
		chosen = chosen || c.when != ""
		if done[c.Name] || a.claimed["credential "+c.Name] || slices.ContainsFunc(c.placeholders(), func(n string) bool { return a.claimed[n] }) {
			done[c.Name] = true
			continue
		}
		why := a.ready(&c)
		if why != "" {
			if missing[c.Name] == "" || c.login != "" {
				missing[c.Name] = why
			}
			continue
		}
		done[c.Name] = true
		c.Hosts = a.hostsOf(&c)
		a.broker(&c, places)
		for _, v := range c.set {
			a.set(v.name, v.value, c.Origin)
		}
	}
	a.logins()
	a.withoutLogin(missing, done, places)
	none := "" // of the credentials of which any would do, the last that says how to log in
	for _, c := range a.preset.credentials {
		switch why := missing[c.Name]; {
		case why == "" || done[c.Name]:
		case c.when == "" && strings.HasPrefix(why, a.preset.Title+" has no credential: "):
			if !chosen && len(done) == 0 && (none == "" || c.login != "") {
				none = why
			}
		case !slices.Contains(a.missing, why):
			a.missing = append(a.missing, why)
		}
	}
	if none != "" {
		a.missing = append(a.missing, none)
	}
	return nil
}

// provider is the value of a caller's variable for one host of the provider.
type provider struct {
	host  HostPort // that takes its place
	local bool     // a service on the loopback of this machine
	path  string   // what comes there before the provider's own paths; "" for nothing
}

// readProviders reads the variables that move hosts, and hands them in.
func (a *agentPlan) readProviders() (map[string]provider, error) {
	out := map[string]provider{}
	for _, e := range a.preset.endpoints {
		value, found := a.find(e.variable)
		if !found || value == "" || a.claimed[e.variable] {
			continue
		}
		host := a.fillHost(e.host)
		if _, twice := out[host]; twice || host == "" {
			continue
		}
		p, err := endpointPlace(value)
		if err != nil {
			return nil, fault(e.origin, "set it to https://HOST, or to http://127.0.0.1:PORT for a service of this machine", "%s: %v", e.variable, err)
		}
		out[host] = p
		a.set(e.variable, value, e.origin)
		if p.local {
			a.entries = append(a.entries, Entry{Key: "network.host-ports", Value: strconv.Itoa(p.host.Port), Ports: []int{p.host.Port, p.host.Port}, Origin: e.origin, Base: "/"})
		}
	}
	return out, nil
}

// endpointPlace reads the address of a provider. In the clear nothing is sent to
// another machine.
func endpointPlace(text string) (provider, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return provider{}, fmt.Errorf("it is not an address such as https://api.example.org") // the error could quote a password
	}
	p := provider{host: HostPort{Host: u.Hostname(), Port: 443}}
	if text := u.Port(); text != "" {
		if p.host.Port, err = portNumber(text); err != nil {
			return provider{}, err
		}
	} else if u.Scheme == "http" {
		p.host.Port = 80
	}
	address, bad := netip.ParseAddr(p.host.Host)
	p.local = loopbackName(p.host.Host) || bad == nil && address.IsLoopback()
	switch {
	case p.local && (u.Scheme == "http" || u.Scheme == "https"):
		return p, nil
	case u.Scheme != "https":
		return provider{}, fmt.Errorf("a key is sent over https only, except to services of this machine")
	}
	if p.path = strings.TrimRight(u.Path, "/"); p.path != "" {
		if _, err = requestPath(p.path); err != nil || strings.Contains(p.path, "*") {
			return provider{}, fmt.Errorf("its path cannot be that of a rule") // the error could quote a password
		}
	}
	p.host.Host, err = hostName(p.host.Host)
	return p, err
}

// broker adds a credential and the rules for its hosts. A service on the loopback of
// this machine gets a placeholder key: that connection is not inspected, and the
// service is the user's own.
func (a *agentPlan) broker(o *offered, places map[string]provider) {
	c := o.Credential
	hosts := placed(c.Hosts, places)
	if len(hosts) == 0 {
		for _, name := range c.placeholders() {
			a.set(name, dummyKey(c.Shape), c.Origin)
		}
		return
	}
	c.Hosts, c.Paths = hosts, slices.Clone(c.Paths)
	for _, h := range o.Hosts {
		for _, path := range o.Paths {
			if at := places[h.Host].path; at != "" {
				c.Paths = append(c.Paths, at+path)
			}
		}
	}
	for _, h := range hosts {
		a.allow(h, slices.Clone(c.Paths), c.Origin)
	}
	if c.Inside != nil {
		inside := *c.Inside
		inside.Path = a.insidePath(inside.Path)
		c.Inside = &inside
	}
	a.entries = append(a.entries, Entry{Key: "credentials", Value: c.Name, Credential: &c, Origin: c.Origin, Base: "/"})
}

// placed are hosts of a provider where the caller's variables moved them, without
// services of this machine.
func placed(hosts []HostPort, places map[string]provider) (out []HostPort) {
	for _, h := range hosts {
		p, moved := places[h.Host]
		switch {
		case !moved:
			out = append(out, h)
		case !p.local && !slices.Contains(out, p.host):
			out = append(out, p.host)
		}
	}
	return out
}

// dummyKey is a value that only its program takes for a key.
func dummyKey(shape string) string { return shape + strings.Repeat("holdfast", 4) }

func (a *agentPlan) allow(h HostPort, paths []string, at Origin) {
	rule := HostRule{Host: h.Host, Ports: []int{h.Port}, Kind: TLS, Paths: paths}
	a.entries = append(a.entries, Entry{Key: "network.allow", Value: rule.String(), Rule: &rule, Origin: at, Base: "/"})
}

// insidePath is a path of a preset as it is inside: the words in braces filled in.
func (a *agentPlan) insidePath(text string) string {
	return expand(a.fill(text), a.host.Home, a.host.Home)
}

func (a *agentPlan) fill(text string) string {
	sum := sha256.Sum256([]byte(a.dir))
	hash := hex.EncodeToString(sum[:])
	return strings.NewReplacer(slugWord, slug(a.dir), hashWord, hash, shortWord, hash[:12]).Replace(text)
}

// slug is a path as Claude Code and others make one name of it.
func slug(dir string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && strings.ContainsRune(alphanumeric, r) {
			return r
		}
		return '-'
	}, dir)
}

// hostPath is a path of a preset as it is on the host: where a variable of the
// caller's moved it. One that is found from the working directory, which is the workspace,
// is not used, and the run says so.
func (a *agentPlan) hostPath(text string) string {
	best := moved{}
	for _, m := range a.preset.moved {
		value := a.host.lookup(m.variable)
		said := m.variable + " is not an absolute path, and is not used: what runs inside could choose what is there; export it anew"
		switch {
		case !within(text, m.path) || value == "":
		case filepath.IsAbs(value) && len(m.path) > len(best.path):
			best = m
		case !filepath.IsAbs(value) && !slices.Contains(a.missing, said):
			a.missing = append(a.missing, said)
		}
	}
	if best.path == "" {
		return a.insidePath(text)
	}
	return filepath.Join(a.host.lookup(best.variable), best.rest, a.fill(strings.TrimPrefix(text, best.path)))
}
