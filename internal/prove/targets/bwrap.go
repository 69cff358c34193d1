//go:build linux

package targets

import (
	"strings"

	"holdfast.dev/holdfast/internal/prove/probe"
)

// bwrapSpec has no policy of its own ("the level of protection is entirely
// determined by the arguments", README.md, "Limitations"): it is called in the
// common way.
var bwrapSpec = spec{
	name: "bwrap", install: "sudo apt-get install bubblewrap", version: []string{"--version"},
	call: bwrapCall, refused: refusedByPrefix("bwrap: "),
}

// bwrapCall follows bwrap(1) and the project's demos/bubblewrap-shell.sh:
// everything visible read-only, new namespaces of every kind, a new session
// against TIOCSTI (README.md, CVE-2017-5226), and death with the parent.
func bwrapCall(p Peer, w *probe.World, c probe.Command, run invocation) (call, error) {
	if err := missingOption(c.Options, "read write env terminal"); err != nil {
		return call{}, err
	}
	args := []string{p.Path, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
		"--unshare-all", "--new-session", "--die-with-parent", "--cap-drop", "ALL", "--bind", w.W, w.W}
	for _, path := range expandPaths(w, c.Options.Write) {
		args = append(args, "--bind", path, path)
	}
	for _, e := range c.Options.Env {
		if k, v, ok := strings.Cut(e, "="); ok {
			args = append(args, "--setenv", k, v)
		}
	}
	args = append(args, "--chdir", w.W, "--")
	return call{argv: append(args, run.argv...)}, nil
}
