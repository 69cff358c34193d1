package story

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/event"
)

// Dropped is a path that was made or written in the private home and was lost with it.
type Dropped struct {
	Path      string `json:"path"` // absolute, as inside
	Directory bool   `json:"directory,omitempty"`

	// Git says that the directory was one of git's: a "worktree", of which
	// Metadata is what its repository keeps, or a "repository" of its own.
	Git      string `json:"git,omitempty"`
	Metadata string `json:"metadata,omitempty"` // "" where it is not known
}

// maxDropped is how many paths a collector knows, and of how many worktrees.
const maxDropped = 1000

// Drops collects what is lost with the private home: paths that a user would
// look for, without those that were removed again. The content of a directory
// that was made there is not listed separately. What a program makes for itself
// is not counted, see detect.Place.Personal. It is for one goroutine.
type Drops struct {
	place detect.Place
	paths map[string]*Dropped
	trees map[int]string // metadata that a process made last for a worktree
	more  uint64
}

// NewDrops begins the collection of a session.
func NewDrops(place detect.Place) *Drops {
	return &Drops{place: place, paths: map[string]*Dropped{}, trees: map[int]string{}}
}

// Add takes the next event.
func (d *Drops) Add(e *event.Event) {
	if e.Verdict != event.Allowed || e.Error != "" {
		return
	}
	at := cmp.Or(e.Resolved, e.Object)
	if e.Detail[event.DetailKept] == "" {
		if e.Action == event.FileMkdir && strings.HasSuffix(path.Dir(at), "/worktrees") && len(d.trees) < maxDropped {
			d.trees[e.Process.PID] = strings.Clone(at)
		}
		return
	}
	switch e.Action {
	case event.FileWrite, event.FileTruncate, event.FileMknod, event.FileLink, event.FileSymlink:
		if path.Base(at) == ".git" && e.Action == event.FileWrite {
			d.git(path.Dir(at), "worktree", d.trees[e.Process.PID])
		}
		d.add(at, &Dropped{})
	case event.FileMkdir:
		if path.Base(at) == ".git" {
			d.git(path.Dir(at), "repository", "")
		}
		d.add(at, &Dropped{Directory: true})
	case event.FileUnlink:
		delete(d.paths, at)
	case event.FileRename:
		if e.Detail["how"] == "exchange" {
			return
		}
		d.rename(at, cmp.Or(e.Detail["to_resolved"], e.Detail["to"]))
	}
}

// git notes what a directory is to git.
func (d *Drops) git(dir, is, metadata string) {
	d.add(dir, &Dropped{Directory: true})
	if one := d.paths[dir]; one != nil {
		one.Git, one.Metadata = is, metadata
	}
}

// add notes a path, unless one above it is noted.
func (d *Drops) add(at string, one *Dropped) {
	if d.paths[at] != nil || !d.place.Personal(at) {
		return
	}
	for up := path.Dir(at); len(up) > len(d.place.Home); up = path.Dir(up) {
		if have := d.paths[up]; have != nil && have.Directory {
			return
		}
	}
	if len(d.paths) >= maxDropped {
		d.more++
		return
	}
	one.Path = strings.Clone(at)
	d.paths[one.Path] = one
}

// rename moves what is noted of a path, and of all below it, to another.
func (d *Drops) rename(from, to string) {
	moved := map[string]*Dropped{to: {}}
	for at, one := range d.paths {
		if at == from || strings.HasPrefix(at, from+"/") {
			moved[to+at[len(from):]] = one
			delete(d.paths, at)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(moved)) {
		d.add(at, moved[at])
	}
}

// List returns the paths, sorted, and how many changes there were of others.
func (d *Drops) List() ([]Dropped, uint64) {
	var out []Dropped
	for _, at := range slices.Sorted(maps.Keys(d.paths)) {
		out = append(out, *d.paths[at])
	}
	return out, d.more
}
