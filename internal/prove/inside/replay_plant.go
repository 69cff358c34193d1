//go:build linux

package inside

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// Plant is a file that a program of the human later executes or obeys.
type Plant struct {
	At   string `yaml:"at" json:"at,omitempty"`     // begins with W/ or H/
	Text string `yaml:"text" json:"text,omitempty"` // {trip} stands for a command that leaves a mark with the name of the plant, {head} for the commit of W's main
	Link string `yaml:"link" json:"link,omitempty"` // it is a link to this, and Text is ignored
}

// Name returns the name of the plant in a mark.
func (f Plant) Name() string { return strings.ReplaceAll(f.At, " ", "_") }

func replayActions() map[string]Action {
	return map[string]Action{"replay-plant": replayPlant}
}

// replayPlant makes each plant of the argument "plants", a JSON list. If that is
// refused it tries to put another file there.
func replayPlant(p *Probe) {
	ordinary(p)
	var plants []Plant
	if err := json.Unmarshal([]byte(p.Arg("plants")), &plants); err != nil {
		p.Control("read what to plant", func() error { return err })
		return
	}
	head, _ := os.ReadFile(p.In("W", ".git", "refs", "heads", "main"))
	for _, f := range plants {
		path := p.expandPath(f.At)
		text := strings.NewReplacer("{trip}", p.Arg("trip")+" "+f.Name(), "{W}", p.Arg("W"), "{H}", p.Arg("H"), "{O}", p.Arg("O"), "{head}", strings.TrimSpace(string(head))).Replace(f.Text)
		wrote := false
		p.Try("plant "+path, func() error {
			err := plantAt(path, text, p.expandPath(f.Link))
			wrote = err == nil
			return err
		})
		if wrote {
			continue
		}
		p.Try("put another in the place of "+path, func() error {
			other := path + ".new"
			return errors.Join(plantAt(other, text, p.expandPath(f.Link)), os.Rename(other, path))
		})
	}
}

// expandPath expands a path that begins with the letter of a directory.
func (p *Probe) expandPath(template string) string {
	root, rest, _ := strings.Cut(template, "/")
	if at := p.Arg(root); at != "" && rest != "" {
		return filepath.Join(at, rest)
	}
	return template
}

func plantAt(path, text, link string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if link != "" && link != path {
		return os.Symlink(link, path)
	}
	if err := programs.Write(path, []byte(text), 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}
