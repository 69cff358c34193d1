//go:build linux

package inside

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// besideActions are for two runs alive in one workspace: the second plants names
// and exchanges them while the first ends and is settled.
func besideActions() map[string]Action {
	return map[string]Action{
		"end-while-others-plant": endWhileOthersPlant,
		"plant-and-exchange":     plantAndExchange,
		"roam":                   roam,
	}
}

// endWhileOthersPlant is the run that ends: it waits until the other has planted.
func endWhileOthersPlant(p *Probe) {
	p.Control("say that it runs", func() error { return create(p.In("W", "begun")) })
	p.Try("end while another run has planted names", func() error { return p.await("planted") })
}

// plantAndExchange makes count directories, each with a file named name, of the
// kind what, and a link to target beside it, and exchanges the two until the
// launcher of the other run is done. If again is set, it makes again what the
// launcher takes away.
func plantAndExchange(p *Probe) {
	count, _ := strconv.Atoi(p.Arg("count"))
	p.Control("say that it runs", func() error { return create(p.In("W", "beside")) })
	p.Control("wait for the other run", func() error { return p.await("begun") })
	at := func(i int, name string) string { return p.In("W", "many", strconv.Itoa(i), name) }
	planted := func(i int) error {
		name, link := at(i, p.Arg("name")), at(i, "link")
		return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), plantAs(p.Arg("what"), name), os.Symlink(p.Arg("target"), link))
	}
	p.Control("plant", func() error {
		var errs []error
		for i := range count {
			errs = append(errs, planted(i))
		}
		return errors.Join(errs...)
	})
	p.Try("change the mode of what the links lead to", func() error { return os.Chmod(at(0, "link"), 0o666) })
	exchange := func(i int) error {
		return unix.Renameat2(unix.AT_FDCWD, at(i, p.Arg("name")), unix.AT_FDCWD, at(i, "link"), unix.RENAME_EXCHANGE)
	}
	honest := medianTime(func() { _ = exchange(0) })
	var over atomic.Bool
	go func() { _ = p.await("over"); over.Store(true) }()
	p.Control("say what it has planted", func() error { return create(p.In("W", "planted")) })
	tried := 0
	for begun := time.Now(); !over.Load() && time.Since(begun) < time.Minute; {
		for i := range count {
			if err := exchange(i); err != nil && p.Arg("again") != "" {
				_ = planted(i)
			}
			tried++
		}
	}
	p.raced("exchange names while another run is settled", tried, honest, func() error { return nil })
}

// plantAs makes a file of a kind.
func plantAs(what, path string) error {
	switch what {
	case "closed": // a directory that is opened again for inspection
		return errors.Join(os.Mkdir(path, 0o755), os.WriteFile(path+"/file", []byte(mark), 0o644), os.Chmod(path, 0))
	case "fixed": // a directory that its owner cannot move
		return errors.Join(os.Mkdir(path, 0o755), os.WriteFile(path+"/tasks.json", []byte(mark), 0o644), os.Chmod(path, 0o555))
	}
	return errors.Join(os.WriteFile(path, []byte(mark), 0o666), os.Chmod(path, 0o666))
}

// roam is a second run beside any other: until the other is over it exchanges a
// directory of its own with a link to the outside, and tries to read through it.
func roam(p *Probe) {
	own, link := p.In("W", ".roam", "d"), p.In("W", ".roam", "l")
	p.Control("say that it runs", func() error {
		return errors.Join(os.MkdirAll(own, 0o755), os.Symlink(p.Arg("O"), link), create(p.In("W", "beside")))
	})
	for begun := time.Now(); time.Since(begun) < longest; {
		if _, err := os.Lstat(p.In("W", "over")); err == nil {
			break
		}
		_ = unix.Renameat2(unix.AT_FDCWD, own, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		if b, err := os.ReadFile(own + "/canary"); err == nil {
			p.Read("read outside by a link that is exchanged", func() ([]byte, error) { return b, nil })
		}
		time.Sleep(time.Millisecond)
	}
	outside := p.Arg("outside")
	if outside == "" {
		p.Try("write beside another run", func() error { return create(p.In("W", ".roam", "f")) })
		return
	}
	p.Read("read outside beside another run", func() ([]byte, error) {
		b, err := os.ReadFile(outside)
		if errors.Is(err, unix.ENOENT) { // not in view: a denial, whatever the row counts as one
			err = unix.EACCES
		}
		return b, err
	})
}
