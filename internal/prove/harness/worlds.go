//go:build linux

package harness

import (
	"errors"
	"fmt"
	"strings"

	"holdfast.dev/holdfast/internal/prove/probe"
)

// World is the setting in which rows are played: the layout of directories, and
// what the machine has.
type World struct {
	Name  string
	Title string

	layout probe.Layout
	second bool          // another hostile run is alive in the same workspace
	made   probe.Machine // "" for this machine as it is
}

// DefaultWorld is where most users' projects are.
const DefaultWorld = "home"

// Worlds returns all worlds, the default one first.
func Worlds() []World {
	return []World{
		{Name: DefaultWorld, Title: "the workspace lies below the home, beside other projects", layout: probe.LayoutHome},
		{Name: "siblings", Title: "the workspace and the home lie side by side", layout: probe.LayoutSiblings},
		{Name: "srv", Title: "the workspace lies below /srv", layout: probe.LayoutApart, made: probe.BelowSrv},
		{Name: "linked", Title: "the home, and so the workspace, is named by a symbolic link", layout: probe.LayoutLinked},
		{Name: "tmpfs", Title: "everything lies on a tmpfs", layout: probe.LayoutHome, made: probe.OnTmpfs},
		{Name: probe.WorldWorktree, Title: "the workspace is a linked worktree", layout: probe.LayoutWorktree},
		{Name: "subdirectory", Title: "the workspace is a subdirectory of a repository", layout: probe.LayoutSub},
		{Name: probe.WorldSecondRun, Title: "a second hostile run is alive in the same workspace", layout: probe.LayoutHome, second: true},
		{Name: "no-fuse", Title: "/dev/fuse cannot be opened", layout: probe.LayoutHome, made: probe.WithoutFuse},
		{Name: "no-cgroup", Title: "there are no control groups", layout: probe.LayoutHome, made: probe.WithoutGroups},
	}
}

// WorldsNamed returns the world of that name; "all" returns every one.
func WorldsNamed(name string) ([]World, error) {
	all := Worlds()
	if name == "all" {
		return all, nil
	}
	for _, w := range all {
		if w.Name == name {
			return []World{w}, nil
		}
	}
	return nil, fmt.Errorf("no world is called %q; the worlds are: %s", name, strings.Join(WorldNames(), ", "))
}

// WorldNames returns the names of all worlds, the default one first.
func WorldNames() []string {
	var names []string
	for _, w := range Worlds() {
		names = append(names, w.Name)
	}
	return names
}

// ErrMeaningless means that no row of a selection has a meaning in a world.
var ErrMeaningless = errors.New("none of these rows applies there")

// Except returns why r has no meaning in w; "" if it is played.
func (w World) Except(r probe.Row) string { return r.NotIn[w.Name] }

// runner plays rows in w, in this process.
func (w World) runner(p *Place) probe.Runner {
	r := probe.Runner{Prober: p.Prober, Dir: p.Dir, Layout: w.layout, Second: w.second}
	if w.made == probe.BelowSrv {
		r.Apart = "/srv"
	}
	return r
}
