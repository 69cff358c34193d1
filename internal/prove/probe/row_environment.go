//go:build linux

package probe

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// leaking sets each variable to a token in the environment of the launcher.
func leaking(names ...string) func(*World) error {
	return func(w *World) error {
		for _, n := range names {
			w.Env = append(w.Env, n+"="+w.Token("variable "+n))
		}
		return nil
	}
}

// helper returns a copy of the prober outside, out of reach, that can start
// launchers.
func (w *World) helper() (string, error) {
	path := filepath.Join(w.B, "helper")
	if exists(path) {
		return path, nil
	}
	return path, copyProgram(w.origin, path)
}

// hostilePath puts programs into the workspace under every name that a launcher
// may run.
func hostilePath(w *World) error {
	for _, name := range []string{"git", "bwrap", "rg", "newuidmap", "newgidmap", "ip", "nft", "iptables", "mount", "umount", "systemd-run",
		"systemctl", "unshare", "nsenter", "setpriv", "id", "getent", "uname", "stty", "socat", "modprobe", "holdfast", "env"} {
		for _, dir := range []string{"W/bin/", "W/"} {
			if err := w.File(dir+name, "#!/bin/sh\ntouch "+w.O+"/fired\n"); err != nil {
				return err
			}
			if err := os.Chmod(w.Path(dir+name), 0o755); err != nil {
				return err
			}
		}
	}
	w.Env = append(w.Env, "PATH="+w.W+"/bin:.:bin::"+os.Getenv("PATH"))
	return nil
}

// oddVariables starts the launcher from a program that passes on variables which no shell can
// set.
func oddVariables(w *World) error {
	launch, err := w.helper()
	if err != nil {
		return err
	}
	w.Under = []string{launch, "-child", "x", "exec-odd", "O=" + w.O, "secret=" + w.Token("odd variables"), "--"}
	return nil
}

// credentialHelpers puts programs on PATH that print what is stored in the home,
// as the real ones do.
func credentialHelpers(w *World) error {
	if err := w.Plant("H/.local/share/helper-store"); err != nil {
		return err
	}
	for _, name := range []string{"git-credential-store", "git-credential-libsecret", "docker-credential-desktop", "docker-credential-pass", "secret-tool",
		"gh", "pass", "op", "aws", "gcloud", "vault", "security"} {
		if err := w.File("H/.local/bin/"+name, "#!/bin/sh\nexec cat "+w.H+"/.local/share/helper-store\n"); err != nil {
			return err
		}
		if err := os.Chmod(w.Path("H/.local/bin/"+name), 0o755); err != nil {
			return err
		}
	}
	w.Env = append(w.Env, "PATH="+w.H+"/.local/bin:"+os.Getenv("PATH"))
	return nil
}

// shellThatReads starts the launcher from a shell that then reads the next line
// from its terminal, as the user's does.
func shellThatReads(w *World) error {
	b, err := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti")
	if err == nil && strings.TrimSpace(string(b)) == "0" {
		return fmt.Errorf("%w: a kernel that lets programs type", ErrMissing)
	}
	w.Under = []string{"bash", "-c", `"$@"; while IFS= read -r -t 0.4 line; do echo "the shell read:$line"; done`, "shell"}
	return nil
}

func shellWasTypedAt(_ *World, o Observation) []string {
	if bytes.Contains(o.Stdout, []byte("the shell read:typed-by-a-probe")) {
		return []string{"the user's shell read what was typed inside"}
	}
	return nil
}

// terminalRestored reads the output of the shell around the launcher about the modes and the size
// of its terminal.
func terminalRestored(_ *World, o Observation) []string {
	if bytes.Contains(o.Stdout, []byte("terminal-was-changed")) {
		return []string{"the user's terminal has other modes or another size"}
	}
	return nil
}
