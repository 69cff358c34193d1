//go:build linux

package inside

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// endsActions are for runs that end in unusual ways, and for what the end of a
// run has to inspect.
func endsActions() map[string]Action {
	return map[string]Action{
		"leave-costly":    leaveCostly,
		"plant-and-stay":  plantAndStay,
		"write-when-over": writeWhenOver,
	}
}

// large is the size of a file that takes no space but long to read.
const large = 200 << 20

// leaveCostly leaves count repositories that are costly to judge, with names that
// the host executes before, among and after them.
func leaveCostly(p *Probe) {
	count, _ := strconv.Atoi(p.Arg("count"))
	p.Try(fmt.Sprintf("leave %d repositories that are costly to judge", count), func() error {
		errs := []error{create(p.In("W", ".envrc"))}
		for i := range count {
			dir := p.In("W", "costly", strconv.Itoa(i))
			errs = append(errs, costlyRepository(p.Arg("kind"), filepath.Join(dir, ".git")), create(filepath.Join(dir, ".envrc")))
		}
		return errors.Join(append(errs, create(p.In("W", "zz", ".envrc")), create(p.In("W", "left")))...)
	})
}

// costlyRepository makes a repository with one large file of that kind.
func costlyRepository(kind, git string) error {
	file, start := "index", "DIRC\x00\x00\x00\x02\x00\x0f\xff\xff"
	if kind == "packed-refs" {
		id := strings.Repeat("0", 39)
		file, start = "packed-refs", id+"1 refs/replace/"+id+"2\n"
	}
	errs := []error{os.MkdirAll(filepath.Join(git, "objects"), 0o755), os.MkdirAll(filepath.Join(git, "refs"), 0o755)}
	errs = append(errs, os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644),
		os.WriteFile(filepath.Join(git, file), []byte(start), 0o644), os.Truncate(filepath.Join(git, file), large))
	return errors.Join(errs...)
}

// plantAndStay makes names that the host executes, and writes to W/beat until a
// file named over is in its directory. It ignores signals that would end it.
func plantAndStay(p *Probe) {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	each(func(p *Probe, path string) { p.Try("make "+path, func() error { return create(path) }) })(p)
	for i := range 3000 {
		if _, err := os.Lstat("over"); err == nil {
			return
		}
		_ = os.WriteFile("beat", []byte(strconv.Itoa(i)), 0o644)
		time.Sleep(10 * time.Millisecond)
	}
}

// writeWhenOver writes to paths after the outside has done its part.
func writeWhenOver(p *Probe) {
	p.Control("say that it runs", func() error { return create(p.In("W", "up")) })
	p.Control("wait for the outside", func() error { return p.await("over") })
	each(func(p *Probe, path string) { p.Try("overwrite "+path, func() error { return overwrite(path) }) })(p)
}
