package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"
)

func TestGrants(t *testing.T) {
	grant := Credential{
		Name: "g", Source: CredentialSource{Kind: "env", Value: "S"}, Hosts: []HostPort{{"api.example.org", 443}, {"other.example.org", 443}},
		Header: "Authorization", Format: "Bearer {}", Env: []string{"G_TOKEN"}, TTL: time.Hour, Origin: Origin{File: "/state/grants/g.json"},
	}
	for _, row := range []struct {
		name, text string
		want       string // hosts and lease, "none", or part of the error
	}{
		{"it goes where a rule names it", "network: {allow: [{host: api.example.org, credential: g}]}", "[{api.example.org 443}] 1h0m0s"},
		{"also below a wildcard", "network: {allow: [{host: '*.example.org', credential: g}]}", "[{api.example.org 443} {other.example.org 443}] 1h0m0s"},
		{"and nowhere else, though the host is allowed", "network: {allow: [api.example.org]}", "none"},
		{"in ci its leases are short", "extends: ci\nnetwork: {allow: [{host: api.example.org, credential: g}]}", "[{api.example.org 443}] 15m0s"},
		{"a rule cannot take it elsewhere", "network: {allow: [{host: evil.example.org, credential: g}]}", "the grant g is not for evil.example.org:443"},
		{"nor to another port", "network: {allow: [{host: api.example.org, ports: [443, 8443], kind: tls, credential: g}]}", "the grant g is not for api.example.org:8443"},
		{"a grant that does not stand stops the run", "network: {allow: [{host: api.example.org, credential: old}]}", "the grant old: it was revoked"},
		{"a grant that does not exist is no credential", "network: {allow: [{host: api.example.org, credential: nope}]}", "there is no credential nope"},
		{"a credential of the policy takes its place", "network: {allow: [api.example.org]}\ncredentials: [{name: g, source: {env: T}, hosts: [api.example.org]}]", "[{api.example.org 443}] 15m0s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.host.Grants = func(name string) (Credential, error) {
				switch name {
				case "g":
					return grant, nil
				case "old":
					return Credential{}, errors.New("it was revoked")
				}
				return Credential{}, fs.ErrNotExist
			}
			w.write(userFile, "version: 1\n"+row.text+"\n", 0o644)
			p, err := w.compile(w.options())
			got := "none"
			switch {
			case err != nil:
				got = err.Error()
			case len(p.Credentials) == 1:
				got = fmt.Sprint(p.Credentials[0].Hosts, " ", p.Credentials[0].TTL)
				if o := p.Credentials[0].Origin; o != grant.Origin && o.File != w.at(userFile) {
					t.Errorf("the origin is %s", o)
				}
			}
			if !strings.Contains(got, row.want) {
				t.Errorf("got %s", got)
			}
			if fmt.Sprint(grant.Hosts) != "[{api.example.org 443} {other.example.org 443}]" || grant.TTL != time.Hour {
				t.Errorf("the grant itself was changed: %+v", grant)
			}
		})
	}
}
