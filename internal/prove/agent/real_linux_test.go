package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/prove/model"
	"holdfast.dev/holdfast/internal/prove/netlab"
	"holdfast.dev/holdfast/internal/testenv"
)

// worldRole makes this test binary the init process of a separate world: see
// [TestReal].
const worldRole = "AGENT_TEST_WORLD"

// shown is where that world sees a directory of the test. It is not a temporary
// directory, because some sandboxes leave those writable.
const shown = "/srv"

func TestMain(m *testing.M) {
	if order := os.Getenv(worldRole); order != "" {
		if err := world(order); err != nil {
			fmt.Fprintln(os.Stderr, "world:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// order is the task of a world.
type order struct {
	Agent   string
	Program Installed
	Posture string
}

// TestReal starts the real programs against the scripted model, in a network that
// has only loopback, and checks what was written.
func TestReal(t *testing.T) {
	for _, c := range []struct {
		agent, posture  string
		inside, outside bool  // whether files in the workspace and beside it were written
		layer           Layer // that refused the second step
	}{
		{"claude", "default", false, false, Permission},
		{"claude", "hardened", true, false, Sandbox},
		{"claude", "bare", true, true, ""},
		{"codex", "default", false, false, Sandbox},
		{"codex", "auto", true, false, Sandbox},
		{"codex", "bare", true, true, ""},
	} {
		t.Run(c.agent+" "+c.posture, func(t *testing.T) {
			spec, program := installed(t, c.agent, c.posture)
			dir := t.TempDir()
			for _, sub := range []string{"home", "project", "outside"} {
				if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			results := play(t, dir, order{Agent: c.agent, Program: program, Posture: c.posture})
			if inside, outside := there(dir, "project/in"), there(dir, "outside/out"); inside != c.inside || outside != c.outside {
				t.Errorf("the workspace was written: %v, outside: %v; results: %q", inside, outside, results)
			}
			if len(results) != 2 {
				t.Fatalf("there are results of %d steps: %q", len(results), results)
			}
			if layer, _ := spec.Refusal(results[1]); layer != c.layer {
				t.Errorf("the layer that refused is %q, by %q", layer, results[1])
			}
		})
	}
}

func there(dir, name string) bool {
	b, err := os.ReadFile(filepath.Join(dir, name))
	return err == nil && len(b) > 0
}

// installed finds the latest tested version, as installed by tools/needs.
func installed(t *testing.T, name, posture string) (Spec, Installed) {
	t.Helper()
	testenv.Need(t, testenv.UserNS, nil)
	d, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := d.At("")
	if err != nil {
		t.Fatal(err)
	}
	dir := testenv.AgentsDir()
	testenv.Need(t, testenv.Agents, func() error {
		if _, err := os.Stat(filepath.Join(dir, name+"@"+d.Latest, recordName)); err != nil {
			return err
		}
		for _, program := range spec.Postures[posture].Needs {
			if programs.Find(program, "/usr/bin:/bin:/usr/sbin:/sbin") == "" {
				return fmt.Errorf("%s is not installed", program)
			}
		}
		return nil
	})
	program, err := Install(t.Context(), Request{Driver: d, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return spec, program
}

// play runs a world, and returns the results that the agent sent.
func play(t *testing.T, dir string, o order) []string {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	cmd.Env = append(os.Environ(), worldRole+"="+string(b))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	programs.Isolate(cmd, true)
	cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNS
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	var results []string
	if err := json.Unmarshal(out.Bytes(), &results); err != nil {
		t.Fatalf("%v: %s\n%s", err, &out, &said)
	}
	if len(results) == 0 {
		t.Logf("%s", &said)
	}
	return results
}

// world is the first process of new namespaces. Its working directory contains
// the home, the workspace and what is outside.
func world(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	err = errors.Join(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""),
		syscall.Mount(dir, shown, "", syscall.MS_BIND, ""), netlab.Loopback())
	if err == nil && !paths.Below("/tmp", o.Program.Program) {
		// The agents keep files in /tmp by user ID, which is the same here for
		// every user who runs the test, and refuse those of another user.
		err = syscall.Mount("tmpfs", "/tmp", "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=1777")
	}
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var results []string
	server := model.New(model.Options{
		Scripts: []model.Script{{Name: "m", Steps: []model.Step{
			{Op: model.Shell, Command: "id -u > in; echo one"},
			{Op: model.Shell, Command: "echo x > " + shown + "/outside/out; echo two"},
		}}},
		Turn: func(_ context.Context, t model.Turn) error {
			if len(t.Results) >= len(results) {
				results = results[:0]
				for _, r := range t.Results {
					results = append(results, r.Text)
				}
			}
			return nil
		},
	})
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	err = start(ctx, o, "http://"+l.Addr().String())
	cancel()
	if err := errors.Join(err, <-served); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

// start runs the agent as an ordinary user: as root some refuse the bypass
// posture.
func start(ctx context.Context, o order, base string) error {
	d, err := Named(o.Agent)
	if err != nil {
		return err
	}
	spec, err := d.At(o.Program.Version)
	if err != nil {
		return err
	}
	launch, err := spec.Launch(Params{
		Program: o.Program, Home: shown + "/home", Workspace: shown + "/project", BaseURL: base, Key: "sk-ant-dummy-key",
		Prompt: "go " + model.Marker("m"), Posture: o.Posture, Path: strings.Split("/usr/bin:/bin:/usr/sbin:/sbin", ":"),
	})
	if err != nil {
		return err
	}
	for _, f := range launch.Files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(f.Path), 0o755), os.WriteFile(f.Path, f.Content, f.Mode)); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, launch.Argv[0], launch.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = launch.Dir, launch.Env, time.Second
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}}
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "the agent ended with", err) // its effects are checked all the same
	}
	return nil
}
