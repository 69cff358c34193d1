//go:build linux

package probe

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// rowFiles are the rows, one file a class: docs/formats/rows.md describes them.
//
//go:embed rows
var rowFiles embed.FS

// Names of worlds in which some rows have no meaning. They are those of
// harness.Worlds.
const (
	WorldWorktree  = "worktree"
	WorldSecondRun = "second-run"
)

// rowsVersion is the version of the format that this build reads.
const rowsVersion = 1

// class is one file of rows.
type class struct {
	Version  int       `yaml:"version"`
	Class    string    `yaml:"class"`
	Defaults rowData   `yaml:"defaults"` // for rows that do not set them
	Rows     []rowData `yaml:"rows"`
}

// rowData is a row as written in a file. Omitted fields have their zero value,
// except the kind, which is sandbox.
type rowData struct {
	ID      string   `yaml:"id" json:"id"`
	Class   string   `yaml:"-" json:"class"`
	Title   string   `yaml:"title" json:"title"`
	Promise Promise  `yaml:"promise" json:"promise"`
	Kind    Kind     `yaml:"kind" json:"kind"`
	Core    bool     `yaml:"core" json:"core,omitzero"`
	Refs    []string `yaml:"refs" json:"refs"`

	Needs     []string          `yaml:"needs" json:"needs,omitempty"`
	Arch      string            `yaml:"arch" json:"arch,omitempty"`
	ABI       string            `yaml:"abi" json:"abi,omitempty"`
	Workspace string            `yaml:"workspace" json:"workspace,omitempty"`
	Names     *nameLists        `yaml:"names" json:"-"` // see [rowData.spread]
	Files     map[string]string `yaml:"files" json:"files,omitempty"`
	Links     map[string]string `yaml:"links" json:"links,omitempty"`
	Plant     []string          `yaml:"plant" json:"plant,omitempty"`
	Prepare   []step            `yaml:"prepare" json:"prepare,omitempty"`
	Shared    []string          `yaml:"shared" json:"shared,omitempty"`
	Keep      []string          `yaml:"keep" json:"keep,omitempty"`
	Absent    []string          `yaml:"absent" json:"absent,omitempty"`

	Action    string     `yaml:"action" json:"action,omitempty"`
	Args      argList    `yaml:"args" json:"args,omitempty"`
	Plants    []planted  `yaml:"plants" json:"plants,omitempty"`
	Each      spelling   `yaml:"each" json:"-"` // what all spellings have
	Spellings []spelling `yaml:"spellings" json:"spellings,omitempty"`
	Options   Options    `yaml:"options" json:"options,omitzero"`
	Drive     []step     `yaml:"drive" json:"drive,omitempty"`
	Beside    *Command   `yaml:"beside" json:"beside,omitempty"`
	Timeout   limit      `yaml:"timeout" json:"timeout,omitzero"`

	Accept       []string `yaml:"accept" json:"accept,omitempty"`
	AcceptOnly   []string `yaml:"accept_only" json:"accept_only,omitempty"`
	Harmless     string   `yaml:"harmless" json:"harmless,omitempty"`
	RefusalHolds bool     `yaml:"refusal_holds" json:"refusal_holds,omitzero"`
	Residual     string   `yaml:"residual" json:"residual,omitempty"`
	Judge        []step   `yaml:"judge" json:"judge,omitempty"`
	Proof        bool     `yaml:"proof" json:"proof,omitzero"`
	Record       record   `yaml:"record" json:"record,omitzero"`

	OwnRepository bool   `yaml:"own_repository" json:"own_repository,omitzero"`
	OwnLauncher   bool   `yaml:"own_launcher" json:"own_launcher,omitzero"`
	Alone         string `yaml:"alone" json:"alone,omitempty"`
	Timed         bool   `yaml:"timed" json:"timed,omitzero"`
	Least         int    `yaml:"least" json:"least,omitzero"`
	Bare          string `yaml:"bare" json:"bare,omitempty"`
	BareUser      string `yaml:"bare_user" json:"bare_user,omitempty"`
}

// limit is a duration, written as in Go: 20s, 1m30s.
type limit time.Duration

func (l limit) MarshalText() ([]byte, error) { return []byte(time.Duration(l).String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (l *limit) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	*l = limit(d)
	return err
}

// All returns every row, class by class. It panics if the files of this build
// cannot be read, which a test would have shown.
func All() []Row {
	rows, err := bound()
	if err != nil {
		panic("probe: " + err.Error())
	}
	return rows
}

// read returns the entries, which are read once.
var read = sync.OnceValues(func() ([]rowData, error) { return entries(true) })

// bound makes rows of the entries. State that their code keeps belongs to these
// rows alone.
func bound() (rows []Row, err error) {
	all, err := read()
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		if e.Arch != "" && e.Arch != runtime.GOARCH {
			continue
		}
		r, wrong := e.row()
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", e.ID, wrong))
		}
		rows = append(rows, r)
	}
	return rows, err
}

// entries reads the files, in the order in which reports have the classes. If
// filled, placeholders that mean the same in every world are replaced.
func entries(filled bool) (all []rowData, err error) {
	for _, name := range classes {
		b, wrong := fs.ReadFile(rowFiles, "rows/"+name+".yaml")
		if wrong != nil {
			return nil, wrong
		}
		c := class{}
		d := yaml.NewDecoder(bytes.NewReader(b))
		d.KnownFields(true)
		wrong = d.Decode(&c)
		switch {
		case wrong != nil:
		case d.Decode(new(any)) != io.EOF:
			wrong = errors.New("more than one document")
		case c.Version != rowsVersion || c.Class != name:
			wrong = fmt.Errorf("version %d of class %s: %w", c.Version, c.Class, errors.ErrUnsupported)
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("rows/%s.yaml: %w", name, wrong))
		}
		if filled && placeholder().Match(b) {
			fill(reflect.ValueOf(&c).Elem())
		}
		for _, e := range c.Rows {
			e.complete(c)
			all = append(all, e)
		}
	}
	return all, err
}

// complete adds what a file sets for all its rows, and what follows from the
// existing fields.
func (e *rowData) complete(c class) {
	e.Class = c.Class
	inherited(reflect.ValueOf(e).Elem(), reflect.ValueOf(c.Defaults))
	if e.Kind == "" {
		e.Kind = Sandbox
	}
	e.spread()
	for i := range e.Spellings {
		s := &e.Spellings[i]
		inherited(reflect.ValueOf(&s.Trick).Elem(), reflect.ValueOf(e.Each.Trick))
		s.complete()
	}
	if len(e.Spellings) > 0 && len(e.Record.Events) == 0 {
		e.Record.Events = append(e.Record.Events, seenOf(e.Spellings)...)
	}
}

// inherited sets the zero fields of v to those of defaults.
func inherited(v, defaults reflect.Value) {
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			v.Field(i).Set(defaults.Field(i))
		}
	}
}

// row binds a rowData to the code of this runner.
func (e rowData) row() (Row, error) {
	r := Row{ID: e.ID, Class: e.Class, Title: e.Title, Promise: e.Promise, Kind: e.Kind, Core: e.Core, Refs: e.Refs,
		Workspace: e.Workspace, Needs: e.Needs, Files: e.Files, Links: e.Links, Plant: e.Plant, Shared: e.Shared, Keep: e.Keep, Absent: e.Absent,
		Action: e.Action, Args: slices.Clip(e.Args), Spellings: tricks(e.Spellings), Options: e.Options, Beside: e.Beside, Timeout: time.Duration(e.Timeout),
		Harmless: e.Harmless, RefusalHolds: e.RefusalHolds, Residual: e.Residual, Proof: e.Proof, Trace: e.Record.trace(), NotIn: map[string]string{},
		Alone: e.Alone, Timed: e.Timed, Least: e.Least, Bare: e.Bare, BareUser: e.BareUser}
	switch {
	case e.AcceptOnly != nil:
		r.Accept = e.AcceptOnly
	case e.Accept != nil:
		r.Accept = slices.Concat(e.Accept, Denials)
	}
	if e.Plants != nil {
		r.Args = append(r.Args, plantsArg(e.Plants))
	}
	if e.ABI != "" {
		r.Bare = withoutABI(e.ABI)
	}
	var wrong [3]error
	if len(e.Prepare) > 0 {
		r.Setup, wrong[0] = inTurn(e.Prepare)
	}
	if len(e.Judge) > 0 {
		r.Oracle, wrong[1] = e.oracle()
	}
	switch {
	case len(e.Drive) == 1:
		wrong[2] = e.Drive[0].bind(&r.Drive)
	case len(e.Drive) > 1:
		wrong[2] = errors.New("drive must have exactly one step")
	}
	r.limitWorlds(e)
	return r, errors.Join(wrong[:]...)
}

// inTurn runs the steps of a preparation one after the other, until one fails.
func inTurn(steps []step) (func(*World) error, error) {
	all := make([]func(*World) error, len(steps))
	var wrong error
	for i, s := range steps {
		wrong = errors.Join(wrong, s.bind(&all[i]))
	}
	return func(w *World) error {
		for _, f := range all {
			if err := f(w); err != nil {
				return err
			}
		}
		return nil
	}, wrong
}

// oracle asks each judge.
func (e rowData) oracle() (func(*World, Observation) []string, error) {
	all := make([]func(*World, Observation) []string, len(e.Judge))
	var wrong error
	for i, s := range e.Judge {
		switch {
		case s.Name == "go:fired": // it knows what was planted
			all[i] = fired(e.Plants...)
		case s.Name == "named" && e.Names != nil:
			all[i] = named(e.Files, append(slices.Sorted(maps.Keys(e.Files)), below("W/", e.Names.New)...)...)
		default:
			wrong = errors.Join(wrong, s.bind(&all[i]))
		}
	}
	return func(w *World, o Observation) (out []string) {
		for _, f := range all {
			out = append(out, f(w, o)...)
		}
		return out
	}, wrong
}

// limitWorlds sets the worlds in which the row has no meaning.
func (r *Row) limitWorlds(e rowData) {
	if e.OwnRepository {
		r.NotIn[WorldWorktree] = "it makes a repository of its own where the worktree has its link, or needs that there is none"
	}
	switch {
	case e.OwnLauncher:
		r.NotIn[WorldSecondRun] = "it is about one launcher, its flags, processes or records"
	case r.Beside != nil:
		r.NotIn[WorldSecondRun] = "it has a second run of its own"
	case r.Alone != "":
		r.NotIn[WorldSecondRun] = "it counts what the whole machine has"
	case r.Options.Terminal:
		r.NotIn[WorldSecondRun] = "it needs the terminal"
	}
}
