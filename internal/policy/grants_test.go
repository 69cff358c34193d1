package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestGrants(t *testing.T) {
	grant := Credential{
		Name: "g", Source: CredentialSource{Kind: "env", Value: "S"}, Hosts: []HostPort{{"api.example.org", 443}, {"other.example.org", 443}},
		Header: "Authorization", Format: "Bearer {}", Env: []string{"G_TOKEN"}, TTL: time.Hour, Origin: Origin{File: "/state/grants/g"},
	}
	for _, row := range []struct {
		name, text string
		want       string // hosts and lease, "none", or part of the error
	}{
		{"it goes to hosts that the run may reach", "network: {allow: [api.example.org]}", "[{api.example.org 443}] 1h0m0s"},
		{"also below a wildcard", "network: {allow: ['*.example.org']}", "[{api.example.org 443} {other.example.org 443}] 1h0m0s"},
		{"it opens no host by itself", "network: {allow: [example.org]}", "none"},
		{"nor where there is no network", "{}", "none"},
		{"nor a host in the clear", "network: {allow: [api.example.org:80]}", "none"},
		{"in ci it must be named", "extends: ci\nnetwork: {allow: [api.example.org]}", "none"},
		{"and is short there", "extends: ci\nnetwork: {allow: [{host: api.example.org, credential: g}]}", "[{api.example.org 443}] 15m0s"},
		{"a rule cannot take it elsewhere", "network: {allow: [{host: evil.example.org, credential: g}]}", "not granted for evil.example.org:443"},
		{"nor to another port", "network: {allow: [{host: api.example.org, ports: [443, 8443], kind: tls, credential: g}]}", "not granted for api.example.org:8443"},
		{"a credential of the policy takes its place", "network: {allow: [api.example.org]}\ncredentials: [{name: g, source: {env: T}, hosts: [api.example.org]}]", "[{api.example.org 443}] 15m0s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(userFile, "version: 1\n"+strings.Replace(row.text, "{}", "", 1)+"\n", 0o644)
			o := w.options()
			e, err := Load(o)
			if err != nil {
				t.Fatal(err)
			}
			e.Grants = []Credential{grant}
			p, err := Compile(e, o.Host)
			got := "none"
			switch {
			case err != nil:
				got = err.Error()
			case len(p.Credentials) == 1:
				got = fmt.Sprint(p.Credentials[0].Hosts, " ", p.Credentials[0].TTL)
			}
			if !strings.Contains(got, row.want) {
				t.Errorf("got %s", got)
			}
			if len(grant.Hosts) != 2 || grant.TTL != time.Hour {
				t.Errorf("the grant itself was changed: %+v", grant)
			}
		})
	}
}
