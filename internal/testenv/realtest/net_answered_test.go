package realtest

import (
	"regexp"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/testenv"
)

// answered is the longest that a program may take to give up what is refused. Each takes
// less than two seconds on a machine that is not busy; with a name that did not exist npm
// took 70, yarn 12 and pip 8.
const answered = 20 * time.Second

// refusals are programs that go to a host that no rule allows, and what they print.
var refusals = []struct {
	name   string
	needs  []testenv.Feature
	files  map[string]string
	script string
	prints string // regular expression for what the program itself prints; {HOST} is what was refused, {FLAG} what would allow it
	host   string // with port
	flag   string
	shows  []string // flags that show the program
}{
	{name: "npm view", needs: []testenv.Feature{testenv.NPM}, script: "npm view left-pad", prints: "npm error .*{HOST}: no rule allows it; to allow it: {FLAG}", host: "registry.npmjs.org:443", flag: "registry.npmjs.org"},
	{name: "npm install", needs: []testenv.Feature{testenv.NPM}, script: "npm install left-pad", prints: "npm error .*{HOST}: no rule allows it; to allow it: {FLAG}", host: "registry.npmjs.org:443", flag: "registry.npmjs.org"},
	{name: "pnpm", needs: []testenv.Feature{testenv.Node, testenv.JSTools}, script: "node " + testenv.JSToolsDir + "/node_modules/pnpm/bin/pnpm.cjs add left-pad", prints: "ERR_PNPM_FETCH_403.* {HOST}: no rule allows it; to allow it: {FLAG}", host: "registry.npmjs.org:443", flag: "registry.npmjs.org", shows: []string{"--ro", testenv.JSToolsDir}},
	{
		name: "yarn", needs: []testenv.Feature{testenv.Node, testenv.JSTools}, script: "node " + testenv.JSToolsDir + "/node_modules/@yarnpkg/cli-dist/bin/yarn.js add left-pad",
		files:  map[string]string{"package.json": `{"name": "m"}`, "yarn.lock": ""},
		prints: "Response Code: 403 .*{HOST}: no rule allows it; to allow it: {FLAG}", host: "registry.yarnpkg.com:443", flag: "registry.yarnpkg.com", shows: []string{"--ro", testenv.JSToolsDir},
	},
	{name: "pip", needs: []testenv.Feature{testenv.Pip}, script: "python3 -m pip --disable-pip-version-check download left-pad", prints: "WARNING: .*{HOST}: no rule allows it; to allow it: {FLAG}", host: "pypi.org:443", flag: "pypi.org"},
	{name: "pip with an address", needs: []testenv.Feature{testenv.Pip}, script: "python3 -m pip --disable-pip-version-check download https://files.pythonhosted.org/x-1.tar.gz", prints: "ERROR: .*{HOST}: no rule allows it; to allow it: {FLAG}", host: "files.pythonhosted.org:443", flag: "files.pythonhosted.org"},
	{name: "git", needs: []testenv.Feature{testenv.Git}, script: "git clone https://github.com/a/b", prints: "remote: .*{HOST}: no rule allows it; to allow it: {FLAG}", host: "github.com:443", flag: "github.com"},
	{name: "git with ssh", needs: []testenv.Feature{testenv.Git, testenv.OpenSSH}, script: "git clone git@github.com:a/b", prints: "disconnect from .*{HOST}: no rule allows it; to allow it: {FLAG}", host: "github.com:22", flag: "github.com:22"},
	{name: "curl", needs: []testenv.Feature{testenv.Curl}, script: "curl -sS https://a.example.org/; exit 1", prints: "{HOST}: no rule allows it; to allow it: {FLAG}", host: "a.example.org:443", flag: "a.example.org"},
	{name: "wget", needs: []testenv.Feature{testenv.Wget}, script: "wget https://a.example.org/", prints: "ERROR 403: .*{HOST}: no rule allows it; to allow it: {FLAG}", host: "a.example.org:443", flag: "a.example.org"},
	{
		name: "go", needs: []testenv.Feature{testenv.Go}, script: "GOPROXY=https://proxy.golang.org,direct go mod download",
		files:  map[string]string{"go.mod": "module m\n\ngo 1.21\n\nrequire rsc.io/quote v1.5.2\n"},
		prints: "server response: .*{HOST}: no rule allows it; to allow it: {FLAG}", host: "proxy.golang.org:443", flag: "proxy.golang.org",
	},
	{
		name: "cargo", needs: []testenv.Feature{testenv.Cargo}, script: "cargo fetch",
		files:  map[string]string{"Cargo.toml": "[package]\nname = \"m\"\nversion = \"0.1.0\"\n[dependencies]\nitoa = \"1\"\n", "src/main.rs": "fn main() {}\n"},
		prints: "(?s)body:.*{HOST}: no rule allows it; to allow it: {FLAG}", host: "index.crates.io:443", flag: "index.crates.io",
	},
	{name: "node", needs: []testenv.Feature{testenv.Node}, script: `node -e 'fetch("https://a.example.org/").then(async a => { console.error(a.status, await a.text()); process.exit(1) })'`, prints: "403 .*{HOST}: no rule allows it; to allow it: {FLAG}", host: "a.example.org:443", flag: "a.example.org"},
	{name: "python", needs: []testenv.Feature{testenv.Python}, script: `python3 -c 'import urllib.request as r; r.urlopen("https://a.example.org/")'`, prints: "HTTPError: .*{HOST}: no rule allows it; to allow it: {FLAG}", host: "a.example.org:443", flag: "a.example.org"},
	{
		name: "apt", needs: []testenv.Feature{testenv.Apt}, script: "mkdir -p apt/lists/partial apt/archives/partial; apt-get -o Dir::State=$PWD/apt -o Dir::Cache=$PWD/apt -o Dir::Etc::sourcelist=$PWD/sources -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User= update",
		files:  map[string]string{"sources": "deb http://deb.example.org/debian stable main\n"},
		prints: "403 +.*{HOST}: no rule allows it; to allow it: {FLAG}", host: "deb.example.org:80", flag: "deb.example.org",
	},
	{name: "a database", needs: []testenv.Feature{testenv.Python}, script: `python3 -c 'import socket; s = socket.create_connection(("db.example.org", 5432), 60); s.recv(1)'`, prints: "ConnectionResetError"},
	{name: "UDP", needs: []testenv.Feature{testenv.Python}, script: `python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(60); s.connect(("8.8.8.8", 443)); s.send(b"x"); s.recv(1)'`, prints: "ConnectionRefusedError"},
}

// TestRefusalsAreAnswered has real programs go to a host that no rule allows, where no
// rule allows anything. Each gives up at once, and itself says why and what to type.
func TestRefusalsAreAnswered(t *testing.T) {
	testenv.Binary(t)
	root := t.TempDir()
	testenv.NoLeaks(t, root)
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			p := newFixture(t, root, r.needs...)
			p.write(r.files)
			begun := time.Now()
			out, end := p.both(testenv.Binary(t), append(append([]string{"run"}, r.shows...), "--", "sh", "-uc", "("+r.script+") 2>&1 && echo it succeeded; true")...)
			took := time.Since(begun)
			flag := regexp.QuoteMeta("--allow " + r.flag)
			prints := regexp.MustCompile(`\{(HOST|FLAG)\}`).ReplaceAllStringFunc(r.prints, func(s string) string {
				return map[string]string{"{HOST}": "holdfast refused " + regexp.QuoteMeta(r.host), "{FLAG}": flag}[s]
			})
			if !regexp.MustCompile(prints).MatchString(out) || regexp.MustCompile("(?m)^it succeeded$").MatchString(out) {
				t.Errorf("it prints %q, which does not match %q", out, prints)
			}
			if r.flag != "" && !regexp.MustCompile(flag+"\n").MatchString(end) {
				t.Errorf("at the end is no %s: %s", flag, end)
			}
			if took > answered {
				t.Errorf("it took %v", took)
			}
			t.Logf("%v", took.Round(time.Millisecond))
		})
	}
}
