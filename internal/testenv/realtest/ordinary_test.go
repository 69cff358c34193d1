package realtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// ordinary is a session of legitimate work: nothing in it deserves attention, so
// any alert above low is a false positive.
type ordinary struct {
	name    string
	needs   []testenv.Feature
	prepare func(p *fixture) []string // makes the input, outside, and returns flags; nil for nothing
	script  string
}

// loudest is the highest severity that legitimate work may raise.
const loudest = "low"

var severities = []string{"info", "low", "medium", "high", "critical"}

// TestOrdinarySessionsRaiseNoAlert runs the sessions of legitimate work. The
// bench parses the line that it logs for each, for its report.
func TestOrdinarySessionsRaiseNoAlert(t *testing.T) {
	root := t.TempDir()
	testenv.NoLeaks(t, root)
	for _, s := range ordinarySessions() {
		t.Run(s.name, func(t *testing.T) {
			p := newFixture(t, root, s.needs...)
			var flags []string
			if s.prepare != nil {
				flags = s.prepare(p)
			}
			p.inside(s.script, flags...)
			found := p.alerts()
			t.Log(counted(found))
			quiet(t, found)
		})
	}
}

// counted is a line with the number of alerts of each severity.
func counted(found []raised) string {
	count := map[string]int{}
	for _, a := range found {
		count[a.Severity]++
	}
	line := "alerts:"
	for _, severity := range severities {
		line += fmt.Sprintf(" %s=%d", severity, count[severity])
	}
	return line
}

// mostLow is the maximum number of alerts of the severity loudest per run.
const mostLow = 5

// quiet fails if an alert is above loudest, or a run has too many alerts.
func quiet(t *testing.T, found []raised) {
	t.Helper()
	low := map[string][]string{}
	for _, a := range found {
		switch level := slices.Index(severities, a.Severity); {
		case level > slices.Index(severities, loudest):
			t.Errorf("honest work raised %s", a.text)
		case a.Severity == loudest:
			low[a.Session] = append(low[a.Session], a.text)
		}
	}
	for _, texts := range low {
		if len(texts) > mostLow {
			t.Errorf("honest work raised %d alerts that are %s:\n%s", len(texts), loudest, strings.Join(texts, "\n"))
		}
	}
}

// TestDishonestSessionRaisesAlert makes sure that the sessions above raise no
// alerts because there is no reason, and not because detection does not work.
func TestDishonestSessionRaisesAlert(t *testing.T) {
	root := t.TempDir()
	testenv.NoLeaks(t, root)
	t.Run("credentials", func(t *testing.T) {
		p := newFixture(t, root)
		p.inside(`cat ~/.aws/credentials ~/.git-credentials >/dev/null 2>&1 || true`)
		for _, a := range p.alerts() {
			if slices.Index(severities, a.Severity) > slices.Index(severities, loudest) {
				return
			}
		}
		t.Error("reading credentials raised nothing")
	})
}

// raised is an alert in the output of `holdfast alerts --json`.
type raised struct {
	Severity, Session string
	text              string
}

// alerts are the alerts of all runs in this place.
func (p *fixture) alerts() []raised {
	p.t.Helper()
	var all []raised
	out := p.execute(testenv.Binary(p.t), "alerts", "--all", "--json")
	for line := range strings.Lines(out) {
		a := raised{text: strings.TrimSpace(line)}
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			p.t.Fatalf("reading an alert: %v\n%s", err, line)
		}
		if !slices.Contains(severities, a.Severity) {
			p.t.Fatalf("an alert has the severity %q: %s", a.Severity, line)
		}
		all = append(all, a)
	}
	return all
}

// served answers every request on a loopback port of the host that the run may
// reach.
func served(p *fixture) []string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "answer to %s\n", r.URL.Path)
	}))
	p.t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	p.write(map[string]string{"port": port})
	return []string{"--host-port", port}
}

// files prepares a session that needs only files.
func files(all map[string]string) func(*fixture) []string {
	return func(p *fixture) []string {
		p.write(all)
		return nil
	}
}

// committed prepares a repository with some history.
func committed(p *fixture) []string {
	p.bare(`
		git init -q -b main r
		cd r
		git config user.name somebody
		git config user.email somebody@example.org
		for i in 1 2 3 4 5; do echo "line $i" >> text; git add text; git commit -qm "step $i"; done`)
	return nil
}

// cachedPackage fills npm's cache from a registry on loopback that is then
// stopped.
func cachedPackage(p *fixture) []string {
	registry := httptest.NewServer(onePackage(p.t))
	defer registry.Close()
	p.write(map[string]string{
		"package.json": `{"name":"app","version":"1.0.0","scripts":{"test":"leftover && node --test","build":"node build.js"},"dependencies":{"leftover":"1.0.0"}}`,
		"app.test.js":  "require('node:test')('package', () => require('assert').equal(require('leftover'), 'from the package'));\n",
		"build.js":     "const fs = require('fs'); fs.mkdirSync('dist', {recursive: true}); fs.writeFileSync('dist/app.js', 'built');\n",
	})
	p.bare(`npm install --silent --no-audit --no-fund --registry ` + registry.URL + `; rm -rf node_modules`)
	return nil
}

// inModuleCache returns the directory of a module that this repository depends
// on. It works without a network because the repository was built.
func inModuleCache(t testing.TB, module string) string {
	t.Helper()
	out, err := testenvGo(t, "list", "-m", "-f", "{{.Dir}}", module)
	dir := strings.TrimSpace(out)
	if err == nil && dir == "" {
		err = os.ErrNotExist
	}
	if err != nil {
		t.Fatalf("finding %s in the module cache: %v", module, err)
	}
	return dir
}
