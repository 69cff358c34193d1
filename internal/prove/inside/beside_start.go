//go:build linux

package inside

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// besideStartActions are for a run that is started while another one exchanges
// names.
func besideStartActions() map[string]Action {
	return map[string]Action{
		"write-pairs":    writePairs,
		"exchange-pairs": exchangePairs,
	}
}

// pairs returns the directories below the argument "pairs", each with the
// directories a and b.
func (p *Probe) pairs() []string {
	found, _ := filepath.Glob(p.Arg("pairs") + "/*")
	return found
}

// exchangePairs exchanges a and b of each pair until the other run is done.
func exchangePairs(p *Probe) {
	dirs := p.pairs()
	exchange := func(dir string) error {
		return unix.Renameat2(unix.AT_FDCWD, dir+"/a", unix.AT_FDCWD, dir+"/b", unix.RENAME_EXCHANGE)
	}
	honest := medianTime(func() { _ = exchange(dirs[0]) })
	var over atomic.Bool
	begun := time.Now()
	go func() {
		for p.await("over") != nil && time.Since(begun) < longest {
		}
		over.Store(true)
	}()
	p.Control("say that it runs", func() error { return create(p.In("W", "beside")) })
	tried := 0
	for !over.Load() {
		for _, dir := range dirs {
			_ = exchange(dir)
			tried++
		}
	}
	p.raced("exchange directories while another run is started", tried, honest, func() error { return nil })
}

// writePairs writes to both files of each pair, whichever they currently are.
func writePairs(p *Probe) {
	wrote := 0
	try := func() {
		for _, dir := range p.pairs() {
			for _, name := range []string{"/a/f", "/b/f"} {
				if err := os.WriteFile(dir+name, []byte(mark), 0o644); err == nil {
					wrote++
				}
			}
		}
	}
	honest := medianTime(try)
	tried := 0
	for ; tried < 100; tried++ {
		try()
	}
	p.raced("write through the names", tried, honest, func() error {
		if wrote == 0 {
			return unix.EROFS
		}
		return nil
	})
}
