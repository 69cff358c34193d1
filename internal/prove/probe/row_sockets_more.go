//go:build linux

package probe

import (
	"fmt"
	"os"
)

// socketsOfServices are sockets through which a user's authority is for sale.
func socketsOfServices() []Row {
	runtimeDir := fmt.Sprintf("/run/user/%d", os.Getuid())
	service := func(id, title, reference string, setup func(*World) error) Row {
		return Row{ID: id, Class: classSockets, Kind: Sandbox, Promise: "P4", Title: title, Refs: []string{reference},
			Setup: setup, Accept: noSocket, Action: "connect"}
	}
	told := func(r Row, names string) Row {
		r.Action, r.Args = "announced", []string{"names=" + names}
		return r
	}
	system := service("IPC-010", "the system bus and the private sockets of the service manager", "systemd.io, varlink",
		listen("unix", "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/io.systemd.ManagedOOM", runtimeDir+"/systemd/private"))
	system.Needs = []string{"root"}
	return []Row{
		core(service("IPC-004", "the container service, through which one is root on the host", "docker.com, protect the daemon socket",
			listen("unix", "/run/docker.sock", "H/.docker/run/docker.sock", "H/.docker/desktop/docker.sock", "/run/podman/podman.sock"))),
		service("IPC-006", "the abstract socket of a container's supervisor", "CVE-2020-15257",
			listen("unix", "@/containerd-shim/"+hexes(8)+".sock")),
		core(told(service("IPC-007", "the agent that signs with the user's keys", "ssh-agent(1)",
			agent("SSH_AUTH_SOCK", "/tmp/ssh-"+hexes(6)+"/ssh-agent.socket")), "SSH_AUTH_SOCK")),
		told(service("IPC-007b", "the agent that decrypts with the user's keys", "gpg-agent(1)",
			agent("GPG_AGENT_INFO", "H/.gnupg/S.gpg-agent")), "GPG_AGENT_INFO"),
		core(told(service("IPC-009", "the session bus, through which a program is started outside", "dbus.freedesktop.org",
			bus), "DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR")),
		system,
		told(service("IPC-012", "the screen, the microphone and the clipboard", "wayland.freedesktop.org",
			desktop), "WAYLAND_DISPLAY DISPLAY PULSE_SERVER XAUTHORITY"),
		told(service("IPC-014", "an editor that opens files and runs commands for those who connect", "code.visualstudio.com, the command line",
			editor), "VSCODE_IPC_HOOK_CLI VSCODE_GIT_IPC_HANDLE VSCODE_GIT_ASKPASS_NODE TMUX"),
	}
}

// agent is a service that a variable names. What it is called must not be what
// others look for on the whole machine: 'holdfast prove exposure' greets every
// /tmp/ssh-*/agent.*, and a greeting from outside is counted as one from inside.
func agent(variable, addr string) func(*World) error {
	return func(w *World) error {
		w.Env = append(w.Env, variable+"="+w.Path(addr))
		return listen("unix", addr)(w)
	}
}

func bus(w *World) error {
	w.Env = append(w.Env, "DBUS_SESSION_BUS_ADDRESS=unix:path="+w.Path("H/run/bus"), "XDG_RUNTIME_DIR="+w.Path("H/run"))
	return listen("unix", "H/run/bus", "@")(w)
}

func desktop(w *World) error {
	display := "9" + fmt.Sprint(os.Getpid()%1000)
	w.Env = append(w.Env, "XDG_RUNTIME_DIR="+w.Path("H/run"), "WAYLAND_DISPLAY="+w.Path("H/run/wayland-0"), "DISPLAY=:"+display,
		"PULSE_SERVER="+w.Path("H/run/pulse/native"), "XAUTHORITY="+w.Path("H/.Xauthority"))
	return listen("unix", "H/run/wayland-0", "H/run/pipewire-0", "H/run/pulse/native", "/tmp/.X11-unix/X"+display, "@/tmp/.X11-unix/X"+display)(w)
}

func editor(w *World) error {
	w.Env = append(w.Env, "VSCODE_IPC_HOOK_CLI="+w.Path("H/run/vscode-ipc-1.sock"), "VSCODE_GIT_IPC_HANDLE="+w.Path("H/run/vscode-git-1.sock"),
		"VSCODE_GIT_ASKPASS_NODE=/usr/bin/node", "TMUX="+w.Path("H/run/tmux")+",1,0")
	return listen("unix", "H/run/vscode-ipc-1.sock", "H/run/vscode-git-1.sock", "H/run/tmux", "/tmp/vscode-typescript-"+hexes(4)+"/tsserver.sock")(w)
}
