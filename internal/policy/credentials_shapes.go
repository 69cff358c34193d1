package policy

import "strings"

// knownShapes say how the tokens of well-known services begin, because their
// programs refuse others before they send anything.
var knownShapes = []struct{ host, shape string }{
	{"github.com", "ghp_"},
	{"*.github.com", "ghp_"},
	{"ghcr.io", "ghp_"},
	{"api.anthropic.com", "sk-ant-api03-"},
	{"api.openai.com", "sk-"},
	{"gitlab.com", "glpat-"},
	{"huggingface.co", "hf_"},
	{"slack.com", "xoxb-"},
	{"api.digitalocean.com", "dop_v1_"},
	{"generativelanguage.googleapis.com", "AIza"},
	{"openrouter.ai", "sk-or-v1-"},
	{"api.stripe.com", "sk_test_"},
	{"*.amazonaws.com", "AKIA"},
}

// namedShapes are of services with many hosts, by what their credential is called.
var namedShapes = map[string]string{"npm": "npm_", "pypi": "pypi-"}

// knownShape is the shape for the first host that has one, or for the name of the
// credential; "" where none has.
func knownShape(name string, hosts []HostPort) string {
	for _, h := range hosts {
		for _, k := range knownShapes {
			if covers(k.host, h.Host) || strings.HasPrefix(h.Host, "gitlab.") && k.shape == "glpat-" {
				return k.shape
			}
		}
	}
	return namedShapes[name]
}
