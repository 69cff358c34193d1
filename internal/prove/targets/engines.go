//go:build linux

package targets

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/prove/probe"
)

var dockerSpec = spec{
	name: "docker", install: "sudo apt-get install docker.io", version: []string{"version", "--format", "{{.Client.Version}} (client), {{.Server.Version}} (server)"},
	call: dockerCall, prepare: dockerPrepare, release: engineRelease,
	refused: func(status int, said string) bool {
		return status == engineRefused && strings.Contains(said, "docker: ")
	},
}

var podmanSpec = spec{
	name: "podman", install: "sudo apt-get install podman runc", version: []string{"--version"},
	call: podmanCall, prepare: engineSweep, release: engineRelease,
	refused: func(status int, said string) bool {
		return status == engineRefused && strings.Contains(said, "Error: ")
	},
}

// engineRefused is the status for an error of the engine itself (docker-run(1)
// and podman-run(1), "Exit Status"); 126 and 127 are the command's.
const engineRefused = 125

// label marks containers with the process that is responsible for them.
const label = "dev.holdfast.probe"

// image is the name of an empty image; its tag is the owner.
const image = "holdfast-probe"

// engineFlags are for both engines, from "Docker security" and "docker container
// run" in Docker's manual and from podman-run(1): no network, no capabilities, no
// privileges gained through set-user-ID programs, nothing writable but the
// workspace and a private /tmp.
func engineFlags(p Peer, w *probe.World, o probe.Options, name string) (flags []string, err error) {
	flags = []string{p.Path, "run", "--rm", "--name", name, "--label", label + "=" + p.Owner,
		"--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only"}
	tmpfs := "/tmp:rw,nosuid,nodev"
	if o.Disk > 0 { // with a read-only root, this is all the private storage there is
		tmpfs += fmt.Sprintf(",size=%d", o.Disk)
	}
	flags = append(flags, "--tmpfs", tmpfs)
	if o.Memory > 0 { // the second is memory plus swap: no swap
		flags = append(flags, "--memory", fmt.Sprint(o.Memory), "--memory-swap", fmt.Sprint(o.Memory))
	}
	if o.Processes > 0 {
		flags = append(flags, "--pids-limit", fmt.Sprint(o.Processes))
	}
	if o.FileSize > 0 {
		flags = append(flags, "--ulimit", fmt.Sprintf("fsize=%d:%[1]d", o.FileSize))
	}
	if o.Files > 0 {
		flags = append(flags, "--ulimit", fmt.Sprintf("nofile=%d:%[1]d", o.Files))
	}
	if o.Terminal {
		flags = append(flags, "--interactive", "--tty")
	}
	for _, e := range o.Env {
		flags = append(flags, "--env", e)
	}
	mounts := [][]string{}
	for _, path := range append([]string{w.W}, expandPaths(w, o.Write)...) {
		mounts = append(mounts, []string{"type=bind", "source=" + path, "target=" + path})
	}
	for _, path := range expandPaths(w, o.Read) {
		mounts = append(mounts, []string{"type=bind", "source=" + path, "target=" + path, "readonly"})
	}
	for _, m := range mounts {
		var b strings.Builder
		out := csv.NewWriter(&b) // --mount takes these as a CSV record
		err = errors.Join(err, out.Write(m))
		out.Flush()
		flags = append(flags, "--mount", strings.TrimSuffix(b.String(), "\n"))
	}
	return append(flags, "--workdir", w.W), err
}

func dockerCall(p Peer, w *probe.World, c probe.Command, run invocation) (call, error) {
	if err := missingOption(c.Options, "read write env memory processes files filesize disk terminal"); err != nil {
		return call{}, err
	}
	name := image + "-" + run.name
	flags, err := engineFlags(p, w, c.Options, name)
	// As the caller, so that the caller owns what is made in the workspace
	// ("docker container run", --user).
	flags = append(flags, "--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), "--pull", "never", image+":"+p.Owner)
	return call{argv: append(flags, run.argv...), env: engineEnv(), killed: removeContainer(p, name)}, err
}

// engineEnv lets the client find the user's daemon and store. It is for the
// client: the container gets none of it.
func engineEnv() []string {
	var env []string
	for _, name := range []string{"HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH",
		"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CONTAINERS_CONF", "CONTAINER_HOST"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func podmanCall(p Peer, w *probe.World, c probe.Command, run invocation) (call, error) {
	if err := missingOption(c.Options, "read write env memory processes files filesize disk time terminal"); err != nil {
		return call{}, err
	}
	name := image + "-" + run.name
	flags, err := engineFlags(p, w, c.Options, name)
	if runtime := podmanRuntime(); runtime != "" {
		flags = slices.Insert(flags, 1, "--runtime", runtime)
	}
	// Without it a read-only root has more writable directories: /run and
	// /var/tmp (podman-run(1)).
	flags = append(flags, "--read-only-tmpfs=false")
	if c.Options.Files == 0 {
		flags = append(flags, "--ulimit", "nofile=1024:1024")
	}
	// The defaults of both are above what a user, or root without
	// CAP_SYS_RESOURCE, may set.
	flags = append(flags, "--ulimit", "nproc=4096:4096")
	if c.Options.Time > 0 {
		flags = append(flags, "--timeout", fmt.Sprint(max(int(c.Options.Time.Seconds()), 1)))
	}
	if os.Getuid() != 0 {
		// The caller keeps their user ID, so that they own the workspace inside
		// (podman-run(1)).
		flags = append(flags, "--userns", "keep-id")
	}
	// A directory instead of an image, so that nothing is pulled or kept. It has
	// an overlay, because otherwise another user would own the mount points in it
	// (podman-run(1), --rootfs).
	root := filepath.Join(w.B, name)
	return call{argv: append(append(flags, "--rootfs", root+":O"), run.argv...), env: engineEnv(), dirs: []string{root}, killed: removeContainer(p, name)}, err
}

// podmanRuntime is the runtime to request if the default one does not start: crun
// refuses cgroups of both versions at once ("cgroups in hybrid mode not
// supported"), runc accepts them.
func podmanRuntime() string {
	var fs unix.Statfs_t
	if unix.Statfs("/sys/fs/cgroup", &fs) != nil || fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return ""
	}
	if _, err := exec.LookPath("runc"); err != nil {
		return ""
	}
	return "runc"
}

// removeContainer removes a container that outlives its killed client.
func removeContainer(p Peer, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := p.runEngine(ctx, "rm", "--force", name)
		if err != nil && strings.Contains(strings.ToLower(err.Error()), "no such container") {
			return nil // it has already ended
		}
		return err
	}
}

// runEngine runs a command of an engine and returns its output.
func (p Peer) runEngine(ctx context.Context, args ...string) (string, error) {
	return p.askWith(ctx, nil, args...)
}

func (p Peer) askWith(ctx context.Context, input []byte, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}, engineEnv()...)
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %s", p.Kind, args[0], firstLine(exit.Stderr))
	}
	return strings.TrimSpace(string(out)), err
}

// dockerPrepare requires a running daemon, and gives it an empty image: the
// prober needs no shell and no libc ("Create a base image", Docker's manual).
func dockerPrepare(ctx context.Context, p Peer) error {
	if _, err := p.runEngine(ctx, "version", "--format", "{{.Server.Version}}"); err != nil {
		return hinted{fmt.Errorf("no daemon answers: %w", err), "sudo systemctl start docker, or export DOCKER_HOST=unix://… where it listens elsewhere; then: docker info"}
	}
	if err := engineSweep(ctx, p); err != nil {
		return err
	}
	var empty bytes.Buffer
	if err := tar.NewWriter(&empty).Close(); err != nil {
		return err
	}
	_, err := p.askWith(ctx, empty.Bytes(), "import", "-", image+":"+p.Owner)
	return err
}

// engineSweep removes what earlier runs left whose process no longer exists.
func engineSweep(ctx context.Context, p Peer) error {
	return p.remove(ctx, func(owner string) bool { return !isAlive(owner) })
}

// engineRelease removes what this run left, and what ended ones did. If no daemon
// answers, the next run removes it.
func engineRelease(ctx context.Context, p Peer) error {
	if _, err := p.runEngine(ctx, "version"); err != nil {
		return nil
	}
	return p.remove(ctx, func(owner string) bool { return owner == p.Owner || !isAlive(owner) })
}

func (p Peer) remove(ctx context.Context, which func(owner string) bool) error {
	list, err := p.runEngine(ctx, "ps", "--all", "--filter", "label="+label, "--format", `{{.ID}} {{.Label "`+label+`"}}`)
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(list) {
		id, owner, _ := strings.Cut(strings.TrimSpace(line), " ")
		if which(owner) {
			errs = append(errs, removeContainer(p, id)(ctx))
		}
	}
	if p.Kind != "docker" {
		return errors.Join(errs...)
	}
	tags, err := p.runEngine(ctx, "image", "ls", image, "--format", "{{.Tag}}")
	errs = append(errs, err)
	for tag := range strings.FieldsSeq(tags) {
		if which(tag) {
			_, err := p.runEngine(ctx, "image", "rm", image+":"+tag)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
