//go:build linux

package gate

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// maxChain is how many processes of the chain to a request are named.
const maxChain = 8

// processChain lists the processes that led to an attempt, the nearest first,
// as far as they are inside. A process chooses what it says about itself.
func processChain(p event.Process) []consent.Asker {
	var out []consent.Asker
	self := os.Getpid()
	for pid := p.PID; pid > 1 && pid != self && len(out) < maxChain; {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		exe, err := os.Readlink(filepath.Join(dir, "exe"))
		if err != nil {
			break
		}
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // without it the program is still named
		asker := consent.Asker{PID: pid, Executable: exe}
		if text := strings.TrimSuffix(string(command[:min(len(command), 4<<10)]), "\x00"); text != "" {
			asker.Argv = strings.Split(text, "\x00")
		}
		out = append(out, asker)
		if pid, err = parentOf(dir); err != nil {
			break
		}
	}
	for range 2 { // the first two inside are ours; others that call themselves so are not left out
		if n := len(out); n > 0 && strings.HasPrefix(out[n-1].Executable, "/memfd:holdfast-") {
			out = out[:n-1]
		}
	}
	return out
}

// parentOf is the parent of the process whose directory in /proc is dir.
func parentOf(dir string) (int, error) {
	fields, err := sys.StatFields(dir)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(fields[sys.StatParent])
}
