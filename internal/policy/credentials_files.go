package policy

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// sources resolves where secrets come from, and refuses what the command could
// read or replace.
func (p *Plan) sources(e Effective, h Host) error {
	var errs Errors
	base := map[string]string{}
	for _, one := range e.entriesFor("credentials") {
		base[one.Credential.Name] = one.Base
	}
	x := explainer{plan: *p, host: h}
	for _, f := range e.agent.filesObeyed() {
		if _, fault := x.outsideView(Entry{Origin: f.origin}, cmp.Or(f.variable, "what the preset obeys"), f.path); fault != nil {
			errs = append(errs, fault)
		}
	}
	for i := range p.Credentials {
		c := &p.Credentials[i]
		if fault := x.source(c, base[c.Name]); fault != nil {
			errs = append(errs, fault)
		}
	}
	return errs.orNil()
}

// ResolveSource resolves where the secret of a credential that the user keeps comes from, and
// refuses what a command under p, or an earlier run, could read or replace.
func (c *Credential) ResolveSource(p Plan, h Host) error {
	if fault := (explainer{plan: p, host: h}).source(c, ""); fault != nil {
		return fault
	}
	return nil
}

func (x explainer) source(c *Credential, base string) *Error {
	files := []*string{}
	switch s := &c.Source; s.Kind {
	case "file":
		s.Value = expand(s.Value, base, x.host.Home)
		files = append(files, &s.Value)
	case "command":
		return x.program(c, base)
	case "vault", "github-app":
		if fault := x.vaultAddress(c); fault != nil {
			return fault
		}
		if s.Kind == "vault" && s.Options["token-file"] == "" && x.host.lookup("VAULT_TOKEN") == "" {
			home := filepath.Join(x.host.Home, ".vault-token")
			files = append(files, &home)
		}
		for _, name := range []string{"token-file", "key-file"} {
			if path := s.Options[name]; path != "" {
				path = expand(path, base, x.host.Home)
				s.Options[name] = path
				files = append(files, &path)
			}
		}
	}
	for _, path := range files {
		if _, fault := x.outsideView(Entry{Origin: c.Origin, Base: base}, "the credential "+c.Name, *path); fault != nil {
			return fault
		}
	}
	return nil
}

// vaultAddress takes the address of Vault from the caller's environment where
// the policy leaves it to that.
func (x explainer) vaultAddress(c *Credential) *Error {
	if c.Source.Kind != "vault" || c.Source.Options["address"] != "" {
		return nil
	}
	address, err := ServiceURL(x.host.lookup("VAULT_ADDR"))
	if err != nil {
		return fault(c.Origin, "add address: https://… to the source, or set VAULT_ADDR", "the credential %s: its source has no address of Vault, and VAULT_ADDR: %v", c.Name, err)
	}
	c.Source.Options["address"] = address
	return nil
}

// program looks up the program of a command. It is executed on the host, so it
// must be nothing that the command inside could have written.
func (x explainer) program(c *Credential, base string) *Error {
	name := c.Source.Argv[0]
	path := ""
	if strings.Contains(name, "/") {
		path = expand(name, base, x.host.Home)
	} else {
		for _, dir := range filepath.SplitList(x.host.lookup("PATH")) {
			if path = lookIn(dir, name); path != "" && x.replaceable(path) == "" {
				break
			}
			path = ""
		}
	}
	if path == "" {
		return fault(c.Origin, "install it, or write its whole path", "the credential %s: %s is in no directory of your PATH that the command cannot change", c.Name, quote(name))
	}
	c.Source.Argv[0] = path
	for _, word := range c.Source.Argv { // a script is an argument of its interpreter
		if by := x.replaceable(word); filepath.IsAbs(word) && by != "" {
			return fault(c.Origin, "move it to a directory that is not writable inside", "the credential %s: %s is used on the host, and the command could replace it (%s)", c.Name, quote(word), by)
		}
	}
	return nil
}

// credentialVariables refuses a variable for a placeholder, or with a secret, if
// something else hands it in.
func (p *Plan) credentialVariables(e Effective, out map[string]Env) error {
	var errs Errors
	for _, c := range p.Credentials {
		names := c.placeholders()
		if c.Source.Kind == "env" {
			names = append(slices.Clone(names), c.Source.Value)
			if prefix, ok := strings.CutSuffix(c.Source.Value, "ACCESS_KEY_ID"); ok && c.Sign != "" { // three variables make one secret
				names = append(names, prefix+"SECRET_ACCESS_KEY", prefix+"SESSION_TOKEN")
			}
		}
		for _, name := range names {
			given, found := out[name]
			if !found {
				continue
			}
			if e.onlyByWildcard(name, given.Origin) {
				delete(out, name)
				p.Notes = append(p.Notes, given.Origin.String()+": "+name+" is left out: the credential "+c.Name+" provides it")
				continue
			}
			errs = append(errs, fault(given.Origin, "remove it from environment: the credential provides it",
				"%s is handed in, but the credential %s (%s) keeps it out", name, c.Name, c.Origin))
		}
	}
	return errs.orNil()
}

// onlyByWildcard reports whether a variable that came from o was handed in by a
// wildcard and is named nowhere.
func (e Effective) onlyByWildcard(name string, o Origin) bool {
	wild := false
	for _, one := range e.Entries {
		if one.Key != "environment.pass" && one.Key != "environment.set" {
			continue
		}
		if one.Value == name {
			return false
		}
		wild = wild || one.Origin == o && strings.HasSuffix(one.Value, "*")
	}
	return wild
}
