//go:build linux

package targets

import (
	"fmt"
	"time"

	"holdfast.dev/holdfast/internal/prove/probe"
)

var firejailSpec = spec{
	name: "firejail", install: "sudo apt-get install firejail", version: []string{"--version"},
	call: firejailCall, refused: refusedByPrefix("Error"),
}

// firejailCall is default.profile, which root does not get automatically (no
// capabilities, no new privileges, a system call filter, no namespaces: these
// must not be given twice), plus options of firejail(1): only the workspace
// visible in the home (--whitelist), the rest read-only, no network, and nothing
// shared with other processes.
func firejailCall(p Peer, w *probe.World, c probe.Command, run invocation) (call, error) {
	o := c.Options
	if err := missingOption(o, "read write hide env files filesize time terminal"); err != nil {
		return call{}, err
	}
	args := []string{p.Path, "--quiet", "--deterministic-exit-code", "--deterministic-shutdown", "--profile=default", "--net=none",
		"--ipc-namespace", "--private-dev", "--private-tmp", "--private-cache", "--nodbus", "--x11=none", "--read-only=/", "--whitelist=" + w.W, "--read-write=" + w.W}
	for _, path := range expandPaths(w, o.Write) {
		args = append(args, "--whitelist="+path, "--read-write="+path)
	}
	for _, path := range expandPaths(w, o.Read) {
		args = append(args, "--whitelist="+path, "--read-only="+path)
	}
	for _, path := range expandPaths(w, o.Hide) {
		args = append(args, "--blacklist="+path)
	}
	if o.Files > 0 {
		args = append(args, fmt.Sprintf("--rlimit-nofile=%d", o.Files))
	}
	if o.FileSize > 0 {
		args = append(args, fmt.Sprintf("--rlimit-fsize=%d", o.FileSize))
	}
	// --rlimit-nproc and --rlimit-as do not limit everything inside together: the
	// one also counts the user's other processes, the other applies to each
	// process.
	if o.Time > 0 {
		s := max(int(o.Time/time.Second), 1)
		args = append(args, fmt.Sprintf("--timeout=%02d:%02d:%02d", s/3600, s/60%60, s%60))
	}
	return call{argv: append(append(args, "--"), run.argv...), env: o.Env}, nil
}
