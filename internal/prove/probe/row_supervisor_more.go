//go:build linux

package probe

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// moreSupervisorRows are what a launcher is asked for, and by whom.
func moreSupervisorRows() []Row {
	rows := slices.Concat(harnessRows(), supervisorAsked(), supervisorSurroundings())
	for i := range rows {
		r := &rows[i]
		r.Class = classSupervisor
		if r.Kind == "" {
			r.Kind = Host
		}
		if r.Promise == "" {
			r.Promise = "P10"
		}
	}
	return traced(append(rows, Row{ID: "LNK-019", Class: classLinks, Kind: Sandbox, Promise: "P2", Title: "a copy that reads harmless goes where a link of the project leads: to the settings of an agent",
		Refs:  []string{"SymJack (Adversa, 2026-05)"},
		Files: map[string]string{"W/asset.mp4": "nothing\n", "H/.agent/mcp.json": "{}\n"}, Links: map[string]string{"W/docs/guide": "H/.agent/mcp.json", "W/docs/next": "H/.agent/hooks.json", "W/docs/all": "H/.agent"},
		Keep: []string{"H/.agent/mcp.json", "H/.agent"}, Absent: []string{"H/.agent/hooks.json", "H/.agent/new.json"},
		Action: "overwrite-or-create", Args: []string{"path=W/docs/guide\nW/docs/next\nW/docs/all/new.json\nW/docs/all/mcp.json"}}))
}

// supervisorAsked are flags and policies that ask for what nobody may have.
func supervisorAsked() []Row {
	return []Row{
		{ID: "HST-019", Title: "the launcher is asked for what opens a container: a privileged one, the host's namespaces, its root, no filter", Refs: []string{"CVE-2026-27002", "CVE-2026-32038"},
			Drive: containerOptions, RefusalHolds: true, Action: "both", Args: outsideAndHome, Timeout: 60 * time.Second},
		{ID: "HST-019b", Promise: "P4", Title: "the launcher is asked to show the socket of a container runtime", Refs: []string{"CVE-2026-27002", "docker.sock"},
			Setup: runtimeSocket, Drive: asksForSocket, RefusalHolds: true, Accept: netless, Harmless: "what counts is whether the runtime heard of it", Action: "agent-asks", Args: []string{"path=W/job"}},
		{ID: "HST-021", Promise: "P2", Title: "a project's policy is another than the one that was approved", Refs: []string{"CVE-2025-54136", "SymJack"},
			Setup: approvedThenChanged, RefusalHolds: true, Action: "both", Args: []string{"path=O/canary\nO/sub/canary"}},
		{ID: "HST-021b", Promise: "P2", Title: "what was shown for approval was a file, and what is written is a link", Refs: []string{"SymJack (Adversa, 2026-05)", "CWE-367"},
			Files: map[string]string{"H/.agent/mcp.json": "{}\n"}, Keep: []string{"H/.agent/mcp.json"}, Harmless: "what is in view of the home may be private", Action: "swap-approved", Args: []string{"path=O/canary\nH/.agent/mcp.json\nH/.ssh/id_probe"}},
	}
}

// containerOptions asks for one after the other, by a flag and by a policy. A
// target that takes no flags plays the row as it is. Holdfast has no backend of
// containers: that each is refused is what there is to try.
func containerOptions(s *Session) {
	t, ok := s.Target.(Flagger)
	if !ok {
		s.Run(Command{})
		return
	}
	defer func() { s.Target = t.(Target) }()
	var asks [][]string
	for _, flag := range []string{"--privileged", "--network=host", "--network=container:x", "--net=host", "--pid=host", "--ipc=host", "--uts=host", "--userns=host", "--cgroupns=host", "--cap-add=ALL", "--device=/dev/kmsg",
		"--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined", "--volume=/:/host", "-v=/:/host", "--mount=type=bind,src=/,dst=/host", "--volumes-from=x", "--group-add=0", "--user=0", "--backend=docker", "--backend=none", "--runtime=runc",
		"--rw=/", "--rw=/proc", "--rw=/sys", "--rw=/dev", "--rw=/etc", "--rw=/root/../", "--profile=none", "--profile=../wide", "--without=all", "--without=view", "--without=*", "--without=seccomp", "--without=landlock", "--without="} {
		asks = append(asks, []string{flag})
	}
	for i, body := range []string{"backend: docker\n", "container:\n  privileged: true\n", "container: {network: host, volumes: [/:/host], cap_add: [ALL]}\n", "docker:\n  options: [--privileged]\n", "backend: {name: docker, options: [--privileged]}\n",
		"filesystem:\n  write: [/]\n", "filesystem:\n  write: [/proc]\n", "filesystem:\n  write: [/sys]\n", "filesystem:\n  write: [/dev]\n", "seccomp: unconfined\n", "without: [seccomp]\n", "capabilities: [ALL]\n", "namespaces: {user: host}\n", "accept: [all]\n"} {
		path := fmt.Sprintf("%s/asks-%d.yaml", s.World.B, i)
		if err := os.WriteFile(path, []byte("version: 1\nextends: local\n"+body), 0o600); err != nil {
			s.Fail(err)
			return
		}
		asks = append(asks, []string{"--policy", path})
	}
	for _, flags := range asks {
		s.Target = t.With(flags...)
		o := s.Run(Command{})
		for _, what := range s.World.changes() {
			s.World.seen = append(s.World.seen, finding{fmt.Sprintf("with %v: %s", flags, what)})
			return
		}
		if o.TimedOut {
			return
		}
	}
}

func runtimeSocket(w *World) error {
	if err := w.File("O/run/containerd/keep", ""); err != nil {
		return err
	}
	var at []string
	for _, addr := range []string{"O/run/docker.sock", "O/run/containerd/containerd.sock"} {
		l, err := w.Listen("unix", addr)
		if err != nil {
			return err
		}
		at = append(at, "unix "+l.Addr)
	}
	w.Arg("at=" + strings.Join(at, "\n"))
	return nil
}

// asksForSocket asks for the socket itself, for its directory and for what is
// above that, to read and to write.
func asksForSocket(s *Session) {
	t, ok := s.Target.(Flagger)
	if !ok {
		s.Run(Command{})
		return
	}
	defer func() { s.Target = t.(Target) }()
	for _, path := range []string{"O/run/docker.sock", "O/run", "O"} {
		for _, flag := range []string{"--ro", "--rw"} {
			s.Target = t.With(flag, s.World.Path(path))
			s.Run(Command{})
		}
	}
}

// approvedThenChanged leaves the note that a user approved the project's
// policy, and then another policy.
func approvedThenChanged(w *World) error {
	path := w.Path("W/holdfast.yaml")
	was := "version: 1\nfilesystem:\n  read: [" + w.R + "]\n"
	note := fmt.Sprintf(`{"version": 1, "files": [{"path": %q, "sha256": "%x"}]}`+"\n", path, sha256.Sum256([]byte(was)))
	if err := w.File(stateOfHoldfast+"/trust.json", note); err != nil {
		return err
	}
	return errors.Join(os.Chmod(w.Path(stateOfHoldfast), 0o700), os.Chmod(w.Path(stateOfHoldfast+"/trust.json"), 0o600),
		w.File("W/holdfast.yaml", "version: 1\nfilesystem:\n  write: ["+w.O+"]\n"))
}

// supervisorSurroundings are where and by whom a launcher is started.
func supervisorSurroundings() []Row {
	wide := func(w *World, at string) error {
		return w.File(at, "version: 1\nfilesystem:\n  write: ["+w.O+", "+w.H+"]\n")
	}
	return []Row{
		{ID: "HST-040", Promise: "P3", Title: "the launcher is started where the project's programs come first on PATH", Refs: []string{"CVE-2025-59828", "CWE-426"},
			Setup: func(w *World) error {
				h := hostile{w: w}
				for _, name := range strings.Fields("git newuidmap newgidmap systemd-run systemctl dbus-send ip nft iptables mount fusermount3 fusermount getent id sh bash env uname ldd tput less pager xdg-open pkcs11-tool secret-tool op pass") {
					if err := w.program("W/bin/"+name, "#!/bin/sh\nexec "+h.line("as-"+name)+"\n"); err != nil {
						return err
					}
				}
				w.Env = append(w.Env, "PATH="+w.Path("W/bin")+":"+os.Getenv("PATH"))
				return nil
			}, Action: "agent-looks", Args: []string{"first=W/bin", "run=git status\nid\nuname"}},
		{ID: "HST-040b", Promise: "P2", Title: "variables that a project's shell hook sets lead the launcher to a policy and a state in the project", Refs: []string{"direnv(1)", "XDG Base Directory Specification"},
			Setup: func(w *World) error {
				w.Env = append(w.Env, "XDG_CONFIG_HOME="+w.Path("W/.config"), "XDG_STATE_HOME="+w.Path("W/.state"), "XDG_DATA_HOME="+w.Path("W/.data"), "HOLDFAST_POLICY="+w.Path("W/wide.yaml"), "HOLDFAST_CONFIG="+w.Path("W/wide.yaml"))
				return errors.Join(wide(w, "W/.config/holdfast/policy.yaml"), wide(w, "W/wide.yaml"))
			}, RefusalHolds: true, Action: "both", Args: outsideAndHome},
		{ID: "HST-040c", Promise: "P1", Title: "the project is the home itself", Refs: []string{"github.com/anthropics/claude-code: started in the home"},
			Setup: func(w *World) error {
				w.Env = append(w.Env, "HOME="+w.W)
				if err := w.Plant("W/.ssh/id_own"); err != nil {
					return err
				}
				return w.Plant("W/.aws/own")
			}, RefusalHolds: true, Action: "read", Args: []string{"path=W/.ssh/id_own\nW/.aws/own"}},
		{ID: "HST-040d", Promise: "P3", Needs: []string{"git"}, Title: "the project's git configuration names programs for whatever the launcher asks git", Refs: []string{"CVE-2025-59041", "git-config(1)"},
			Setup: func(w *World) error {
				h := hostile{w: w}
				if err := errors.Join(w.program("W/monitor", "#!/bin/sh\n"+h.line("by-git")+" >&2\nexit 1\n"), w.repository("core.fsmonitor", w.Path("W/monitor"))); err != nil {
					return err
				}
				b, err := os.ReadFile(w.Path("W/.git/config"))
				if err != nil {
					return err
				}
				m := w.Path("W/monitor")
				more := "\tsshCommand = " + m + "\n\tpager = " + m + "\n\teditor = " + m + "\n\tgitProxy = " + m + "\n\taskPass = " + m + "\n[diff]\n\texternal = " + m + "\n[credential]\n\thelper = " + m +
					"\n[filter \"a\"]\n\tclean = " + m + "\n\tprocess = " + m + "\n[gpg]\n\tprogram = " + m + "\n[alias]\n\tstatus = !" + m + "\n"
				return errors.Join(w.File("W/.git/config", string(b)+more), w.File("W/.gitattributes", "* filter=a\n"))
			}, Action: "agent-looks", Args: []string{"run=git status --porcelain"}},
		{ID: "HST-040f", Promise: "P2", Title: "the user's policy is a link into the project, as in a directory of dotfiles", Refs: []string{"CWE-59"},
			Setup: func(w *World) error {
				return errors.Join(wide(w, "W/dot/policy.yaml"), w.File("H/.config/holdfast/keep", ""), os.Symlink(w.Path("W/dot/policy.yaml"), w.Path("H/.config/holdfast/policy.yaml")))
			}, RefusalHolds: true, Action: "both", Args: outsideAndHome},
		{ID: "HST-040g", Promise: "P3", Title: "the user's policy names helpers, rules and files of the project, which the launcher would run, read or write", Refs: []string{"CWE-426", "CWE-59"},
			Setup: func(w *World) error {
				h := hostile{w: w}
				return errors.Join(w.program("W/helper", "#!/bin/sh\n"+h.line("helper")+" >&2\necho sk-aaaaaaaaaaaaaaaaaaaaaaaa\n"), w.File("W/rules/a.yaml", "[]\n"), os.Symlink(w.Path("O/canary"), w.Path("W/alerts.jsonl")))
			},
			Drive: helpersOfTheProject, RefusalHolds: true, Action: "agent-looks", Args: []string{"first=W", "run=helper"}},
		{ID: "HST-040e", Workspace: "w $(touch x) `touch y`;touch z --rw=.. -v {} %s", Title: "the project's directory has a name that reads like commands and flags", Refs: []string{"CWE-78", "CWE-88"},
			RefusalHolds: true, Action: "both", Args: outsideAndHome},
	}
}

// helpersOfTheProject names them in a policy, one after the other. A target that
// takes no policy plays the row as it is.
func helpersOfTheProject(s *Session) {
	w := s.World.W
	secret := func(source string) string {
		return "credentials:\n  - {name: a, source: " + source + ", hosts: [allowed.test], header: \"Authorization: {}\", env: A_TOKEN, always: true}\nnetwork:\n  allow: [allowed.test]\n"
	}
	policies("alerts:\n  rules: ["+w+"/rules]\n", "alerts:\n  sinks:\n    - file: "+w+"/alerts.jsonl\n", "alerts:\n  sinks:\n    - syslog: unix://"+w+"/log.sock\n",
		secret("{command: ["+w+"/helper]}"), secret("{command: "+w+"/../w/helper}"), secret("{file: "+w+"/key}"))(s)
}
