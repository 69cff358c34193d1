//go:build linux

package targets

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/prove/probe"
)

var srtSpec = spec{
	name: "srt", install: "tools/peers DIR srt (and: sudo apt-get install bubblewrap socat ripgrep), then: export PATH=DIR/bin:$PATH",
	version: []string{"--version"}, call: srtCall,
	refused: refusedByPrefix("Error: ", "Fatal error: ", "Refusing ", "bwrap: "),
}

// srtSettings is the settings file of @anthropic-ai/sandbox-runtime, as its
// README.md describes it.
type srtSettings struct {
	Network struct {
		AllowedDomains []string  `json:"allowedDomains"`
		DeniedDomains  []string  `json:"deniedDomains"`
		TLSTerminate   *struct{} `json:"tlsTerminate,omitempty"`
	} `json:"network"`
	Filesystem struct {
		DenyRead   []string `json:"denyRead"`
		AllowRead  []string `json:"allowRead"`
		AllowWrite []string `json:"allowWrite"`
		DenyWrite  []string `json:"denyWrite"`
	} `json:"filesystem"`
	Credentials *srtCredentials `json:"credentials,omitempty"`
}

type srtCredentials struct {
	EnvVars []srtVariable `json:"envVars"`
}

type srtVariable struct {
	Name        string   `json:"name"`
	Mode        string   `json:"mode"`
	InjectHosts []string `json:"injectHosts"`
}

// srtCall is the recipe "Workspace-only filesystem access" of the README: below
// the directories of homes only the workspace is readable, and no domain is
// allowed. The parent of the world is denied for the same reason: it contains the
// launcher's home.
func srtCall(p Peer, w *probe.World, c probe.Command, run invocation) (call, error) {
	o := c.Options
	if err := missingOption(o, "read write hide env terminal reach secrets"); err != nil {
		return call{}, err
	}
	var s srtSettings
	s.Network.AllowedDomains, s.Network.DeniedDomains = []string{}, []string{}
	s.Filesystem.DenyRead = append([]string{"/home", "/root", w.B}, expandPaths(w, o.Hide)...)
	s.Filesystem.AllowWrite = append([]string{w.W}, expandPaths(w, o.Write)...)
	s.Filesystem.AllowRead = append(append([]string{w.W}, expandPaths(w, o.Read)...), expandPaths(w, o.Write)...)
	s.Filesystem.DenyWrite = expandPaths(w, o.Read) // a path may be in the workspace
	for _, r := range o.Reach {
		domains, err := srtDomains(r)
		if err != nil {
			return call{}, err
		}
		s.Network.AllowedDomains = append(s.Network.AllowedDomains, domains...)
	}
	if len(o.Secrets) > 0 { // "Masking requires network.tlsTerminate" (README.md, credentials)
		s.Network.TLSTerminate, s.Credentials = &struct{}{}, &srtCredentials{}
	}
	for _, lent := range o.Secrets {
		s.Credentials.EnvVars = append(s.Credentials.EnvVars, srtVariable{lent.Env, "mask", []string{lent.Host}})
	}
	content, err := json.Marshal(s)
	if err != nil {
		return call{}, err
	}
	path := filepath.Join(w.B, "srt-"+run.name+".json")
	return call{argv: append([]string{p.Path, "--settings", path, "--"}, run.argv...), env: o.Env, files: map[string]string{path: string(content)}}, nil
}

// srtDomains are entries of allowedDomains: a name, or a bracketed address, with
// one port. It supports neither methods nor paths.
func srtDomains(r probe.Reach) ([]string, error) {
	if len(r.Methods)+len(r.Paths) > 0 || r.Inspect {
		return nil, fmt.Errorf("methods and paths of requests: %w", probe.ErrUnsupported)
	}
	host := r.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	var out []string
	for _, port := range r.Ports {
		out = append(out, fmt.Sprintf("%s:%d", host, port))
	}
	if len(out) == 0 {
		out = []string{host}
	}
	return out, nil
}
