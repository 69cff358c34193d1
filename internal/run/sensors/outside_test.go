//go:build linux

package sensors

import (
	"os"
	"path/filepath"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// What no human can allow to be changed from inside.
func TestWhatIsNeverCarriedOut(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"real-keys", "real", "config"} {
		if err := os.MkdirAll(at(d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"keys": "real-keys", "policy.yaml": "real/policy.yaml"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at("real/policy.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", at("config"))
	own := []string{at("state"), at("log"), at("keys"), at("grants"), at("bin/holdfast")}
	judge := (&Set{config: Config{Protected: own}, plan: policy.Plan{
		Workspace: at("ws"),
		Sources:   []policy.Source{{Name: at("policy.yaml")}, {Name: "--ask"}},
		Protect:   []policy.Protected{{Path: ".git/hooks"}, {Root: at("out"), Path: "Makefile"}},
		Hidden:    []policy.Protected{{Root: at("home"), Path: ".ssh"}},
	}}).carry()
	for _, row := range []struct {
		path  string
		never bool
	}{
		{"state", true}, {"state/sessions/x/control", true}, {"log/a", true}, {"grants/a", true}, {"bin/holdfast", true},
		{"keys/approve.key", true}, {"real-keys/approve.key", true}, {"policy.yaml", true}, {"real/policy.yaml", true},
		{"config/holdfast/policy.yaml", true}, {"config/holdfast", true},
		{"ws/.git/hooks/pre-commit", true}, {"out/Makefile", true}, {"home/.ssh/authorized_keys", true},
		{"real", true}, {"home", true}, {"bin", true}, // what leads there
		{"stateful", false}, {"real/other", false}, {"config/other", false}, {"home/.bashrc", false}, {"bin/other", false}, {"out/file", false},
	} {
		if err := judge("write", at(row.path)); (err != nil) != row.never {
			t.Errorf("%s: %v, want never %v", row.path, err, row.never)
		}
	}
	for _, path := range []string{"/", "/proc/sys/kernel/core_pattern", "/dev/sda", "/sys/power/state"} {
		if judge("write", path) == nil {
			t.Errorf("%s may be changed", path)
		}
	}
}
