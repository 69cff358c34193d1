//go:build linux

package harness

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEverySwitchIsAControl: a switch that no control names is never played, and
// a name that no code reads switches nothing off.
func TestEverySwitchIsAControl(t *testing.T) {
	var sources []string
	for _, pattern := range []string{"../../boundary/native/*.go", "../../run/ablated/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		sources = append(sources, found...)
	}
	read := map[string]bool{}
	asked := regexp.MustCompile(`omit\["([a-z:-]+)"\]|\(omit, "([a-z:-]+)"\)|\(l\.omit, "([a-z:-]+)"\)`)
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range asked.FindAllStringSubmatch(string(text), -1) {
			read[m[1]+m[2]+m[3]] = true
		}
	}
	named := map[string]bool{}
	for _, c := range Controls() {
		for _, o := range c.Omit {
			named[o] = true
			// Groups of calls are compared by TestEveryGroupOfCalls, and namespaces are
			// requested by name.
			if group := strings.HasPrefix(o, "seccomp:") || strings.HasPrefix(o, "namespace:"); !group && !read[o] {
				t.Errorf("%s leaves out %q, which nobody reads", c.Name, o)
			}
		}
	}
	for o := range read {
		if !named[o] && !strings.HasSuffix(o, ":") {
			t.Errorf("there is a switch %q, and no control names it", o)
		}
	}
	if len(read) < 20 {
		t.Errorf("only %d switches were found", len(read))
	}
}
