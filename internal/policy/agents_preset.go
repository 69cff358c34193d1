package policy

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Preset is what is known of one agent program: where it keeps its state, which parts
// of that the host later executes or trusts, which hosts it talks to, and which
// credential it uses. It is data that a user can write.
type Preset struct {
	Name    string // of the file, without .yaml; the base name of the command that it is for
	Title   string // how people call the program
	Install string // a command that installs it; "" if unknown
	Origin  Origin // "preset NAME" of a built-in one, else the file
	SHA256  string // of its bytes, hex
	Sandbox string // what became of the program's own sandbox, for people; "" for nothing to say

	moved       []moved
	keep        []keptDir
	read        []named
	copies      []AgentCopy
	files       []AgentFile
	settings    []settingsFile
	variables   []variableName
	trust       []string
	endpoints   []movedHost
	credentials []offered
	logins      []madeLogin
	entries     []Entry // of network, environment and filesystem, as in a policy
}

// moved is a place of the agent's that a variable of the caller moves. Inside it
// is where it always is.
type moved struct{ path, variable, rest string }

// keptDir is a directory whose changes stay on the host: the history.
type keptDir struct {
	path   string // inside, with a place for the workspace
	from   string // on the host, where that is another; "" for path
	origin Origin
}

// named is a path with where it was named.
type named struct {
	path   string
	origin Origin
}

// obeyed is a file of the host that decides something.
type obeyed struct {
	named
	variable string // that names it; "" for none
}

type variableName struct {
	name   string
	origin Origin
}

// movedHost is a variable of the caller that replaces the provider's host by another.
type movedHost struct {
	variable string
	host     hostTemplate // that it replaces in the hosts of credentials
	origin   Origin
}

// offered is a credential that is used when its source is there: of several with
// one name the first.
type offered struct {
	Credential
	hosts     []hostTemplate  // in addition to Hosts
	loginFile string          // of a command: is there when its program has a login
	instead   []string        // of a command: each names a file that takes the place of that
	when      string          // a variable that switches it on; "" for always
	expires   string          // field of the file that says when the secret ends, in milliseconds since 1970; "" for none
	login     string          // what to type when the secret is missing or has ended
	set       []variableValue // variables that are handed in with it
}

// variableValue is a variable inside.
type variableValue struct{ name, value string }

// maxPresets bounds how many files of presets a user may have.
const maxPresets = 100

//go:embed presets/*.yaml
var embeddedPresets embed.FS

// presetDir is where the user's own presets are.
func presetDir(h Host) string { return filepath.Join(h.Config, "presets") }

// presetName checks a name that becomes that of a file.
func presetName(name string) error {
	if name == "" || len(name) > 64 || strings.Trim(name, alphanumeric+"-_.") != "" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") {
		return fault(Origin{}, "use letters, digits, -, _ and ., as in the name of a command", "%q is not the name of a preset", printable(name))
	}
	return nil
}

// PresetNames lists the presets that there are, built in or the user's, sorted.
func PresetNames(h Host) ([]string, error) {
	var names []string
	for _, dir := range []fs.FS{os.DirFS(presetDir(h)), embeddedPresets} {
		pattern := "*.yaml"
		if dir == fs.FS(embeddedPresets) {
			pattern = "presets/*.yaml"
		}
		found, err := fs.Glob(dir, pattern)
		if err != nil || len(found) > maxPresets {
			return nil, &Error{Origin: Origin{File: presetDir(h)}, Msg: "has too many presets, or cannot be listed", cause: err}
		}
		for _, f := range found {
			name := strings.TrimSuffix(filepath.Base(f), ".yaml")
			if presetName(name) == nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// Presets reads all presets of o's host. Those of the user come first in what
// they say: see PresetNamed.
func Presets(o Options) ([]Preset, error) {
	names, err := PresetNames(o.Host)
	if err != nil {
		return nil, err
	}
	var all []Preset
	var errs Errors
	for _, name := range names {
		p, err := PresetNamed(o, name)
		var one *Error
		var many Errors
		switch {
		case err == nil:
			all = append(all, p)
		case errors.As(err, &many):
			errs = append(errs, many...)
		case errors.As(err, &one):
			errs = append(errs, one)
		default:
			return nil, err
		}
	}
	return all, errs.orNil()
}

// HasPreset reports whether there is a preset of that name. It reads none.
func HasPreset(h Host, name string) bool {
	if presetName(name) != nil {
		return false
	}
	if _, err := os.Stat(filepath.Join(presetDir(h), name+".yaml")); err == nil {
		return true
	}
	_, err := fs.Stat(embeddedPresets, "presets/"+name+".yaml")
	return err == nil
}

// PresetNamed reads one preset: the user's file of that name, else the built-in
// one. A user's file whose extends names a preset adds to that.
func PresetNamed(o Options, name string) (Preset, error) {
	if err := presetName(name); err != nil {
		return Preset{}, err
	}
	path := filepath.Join(presetDir(o.Host), name+".yaml")
	data, err := readPolicy(path, o.Host.UID, false)
	switch {
	case err == nil:
		p, extends, err := parsePreset(name, path, data)
		if err != nil || extends == "" {
			return p, err
		}
		base, err := builtinPreset(extends)
		if err != nil {
			return Preset{}, fault(Origin{File: path}, "", "extends: %v", err)
		}
		return base.with(p), nil
	case errors.Is(err, fs.ErrNotExist):
		return builtinPreset(name)
	}
	return Preset{}, err
}

func builtinPreset(name string) (Preset, error) {
	data, err := embeddedPresets.ReadFile("presets/" + name + ".yaml")
	if err != nil {
		known, _ := fs.Glob(embeddedPresets, "presets/*.yaml") // the pattern is a constant
		for i, k := range known {
			known[i] = strings.TrimSuffix(filepath.Base(k), ".yaml")
		}
		hint := "'holdfast agents' lists them; built in: " + strings.Join(known, ", ")
		if near := nearest(name, known); near != "" {
			hint = "did you mean " + near + "?"
		}
		return Preset{}, fault(Origin{}, hint, "there is no preset %q", printable(name))
	}
	p, _, err := parsePreset(name, "preset "+name, data)
	return p, err
}

// with is p with what a user's file adds. Texts of the user's take the place of
// p's, and so do copies and files of the same path; other lists come after;
// credentials come before, so that the user's choice is looked at first.
func (p Preset) with(own Preset) Preset {
	for _, text := range []struct{ from, to *string }{{&own.Title, &p.Title}, {&own.Install, &p.Install}, {&own.Sandbox, &p.Sandbox}} {
		if *text.from != "" {
			*text.to = *text.from
		}
	}
	p.Name, p.Origin, p.SHA256 = own.Name, own.Origin, own.SHA256
	p.moved = append(own.moved, p.moved...)
	p.keep = append(p.keep, own.keep...)
	p.read = append(p.read, own.read...)
	p.copies = slices.DeleteFunc(p.copies, func(c AgentCopy) bool {
		return slices.ContainsFunc(own.copies, func(o AgentCopy) bool { return o.Path == c.Path })
	})
	p.copies = append(p.copies, own.copies...)
	p.files = slices.DeleteFunc(p.files, func(f AgentFile) bool {
		return slices.ContainsFunc(own.files, func(o AgentFile) bool { return o.Path == f.Path })
	})
	p.files = append(p.files, own.files...)
	p.settings = append(p.settings, own.settings...)
	p.variables = append(p.variables, own.variables...)
	p.trust = append(p.trust, own.trust...)
	p.endpoints = append(own.endpoints, p.endpoints...)
	p.credentials = append(own.credentials, p.credentials...)
	p.logins = append(p.logins, own.logins...)
	p.entries = append(p.entries, own.entries...)
	return p
}
