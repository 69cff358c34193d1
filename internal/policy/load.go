package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Profiles are the names that --profile takes.
var Profiles = []string{"local", "ci", "production"}

// ProjectFile is the name of a project's own policy in the workspace.
const ProjectFile = "holdfast.yaml"

const (
	maxExtends = 8    // files that build on each other
	maxEntries = 1000 // of one command line or one file
)

// Setting is one policy flag of a command line.
type Setting struct {
	Flag  string // as typed, "--ro"
	Key   string // the policy key that it sets, "filesystem.read"
	Value string
}

// Options say which policies apply to a run.
type Options struct {
	Host      Host
	Profile   string // "" for what the user's file extends, else local
	Policy    string // instead of the user's file; "" for that
	Workspace string // "" for the working directory
	Settings  []Setting
	Preset    string // name of the agent program's preset; "" for none
}

// Effective is what all sources together say, before any path but the
// workspace is looked at.
type Effective struct {
	Profile   string
	Sources   []Source
	Workspace string  // resolved
	file      FileID  // what it was
	Dir       string  // the working directory inside: Workspace or below it
	Entries   []Entry // in force, lowest precedence first
	Project   *Project

	emptied int // rank of the source that last took all destinations away; 0 for none

	agent     *agentPlan // of Options.Preset; nil for none
	agentRank int        // of its source
}

// Load reads the sources in the order of their precedence: the profile, the
// user's file, the flags, the project's file. The project's may only narrow
// what the others say, unless its bytes are pinned.
func Load(o Options) (Effective, error) {
	e, err := LoadUser(o)
	if err != nil {
		return Effective{}, err
	}
	path := filepath.Join(e.Workspace, ProjectFile)
	data, err := readPolicy(path, o.Host.UID, true)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return Effective{}, err
	}
	return e.withProject(o.Host, path, data)
}

// LoadUser is Load without the project's file.
func LoadUser(o Options) (Effective, error) {
	var e Effective
	if err := e.findWorkspace(o); err != nil {
		return Effective{}, err
	}
	chain, err := o.userChain()
	if err != nil {
		return Effective{}, err
	}
	e.Profile = "local"
	if n := len(chain); n > 0 && chain[n-1].Extends != "" {
		e.Profile = chain[n-1].Extends
	}
	if o.Profile != "" {
		e.Profile = o.Profile
	}
	profile, err := Profile(e.Profile)
	if err != nil {
		return Effective{}, err
	}
	flags, err := flagFile(o)
	if err != nil {
		return Effective{}, err
	}
	e.apply(profile)
	if o.Preset != "" {
		if err := e.preset(o, append(slices.Clone(chain), flags)); err != nil {
			return Effective{}, err
		}
	}
	for _, f := range slices.Backward(chain) {
		if err := e.checkPolicyFile(o.Host, f.Name); err != nil {
			return Effective{}, err
		}
		e.apply(f)
	}
	if len(flags.Entries) > 0 {
		e.apply(flags)
	}
	return e, nil
}

// Profile returns a built-in profile. They are written as files of the same
// form as a user's, and parsed when this program is built: see tables.go.
func Profile(name string) (File, error) {
	for _, f := range profileTable() {
		if f.Name == "profile "+name {
			return f, nil
		}
	}
	hint := "known: " + strings.Join(Profiles, ", ")
	return File{}, fault(Origin{}, hint, "unknown profile %q", printable(name))
}

// userChain is the user's file and the files that it builds on, that one
// first. Extends of the last is a profile or "".
func (o Options) userChain() ([]File, error) {
	path, asked := o.Policy, true
	if path == "" {
		path, asked = filepath.Join(o.Host.Config, "policy.yaml"), false
	} else if !filepath.IsAbs(path) {
		path = filepath.Join(o.Host.Dir, path)
	}
	var chain []File
	from := Origin{}
	seen := map[string]bool{}
	for {
		f, err := ReadFile(path, o.Host.UID)
		if errors.Is(err, fs.ErrNotExist) {
			if !asked {
				return nil, nil
			}
			return nil, &Error{Origin: from, Msg: "the policy " + quote(path) + " does not exist", hint: "the shortest policy is: version: 1", cause: err}
		}
		if err != nil {
			return nil, err
		}
		at, err := locate(path)
		if err != nil {
			return nil, err
		}
		if seen[at.path] {
			return nil, fault(from, "", "extends forms a cycle: %s is already part of it", quote(path))
		}
		seen[at.path] = true
		chain = append(chain, f)
		if f.Extends == "" || slices.Contains(Profiles, f.Extends) {
			return chain, nil
		}
		if len(chain) > maxExtends {
			return nil, fault(f.ExtendsAt, "", "more than %d files extend each other", maxExtends)
		}
		if err := pathText(f.Extends); err != nil || strings.HasSuffix(f.Extends, "?") {
			return nil, fault(f.ExtendsAt, "known profiles: "+strings.Join(Profiles, ", "), "extends: %q is neither a profile nor the path of a file", printable(f.Extends))
		}
		from, asked = f.ExtendsAt, true
		path = expand(f.Extends, filepath.Dir(path), o.Host.Home)
	}
}

// ReadFile reads and parses a policy of the user's. Its relative paths count
// from its directory.
func ReadFile(path string, uid int) (File, error) {
	data, err := readPolicy(path, uid, false)
	if err != nil {
		return File{}, err
	}
	return Parse(path, filepath.Dir(path), data)
}

// flagFile makes a policy of the flags.
func flagFile(o Options) (File, error) {
	f := File{Name: "flags"}
	if len(o.Settings) > maxEntries {
		return File{}, fault(Origin{}, "name a directory above them, or write a policy file",
			"%d policy flags are given; at most %d are allowed", len(o.Settings), maxEntries)
	}
	for _, s := range o.Settings {
		e, err := s.entry()
		if err != nil {
			return File{}, err
		}
		e.Origin, e.Base = Origin{File: s.Flag}, o.Host.Dir
		f.Entries = append(f.Entries, e)
	}
	return f, nil
}

func (s Setting) entry() (Entry, error) {
	k, ok := lookup(s.Key)
	if !ok || k.kind == nil || k.kind.text == nil && k.kind.amount == nil {
		return Entry{}, fmt.Errorf("%s sets %s, which no flag can set", s.Flag, s.Key)
	}
	at := Origin{File: s.Flag}
	if k.kind.amount != nil {
		amount, err := k.kind.amount(s.Value)
		if err != nil {
			return Entry{}, fault(at, "for example "+s.Flag+" "+k.example, "%v", err)
		}
		return Entry{Key: s.Key, Value: s.Value, Amount: amount}, nil
	}
	e, hint, err := k.kind.text(k, s.Value)
	if err != nil {
		return Entry{}, fault(at, hint, "%v", err)
	}
	return e, nil
}

// apply puts the entries of f on top.
func (e *Effective) apply(f File) {
	e.Sources = append(e.Sources, Source{Name: f.Name, SHA256: f.SHA256})
	rank := len(e.Sources)
	for _, one := range f.Entries {
		one.rank = rank
		if k, _ := lookup(one.Key); one.Clear || !k.kind.many { // a later one takes its place
			e.Entries = slices.DeleteFunc(e.Entries, func(old Entry) bool { return old.Key == one.Key })
		}
		switch {
		case !one.Clear:
			e.Entries = append(e.Entries, one)
		case one.Key == "network.allow":
			e.emptied = rank
		}
	}
}

// entriesFor returns the entries of one key, lowest precedence first.
func (e Effective) entriesFor(name string) []Entry {
	var out []Entry
	for _, one := range e.Entries {
		if one.Key == name {
			out = append(out, one)
		}
	}
	return out
}

// word of a key that is in force; "" for none.
func (e Effective) word(name string) string {
	if all := e.entriesFor(name); len(all) > 0 {
		return all[len(all)-1].Value
	}
	return ""
}

// amount of a limit that is in force; 0 for none.
func (e Effective) amount(name string) int64 {
	if all := e.entriesFor(name); len(all) > 0 {
		return all[len(all)-1].Amount
	}
	return 0
}

// Check reads a policy file and those that it extends as a run would, and
// returns what is wrong with them.
func Check(h Host, path string) error {
	o := Options{Host: h, Policy: path}
	if strings.HasSuffix(path, "/"+ProjectFile) || path == ProjectFile {
		full := expand(path, h.Dir, h.Home)
		data, err := readPolicy(full, h.UID, true)
		if err != nil {
			return err
		}
		f, err := Parse(path, h.Dir, data)
		if err == nil && f.Extends != "" && !slices.Contains(Profiles, f.Extends) {
			return fault(f.ExtendsAt, "", "extends: a project's file cannot name a file, which no hash would cover")
		}
		return err
	}
	_, err := o.userChain()
	return err
}
