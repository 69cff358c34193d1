//go:build linux

package probe

import (
	"maps"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// record is what must be seen of a row, as written: see [Trace].
type record struct {
	None   string     `yaml:"none" json:"none,omitempty"`
	Events []sighting `yaml:"events" json:"events,omitempty"`
	Alerts []string   `yaml:"alerts" json:"alerts,omitempty"`
}

// sighting is one event for each action with each of the objects, or of the arguments.
type sighting struct {
	Denied  string   `yaml:"denied" json:"denied,omitempty"` // the layer that denied it; "any" for any layer
	Action  words    `yaml:"action" json:"action,omitempty"`
	Verdict string   `yaml:"verdict" json:"verdict,omitempty"`
	Error   string   `yaml:"error" json:"error,omitempty"`
	ByStat  bool     `yaml:"by_stat" json:"by_stat,omitzero"`
	Objects []string `yaml:"objects" json:"objects,omitempty"`
	Args    []string `yaml:"args" json:"args,omitempty"`
}

// words is one text or several.
type words []string

// UnmarshalYAML implements [yaml.Unmarshaler].
func (w *words) UnmarshalYAML(decode func(any) error) error {
	var single string
	if decode(&single) == nil {
		*w = words{single}
		return nil
	}
	return decode((*[]string)(w))
}

func (r record) trace() Trace {
	t := Trace{None: r.None, Rules: r.Alerts}
	for _, s := range r.Events {
		for _, action := range orNone(s.Action) {
			for _, object := range orNone(s.Objects) {
				for _, arg := range orNone(s.Args) {
					a := Attempt{Action: action, Object: object, Arg: arg, Verdict: s.Verdict, Error: s.Error, ByStat: s.ByStat}
					if s.Denied != "" {
						a.Verdict, a.Layer = "denied", strings.TrimPrefix(s.Denied, "any")
					}
					t.Events = append(t.Events, a)
				}
			}
		}
	}
	return t
}

// orNone returns list, or one empty text.
func orNone(list []string) []string {
	if len(list) == 0 {
		return []string{""}
	}
	return list
}

// nameLists are names below the workspace or the home that an action writes, all in
// the same way: existing ones and new ones.
type nameLists struct {
	There []string `yaml:"there"`
	New   []string `yaml:"new"`
}

const usersOwn = "# the user's own\n"

// spread makes files, paths and events from the names of a row.
func (e *rowData) spread() {
	if e.Names == nil {
		return
	}
	e.Files = map[string]string{}
	var paths []string
	seen := sighting{Action: words{"file.write"}}
	switch e.Action {
	case "rewrite-names":
		for _, n := range e.Names.There {
			paths = append(paths, "W/"+n, "W/packages/deep/"+n)
		}
		e.Keep, seen.Denied = paths, "protected"
		e.give(paths...)
	case "plant-names":
		for _, n := range e.Names.New {
			paths = append(paths, "W/"+n)
			for _, dir := range []string{"W/", "W/n1/pkg/", "W/n2/", "W/n3/", "W/n4/", "W/n5/"} {
				e.Absent = append(e.Absent, dir+n)
			}
			e.Absent = append(e.Absent, "W/n6/"+strings.ToUpper(n))
		}
	case "write-names", "map-names", "write-second":
		e.give(below("W/", e.Names.There)...)
		paths = append(slices.Sorted(maps.Keys(e.Files)), below("W/", e.Names.New)...)
	case "home-names":
		paths = below("H/", append(e.Names.There, e.Names.New...))
		for _, n := range below("H/", e.Names.There) {
			if n != "H/.bashrc" { // every world has one
				e.Keep = append(e.Keep, n)
			}
		}
		e.give(e.Keep...)
		for _, n := range below("H/", e.Names.New) {
			if n != "H/.bashrc" {
				e.Absent = append(e.Absent, n, n+".probe")
			}
		}
	}
	e.Args = append(e.Args, "path="+strings.Join(paths, "\n"))
	if len(e.Record.Events) == 0 {
		seen.Objects = paths
		e.Record.Events = []sighting{seen}
	}
}

// give makes files that belong to the user.
func (e *rowData) give(paths ...string) {
	for _, p := range paths {
		e.Files[p] = usersOwn
	}
}

func below(dir string, names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = dir + n
	}
	return out
}

// spelling is one of several ways to one wall. Sh is short for the command of a
// shell.
type spelling struct {
	inside.Trick `yaml:",inline"`
	Sh           string `yaml:"sh" json:"-"`
	Bash         string `yaml:"bash" json:"-"`
	Zsh          string `yaml:"zsh" json:"-"`
}

func (s *spelling) complete() {
	switch {
	case s.Sh != "":
		s.Argv = []string{"sh", "-c", s.Sh}
	case s.Bash != "":
		s.Argv = []string{"bash", "-c", s.Bash}
	case s.Zsh != "":
		s.Argv = []string{"zsh", "-fc", s.Zsh}
	}
}

func tricks(spellings []spelling) []inside.Trick {
	var out []inside.Trick
	for _, s := range spellings {
		out = append(out, s.Trick)
	}
	return out
}

// asksForKey is the secret that spellings print.
const asksForKey = "H/.ssh/id_probe"

// seenOf returns what must be seen of spellings: each file that should have been
// made and was not, the secret that was asked for, and that a connection was
// tried.
func seenOf(spellings []spelling) (out []sighting) {
	add := func(s sighting) {
		if !slices.ContainsFunc(out, func(o sighting) bool { return slices.Equal(o.Objects, s.Objects) && slices.Equal(o.Action, s.Action) }) {
			out = append(out, s)
		}
	}
	for _, t := range spellings {
		switch t.Effect {
		case inside.Makes:
			add(sighting{Objects: []string{askedFor(t)}, Denied: "any", ByStat: t.ByStat})
		case inside.Prints:
			add(sighting{Objects: []string{asksForKey}, Denied: "any", ByStat: t.ByStat})
		case inside.Dials:
			add(sighting{Action: words{"sock.connect"}})
		}
	}
	return out
}

// askedFor returns what a spelling that makes something asks for, as far as it is
// known.
func askedFor(t spelling) string {
	switch {
	case t.Asks != "":
		return t.Asks
	case t.Target == "":
		return "O/x-" + t.Name
	case strings.HasPrefix(t.Target, "{X}"):
		return "O/x-" + t.Name + "*"
	}
	return "O/*"
}
