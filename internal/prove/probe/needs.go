//go:build linux

package probe

import (
	"errors"
	"os"
	"os/exec"
	"strings"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// ErrMissing is wrapped by a set-up that finds that the host lacks something.
var ErrMissing = errors.New("precondition missing")

// unmetNeed returns the first need that the host does not meet, or "".
func (n Runner) unmetNeed(needs []string) string {
	for _, need := range needs {
		if need == "network" {
			if n.Outside == nil {
				return need
			}
			continue
		}
		if line, ok := strings.CutPrefix(need, "runs "); ok {
			if !n.shellSucceeds(line) {
				return line
			}
			continue
		}
		if program, ok := strings.CutPrefix(need, "program "); ok {
			if !inside.OnSystemPath(program) {
				return program
			}
			continue
		}
		met, ok := hostHas[need]
		if !ok {
			return need + " (unknown)"
		}
		if !met() {
			return need
		}
	}
	return ""
}

// shellSucceeds reports whether a shell command succeeds on this host. The result is
// cached, because many rows need the same.
func (n Runner) shellSucceeds(line string) bool {
	if known, ok := n.host.Load(line); ok {
		return known.(bool)
	}
	// A name on the path may be a shim that needs a home, and must leave nothing in one.
	c := exec.Command("sh", "-c", line)
	c.Env = []string{"HOME=/dev/null", "PATH=" + os.Getenv("PATH")}
	well := c.Run() == nil
	n.host.Store(line, well)
	return well
}

// isMissing reports whether an error means that the host or the target lacks
// something.
func isMissing(err error) bool { return errors.Is(err, ErrUnsupported) || errors.Is(err, ErrMissing) }

// hostHas are the preconditions that a row may name in Needs.
var hostHas = map[string]func() bool{
	"second group": func() bool { _, has := secondGroup(); return has },
	"root":         func() bool { return os.Geteuid() == 0 },
	"user":         func() bool { return os.Geteuid() != 0 },
	"sysrq":        func() bool { return exists("/proc/sysrq-trigger") },
	"binfmt_misc":  func() bool { return exists("/proc/sys/fs/binfmt_misc/register") },
	"bwrap":        func() bool { return onPath("bwrap") },
	"tar":          func() bool { return onPath("tar") },
	"git":          func() bool { return onPath("git") },
	"bash":         func() bool { return onPath("bash") },
	"python":       func() bool { return onPath("python3") },
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
