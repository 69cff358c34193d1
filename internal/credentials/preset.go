package credentials

import (
	"slices"
	"strings"
)

// preset is how the programs of a service expect its token.
type preset struct {
	host           string // or the name of a grant, for what has many hosts
	header, format string
	env            []string
	shape          string
	always         bool
}

const (
	authorization = "Authorization"
	bearer        = "Bearer {}"
)

// presets are of services that many use. What a user specifies takes precedence.
var presets = []preset{
	// gh writes "token" where others write "Bearer": the header is set whatever it contains.
	{"api.github.com", authorization, bearer, []string{"GH_TOKEN", "GITHUB_TOKEN"}, "ghp_", true},
	{"github.com", authorization, bearer, []string{"GH_TOKEN", "GITHUB_TOKEN"}, "ghp_", false},
	{"npm", authorization, bearer, []string{"NPM_TOKEN", "NODE_AUTH_TOKEN"}, "npm_", true},
	{"api.anthropic.com", "X-Api-Key", "{}", []string{"ANTHROPIC_API_KEY"}, "sk-ant-api03-", false},
	{"api.openai.com", authorization, bearer, []string{"OPENAI_API_KEY"}, "sk-", false},
	{"huggingface.co", authorization, bearer, []string{"HF_TOKEN"}, "hf_", false},
	{"gitlab.com", authorization, bearer, []string{"GITLAB_TOKEN"}, "glpat-", false},
}

// Complete fills in what a user left out of a grant, from what is known about
// its first host, or about its name.
func (g *Grant) Complete() {
	if g.TTL == "" {
		g.TTL = defaultTTL.String()
	}
	if g.Sign != "" || len(g.Hosts) == 0 {
		return
	}
	host, _, _ := strings.Cut(g.Hosts[0], ":")
	known := preset{header: authorization, format: bearer}
	if i := slices.IndexFunc(presets, func(p preset) bool { return p.host == host || p.host == g.Name }); i >= 0 {
		known = presets[i]
	}
	if g.Header == "" {
		g.Header, g.Format = known.header, known.format
	}
	if len(g.Env) == 0 && !g.Always {
		g.Env, g.Always = slices.Clone(known.env), known.always || len(known.env) == 0
	}
	if g.Shape == "" {
		g.Shape = known.shape
	}
}
