package policy

import (
	"strings"
	"testing"
)

// An address of a provider, from a variable of the user, moves a key to another
// host. In the clear a key goes to this machine alone.
func TestAddressesOfProviders(t *testing.T) {
	for _, row := range []struct {
		text  string
		host  HostPort
		local bool
		want  string // of the error
	}{
		{text: "https://api.example.org", host: HostPort{"api.example.org", 443}},
		{text: "https://API.example.org./v1", host: HostPort{"api.example.org", 443}},
		{text: "https://api.example.org:8443/v1", host: HostPort{"api.example.org", 8443}},
		{text: "https://192.0.2.1", host: HostPort{"192.0.2.1", 443}},
		{text: "http://localhost:11434", host: HostPort{"localhost", 11434}, local: true},
		{text: "http://127.0.0.1", host: HostPort{"127.0.0.1", 80}, local: true},
		{text: "http://127.8.8.8:1/v1", host: HostPort{"127.8.8.8", 1}, local: true},
		{text: "https://[::1]:9", host: HostPort{"::1", 9}, local: true},
		{text: "http://api.example.org", want: "over https only"},
		{text: "http://192.0.2.1", want: "over https only"},
		{text: "ftp://api.example.org", want: "over https only"},
		{text: "ftp://localhost", want: "over https only"},
		{text: "//localhost", want: "over https only"},
		{text: "api.example.org", want: "it is not an address"},
		{text: "https://", want: "it is not an address"},
		{text: "https://hunter2@api.example.org", want: "it is not an address"},
		{text: "https://u:hunter2@localhost", want: "it is not an address"},
		{text: "https://u:hunter2@api.example.org:%", want: "it is not an address"},
		{text: "https://api.example.org:0", want: "port"},
		{text: "https://api.example.org:65536", want: "port"},
		{text: "https://127.1", want: "its last label is a number"},
	} {
		got, err := endpointPlace(row.text)
		if row.want != "" {
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v, want %q", row.text, err, row.want)
			}
			continue
		}
		if err != nil || got.host != row.host || got.local != row.local {
			t.Errorf("%s: %+v, %v, want %v, local %v", row.text, got, err, row.host, row.local)
		}
	}
}

// The first credential of an agent whose secret can be had is the one; without
// any the plan says what is missing, best how to log in.
func TestMissingCredentialsOfAnAgent(t *testing.T) {
	ways := func(login string) []offered {
		c := Credential{Name: "c", Source: CredentialSource{Kind: "env", Value: "KEY"}}
		return []offered{{Credential: c}, {Credential: c, login: login}}
	}
	for _, row := range []struct{ name, login, want string }{
		{"the way to log in counts more than a variable", "run x login", "X has no credential: run x login"},
		{"without one the first way is named", "", "X has no credential: export KEY=…"},
	} {
		a := agentPlan{preset: Preset{Title: "X", credentials: ways(row.login)}, claimed: map[string]bool{}}
		if err := a.brokered(); err != nil || len(a.missing) != 1 || a.missing[0] != row.want {
			t.Errorf("%s: %q, %v, want %q", row.name, a.missing, err, row.want)
		}
	}
	for value, ready := range map[string]bool{"KEY=x": true, "KEY=": false, "KEYS=x": false} {
		a := agentPlan{host: Host{Env: []string{value}}}
		if why := a.ready(&ways("")[0]); (why == "") != ready {
			t.Errorf("%s: %q, ready should be %v", value, why, ready)
		}
	}
}
