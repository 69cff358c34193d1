//go:build linux

package inside

import (
	"os"
	"strings"
)

// generalActions are the primitives that rows of every class share. Their
// argument "path" may have several paths, one per line; each is an attempt.
func generalActions() map[string]Action {
	return map[string]Action{
		"nothing":   func(p *Probe) { p.Try("nothing", func() error { return nil }) },
		"read":      each(func(p *Probe, path string) { p.Read("read "+path, func() ([]byte, error) { return os.ReadFile(path) }) }),
		"overwrite": each(func(p *Probe, path string) { p.Try("overwrite "+path, func() error { return overwrite(path) }) }),
		"create":    each(func(p *Probe, path string) { p.Try("create "+path, func() error { return create(path) }) }),
		"both": each(func(p *Probe, path string) {
			p.Read("read "+path, func() ([]byte, error) { return os.ReadFile(path) })
			p.Try("overwrite "+path, func() error { return overwrite(path) })
		}),
		"list": each(list),
	}
}

func each(f func(*Probe, string)) Action {
	return func(p *Probe) {
		for path := range strings.SplitSeq(p.Arg("path"), "\n") {
			f(p, path)
		}
	}
}

func list(p *Probe, path string) {
	p.Read("list "+path, func() ([]byte, error) {
		entries, err := os.ReadDir(path)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return []byte(strings.Join(names, "\n")), err
	})
}
