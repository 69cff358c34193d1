//go:build linux

package inside

var script = map[string]string{"run": "#!/bin/sh\ntouch {X}\n"}

func module(more map[string]string) map[string]string {
	return merged(map[string]string{"go.mod": "module probe.test/m\n\ngo 1.21\n", "m.go": "package main\n\n//go:generate touch {X}\nfunc main() {}\n",
		"run": "#!/bin/sh\ntouch {X}\nexit 1\n"}, more)
}

func golang(name string, words ...string) Trick {
	return Trick{Name: name, Argv: append([]string{"go"}, words...), Files: module(nil), Env: []string{"GOFLAGS=-mod=mod", "GOPROXY=off",
		"GOTOOLCHAIN=local", "GOCACHE={D}/cache", "GOPATH={D}/path", "GOTELEMETRY=off"}}
}

// buildSets are compilers, build tools and package managers.
func buildSets() map[string][]Trick {
	return map[string][]Trick{
		"go":       goTricks(),
		"cargo":    cargoTricks(),
		"gcc":      gccTricks(),
		"make":     makeTricks(),
		"cmake":    cmakeTricks(),
		"mvn":      mvnTricks(),
		"gradle":   gradleTricks(),
		"dotnet":   dotnetTricks(),
		"npm":      npmTricks(),
		"npx-node": npxNodeTricks(),
		"eslint":   eslintTricks(),
		"prettier": prettierTricks(),
		"jest":     jestTricks(),
		"tsc":      tscTricks(),
		"webpack":  webpackTricks(),
	}
}

func goTricks() []Trick {
	return []Trick{
		golang("generate", "generate", "."),
		golang("toolexec", "build", "-toolexec", "{D}/run", "."),
		golang("vettool", "vet", "-vettool={D}/run", "."),
		golang("flags", "build", ".").env("GOFLAGS=-toolexec={D}/run"),
		golang("env-file", "build", ".").env("GOENV={D}/e", "GOFLAGS=").with(module(map[string]string{"e": "GOFLAGS=-toolexec={D}/run\n"})),
		golang("env-write", "env", "-w", "GOFLAGS=-x").env("GOENV={X}"),
		golang("directory", "-C", "sub", "generate", ".").with(module(map[string]string{"sub/m.go": "package sub\n\n//go:generate touch {X}\n"})),
		golang("overlay", "generate", "-run", "touch", "./...").with(module(nil)),
		golang("packages-driver", "list", "-e", "-export", "-toolexec={D}/run", "."),
	}
}

func cargoTricks() []Trick {
	return []Trick{
		sh("config-wrapper", "cargo build --offline -q --config 'build.rustc-wrapper=\"./run\"'").with(crate),
		sh("config-alias", "cargo --config 'alias.a=\"x\"' --config 'build.rustc=\"./run\"' build --offline -q").with(crate),
		sh("wrapper", "RUSTC_WRAPPER=./run cargo build --offline -q").with(crate),
		sh("rustc", "RUSTC=./run cargo build --offline -q").with(crate),
		sh("config-file", "cargo build --offline -q").with(crate).with(merged(crate, map[string]string{".cargo/config.toml": "[build]\nrustc = \"./run\"\n"})),
		sh("subcommand", "PATH=$PWD/bin:$PATH cargo probe").with(map[string]string{"bin/cargo-probe": "#!/bin/sh\ntouch {X}\n"}),
	}
}

func gccTricks() []Trick {
	return []Trick{
		sh("wrapper", "gcc -c -wrapper ./run a.c").with(source),
		sh("wrapper-words", "gcc -c -wrapper sh,-c,'touch {X}' a.c").with(source),
		sh("B", "gcc -B./b/ -c a.c").with(merged(source, map[string]string{"b/cc1": "#!/bin/sh\ntouch {X}\n"})),
		sh("specs", "gcc -specs=s -c a.c").with(merged(source, map[string]string{"s": "*cc1_options:\n%:getenv(HOME /x)\n\n.c:\n./run\n"})),
		sh("output", "gcc -c -o {X} a.c").with(source),
		sh("dependencies", "gcc -MMD -MF {X} -c a.c").with(source),
		sh("response", "gcc @f").with(merged(source, map[string]string{"f": "-c -wrapper ./run a.c\n"})),
		sh("response-read", "gcc @{S}").to(Prints),
		sh("include", "gcc -E -x c {S}").to(Prints),
		sh("include-option", "gcc -E -include {S} a.c").with(source).to(Prints),
		sh("exec-prefix", "GCC_EXEC_PREFIX=$PWD/b/ gcc -c a.c; COMPILER_PATH=$PWD/b gcc -c a.c").with(merged(source, map[string]string{"b/as": "#!/bin/sh\ntouch {X}\n", "b/cc1": "#!/bin/sh\ntouch {X}\n"})),
		sh("dump", "gcc -c -fdump-tree-all -dumpdir {X} a.c").with(source).making("{X}*"),
		sh("ld", "gcc -fuse-ld=bfd -B. a.c").with(merged(source, map[string]string{"ld.bfd": "#!/bin/sh\ntouch {X}\n"})),
		sh("ld-map", "gcc -Wl,-Map={X} a.c").with(source),
		sh("plugin", "gcc -shared -fPIC -o l.so l.c && gcc -fplugin=./l.so -c a.c").env("MAKE_IT={X}").before(library).with(source),
		sh("dependencies-output", "DEPENDENCIES_OUTPUT={X} gcc -c a.c").with(source),
		sh("as-listing", "gcc -c -Wa,-a={X} a.c").with(source),
	}
}

func makeTricks() []Trick {
	return []Trick{
		sh("eval", "make -s --eval 'all:;@touch {X}'"),
		sh("eval-shell", "make -s --eval 'a := $(shell touch {X})' --eval 'all:;@:'"),
		sh("shell", "make -s SHELL=$PWD/run -f m").with(merged(script, map[string]string{"m": "all:\n\t@echo a\n"})),
		sh("file", "make -sf m").with(map[string]string{"m": "all:\n\t@touch {X}\n"}),
		sh("just-print", "make -snf m").with(map[string]string{"m": "all:\n\t+@touch {X}\n"}),
		sh("question", "make -qf m").with(map[string]string{"m": "x != touch {X}\nall:\n"}),
		sh("dry-run-include", "make -nf m").with(map[string]string{"m": "include n\nn:\n\ttouch {X}\n\ttouch n\n"}),
		sh("flags", "make -sf /dev/null all").env("MAKEFLAGS=--eval=all:;@touch\\ {X}"),
		sh("files", "make -s all").env("MAKEFILES={D}/m").with(map[string]string{"m": "all:\n\t@touch {X}\n"}),
		sh("file-function", "make -sf m").with(map[string]string{"m": "$(file >{X},a)\nall:\n"}),
		sh("print", "make -pqf m >/dev/null").with(map[string]string{"m": "$(shell touch {X})\nall:\n"}),
		sh("guile-load", "make -sC d").with(map[string]string{"d/GNUmakefile": "all:\n\t@touch {X}\n"}),
		sh("variable", "make -sf m 'A=$(shell touch {X})'").with(map[string]string{"m": "all:\n\t@echo $(A)\n"}),
		sh("read", "make -sf m").with(map[string]string{"m": "$(info $(file <{S}))\nall:\n"}).to(Prints),
		sh("old", "make -s -f - <<'E'\nall: ; @touch {X}\nE"),
	}
}

func cmakeTricks() []Trick {
	return []Trick{
		sh("script", "cmake -P f").with(map[string]string{"f": "execute_process(COMMAND touch {X})\n"}),
		sh("write", "cmake -P f").with(map[string]string{"f": "file(WRITE {X} a)\n"}),
		sh("tool", "cmake -E touch {X}"),
		sh("configure", "cmake -S . -B b").with(map[string]string{"CMakeLists.txt": "project(a NONE)\nexecute_process(COMMAND touch {X})\n"}),
		sh("tool-env", "cmake -E env touch {X}"),
		sh("read", "cmake -E cat {S}").to(Prints),
	}
}

func mvnTricks() []Trick {
	return []Trick{
		sh("java-options", "mvn -v").env("JAVA_HOME={D}/j").with(map[string]string{"j/bin/java": "#!/bin/sh\ntouch {X}\n"}),
		sh("mavenrc", "mvn -v").with(map[string]string{".mavenrc": "touch {X}\n"}),
	}
}

func gradleTricks() []Trick {
	return []Trick{
		sh("init", "gradle --offline -I i.gradle help").with(map[string]string{"i.gradle": "new File('{X}').createNewFile()\n"}),
		sh("java", "JAVA_HOME=$PWD/j gradle -v").with(map[string]string{"j/bin/java": "#!/bin/sh\ntouch {X}\n"}),
	}
}

func dotnetTricks() []Trick {
	return []Trick{
		sh("startup-hook", "dotnet msbuild f.proj").with(map[string]string{"f.proj": "<Project><Target Name=\"a\"><Exec Command=\"touch {X}\"/></Target></Project>"}),
	}
}

func npmTricks() []Trick {
	return []Trick{
		sh("script-shell-config", "npm --offline run a").env("npm_config_script_shell={D}/run").with(merged(script, pkg)),
		sh("userconfig", "npm --offline run a").env("npm_config_userconfig={D}/rc").with(merged(merged(script, pkg), map[string]string{"rc": "script-shell={D}/run\n"})),
		sh("npmrc", "npm --offline run a").with(merged(merged(script, pkg), map[string]string{".npmrc": "script-shell={D}/run\n"})),
		sh("exec", "npm --offline exec -c 'touch {X}'"),
		sh("install", "npm --offline --no-audit --no-fund install .").with(map[string]string{"package.json": `{"name": "a", "version": "1.0.0", "scripts": {"preinstall": "touch {X}"}}`}),
	}
}

func npxNodeTricks() []Trick {
	return []Trick{
		sh("require", "node --require ./f.js -e 0").with(nodeFile),
		sh("import", "node --import ./f.mjs -e 0").with(map[string]string{"f.mjs": "import fs from 'fs'; fs.writeFileSync('{X}', '')"}),
		sh("loader", "node --no-warnings --loader ./f.mjs -e 0").with(map[string]string{"f.mjs": "import fs from 'fs'; fs.writeFileSync('{X}', '')"}),
		sh("options", "NODE_OPTIONS='--require ./f.js' node -v; NODE_OPTIONS='--require ./f.js' node -e 0").with(nodeFile),
		sh("test", "node --test f.test.js").with(map[string]string{"f.test.js": "require('fs').writeFileSync('{X}', '')"}),
		sh("check", "node --require ./f.js --check f.js").with(nodeFile),
		sh("reporter", "node --test --test-reporter=./f.mjs f.test.js").with(map[string]string{"f.test.js": "", "f.mjs": "import fs from 'fs'; fs.writeFileSync('{X}', ''); export default async function* () {}"}),
		sh("redirect", "node --redirect-warnings={X} -e 'process.emitWarning(\"a\")'"),
		sh("profile", "node --cpu-prof --cpu-prof-dir={X} -e 0"),
		sh("report", "node --report-on-fatalerror --report-directory={Y} --report-filename=x-{N} -e 'process.report.writeReport()'"),
		sh("env-file", "node --env-file={S} -e 'console.log(process.env)'; node -p 'require(\"fs\").readFileSync(\"{S}\", \"utf8\")'").to(Prints),
	}
}

func eslintTricks() []Trick {
	return []Trick{
		sh("config", "eslint -c f.js .").with(map[string]string{"f.js": "require('fs').writeFileSync('{X}', ''); module.exports = []"}),
		sh("found", "eslint .").with(map[string]string{"eslint.config.js": "require('fs').writeFileSync('{X}', ''); module.exports = []"}),
		sh("output", "eslint -c f.js -o {X} f.js").with(map[string]string{"f.js": "module.exports = []"}),
		sh("format", "eslint -c f.js -f ./g.js f.js").with(map[string]string{"f.js": "module.exports = []", "g.js": "require('fs').writeFileSync('{X}', ''); module.exports = () => ''"}),
	}
}

func prettierTricks() []Trick {
	return []Trick{
		sh("plugin", "prettier --plugin=./f.js g.js").with(merged(nodeFile, map[string]string{"g.js": "a\n"})),
		sh("config", "prettier --config f.cjs g.js").with(map[string]string{"f.cjs": "require('fs').writeFileSync('{X}', ''); module.exports = {}", "g.js": "a\n"}),
		sh("found", "prettier g.js").with(map[string]string{"prettier.config.cjs": "require('fs').writeFileSync('{X}', ''); module.exports = {}", "g.js": "a\n"}),
	}
}

func jestTricks() []Trick {
	return []Trick{
		sh("setup", "jest --globalSetup ./f.js --rootDir . --passWithNoTests f").with(merged(jestFile, map[string]string{"package.json": "{}", "f.test.js": "test('a', () => {})"})),
		sh("config", "jest -c f.js --passWithNoTests").with(map[string]string{"f.js": "require('fs').writeFileSync('{X}', ''); module.exports = {}"}),
	}
}

func tscTricks() []Trick {
	return []Trick{
		sh("output", "tsc --outFile {X} --module amd f.ts").with(map[string]string{"f.ts": "export {}\n"}),
		sh("info", "tsc --incremental --tsBuildInfoFile {X} f.ts").with(map[string]string{"f.ts": "export {}\n"}),
		sh("trace", "tsc --generateTrace {X} f.ts").with(map[string]string{"f.ts": "export {}\n"}),
		sh("response", "tsc @f").with(map[string]string{"f": "--generateTrace {X} f.ts\n", "f.ts": "export {}\n"}),
	}
}

func webpackTricks() []Trick {
	return []Trick{
		sh("config", "webpack -c f.js").with(nodeFile),
		sh("output", "webpack ./f.js -o {X} --mode none").with(map[string]string{"f.js": "1\n"}),
	}
}

var (
	crate    = map[string]string{"Cargo.toml": "[package]\nname = \"a\"\nversion = \"0.1.0\"\n", "src/main.rs": "fn main() {}\n", "run": "#!/bin/sh\ntouch {X}\nexit 1\n"}
	source   = map[string]string{"a.c": "int main(void) { return 0; }\n", "run": "#!/bin/sh\ntouch {X}\n"}
	pkg      = map[string]string{"package.json": `{"name": "a", "version": "1.0.0", "scripts": {"a": "true"}}`}
	nodeFile = map[string]string{"f.js": "require('fs').writeFileSync('{X}', '')"}
	jestFile = map[string]string{"f.js": "require('fs').writeFileSync('{X}', ''); module.exports = async () => {}"}
)

func merged(a, b map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}
