package redact

import "strings"

// shape is a token that is known by its beginning.
type shape struct {
	prefix string
	anchor int // where in the prefix the two bytes stand that it is looked for by: those that are rare elsewhere
	kind   string
	set    *charset
	least  int               // bytes after the prefix, at least
	most   int               // at most, 0 for any: more, and it is something else
	check  func(string) bool // of the whole token; nil for none
}

// charset says which bytes belong to a token.
type charset [256]bool

func chars(ranges ...string) *charset {
	set := &charset{}
	for _, r := range ranges {
		for c := int(r[0]); c <= int(r[len(r)-1]); c++ {
			set[c] = true
		}
	}
	return set
}

var (
	alnum     = chars("az", "AZ", "09")
	word      = chars("az", "AZ", "09", "_", "-")
	dotted    = chars("az", "AZ", "09", "_", "-", ".")
	capitals  = chars("AZ", "09")
	hexDigits = chars("af", "AF", "09")
	webPath   = chars("az", "AZ", "09", "_", "-", "/")
	base64ish = chars("az", "AZ", "09", "+", "/", "=", "_", "-")
)

// shapes are the tokens of services that are used much. Sources: what the
// services publish about their tokens for secret scanning.
var shapes = []shape{
	{prefix: "AKIA", anchor: 1, kind: "aws-key-id", set: capitals, least: 16, most: 16},
	{prefix: "ASIA", anchor: 1, kind: "aws-key-id", set: capitals, least: 16, most: 16},
	{prefix: "ghp_", anchor: 2, kind: "github-token", set: alnum, least: 30},
	{prefix: "gho_", anchor: 2, kind: "github-token", set: alnum, least: 30},
	{prefix: "ghu_", anchor: 2, kind: "github-token", set: alnum, least: 30},
	{prefix: "ghs_", anchor: 2, kind: "github-token", set: dotted, least: 30},
	{prefix: "ghr_", anchor: 2, kind: "github-token", set: alnum, least: 30},
	{prefix: "github_pat_", anchor: 5, kind: "github-token", set: word, least: 22},
	{prefix: "glpat-", anchor: 4, kind: "gitlab-token", set: dotted, least: 20},
	{prefix: "gldt-", anchor: 3, kind: "gitlab-token", set: dotted, least: 20},
	{prefix: "glrt-", anchor: 3, kind: "gitlab-token", set: dotted, least: 20},
	{prefix: "glcbt-", anchor: 4, kind: "gitlab-token", set: dotted, least: 20},
	{prefix: "glptt-", anchor: 4, kind: "gitlab-token", set: dotted, least: 20},
	{prefix: "glsoat-", anchor: 5, kind: "gitlab-token", set: dotted, least: 20},
	{prefix: "xoxa-", anchor: 0, kind: "slack-token", set: word, least: 16},
	{prefix: "xoxb-", anchor: 0, kind: "slack-token", set: word, least: 16},
	{prefix: "xoxe-", anchor: 0, kind: "slack-token", set: word, least: 16},
	{prefix: "xoxe.", anchor: 0, kind: "slack-token", set: dotted, least: 16},
	{prefix: "xoxp-", anchor: 0, kind: "slack-token", set: word, least: 16},
	{prefix: "xoxr-", anchor: 0, kind: "slack-token", set: word, least: 16},
	{prefix: "xoxs-", anchor: 0, kind: "slack-token", set: word, least: 16},
	{prefix: "xapp-", anchor: 0, kind: "slack-token", set: word, least: 24},
	{prefix: "hooks.slack.com/services/", anchor: 10, kind: "slack-webhook", set: webPath, least: 24},
	{prefix: "discord.com/api/webhooks/", anchor: 14, kind: "discord-webhook", set: webPath, least: 40},
	{prefix: "AIza", anchor: 1, kind: "google-key", set: word, least: 35},
	{prefix: "GOCSPX-", anchor: 4, kind: "google-secret", set: word, least: 20},
	{prefix: "ya29.", anchor: 1, kind: "google-token", set: dotted, least: 24},
	{prefix: "sk-ant-", anchor: 1, kind: "anthropic-key", set: word, least: 24},
	{prefix: "sk-proj-", anchor: 1, kind: "openai-key", set: word, least: 24},
	{prefix: "sk-svcacct-", anchor: 1, kind: "openai-key", set: word, least: 24},
	{prefix: "sk-admin-", anchor: 1, kind: "openai-key", set: word, least: 24},
	{prefix: "sk-or-v1-", anchor: 1, kind: "openrouter-key", set: hexDigits, least: 32},
	{prefix: "sk-", anchor: 1, kind: "openai-key", set: alnum, least: 32, check: hasDigit},
	{prefix: "sk_live_", anchor: 1, kind: "stripe-key", set: alnum, least: 16},
	{prefix: "sk_test_", anchor: 1, kind: "stripe-key", set: alnum, least: 16},
	{prefix: "rk_live_", anchor: 1, kind: "stripe-key", set: alnum, least: 16},
	{prefix: "rk_test_", anchor: 1, kind: "stripe-key", set: alnum, least: 16},
	{prefix: "whsec_", anchor: 0, kind: "stripe-key", set: base64ish, least: 24},
	{prefix: "npm_", anchor: 2, kind: "npm-token", set: alnum, least: 36},
	{prefix: "pypi-", anchor: 1, kind: "pypi-token", set: word, least: 60},
	{prefix: "rubygems_", anchor: 5, kind: "rubygems-key", set: hexDigits, least: 40},
	{prefix: "dckr_pat_", anchor: 7, kind: "docker-token", set: word, least: 24},
	{prefix: "hf_", anchor: 1, kind: "huggingface-token", set: alnum, least: 30},
	{prefix: "hvs.", anchor: 0, kind: "vault-token", set: word, least: 24},
	{prefix: "hvb.", anchor: 0, kind: "vault-token", set: word, least: 24},
	{prefix: "hvr.", anchor: 0, kind: "vault-token", set: word, least: 24},
	{prefix: "dop_v1_", anchor: 5, kind: "digitalocean-token", set: hexDigits, least: 64},
	{prefix: "doo_v1_", anchor: 5, kind: "digitalocean-token", set: hexDigits, least: 64},
	{prefix: "dor_v1_", anchor: 5, kind: "digitalocean-token", set: hexDigits, least: 64},
	{prefix: "SG.", anchor: 0, kind: "sendgrid-key", set: dotted, least: 60, check: func(s string) bool { return strings.Count(s, ".") == 2 }},
	{prefix: "shpat_", anchor: 4, kind: "shopify-token", set: hexDigits, least: 32},
	{prefix: "shpss_", anchor: 4, kind: "shopify-token", set: hexDigits, least: 32},
	{prefix: "gsk_", anchor: 2, kind: "groq-key", set: alnum, least: 40},
	{prefix: "xai-", anchor: 0, kind: "xai-key", set: alnum, least: 60},
	{prefix: "tskey-", anchor: 4, kind: "tailscale-key", set: word, least: 20},
	{prefix: "dapi", anchor: 1, kind: "databricks-token", set: hexDigits, least: 32},
	{prefix: "ATATT3", anchor: 3, kind: "atlassian-token", set: base64ish, least: 60},
	{prefix: "AGE-SECRET-KEY-1", anchor: 2, kind: "age-key", set: capitals, least: 58, most: 58},
	{prefix: "eyJ", anchor: 1, kind: "jwt", set: dotted, least: 24, check: isJWT},
}

// match returns where the token ends that begins at s[from:], 0 when there is
// none.
func (p *shape) match(s string, from int) int {
	if !strings.HasPrefix(s[from:], p.prefix) {
		return 0
	}
	// A word that merely ends in the prefix is something else. For tokens of
	// several words the signs between them count as well: each text is then looked
	// at once, however often the prefix stands in it.
	if from > 0 && (alnum[s[from-1]] || p.check != nil && p.set[s[from-1]]) && !escapeEnds(s, from) {
		return 0
	}
	end := from + len(p.prefix)
	for end < len(s) && p.set[s[end]] {
		end++
	}
	for end > from && s[end-1] == '.' { // the end of a sentence
		end--
	}
	n := end - from - len(p.prefix)
	if n < p.least || p.most > 0 && n > p.most || p.check != nil && !p.check(s[from:end]) {
		return 0
	}
	return end
}

// escapeEnds says whether an escape sequence such as \n or %3D ends before
// s[at:].
func escapeEnds(s string, at int) bool {
	if at >= 2 && s[at-2] == '\\' {
		return true
	}
	return at >= 3 && s[at-3] == '%' && strings.Trim(s[at-2:at], "0123456789abcdefABCDEF") == ""
}

// shapeAt returns the token that begins at s[from:].
func shapeAt(s string, from int) (*shape, int) {
	for i := range shapes {
		if end := shapes[i].match(s, from); end > 0 {
			return &shapes[i], end
		}
	}
	return nil, 0
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// isJWT says whether a text is a signed or encrypted token in compact form (RFC
// 7515, 7516): three or five parts, of which the first is a JSON object.
func isJWT(s string) bool {
	parts := strings.Count(s, ".") + 1
	first, rest, _ := strings.Cut(s, ".")
	second, _, _ := strings.Cut(rest, ".")
	return (parts == 3 || parts == 5) && len(first) >= 12 && (len(second) >= 8 || parts == 5)
}
