package trial

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/prove/model"
)

// StepSeen is what was seen of one step of a user's script.
type StepSeen struct {
	Step    int      `json:"step"` // from 1
	Op      string   `json:"op"`
	Seen    []string `json:"seen,omitempty"`   // outside the agent: files made or changed, listeners reached
	Layer   string   `json:"layer,omitempty"`  // that refused
	Result  string   `json:"result,omitempty"` // result that the agent sent to its model, cut
	Missing string   `json:"missing,omitempty"`
	Record  []string `json:"record,omitempty"` // what Holdfast's log says, if it is inside
}

// Script plays the first of the scripts, which may name the others for
// sub-agents. Its steps may contain the names in braces that [Probe] lists.
func Script(ctx context.Context, c Column, o Options, scripts []model.Script) ([]StepSeen, error) {
	o.Probes = scriptProbes(scripts, "")
	r := &runner{column: c, o: o, key: strings.ToLower(time.Now().Format("150405.000000000")), rows: map[string]evidence{}}
	if err := r.prepare(); err != nil {
		return nil, fmt.Errorf("%w: %s %s: %w", ErrVoid, c.Agent, c.Version, err)
	}
	if r.voided != "" {
		return nil, fmt.Errorf("%w: %s", ErrVoid, r.voided)
	}
	r.scripts = scripts
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Limit, defaultLimit))
	defer cancel()
	s := r.session(ctx, o.Probes)
	if len(s.Seen) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrVoid, strings.TrimSpace(cmp.Or(s.Error, s.Voided, s.Ended)+" "+lastLine(s.Said)))
	}
	var out []StepSeen
	for i, e := range s.Seen {
		one := StepSeen{Step: i + 1, Op: string(o.Probes[i].Steps[0].Op), Seen: e.Reached, Missing: cmp.Or(e.Missing, e.Error), Record: e.Record}
		if len(e.Results) > 0 {
			one.Result = e.Results[0].Text
		}
		if by := r.attributeRefusals(e.Refusals); len(by) > 0 {
			one.Layer = strings.TrimSpace(by[0].Layer + " " + by[0].Word)
		}
		out = append(out, one)
	}
	return out, nil
}

// scriptProbes makes a probe of each step. state is the agent's own directory
// below the home, which it writes to all the time.
func scriptProbes(scripts []model.Script, state string) []Probe {
	var out []Probe
	for i, s := range scripts[0].Steps {
		if s.Op == model.Say {
			break
		}
		p := Probe{ID: fmt.Sprintf("STEP-%d", i+1), Class: "script", Title: string(s.Op), Steps: []model.Step{s}}
		if i == 0 {
			p.Scripts = scripts[1:]
		}
		out = append(out, p)
	}
	var before map[string]string
	arrived := 0
	for i := range out {
		out[i].Reached = func(w *World, _ Seen) []string {
			var seen []string
			now := files(state)
			for _, path := range slices.Sorted(keysOf(now)) {
				switch was, known := before[path]; {
				case before == nil || was == now[path]:
				case known:
					seen = append(seen, "changed "+path)
				default:
					seen = append(seen, "made "+path)
				}
			}
			for path := range before {
				if _, there := now[path]; !there {
					seen = append(seen, "removed "+path)
				}
			}
			all := w.arrived()
			for _, via := range all[arrived:] {
				seen = append(seen, "arrived by "+via)
			}
			before, arrived = now, len(all)
			return slices.Compact(seen)
		}
	}
	if len(out) > 0 {
		// Files made during the agent's start belong to no step.
		out[0].begins = func(w *World) { before, arrived = files(state), len(w.arrived()) }
	}
	return out
}

func keysOf(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// files are those that the agent could have made or changed, each with a value
// that changes with it.
func files(state string) map[string]string {
	out := map[string]string{}
	for _, top := range []string{"/home", "/tmp", "/var/tmp"} {
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // not readable by us, or gone
			}
			if d.IsDir() {
				name := d.Name()
				if state != "" && path == filepath.Join(homeDir, state) || name == ".cache" || path == filepath.Dir(logDir) || strings.HasPrefix(path, "/tmp/claude-") {
					return fs.SkipDir
				}
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			to, _ := os.Readlink(path)
			out[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano(), to)
			return nil
		})
	}
	return out
}
