//go:build linux

package exposure

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// socketPath is where a socket may be.
type socketPath struct {
	check string
	level Level
	what  string
	paths []string // as in a store
}

// socketPaths is data: where services and programs document their sockets.
var socketPaths = []socketPath{
	{"docker-socket", High, "Docker", []string{"/var/run/docker.sock", "/run/docker.sock", "@run/docker.sock", "~/.docker/run/docker.sock", "~/.docker/desktop/docker.sock", "~/.colima/*/docker.sock", "~/.rd/docker.sock"}},
	{"docker-socket", High, "Podman", []string{"/run/podman/podman.sock", "@run/podman/podman.sock"}},
	{"docker-socket", High, "containerd and similar", []string{"/run/containerd/containerd.sock", "/run/k3s/containerd/containerd.sock", "/run/crio/crio.sock", "/run/buildkit/buildkitd.sock", "@run/buildkit/buildkitd.sock"}},
	{"vm-socket", High, "libvirt", []string{"/run/libvirt/libvirt-sock", "/run/libvirt/virtqemud-sock"}},
	{"vm-socket", High, "LXD or Incus", []string{"/var/lib/incus/unix.socket", "/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket"}},
	{"system-socket", Medium, "snapd", []string{"/run/snapd.socket"}},
	{"system-socket", High, "systemd of the system", []string{"/run/systemd/private"}},
	{"system-socket", Low, "a service", []string{"/run/*.sock", "/run/*.socket", "/run/mysqld/mysqld.sock", "/run/postgresql/.s.PGSQL.5432", "/run/redis/*.sock", "/run/nscd/socket", "/run/tailscale/tailscaled.sock", "/run/cups/cups.sock"}},
	{"gpg-agent", High, "gpg agent", []string{"@run/gnupg/S.gpg-agent", "@run/gnupg/S.gpg-agent.extra", "~/.gnupg/S.gpg-agent", "~/.gnupg/S.gpg-agent.extra", "$GNUPGHOME/S.gpg-agent"}},
	{"keyring-socket", High, "keyring", []string{"@run/keyring/control", "@run/keyring/pkcs11", "@run/kwallet5.socket"}},
	{"display", High, "X11", []string{"/tmp/.X11-unix/X*"}},
	{"display", Medium, "Wayland", []string{"@run/wayland-*"}},
	{"session-bus", High, "D-Bus session", []string{"@run/bus"}},
	{"session-bus", High, "systemd of the user", []string{"@run/systemd/private"}},
	{"system-bus", Low, "D-Bus system bus", []string{"/run/dbus/system_bus_socket"}},
	{"multiplexer", High, "tmux", []string{"$TMUX_TMPDIR/tmux-*/*", "/tmp/tmux-*/*"}},
	{"multiplexer", High, "screen", []string{"/run/screen/S-*/*", "~/.screen/*"}},
	{"multiplexer", High, "an editor that takes commands", []string{"@run/emacs/server", "/tmp/emacs*/server", "@run/nvim.*", "@run/kitty-*", "/tmp/kitty-*"}},
	{"ide", High, "VS Code", []string{"@run/vscode-ipc-*.sock", "/tmp/vscode-ipc-*.sock", "@run/vscode-git-*.sock", "@run/vscode-*.sock", "/tmp/vscode-git-*.sock", "$VSCODE_IPC_HOOK_CLI"}},
	{"sound", Medium, "PipeWire or PulseAudio", []string{"@run/pipewire-0", "@run/pulse/native"}},
}

// sockets looks for sockets that the account may connect to.
func (t *taker) sockets() {
	var done []string
	for _, p := range slices.Concat(t.addressed(), socketPaths) {
		for _, pattern := range p.paths {
			for _, name := range t.expand(pattern) {
				full, ok := t.socket(name)
				if !ok || slices.Contains(done, full) {
					continue
				}
				done = append(done, full)
				t.add(Finding{Check: p.check, Level: p.level, What: p.what, Object: name})
			}
		}
	}
}

// socket reports whether name is a socket that the account may connect to, which
// requires write permission (unix(7)), and returns its path without links.
func (t *taker) socket(name string) (string, bool) {
	info, err := os.Stat(t.real(name))
	if err != nil || info.Mode()&fs.ModeSocket == 0 || !t.canAccess(name, sys.MayWrite) {
		return "", false
	}
	return realPath(t.real(name)), true
}

// owns reports whether the account owns the target of name.
func (t *taker) owns(name string) bool {
	info, err := os.Stat(t.real(name))
	if err != nil {
		return false
	}
	uid, _, ok := sys.Owner(info)
	return ok && uid == t.UID
}

// addressed are the sockets that variables point to.
func (t *taker) addressed() []socketPath {
	var out []socketPath
	for _, v := range []struct{ name, check, what string }{
		{"DOCKER_HOST", "docker-socket", "Docker"}, {"CONTAINER_HOST", "docker-socket", "Podman"}, {"DBUS_SESSION_BUS_ADDRESS", "session-bus", "D-Bus session"},
		{"VSCODE_GIT_IPC_HANDLE", "ide", "VS Code"}, {"TMUX", "multiplexer", "tmux"}, {"NVIM", "multiplexer", "an editor that takes commands"},
	} {
		value := t.env(v.name)
		for _, prefix := range []string{"unix://", "unix:path="} {
			value = strings.TrimPrefix(value, prefix)
		}
		value, _, _ = strings.Cut(value, ",")
		if strings.HasPrefix(value, "/") && !strings.Contains(value, "*") {
			out = append(out, socketPath{v.check, High, v.what, []string{value}})
		}
	}
	return out
}

// agents looks for ssh agents, including forwarded ones. It queries only an agent
// that belongs to the account: root can open every user's agent, and would be
// using one that belongs to another user.
func (t *taker) agents() {
	var done []string
	candidates := t.expand("$SSH_AUTH_SOCK")
	for _, pattern := range []string{"/tmp/ssh-*/agent.*", "~/.ssh/agent/*", "@run/keyring/ssh", "@run/gcr/ssh", "@run/ssh-agent.socket", "@run/openssh_agent", "@run/gnupg/S.gpg-agent.ssh", "~/.1password/agent.sock"} {
		candidates = append(candidates, t.expand(pattern)...)
	}
	for _, name := range candidates {
		full, ok := t.socket(name)
		if !ok || slices.Contains(done, full) {
			continue
		}
		done = append(done, full)
		f := Finding{Check: "ssh-agent", Level: High, What: "an ssh agent", Object: name}
		switch {
		case t.Keys == nil:
		case !t.owns(name):
			f.Detail = []string{"it belongs to another account, and was not asked"}
		default:
			switch n, err := t.Keys(t.ctx, t.real(name)); {
			case err != nil:
				f.Level, f.Detail = Low, []string{"it does not answer"}
			case n == 0:
				f.Level, f.Detail = Low, []string{"no keys now"}
			default:
				f.Detail = []string{plural(n, "key", "keys")}
			}
		}
		t.add(f)
	}
}
