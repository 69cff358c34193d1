//go:build linux

package probe

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"strings"
)

// containerOptions asks for each option, by a flag and by a policy. A target that
// takes no flags plays the row as it is. Holdfast has no container backend: the
// row tries that each is refused.
func containerOptions(s *Session) {
	t, ok := s.Target.(Flagger)
	if !ok {
		s.Run(Command{})
		return
	}
	defer func() { s.Target = t.(Target) }()
	var attempts [][]string
	for _, flag := range []string{"--privileged", "--network=host", "--network=container:x", "--net=host", "--pid=host", "--ipc=host", "--uts=host", "--userns=host", "--cgroupns=host", "--cap-add=ALL", "--device=/dev/kmsg",
		"--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined", "--volume=/:/host", "-v=/:/host", "--mount=type=bind,src=/,dst=/host", "--volumes-from=x", "--group-add=0", "--user=0", "--backend=docker", "--backend=none", "--runtime=runc",
		"--rw=/", "--rw=/proc", "--rw=/sys", "--rw=/dev", "--rw=/etc", "--rw=/root/../", "--profile=none", "--profile=../wide", "--without=all", "--without=view", "--without=*", "--without=seccomp", "--without=landlock", "--without="} {
		attempts = append(attempts, []string{flag})
	}
	for i, body := range []string{"backend: docker\n", "container:\n  privileged: true\n", "container: {network: host, volumes: [/:/host], cap_add: [ALL]}\n", "docker:\n  options: [--privileged]\n", "backend: {name: docker, options: [--privileged]}\n",
		"filesystem:\n  write: [/]\n", "filesystem:\n  write: [/proc]\n", "filesystem:\n  write: [/sys]\n", "filesystem:\n  write: [/dev]\n", "seccomp: unconfined\n", "without: [seccomp]\n", "capabilities: [ALL]\n", "namespaces: {user: host}\n", "accept: [all]\n"} {
		path := fmt.Sprintf("%s/asks-%d.yaml", s.World.B, i)
		if err := os.WriteFile(path, []byte("version: 1\nextends: local\n"+body), 0o600); err != nil {
			s.Fail(err)
			return
		}
		attempts = append(attempts, []string{"--policy", path})
	}
	for _, flags := range attempts {
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
	var addresses []string
	for _, addr := range []string{"O/run/docker.sock", "O/run/containerd/containerd.sock"} {
		l, err := w.Listen("unix", addr)
		if err != nil {
			return err
		}
		addresses = append(addresses, "unix "+l.Addr)
	}
	w.Arg("at=" + strings.Join(addresses, "\n"))
	return nil
}

// asksForSocket asks for the socket itself, its directory and the directory
// above, to read and to write.
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

// approvedThenChanged leaves the note that a user approved the project's policy,
// and then another policy.
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

// helpersOfTheProject names helpers of the project in policies, one at a time. A
// target that takes no policy plays the row as it is.
func helpersOfTheProject(s *Session) {
	w := s.World.W
	secret := func(source string) string {
		return "credentials:\n  - {name: a, source: " + source + ", hosts: [allowed.test], header: \"Authorization: {}\", env: A_TOKEN, always: true}\nnetwork:\n  allow: [allowed.test]\n"
	}
	policies("alerts:\n  rules: ["+w+"/rules]\n", "alerts:\n  sinks:\n    - file: "+w+"/alerts.jsonl\n", "alerts:\n  sinks:\n    - syslog: unix://"+w+"/log.sock\n",
		secret("{command: ["+w+"/helper]}"), secret("{command: "+w+"/../w/helper}"), secret("{file: "+w+"/key}"))(s)
}

// launchersPrograms puts programs that launchers start into the workspace, which comes first in
// PATH.
func launchersPrograms(w *World) error {
	h := hostile{w: w}
	for _, name := range strings.Fields("git newuidmap newgidmap systemd-run systemctl dbus-send ip nft iptables mount fusermount3 fusermount getent id sh bash env uname ldd tput less pager xdg-open pkcs11-tool secret-tool op pass") {
		if err := w.program("W/bin/"+name, "#!/bin/sh\nexec "+h.line("as-"+name)+"\n"); err != nil {
			return err
		}
	}
	w.Env = append(w.Env, "PATH="+w.Path("W/bin")+":"+os.Getenv("PATH"))
	return nil
}

// monitorEverywhere makes a repository whose configuration starts a program at every key.
func monitorEverywhere(w *World) error {
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
}

// helpersInWorkspace puts a helper, rules and a sink that policies name into the workspace.
func helpersInWorkspace(w *World) error {
	h := hostile{w: w}
	return errors.Join(w.program("W/helper", "#!/bin/sh\n"+h.line("helper")+" >&2\necho sk-aaaaaaaaaaaaaaaaaaaaaaaa\n"), w.File("W/rules/a.yaml", "[]\n"), os.Symlink(w.Path("O/canary"), w.Path("W/alerts.jsonl")))
}
