package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"holdfast.dev/holdfast/internal/floor/sys"
)

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

// Inspect reads the project's file of a workspace without obeying it: what it
// would widen, and whether it is trusted. It is nil where there is none.
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

// changePins replaces the file as a whole, so that a reader sees the old one
// or the new one. Of two changes at the same time one may be lost; then
// something is not trusted, and the user is told so by the next run.
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
