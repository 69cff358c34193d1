package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// Project is the policy that a workspace brings along.
type Project struct {
	Path    string
	SHA256  string
	Trusted bool
	Widens  []Entry // what it may not do unless it is trusted
}

// WideningError says that a project's file asks for more than the user's own
// sources give, and is not trusted.
type WideningError struct {
	Project Project
}

func (e *WideningError) Error() string {
	var lines []string
	for i, w := range e.Project.Widens {
		if i == shownErrors {
			lines = append(lines, fmt.Sprintf("and %d more", len(e.Project.Widens)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s: %s would widen what you allow", w.Origin, w))
	}
	return strings.Join(lines, "\n")
}

// Hint is how to trust the file.
func (e *WideningError) Hint() string {
	return "read the file; then trust these bytes with: holdfast policy trust " + quote(e.Project.Path)
}

// String is an entry as one would write it.
func (e Entry) String() string {
	switch {
	case e.Clear:
		return e.Key + ": []"
	case e.Key == "environment.set":
		return e.Key + ": " + e.Value
	case e.Sink != nil:
		return e.Key + ": " + printable(e.Sink.full())
	case e.Credential != nil: // what is executed is what a human must know to trust it
		return e.Key + ": " + printable(e.Credential.String()+e.Credential.Source.full())
	}
	return e.Key + ": " + printable(e.Value)
}

// withProject puts the project's file on top when it may be.
func (e Effective) withProject(h Host, path string, data []byte) (Effective, error) {
	f, err := Parse(path, e.Workspace, data)
	if err != nil {
		return Effective{}, err
	}
	if f.Extends != "" && f.Extends != e.Profile {
		return Effective{}, fault(f.ExtendsAt, "choose the profile with --profile", "extends: %q: a project's file comes on top of the profile of the run (%s) and cannot name another, or a file that no hash covers", printable(f.Extends), e.Profile)
	}
	pins, err := readPins(h)
	if err != nil {
		return Effective{}, err
	}
	p := Project{Path: path, SHA256: f.SHA256, Trusted: pins.has(path, f.SHA256)}
	for _, one := range f.Entries {
		if e.widens(one) {
			p.Widens = append(p.Widens, one)
		}
	}
	if len(p.Widens) > 0 && !p.Trusted {
		return Effective{}, &WideningError{Project: p}
	}
	e.apply(f)
	e.Project = &p
	return e, nil
}

// widens reports whether an entry could allow anything that e does not.
func (e Effective) widens(one Entry) bool {
	k, _ := lookup(one.Key)
	switch k.project {
	case ignored:
		return false
	case adds:
		return one.Clear
	case clears:
		return !one.Clear
	case listed:
		mode := e.word("programs.else")
		return !one.Clear && mode != "" && mode != programsOff && !slices.ContainsFunc(e.entriesFor(one.Key), func(old Entry) bool { return old.Value == one.Value })
	case subset:
		return !one.Clear && !slices.ContainsFunc(e.entriesFor(one.Key), func(old Entry) bool {
			base, wild := strings.CutSuffix(old.Value, "*")
			return old.Value == one.Value || wild && strings.HasPrefix(one.Value, base)
		})
	case raises:
		return slices.Index(k.words, one.Value) < slices.Index(k.words, e.word(one.Key))
	case lowers:
		if k.kind == &patience { // for which 0 is the least
			return one.Amount > e.amount(one.Key)
		}
		if one.Clear || one.Amount == 0 {
			return e.amount(one.Key) != 0
		}
		old := e.amount(one.Key)
		return old != 0 && one.Amount > old
	}
	return true
}

// pins are the project files whose bytes a human trusted.
type pins struct {
	Version int   `json:"version"`
	Files   []pin `json:"files"`
}

type pin struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// has wants path and bytes: the same text elsewhere names other files.
func (p pins) has(path, sum string) bool {
	return slices.Contains(p.Files, pin{path, sum})
}

func pinsPath(h Host) string { return filepath.Join(h.State, "trust.json") }

func readPins(h Host) (pins, error) {
	path := pinsPath(h)
	data, err := readPolicy(path, h.UID, false)
	if errors.Is(err, fs.ErrNotExist) {
		return pins{Version: 1}, nil
	}
	if err != nil {
		return pins{}, err
	}
	var p pins
	if err := json.Unmarshal(data, &p); err != nil || p.Version != 1 {
		return pins{}, &Error{Origin: Origin{File: path}, Msg: "is not a list of trusted files", hint: "remove it, and trust again what you still trust", cause: err}
	}
	return p, nil
}

// Inspect reads the project's file of a workspace without obeying it: what it would
// widen, and whether it is trusted. It is nil if there is none.
func Inspect(o Options) (*Project, error) {
	e, err := Load(o)
	var widening *WideningError
	if errors.As(err, &widening) {
		return &widening.Project, nil
	}
	return e.Project, err
}

// Trust pins the bytes of a project's file, replacing an older pin of the same
// path. The bytes are those that p was read from, so that nothing that was
// written since is trusted.
func Trust(h Host, p Project) error {
	return changePins(h, func(list *pins) {
		list.drop(p.Path)
		list.Files = append(list.Files, pin{p.Path, p.SHA256})
	})
}

// Distrust removes the pin of a path.
func Distrust(h Host, path string) error {
	return changePins(h, func(list *pins) { list.drop(path) })
}

func (p *pins) drop(path string) {
	p.Files = slices.DeleteFunc(p.Files, func(f pin) bool { return f.Path == path })
}

// changePins replaces the file as a whole, so that a reader sees the old one or the new
// one. Of two concurrent changes one may be lost; then something is not trusted, and
// the next run reports that to the user.
func changePins(h Host, change func(*pins)) error {
	list, err := readPins(h)
	if err != nil {
		return err
	}
	change(&list)
	if err := os.MkdirAll(h.State, 0o700); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	data, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the trusted files: %w", err)
	}
	if err := sys.ReplaceFile(pinsPath(h), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the trusted files: %w", err)
	}
	return nil
}
