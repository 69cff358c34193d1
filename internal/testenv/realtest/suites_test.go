package realtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// realModule copies a published module from the module cache into mod, with its
// own tests, which need nothing else. Holdfast depends on it too, so it is in
// every cache with which this module was built.
func realModule(p *fixture) []string {
	p.t.Helper()
	p.bare(`cp -r "$1" mod; chmod -R u+w mod`, "sh", inModuleCache(p.t, "github.com/spf13/pflag"))
	return nil
}

// testenvGo runs the go command in this module, with its own cache.
func testenvGo(t testing.TB, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return string(out), err
}

// TestSuitesUnderFullRecord runs the test suites of two published projects with
// everything recorded, and checks that their results and output are the same as
// without.
func TestSuitesUnderFullRecord(t *testing.T) {
	root := t.TempDir()
	testenv.NoLeaks(t, root)
	for _, row := range []struct {
		name    string
		needs   []testenv.Feature
		prepare func(*fixture) []string
		script  string
		want    []string
		opened  string // file that the record must show as opened for reading
	}{
		{
			"go module", []testenv.Feature{testenv.Go}, realModule,
			`cd mod; go test -count=1 ./...`,
			[]string{"ok  \tgithub.com/spf13/pflag\t"},
			"flag_test.go",
		},
		{
			"npm package", []testenv.Feature{testenv.Node, testenv.Tar}, npmPackage,
			`cd package; node --test $(ls test/*.test.js | grep -v jest)`,
			[]string{"# pass 21\n", "# fail 0\n"},
			"index.test.js",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newFixture(t, root, row.needs...)
			row.prepare(p)
			contains(t, p.bare(row.script), row.want...)
			contains(t, p.inside(row.script, "--record", "full"), row.want...)
			p.holdfast("log", "verify", "--allow-partial") // without /dev/fuse it is not COMPLETE
			out := p.holdfast("log", "query", "--count", `action == "file.open" && object.endsWith("`+row.opened+`")`)
			if n := strings.TrimSpace(out); n == "" || strings.HasPrefix(n, "0") {
				t.Errorf("the record has %q of %s opened", n, row.opened)
			}
		})
	}
}

func (p *fixture) holdfast(args ...string) string {
	p.t.Helper()
	return p.execute(testenv.Binary(p.t), args...)
}

// npmPackage unpacks a published package that contains its tests and has no
// dependencies: see testdata/README.md.
func npmPackage(p *fixture) []string {
	p.t.Helper()
	archive, err := filepath.Abs(filepath.Join("testdata", "process-warning-5.0.0.tgz"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.bare(`tar xzf "$1"`, "sh", archive)
	return nil
}
