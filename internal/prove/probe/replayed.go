//go:build linux

package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/prove/inside"
	"holdfast.dev/holdfast/internal/prove/replay"
)

// armed is what a row plants for the human who comes later, and the result.
type armed struct {
	token  string // in every genuine mark; "" if nothing is planted
	result replay.Result
}

// arm chooses the token of this world's payloads.
func (w *World) arm() {
	w.armed.token = hexes(8)
	w.Arg("trip=" + strings.TrimSpace(replay.Trip(w.O, w.armed.token, "")))
}

// arm is a step of a row that plants something.
func arm(w *World) error {
	w.arm()
	return nil
}

func (w *World) stage() replay.Stage {
	s := replay.Stage{Prober: w.origin, World: w.B, Work: w.W, Home: w.H, Outside: w.O, Token: w.armed.token}
	if !paths.Within(w.B, w.S) {
		s.Apart = w.S
	}
	for _, dir := range records {
		s.Leave = append(s.Leave, filepath.Join(w.H, dir))
	}
	s.Leave = append(s.Leave, w.Path("W/.roam")) // of a second run: it changes during the copy
	return s
}

// Replay plays the human who comes back after the run. What it finds is for the
// oracle; a failed replay makes the row inconclusive.
func (s *Session) Replay(programs ...replay.Program) {
	res, err := s.World.stage().Play(s.ctx, programs...)
	s.World.armed.result.Marks = append(s.World.armed.result.Marks, res.Marks...)
	s.World.armed.result.Changed = append(s.World.armed.result.Changed, res.Changed...)
	s.World.armed.result.Steps = append(s.World.armed.result.Steps, res.Steps...)
	if errors.Is(err, replay.ErrNoStage) {
		err = fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if err != nil {
		s.Fail(fmt.Errorf("replaying what the human does: %w", err))
	}
}

// Reread reads files of the workspace and the home by the rules of programs that
// are not started.
func (s *Session) Reread(readers ...replay.Reader) {
	w := s.World
	marks := w.stage().Read(readers...)
	w.armed.result.Marks = append(w.armed.result.Marks, marks...)
}

// fired is the oracle of a replay: no payload may be executed, except from files
// that a developer edits all the time, if the launcher named them.
func fired(plants ...planted) func(*World, Observation) []string {
	flagged := map[string]string{}
	for _, p := range plants {
		if p.Flag != "" {
			flagged[p.Name()] = p.Flag
		}
	}
	return func(w *World, o Observation) []string {
		var out []string
		for _, m := range w.armed.result.Marks {
			if at := flagged[m.Plant]; at != "" && len(named(nil, at)(w, o)) == 0 {
				continue
			}
			out = append(out, fmt.Sprintf("%s was executed on the host by %s", m.Plant, m.Step))
		}
		slices.Sort(out)
		return append(slices.Compact(out), w.armed.result.Changed...)
	}
}

// planted is one payload of a row.
type planted struct {
	inside.Plant `yaml:",inline"`
	// Flag is the name that the launcher must print at the end if it leaves this in
	// place, a template; "" if it may not.
	Flag string `yaml:"flag" json:"flag,omitempty"`
	// Never is the reason why no program executes it even without a sandbox.
	Never string `yaml:"never" json:"never,omitempty"`
}

// plantsArg returns the argument of the action replay-plant.
func plantsArg(plants []planted) string {
	var list []inside.Plant
	for _, p := range plants {
		list = append(list, p.Plant)
	}
	b, err := json.Marshal(list)
	if err != nil {
		panic("plants are not JSON: " + err.Error())
	}
	return "plants=" + string(b)
}
