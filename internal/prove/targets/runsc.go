//go:build linux

package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/prove/probe"
)

// gVisor's manual says that `runsc do` is for testing only, and uses `runsc run`
// with a bundle for everything else ("OCI Quick Start").
var runscSpec = spec{
	name: "runsc", install: "sudo apt-get install runsc", version: []string{"--version"}, call: runscCall,
	refused: func(status int, said string) bool {
		return status == runscRefused && !strings.Contains(said, "no such file or directory")
	},
}

// runscRefused is the exit status for an error of runsc itself.
const runscRefused = 128

// bundle is the part of a config.json (OCI runtime specification) that is used.
type bundle struct {
	Version  string  `json:"ociVersion"`
	Process  process `json:"process"`
	Root     root    `json:"root"`
	Hostname string  `json:"hostname"`
	Mounts   []mount `json:"mounts"`
	Linux    linux   `json:"linux"`
}

type process struct {
	Terminal        bool                `json:"terminal,omitempty"`
	User            map[string]int      `json:"user"`
	Args            []string            `json:"args"`
	Env             []string            `json:"env"`
	Cwd             string              `json:"cwd"`
	Capabilities    map[string][]string `json:"capabilities"`
	Rlimits         []rlimit            `json:"rlimits"`
	NoNewPrivileges bool                `json:"noNewPrivileges"`
}

type rlimit struct {
	Type string `json:"type"`
	Hard int64  `json:"hard"`
	Soft int64  `json:"soft"`
}

type root struct {
	Path     string `json:"path"`
	Readonly bool   `json:"readonly"`
}

type mount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Source      string   `json:"source"`
	Options     []string `json:"options,omitempty"`
}

type linux struct {
	CgroupsPath string              `json:"cgroupsPath,omitempty"`
	Resources   map[string]any      `json:"resources,omitempty"`
	Namespaces  []map[string]string `json:"namespaces"`
}

// runscCall makes what `runsc spec` writes, but without its capabilities and with
// the workspace. --network=none is the manual's "Disabling external networking".
// Files are shared with the host, because what others write in the workspace must
// be visible immediately ("Filesystem"); the host's sockets are not.
func runscCall(p Peer, w *probe.World, c probe.Command, run invocation) (call, error) {
	o := c.Options
	can := "read write env files filesize disk terminal"
	if os.Getuid() == 0 {
		can += " memory processes" // it makes control groups only as root
	}
	if err := missingOption(o, can); err != nil {
		return call{}, err
	}
	name := "probe-" + run.name
	dir := filepath.Join(w.B, name)
	config, err := json.Marshal(runscBundle(w, c, run.argv, name))
	if err != nil {
		return call{}, err
	}
	state := []string{"--root", filepath.Join(dir, "state")}
	args := append([]string{p.Path}, state...)
	args = append(args, "--network=none", "--host-uds=none", "--file-access=shared")
	if os.Getuid() != 0 {
		args = append(args, "--rootless")
	}
	if o.Memory+o.Processes == 0 {
		args = append(args, "--ignore-cgroups") // makes none, so none is left
	}
	return call{
		argv:  append(args, "run", "--bundle", dir, name),
		dirs:  []string{filepath.Join(dir, "rootfs"), filepath.Join(dir, "state")},
		files: map[string]string{filepath.Join(dir, "config.json"): string(config)},
		killed: func(ctx context.Context) error {
			cmd := exec.CommandContext(ctx, p.Path, append(state, "delete", "--force", name)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("runsc delete: %w: %s", err, firstLine(out))
			}
			return errors.Join(leftGroups(name)...)
		},
	}, nil
}

// leftGroups removes the empty control groups of a killed container.
func leftGroups(name string) []error {
	var errs []error
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		found, _ := filepath.Glob(pattern + name)
		for _, dir := range found {
			errs = append(errs, os.Remove(dir))
		}
	}
	return errs
}

func runscBundle(w *probe.World, c probe.Command, argv []string, name string) bundle {
	o := c.Options
	tmp := []string{"nosuid", "nodev", "mode=1777"}
	if o.Disk > 0 {
		tmp = append(tmp, fmt.Sprintf("size=%d", o.Disk))
	}
	// Without root the caller is root inside: no other user ID is mapped.
	user := map[string]int{"uid": 0, "gid": 0}
	b := bundle{
		Version: "1.0.0", Hostname: "runsc", Root: root{"rootfs", true},
		Process: process{Terminal: o.Terminal, User: user, Args: argv, Cwd: w.W,
			Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + w.W, "TERM=dumb"},
			Capabilities: map[string][]string{"bounding": {}, "effective": {}, "inheritable": {}, "permitted": {}}, NoNewPrivileges: true,
			Rlimits: []rlimit{{"RLIMIT_NOFILE", 1024, 1024}}},
		Mounts: []mount{{"/proc", "proc", "proc", nil}, {"/dev", "tmpfs", "tmpfs", nil}, {"/sys", "sysfs", "sysfs", []string{"nosuid", "noexec", "nodev", "ro"}},
			{"/tmp", "tmpfs", "tmpfs", tmp}},
	}
	for _, kind := range strings.Fields("pid network ipc uts mount") {
		b.Linux.Namespaces = append(b.Linux.Namespaces, map[string]string{"type": kind})
	}
	for _, path := range append([]string{w.W}, expandPaths(w, o.Write)...) {
		b.Mounts = append(b.Mounts, mount{path, "bind", path, []string{"rbind", "rw"}})
	}
	for _, path := range expandPaths(w, o.Read) {
		b.Mounts = append(b.Mounts, mount{path, "bind", path, []string{"rbind", "ro"}})
	}
	for _, e := range o.Env {
		if _, _, given := strings.Cut(e, "="); !given {
			e += "=" + valueOf(e, w.Env)
		}
		b.Process.Env = append(b.Process.Env, e)
	}
	if o.Files > 0 {
		b.Process.Rlimits[0] = rlimit{"RLIMIT_NOFILE", o.Files, o.Files}
	}
	if o.FileSize > 0 {
		b.Process.Rlimits = append(b.Process.Rlimits, rlimit{"RLIMIT_FSIZE", o.FileSize, o.FileSize})
	}
	if o.Memory+o.Processes > 0 {
		b.Linux.CgroupsPath, b.Linux.Resources = "/"+name, map[string]any{}
		if o.Memory > 0 {
			b.Linux.Resources["memory"] = map[string]int64{"limit": o.Memory}
		}
		if o.Processes > 0 {
			b.Linux.Resources["pids"] = map[string]int64{"limit": o.Processes}
		}
	}
	return b
}

// valueOf is the value of a variable in the environment of a launcher.
func valueOf(name string, env []string) string {
	value := ""
	for _, e := range env {
		if k, v, _ := strings.Cut(e, "="); k == name {
			value = v
		}
	}
	return value
}
