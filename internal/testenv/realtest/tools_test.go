package realtest

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// javaProject are the sources that maven and gradle build.
var javaProject = map[string]string{
	"src/main/java/App.java":     "public class App {\n\tpublic static int sum() { return 42; }\n\tpublic static void main(String[] a) { System.out.println(\"sum \" + sum()); }\n}\n",
	"src/test/java/AppTest.java": "import static org.junit.Assert.*;\n\npublic class AppTest {\n\t@org.junit.Test public void sums() { assertEquals(42, App.sum()); }\n}\n",
}

// maven fills the home's repository from Debian's, in the place of Maven Central, and
// builds inside from what was downloaded.
func maven(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Maven)
	p.write(javaProject)
	p.write(map[string]string{
		"../central.xml": "<settings><mirrors><mirror><id>central</id><url>file:///usr/share/maven-repo</url><mirrorOf>*</mirrorOf></mirror></mirrors></settings>\n",
		"pom.xml": `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>org.example</groupId><artifactId>app</artifactId><version>1.0</version>
<properties><maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version><scope>test</scope></dependency></dependencies>
<build><plugins>
<plugin><artifactId>maven-resources-plugin</artifactId><version>2.6</version></plugin>
<plugin><artifactId>maven-compiler-plugin</artifactId><version>3.1</version></plugin>
<plugin><artifactId>maven-surefire-plugin</artifactId><version>2.12.4</version></plugin>
<plugin><artifactId>maven-jar-plugin</artifactId><version>2.4</version></plugin>
</plugins></build></project>
`})
	p.bare(`MAVEN_OPTS=-Duser.home=$HOME mvn -q -B -s ../central.xml package; rm -rf target`)
	contains(t, p.inside(`mvn -q -B -o package; java -jar target/app-1.0.jar || java -cp target/app-1.0.jar App`), "sum 42")
}

// gradle leaves a daemon, which must end with the run.
func gradle(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Gradle)
	p.write(javaProject)
	p.write(map[string]string{"build.gradle": "apply plugin: 'java'\napply plugin: 'application'\nmainClassName = 'App'\n" +
		"repositories { maven { url 'file:///usr/share/maven-repo' } }\ndependencies { testCompile 'junit:junit:4.x' }\n"})
	out := p.inside(`gradle --offline -q build run 2>gradle.log || { cat gradle.log; exit 1; }; ps ax -o args | grep -c '[G]radleDaemon'`)
	contains(t, out, "sum 42", "\n1\n")
}

// pythonProjects run what the environments of poetry and pipenv have, which lie in the home.
func pythonProjects(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Python, testenv.PyProjects)
	p.write(map[string]string{
		"app.py": "import word\n\nprint('sum', word.sum)\n",
		"poetry/pyproject.toml": "[tool.poetry]\nname = \"app\"\nversion = \"0.1.0\"\ndescription = \"\"\nauthors = []\npackages = [{include = \"app.py\"}]\n" +
			"[tool.poetry.dependencies]\npython = \"^3.11\"\n[build-system]\nrequires = [\"poetry-core\"]\nbuild-backend = \"poetry.core.masonry.api\"\n",
		"poetry/app.py":  "import word\n\nprint('sum', word.sum)\n",
		"pipenv/Pipfile": "[packages]\n[requires]\npython_version = \"3.11\"\n",
		"pipenv/app.py":  "import word\n\nprint('sum', word.sum)\n",
	})
	const site = `import sysconfig; print(sysconfig.get_path("purelib"))`
	p.bare(`cd poetry; poetry lock -q; poetry install -q; echo 'sum = 42' >"$(poetry run python -c '` + site + `')/word.py"
		cd ../pipenv; pipenv --quiet --python /usr/bin/python3; pipenv lock --quiet; echo 'sum = 42' >"$(pipenv run python -c '` + site + `')/word.py"`)
	contains(t, p.inside(`cd poetry; poetry run python -B app.py; poetry build -q; ls dist`), "sum 42", "app-0.1.0.tar.gz")
	contains(t, p.inside(`cd pipenv; pipenv run python -B app.py`), "sum 42")
}

// rubyTools use a gem that was installed for the user, and a version of rbenv's.
func rubyTools(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Ruby)
	p.write(map[string]string{
		"../gem/leftover.gemspec":                "Gem::Specification.new { |s| s.name = 'leftover'; s.version = '1.0.0'; s.summary = s.authors = 'nobody'; s.files = ['lib/leftover.rb', 'exe/leftover']; s.bindir = 'exe'; s.executables = ['leftover'] }\n",
		"../gem/lib/leftover.rb":                 "Leftover = 'from the gem'\n",
		"../gem/exe/leftover":                    "#!/usr/bin/env ruby\nrequire 'leftover'\nputs Leftover\n",
		"Gemfile":                                "source 'https://rubygems.org'\ngem 'leftover'\n",
		"test.rb":                                "require 'minitest/autorun'\nrequire 'leftover'\nclass T < Minitest::Test\n  def test_word = assert_equal('from the gem', Leftover)\nend\n",
		"../home/.rbenv/versions/9.9.9/bin/ruby": "#!/bin/sh\necho ruby of rbenv\n",
		"../home/.rbenv/version":                 "9.9.9\n",
	})
	p.bare(`cd ../gem; gem build -q leftover.gemspec; gem install -q --user-install --local --no-document leftover-1.0.0.gem; cd ../ws; bundle lock --local; rbenv rehash`)
	p.env = append(p.env, "PATH="+filepath.Join(p.home, ".rbenv/shims")+":"+filepath.Join(p.home, ".local/share/gem/ruby/3.1.0/bin")+":/usr/bin:/bin")
	out := p.inside(`ruby; PATH=${PATH#*:}; bundle install --local; bundle exec leftover; ruby test.rb`)
	contains(t, out, "ruby of rbenv", "from the gem", "1 runs, 1 assertions, 0 failures")
}

// direnvTool: what the user allowed is in force, and what is inside allows nothing more.
func direnvTool(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Direnv)
	p.write(map[string]string{".envrc": "export WORD=allowed\n"})
	p.bare(`direnv allow . 2>/dev/null`)
	out := p.inside(`
		direnv exec . sh -c 'echo "word $WORD"'
		echo changed >>.envrc || echo kept
		mkdir other; echo 'export WORD=more' >other/.envrc
		direnv allow other || echo refused
		rm -r other`)
	contains(t, out, "word allowed", "kept", "refused")
}

// jsTools use what yarn and pnpm downloaded from a registry on loopback, and a browser
// of Playwright's.
func jsTools(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Node, testenv.JSTools, testenv.Chromium)
	registry := httptest.NewServer(onePackage(t))
	global := filepath.Join(p.home, ".npm-global")
	p.env = append(p.env, "PATH="+global+"/bin:/usr/local/bin:/usr/bin:/bin")
	const manifest = `{"name":"app","version":"1.0.0","scripts":{"test":"leftover"},"dependencies":{"leftover":"1.0.0"}}`
	p.write(map[string]string{
		"yarn/.yarnrc.yml":  "npmRegistryServer: " + registry.URL + "\nunsafeHttpWhitelist: [127.0.0.1]\nnpmMinimalAgeGate: 0\nenableTelemetry: false\n",
		"yarn/package.json": manifest, "yarn/yarn.lock": "", "pnpm/package.json": manifest, "browser/page.js": `
const { chromium } = require('playwright-core');
(async () => {
  if (process.argv[2]) return console.log(chromium.executablePath());
  const browser = await chromium.launch({ channel: 'chromium' });
  const page = await browser.newPage();
  await page.setContent('<p>sum <b>42</b></p>');
  console.log(await page.textContent('p'), (await page.screenshot()).length > 1000);
  await browser.close();
})();
`})
	p.bare(`
		mkdir -p ~/.npm-global/bin ~/.npm-global/lib/node_modules browser/node_modules
		cp -r "$1"/@yarnpkg "$1"/pnpm ~/.npm-global/lib/node_modules
		cp -r "$1"/playwright-core browser/node_modules
		ln -s ../lib/node_modules/@yarnpkg/cli-dist/bin/yarn.js ~/.npm-global/bin/yarn
		ln -s ../lib/node_modules/pnpm/bin/pnpm.cjs ~/.npm-global/bin/pnpm
		(cd yarn; yarn install; rm -rf .yarn .pnp.*)
		(cd pnpm; pnpm install --registry `+registry.URL+`; rm -rf node_modules)
		browser=$(node browser/page.js where)
		mkdir -p "$(dirname "$browser")"
		ln -s /usr/bin/chromium "$browser"`, "sh", filepath.Join(testenv.JSToolsDir, "node_modules"))
	registry.Close()
	contains(t, p.inside(`cd yarn; yarn install --immutable; yarn test`), "the program of the package")
	contains(t, p.inside(`cd pnpm; pnpm install --offline --frozen-lockfile; pnpm test; rm -r node_modules; pnpm install --offline`), "the program of the package")
	// The files of an install outside are links to those of the store, unless it copies.
	p.bare(`cd pnpm; rm -rf node_modules; pnpm install --offline`)
	contains(t, p.inside(`cd pnpm; pnpm test; echo x >>node_modules/leftover/index.js || echo kept`), "the program of the package", "kept")
	p.bare(`cd pnpm; rm -rf node_modules; pnpm install --offline --config.package-import-method=copy`)
	contains(t, p.inside(`cd pnpm; pnpm install --offline; pnpm test; rm -r node_modules`), "the program of the package")
	contains(t, p.inside(`cd browser; node page.js`), "sum 42 true")
}

// versionManagers start a program by each manager's shim.
func versionManagers(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Bash)
	p.write(map[string]string{
		"../home/.nvm/versions/node/v20.0.0/bin/of-nvm": "#!/bin/sh\necho of nvm\n",
		// pyenv and asdf: a script that starts the manager, which reads what version is meant.
		"../home/.pyenv/shims/of-pyenv":               "#!/usr/bin/env bash\nexport PYENV_ROOT=\"$HOME/.pyenv\"\nexec \"$PYENV_ROOT/libexec/pyenv\" exec \"${0##*/}\" \"$@\"\n",
		"../home/.pyenv/libexec/pyenv":                "#!/usr/bin/env bash\nexec \"$PYENV_ROOT/versions/$(cat \"$PYENV_ROOT/version\")/bin/$2\"\n",
		"../home/.pyenv/version":                      "3.11.2\n",
		"../home/.pyenv/versions/3.11.2/bin/of-pyenv": "#!/bin/sh\necho of pyenv\n",
		"../home/.asdf/shims/of-asdf":                 "#!/usr/bin/env bash\n# asdf-plugin: tool 1.0\nexec \"$HOME/.asdf/bin/asdf\" exec \"of-asdf\" \"$@\"\n",
		"../home/.asdf/bin/asdf":                      "#!/usr/bin/env bash\nread -r tool version <\"$HOME/.tool-versions\"\nexec \"$HOME/.asdf/installs/$tool/$version/bin/$2\"\n",
		"../home/.tool-versions":                      "tool 1.0\n",
		"../home/.asdf/installs/tool/1.0/bin/of-asdf": "#!/bin/sh\necho of asdf\n",
		// volta and rustup: one program under many names.
		"../home/.volta/bin/volta-shim":                       "#!/bin/sh\nread -r version <~/.volta/tools/user/platform.json\nexec ~/.volta/tools/image/node/$version/bin/${0##*/}\n",
		"../home/.volta/tools/user/platform.json":             "20.0.0\n",
		"../home/.volta/tools/image/node/20.0.0/bin/of-volta": "#!/bin/sh\necho of volta\n",
		"../home/.cargo/bin/rustup":                           "#!/bin/sh\nread -r chain <~/.rustup/settings.toml\nexec ~/.rustup/toolchains/$chain/bin/${0##*/}\n",
		"../home/.rustup/settings.toml":                       "stable\n",
		"../home/.rustup/toolchains/stable/bin/of-rustup":     "#!/bin/sh\necho of rustup\n",
		"../home/.dotnet/dotnet":                              "#!/bin/sh\necho of dotnet\n",
		"../home/.local/share/uv/tools/ruff/bin/of-uv":        "#!/bin/sh\necho of uv\n",
		"../home/.local/share/pypoetry/venv/bin/of-poetry":    "#!/bin/sh\necho of poetry\n",
	})
	p.bare(`cd; ln -s volta-shim .volta/bin/of-volta; ln -s rustup .cargo/bin/of-rustup; mkdir .local/bin
		ln -s ../share/uv/tools/ruff/bin/of-uv ../share/pypoetry/venv/bin/of-poetry .local/bin`)
	var path []string
	for _, dir := range []string{".nvm/versions/node/v20.0.0/bin", ".pyenv/shims", ".asdf/shims", ".volta/bin", ".cargo/bin", ".dotnet", ".local/bin"} {
		path = append(path, filepath.Join(p.home, dir))
	}
	p.env = append(p.env, "PATH="+strings.Join(path, ":")+":/usr/bin:/bin")
	contains(t, p.inside(`of-nvm; of-pyenv; of-asdf; of-volta; of-rustup; dotnet; of-uv; of-poetry`),
		"of nvm", "of pyenv", "of asdf", "of volta", "of rustup", "of dotnet", "of uv", "of poetry")
}

// toolSecrets: no file in which a tool keeps a credential is in view, and none in which
// one keeps what the host obeys is writable, whatever the tool has shown.
func toolSecrets(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root)
	files := []string{
		".m2/settings.xml", ".gradle/gradle.properties", ".cargo/credentials.toml", ".cargo/config.toml", ".npmrc", ".yarnrc.yml", ".config/pip/pip.conf",
		".config/pypoetry/auth.toml", ".local/share/uv/credentials/credentials.toml", ".nuget/NuGet/NuGet.Config", ".dotnet/corefx/cryptography/key.pfx",
		".bundle/config", ".gem/credentials", ".local/share/gem/credentials", ".nvm/versions/node/v20.0.0/etc/npmrc", ".pyenv/versions/3.11.2/pip.conf", ".config/direnv/direnvrc",
	}
	for _, name := range files {
		p.write(map[string]string{"../home/" + name: "secret-of " + name + "\n"})
	}
	p.write(map[string]string{"../home/.dotnet/dotnet": "#!/bin/sh\n"})
	p.env = append(p.env, "PATH="+filepath.Join(p.home, ".dotnet")+":/usr/bin:/bin")
	shown := []string{
		".m2/repository", ".m2/wrapper", ".gradle/caches", ".cargo/bin", ".cargo/registry", ".npm/_cacache", ".local/share/yarn/berry/cache", ".nuget/packages", ".dotnet/sdk",
		".bundle/cache", ".gem/ruby", ".local/share/gem/ruby", ".local/share/uv/python", ".cache/pypoetry", ".local/share/direnv/allow", ".cache/ms-playwright", ".local/share/pnpm",
	}
	for _, name := range shown {
		p.write(map[string]string{"../home/" + name + "/shown": "shown\n"})
	}
	out := p.inside(`cd; grep -rs secret-of . || true; cat ` + strings.Join(shown, "/shown ") + `/shown | wc -l
		for f in ` + strings.Join(shown, " ") + `; do echo changed >>$f/shown || true; done`)
	if n := strings.Count(out, "secret-of"); n > 0 || !strings.Contains(out, "17\n") {
		t.Errorf("%d secrets are in view, or not all that tools need:\n%s", n, out)
	}
	for _, name := range shown {
		if text, err := os.ReadFile(filepath.Join(p.home, name, "shown")); err != nil || string(text) != "shown\n" {
			t.Errorf("%s of the host is %q, %v", name, text, err)
		}
	}
}
