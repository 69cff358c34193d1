// Package agent knows the agent programs that Holdfast starts and tries: where to
// get each, how to start each of its versions, and which settings make it connect
// only to our model server.
//
// This knowledge is data: one file for each program in drivers/, with version
// ranges that override single fields. The code here reads it, expands it for one
// launch, and installs programs from the npm registry. It starts them only to
// query their version.
package agent

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed drivers/*.yaml
var files embed.FS

// Driver is an agent program in all its versions.
type Driver struct {
	Name    string   `yaml:"name"`    // as in `holdfast run NAME`
	Title   string   `yaml:"title"`   // for people
	Package string   `yaml:"package"` // in the npm registry
	Command string   `yaml:"command"` // what users type
	Latest  string   `yaml:"latest"`  // the newest tested version; what CI installs
	Tried   []string `yaml:"tried"`   // older tested versions, oldest first
	Since   string   `yaml:"since"`   // older versions are refused: their requirements are unknown

	base   Spec
	ranges []versionRange
}

// versionRange overrides fields of a Spec for some versions.
type versionRange struct {
	bounds bounds
	fields yaml.Node
}

// driverFile is a file in drivers/.
type driverFile struct {
	Driver `yaml:",inline"`
	Spec   Spec `yaml:"spec"`
	Ranges []struct {
		Versions string    `yaml:"versions"` // such as ">=2.1.0 <2.1.64"
		Why      string    `yaml:"why"`
		Spec     yaml.Node `yaml:"spec"`
	} `yaml:"ranges"`
}

var parsed = sync.OnceValues(func() ([]Driver, error) {
	entries, err := files.ReadDir("drivers")
	if err != nil {
		return nil, err
	}
	var all []Driver
	for _, e := range entries {
		name := path.Join("drivers", e.Name())
		b, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		d, err := parse(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, d)
	}
	return all, nil
})

// Drivers returns all known drivers, by name.
func Drivers() ([]Driver, error) {
	all, err := parsed()
	return slices.Clone(all), err
}

// Named returns the driver of that name.
func Named(name string) (Driver, error) {
	all, err := parsed()
	if err != nil {
		return Driver{}, err
	}
	var names []string
	for _, d := range all {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	return Driver{}, fmt.Errorf("no agent is called %q; the agents are: %s", name, strings.Join(names, ", "))
}

// parse reads one file of drivers/. An unknown key is an error.
func parse(b []byte) (Driver, error) {
	var f driverFile
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil {
		return Driver{}, err
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return Driver{}, errors.New("more than one document")
	}
	d := f.Driver
	d.base = f.Spec
	for _, r := range f.Ranges {
		b, err := parseBounds(r.Versions)
		if err != nil {
			return Driver{}, fmt.Errorf("range %q: %w", r.Versions, err)
		}
		if r.Why == "" {
			return Driver{}, fmt.Errorf("range %q does not say why", r.Versions)
		}
		d.ranges = append(d.ranges, versionRange{bounds: b, fields: r.Spec})
	}
	return d, d.check()
}

// check finds errors that are independent of the version.
func (d Driver) check() error {
	for _, f := range []struct{ name, value string }{
		{"name", d.Name}, {"title", d.Title}, {"package", d.Package}, {"command", d.Command}, {"latest", d.Latest}, {"since", d.Since},
	} {
		if f.value == "" {
			return fmt.Errorf("%s is missing", f.name)
		}
	}
	if err := checkPackage(d.Package); err != nil {
		return err
	}
	for _, v := range append(slices.Clone(d.Tried), d.Latest, d.Since) {
		s, err := d.At(v)
		if err == nil {
			err = s.check()
		}
		if err != nil {
			return fmt.Errorf("version %s: %w", v, err)
		}
	}
	return nil
}

// At returns the spec of one version: the base, overlaid with each range that
// contains the version, in the order of the file. Maps are merged key by key,
// lists are replaced. An empty version is the latest tested one.
func (d Driver) At(version string) (Spec, error) {
	if version == "" {
		version = d.Latest
	}
	v, err := parseVersion(version)
	if err != nil {
		return Spec{}, err
	}
	since, err := parseVersion(d.Since)
	if err != nil {
		return Spec{}, err
	}
	if v.compare(since) < 0 {
		return Spec{}, fmt.Errorf("%s %s is older than %s, the first version that can be driven", d.Title, version, d.Since)
	}
	s := d.base.clone()
	s.Agent, s.Version = d.Name, version
	for _, r := range d.ranges {
		if !r.bounds.contain(v) {
			continue
		}
		if err := decodeStrict(&s, &r.fields); err != nil {
			return Spec{}, fmt.Errorf("range for %s: %w", version, err)
		}
	}
	// A range removes a posture by laying an empty one over it.
	maps.DeleteFunc(s.Postures, func(_ string, p Posture) bool { return p.Title == "" })
	return s, nil
}

// decodeStrict decodes fields over s, strictly: Node.Decode itself would ignore unknown
// keys.
func decodeStrict(s *Spec, fields *yaml.Node) error {
	b, err := yaml.Marshal(fields)
	if err != nil {
		return err
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	return dec.Decode(s)
}
