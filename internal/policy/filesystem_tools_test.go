package policy

import (
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// tool makes an executable in a directory of programs.
func (w *world) tool(path string) { w.write(path, "#!/bin/sh\n", 0o755) }

func (w *world) searchThrough(dirs ...string) {
	for i, d := range dirs {
		dirs[i] = w.at(d)
	}
	w.host.Env = append(w.host.Env, "PATH="+strings.Join(dirs, ":"))
}

func TestToolchainsComeIntoView(t *testing.T) {
	w := newWorld(t)
	for _, f := range []string{
		".nvm/versions/node/v22/bin/node", ".pyenv/shims/python3", ".rustup/toolchains/x/bin/rustc", ".cargo/bin/cargo",
		"go/bin/tool", ".asdf/shims/node", ".local/share/mise/shims/node", ".volta/bin/node", ".sdkman/candidates/java/x/bin/java",
		".rbenv/shims/ruby", ".goenv/shims/go", ".deno/bin/deno", ".bun/bin/bun", ".local/bin/mine",
	} {
		w.tool("home/u/" + f)
	}
	for _, d := range []string{".cargo/registry", "go/pkg/mod", ".cache/go-build", ".npm/_cacache", ".cache/pip", ".local/share/uv/python",
		".cache/pypoetry", ".local/share/virtualenvs", ".m2/wrapper", ".yarn/berry/cache", ".nuget/packages", ".local/share/direnv/allow", ".local/share/pnpm/store"} {
		w.mkdir("home/u/" + d)
	}
	secrets := []string{".cargo/credentials.toml", ".npmrc", ".netrc", ".local/share/uv/credentials/x", ".sdkman/etc/config", ".local/share/keyrings/x", ".nvm/versions/node/v22/etc/npmrc"}
	for _, f := range secrets {
		w.write("home/u/"+f, "token", 0o600)
	}
	p := w.plan(w.options())
	for path, access := range map[string]Access{
		".nvm": Read, ".pyenv": Read, ".rustup": Read, ".cargo/bin": Read, ".cargo/registry": Copy, "go/bin": Read,
		"go/pkg/mod": Copy, ".cache/go-build": Copy, ".npm/_cacache": Copy, ".cache/pip": Copy, ".local/bin": Read,
		".asdf": Read, ".local/share/mise/shims": Read, ".volta/bin": Read, ".sdkman/candidates": Read, ".rbenv": Read,
		".goenv": Read, ".deno/bin": Read, ".bun/bin": Read, ".local/share/uv/python": Read,
		".cache/pypoetry": Copy, ".local/share/virtualenvs": Copy, ".m2/wrapper": Copy, ".yarn/berry/cache": Copy, ".nuget/packages": Copy,
		".local/share/direnv/allow": Read, ".local/share/pnpm": Copy,
	} {
		if r := w.rule(p, "home/u/"+path); r.Access != access || !strings.HasPrefix(r.Origin.File, "toolchain ") {
			t.Errorf("%s is %+v, want %s", path, r, access)
		}
	}
	for _, f := range secrets {
		if a := shownBy(p, w.at("home/u/"+f)); a != Hidden {
			t.Errorf("%s can be seen: %s", f, a)
		}
	}
	if !slices.ContainsFunc(p.Env, func(e Env) bool {
		return e.Name == "pnpm_config_store_dir" && e.Value == w.at("home/u/.local/share/pnpm/store")
	}) {
		t.Errorf("pnpm is not told where its store is: %v", p.Env)
	}
}

// shownBy is the access of the most specific rule over path.
func shownBy(p Plan, path string) Access {
	best := PathRule{}
	for _, r := range p.Paths {
		if within(path, r.Path) && len(r.Path) > len(best.Path) {
			best = r
		}
	}
	return best.Access
}

func TestMovedToolchainsAreFollowed(t *testing.T) {
	w := newWorld(t)
	w.mkdir("data/gopath/pkg/mod")
	w.mkdir("data/cargo/registry")
	w.mkdir("data/cache/go-build")
	w.mkdir("home/u/.cargo/registry")
	w.mkdir("home/u/.npm/_cacache")
	w.host.Env = append(w.host.Env, "GOPATH="+w.at("data/gopath")+":/second", "CARGO_HOME="+w.at("data/cargo"),
		"XDG_CACHE_HOME="+w.at("data/cache"), "npm_config_cache=relative")
	p := w.plan(w.options())
	for _, path := range []string{"data/gopath/pkg/mod", "data/cargo/registry", "data/cache/go-build", "home/u/.npm/_cacache"} {
		if w.rule(p, path).Access != Copy {
			t.Errorf("%s is not in view: %v", path, p.Paths)
		}
	}
	if w.rule(p, "home/u/.cargo/registry").Access != Hidden {
		t.Error("the place that was moved away from is in view")
	}
	for name, want := range map[string]string{
		"GOMODCACHE": w.at("data/gopath/pkg/mod"), "CARGO_HOME": w.at("data/cargo"), "GOCACHE": w.at("data/cache/go-build"),
	} {
		if got, _ := variableOf(p, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestPathIsFollowed(t *testing.T) {
	for _, row := range []struct {
		name   string
		make   func(w *world)
		search []string
		shown  string // "" for nothing
		inPath bool
	}{
		{"a tree with libraries beside bin is shown whole", func(w *world) {
			w.tool("data/node/bin/node")
			w.mkdir("data/node/lib")
		}, []string{"data/node/bin"}, "data/node", true},
		{"a tree of shims beside their versions is shown whole", func(w *world) {
			w.tool("data/asdf/shims/node")
			w.mkdir("data/asdf/versions")
		}, []string{"data/asdf/shims"}, "data/asdf", true},
		{"a tree of system programs is shown whole", func(w *world) {
			w.tool("data/brew/sbin/t")
			w.mkdir("data/brew/lib")
		}, []string{"data/brew/sbin"}, "data/brew", true},
		{"a directory of another name is shown alone, whatever is beside it", func(w *world) {
			w.tool("data/x/tools/t")
			w.mkdir("data/x/lib")
		}, []string{"data/x/tools"}, "data/x/tools", true},
		{"a bin alone is shown alone", func(w *world) { w.tool("data/x/bin/t") }, []string{"data/x/bin"}, "data/x/bin", true},
		{"a tree with credentials is not shown whole", func(w *world) {
			w.tool("data/x/bin/t")
			w.mkdir("data/x/lib")
			w.write("data/x/.npmrc", "", 0o600)
		}, []string{"data/x/bin"}, "data/x/bin", true},
		{"the home is never shown for its bin", func(w *world) {
			w.tool("home/u/bin/t")
			w.mkdir("home/u/lib")
		}, []string{"home/u/bin"}, "home/u/bin", true},
		{"a directory that is the home is not searched", func(*world) {}, []string{"home/u"}, "", false},
		{"a directory of the workspace is not searched", func(w *world) { w.tool("home/u/ws/bin/git") }, []string{"home/u/ws/bin"}, "", false},
		{"a directory that everybody can write is not searched", func(w *world) {
			w.tool("data/open/t")
			chmod(w, "data/open", 0o777)
		}, []string{"data/open"}, "", false},
		{"a directory that does not exist is not searched", func(*world) {}, []string{"data/none"}, "", false},
		{"a link in a directory brings the program along", func(w *world) {
			w.write("home/u/.local/share/tool/versions/3/tool", "", 0o755)
			w.write("home/u/.local/share/tool/secret", "", 0o600)
			w.mkdir("home/u/.local/bin")
			w.link("/home/u/.local/share/tool/versions/3/tool", "home/u/.local/bin/tool")
		}, []string{"home/u/.local/bin"}, "home/u/.local/share/tool/versions/3/tool", false},
		{"a link to a node program brings its packages along", func(w *world) {
			w.write("data/js/lib/node_modules/tsc/bin/tsc", "", 0o755)
			w.mkdir("home/u/.local/bin")
			w.link("/data/js/lib/node_modules/tsc/bin/tsc", "home/u/.local/bin/tsc")
		}, []string{"home/u/.local/bin"}, "data/js/lib/node_modules", false},
		{"a link to a key brings nothing along", func(w *world) {
			w.write("home/u/.ssh/id_rsa", "", 0o600)
			w.write("home/u/.aws/tool", "", 0o755)
			w.mkdir("home/u/.local/bin")
			w.link("/home/u/.aws/tool", "home/u/.local/bin/aws")
			w.link("/home/u/.ssh/id_rsa", "home/u/.local/bin/key")
		}, []string{"home/u/.local/bin"}, "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			row.make(w)
			first := w.at(row.search[0])
			w.searchThrough(row.search...)
			p := w.plan(w.options())
			if row.shown != "" && w.rule(p, row.shown).Access != Read {
				t.Errorf("%s is not in view: %+v", row.shown, p.Paths)
			}
			if row.shown == "" && slices.ContainsFunc(p.Paths, func(r PathRule) bool { return r.Path != w.at("home/u/.local/bin") }) {
				t.Errorf("in view: %+v", p.Paths)
			}
			path, _ := variableOf(p, "PATH")
			if got := slices.Contains(strings.Split(path, ":"), first); got != row.inPath && row.shown != "" && !strings.HasSuffix(first, ".local/bin") {
				t.Errorf("PATH %s has %s: %v", path, first, got)
			}
			if row.shown == "" && first != w.at("home/u/.local/bin") && strings.Contains(path, first) {
				t.Errorf("PATH is %s", path)
			}
			if a := shownBy(p, w.at("home/u/.local/share/tool/secret")); a != Hidden {
				t.Errorf("what lies beside the program is in view: %s", a)
			}
		})
	}
}

// TestRootToolchainOfAnotherUser: what another user may change is not shown as a
// toolchain, and what is the user's own or root's is.
func TestRootToolchainOfAnotherUser(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	for _, row := range []struct {
		name       string
		user       int // whose run it is
		owner      int // of the toolchain
		shown      Access
		inTheNotes bool
	}{
		{"the user's own", 54321, 54321, Read, false},
		{"root's", 54321, 0, Read, false},
		{"another user's", 54322, 54321, Hidden, true},
		{"another user's, for root", 0, 54321, Hidden, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.tool("home/u/.cargo/bin/cargo")
			if err := os.Lchown(w.at("home/u/.cargo/bin"), row.owner, row.owner); err != nil {
				t.Fatal(err)
			}
			w.host.UID = row.user
			p := w.plan(w.options())
			if got := w.rule(p, "home/u/.cargo/bin").Access; got != row.shown {
				t.Errorf("access %s, want %s", got, row.shown)
			}
			if noted := strings.Contains(strings.Join(p.Notes, "\n"), "belongs to another user"); noted != row.inTheNotes {
				t.Errorf("the notes say so: %v, want %v: %q", noted, row.inTheNotes, p.Notes)
			}
		})
	}
}

// Where /bin is a link into /usr, as on most systems, the link is shown too: the
// paths of interpreters name it.
func TestSystemShowsDirectoriesAndLinksToThem(t *testing.T) {
	shown := System()
	for _, path := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64"} {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue
		}
		if !slices.ContainsFunc(shown, func(r PathRule) bool { return r.Path == path && r.Access == Read }) {
			t.Errorf("%s is there, and not in %v", path, shown)
		}
	}
}
