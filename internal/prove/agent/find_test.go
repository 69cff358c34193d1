package agent

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFind(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	home := filepath.Join(bin, "home")
	program := script(t, bin, "tiny-agent", `test -z "$(ls -A "$HOME")" && test -z "$SECRET" || exit 3; echo "tiny-agent v1.4.2 (Tiny)"`)
	d := tiny(t, scoped, "")
	env := []string{"PATH=relative:" + bin, "HOME=" + home, "SECRET=x"}
	found, err := Find(t.Context(), d, env, dir)
	if err != nil || len(found) != 1 || found[0].Version != "1.4.2" || found[0].Program != program || found[0].Dir != "" {
		t.Errorf("got %+v, %v", found, err)
	}
	for name, does := range map[string]string{"one that says nothing": "exit 0", "one that says much": "yes no", "one that fails": "echo 1.0 >&2; exit 1"} {
		if name == "one that says much" {
			does = "/usr/bin/head -c 1000000 /dev/zero; echo; echo 9.9.9"
		}
		script(t, bin, "tiny-agent", does)
		found, err := Find(t.Context(), d, env, dir)
		if err != nil || len(found) != 1 || found[0].Version != "" {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	script(t, bin, "tiny-agent", "/bin/sleep 600 & echo 1.0.0; /bin/sleep 600")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := Find(ctx, d, env, dir); time.Since(begun) > 10*time.Second {
		t.Errorf("it waited for a program that does not end: %v", err)
	}
	if found, err := Find(t.Context(), d, []string{"PATH="}, filepath.Join(dir, "absent")); err != nil || len(found) != 0 {
		t.Errorf("nothing is there: %+v, %v", found, err)
	}
}

// TestFindInstalled: what a user starts by name is found where a package manager put it,
// and nothing else is.
func TestFindInstalled(t *testing.T) {
	const pkg, machine = "node_modules/@maker/tiny", "node_modules/@maker/tiny-linux-x64/bin/agent"
	for name, tt := range map[string]struct {
		link         string // what the command is a link to
		files        []string
		program, dir string
	}{
		"npm, for the user":   {"lib/" + pkg + "/bin/tiny.exe", []string{"lib/" + pkg + "/" + machine}, "lib/" + pkg + "/" + machine, "lib/" + pkg},
		"npm, for a project":  {"project/" + pkg + "/bin/tiny.js", []string{"project/" + machine}, "project/" + machine, "project"},
		"pnpm, for a project": {"node_modules/.pnpm/tiny/" + pkg + "/bin/tiny.js", []string{"node_modules/.pnpm/tiny/" + machine}, "node_modules/.pnpm/tiny/" + machine, "node_modules/.pnpm/tiny"},
		// What lies above it is of another install.
		"its own installer": {"share/tiny/versions/1.0.0", []string{"share/" + machine, machine}, "bin/tiny-agent", ""},
		"npm, above":        {"lib/node_modules/other/tiny.exe", []string{machine}, "bin/tiny-agent", ""},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			for _, file := range append(tt.files, tt.link) {
				file = filepath.Join(top, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				script(t, filepath.Dir(file), filepath.Base(file), "echo 1.0.0")
			}
			if err := os.Mkdir(filepath.Join(top, "bin"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(top, tt.link), filepath.Join(top, "bin/tiny-agent")); err != nil {
				t.Fatal(err)
			}
			d := tiny(t, "@maker/tiny-linux-x64", "")
			found, err := Find(t.Context(), d, []string{"PATH=" + filepath.Join(top, "bin")}, t.TempDir())
			dir := tt.dir
			if dir != "" {
				dir = filepath.Join(top, dir)
			}
			if err != nil || len(found) != 1 || found[0].Program != filepath.Join(top, tt.program) || found[0].Dir != dir {
				t.Errorf("got %+v, %v", found, err)
			}
		})
	}
}

// TestFindAsksOnce: a program that failed without network is not started again
// with network.
func TestFindAsksOnce(t *testing.T) {
	bin, runs := t.TempDir(), filepath.Join(t.TempDir(), "runs")
	script(t, bin, "tiny-agent", "echo run >> "+runs+"; exit 1")
	found, err := Find(t.Context(), tiny(t, scoped, ""), []string{"PATH=" + bin}, t.TempDir())
	if err != nil || len(found) != 1 || found[0].Version != "" {
		t.Errorf("got %+v, %v", found, err)
	}
	if ran, err := os.ReadFile(runs); err != nil || string(ran) != "run\n" {
		t.Errorf("it ran: %q, %v", ran, err)
	}
}
