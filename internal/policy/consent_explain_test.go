package policy

import (
	"strings"
	"testing"
)

func TestExplainConsent(t *testing.T) {
	w := newWorld(t)
	w.tool("usr/bin/git")
	w.tool("usr/bin/make")
	const user = "version: 1\nextends: PROFILE\nnetwork: {allow: [{host: a.example.org, methods: [GET], paths: [/x]}]}\ndeny: [{when: 'host == \"evil.example.org\"', reason: it is evil}]\n"
	outside := w.write("outside/x", "", 0o644)
	for _, row := range []struct{ profile, query, of, want, not string }{
		{"local", "b.example.org", "connect", "a human is asked while one is there to answer (profile local:", ""},
		{"production", "b.example.org", "connect", "a human is asked first (profile production:", ""},
		{"production", "a.example.org", "connect", "a.example.org:443", "asked"},
		{"production", "evil.example.org", "connect", "it is evil", ""},
		{"local", outside, "write", "a human is asked while one is there", ""},
		{"production", outside, "write", "not in view", "asked"},
		{"production", "git", "execute", "consent rules depend on its arguments: git-push (profile production:", "publish"},
		{"production", "make", "execute", "in view and executable", "consent"},
		{"local", "git", "execute", "in view and executable", "consent"},
		{"ci", "git", "execute", "git-push (profile ci:", "install"},
	} {
		w.write(userFile, strings.ReplaceAll(user, "PROFILE", row.profile), 0o644)
		o := w.options()
		p := w.plan(o)
		a, err := Explain(p, o.Host, nil, row.query)
		if err != nil {
			t.Fatal(err)
		}
		v := map[string]*Verdict{"connect": a.Connect, "write": a.Write, "execute": a.Execute}[row.of]
		if v == nil || !strings.Contains(v.Why, row.want) || row.not != "" && strings.Contains(v.Why, row.not) {
			t.Errorf("%s, %s: %+v", row.profile, row.query, v)
		}
		if row.want == "it is evil" && v.Allowed {
			t.Errorf("%s is allowed", row.query)
		}
	}
}
