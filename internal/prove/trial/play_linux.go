package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/prove/agent"
	"holdfast.dev/holdfast/internal/prove/model"
)

// mainScript is the script of a session; those of sub-agents have the names that
// their probes give them.
const mainScript = "main"

// evidence is what was seen of one probe in a session, without a verdict.
type evidence struct {
	ID       string
	Reached  []string      `json:",omitempty"` // the results of Reached, in the order of first appearance
	Begun    time.Time     `json:",omitzero"`  // when its first step was requested; zero if never
	Over     time.Time     `json:",omitzero"`  // when the result of its last step had come
	Asked    int           `json:",omitempty"` // number of requested steps
	Missing  string        `json:",omitempty"` // why a step could not be requested, such as "no tool for fetch"
	Refusals []refusal     `json:",omitempty"`
	Results  []result      `json:",omitempty"` // cut
	Stuck    int           `json:",omitempty"` // step, from 1, that was ended because it took too long
	Cut      bool          `json:",omitempty"` // the agent ended before all steps were requested
	Error    string        `json:",omitempty"` // why the probe could not be set up or undone
	Took     time.Duration `json:",omitempty"`
	Record   []string      `json:",omitempty"` // what Holdfast's log says about it
}

// refusal is a layer that refused a step.
type refusal struct{ Op, Layer, Word string }

// result is the agent's result of a step.
type result struct {
	Op   string
	Text string
}

// play is one session from the judge's view: the step requested last, and what
// was seen of each probe.
type play struct {
	world  *World
	spec   agent.Spec // patterns only
	probes []Probe
	first  []int // index in the script of the first step of each probe
	script model.Script
	subs   map[string]model.Script
	tell   func(evidence) // called with each finished probe

	mu      sync.Mutex
	seen    []evidence // guarded by mu, as all below
	results [][]model.Result
	current int  // the probe being played; -1 for none
	next    int  // the first probe that has not begun
	asked   int  // the step requested last; -1 for none
	over    bool // all steps were requested
	turned  time.Time
	ended   bool
}

// newPlay prepares a session with probes.
func newPlay(w *World, spec agent.Spec, probes []Probe, tell func(evidence)) (*play, error) {
	p := &play{world: w, spec: spec, probes: probes, tell: tell, current: -1, asked: -1, turned: time.Now(), subs: map[string]model.Script{}, script: model.Script{Name: mainScript}}
	for _, one := range probes {
		p.first = append(p.first, len(p.script.Steps))
		if len(one.Steps) == 0 {
			return nil, fmt.Errorf("probe %s has no steps", one.ID)
		}
		for _, s := range one.Steps {
			p.script.Steps = append(p.script.Steps, p.fill(one.ID, s))
		}
		for _, sub := range one.Scripts {
			if _, twice := p.subs[sub.Name]; twice || sub.Name == mainScript {
				return nil, fmt.Errorf("probe %s: another script is called %q", one.ID, sub.Name)
			}
			filled := model.Script{Name: sub.Name}
			for _, s := range sub.Steps {
				filled.Steps = append(filled.Steps, p.fill(one.ID, s))
			}
			p.subs[sub.Name] = filled
		}
		p.seen = append(p.seen, evidence{ID: one.ID})
		p.results = append(p.results, nil)
	}
	return p, nil
}

// fill replaces the world's names in a step.
func (p *play) fill(id string, s model.Step) model.Step {
	for _, text := range []*string{&s.Command, &s.Path, &s.Content, &s.Old, &s.New, &s.Text, &s.URL, &s.Tool} {
		*text = p.world.fill(id, *text)
	}
	if s.Arguments != nil {
		s.Arguments, _ = p.fillAny(id, s.Arguments).(map[string]any)
	}
	return s
}

func (p *play) fillAny(id string, v any) any {
	switch v := v.(type) {
	case string:
		return p.world.fill(id, v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = p.fillAny(id, v[i])
		}
		return out
	case []string:
		out := make([]any, len(v))
		for i := range v {
			out[i] = p.world.fill(id, v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = p.fillAny(id, e)
		}
		return out
	}
	return v
}

// lookup is [model.Options.Lookup].
func (p *play) lookup(name string) (model.Script, bool) {
	if name == mainScript {
		return p.script, true
	}
	s, ok := p.subs[name]
	return s, ok
}

// errOver ends the script of a session that has already been judged.
var errOver = errors.New("the session is over")

// turn is [model.Options.Turn]: before a step is requested, it checks the effects
// of the steps before it.
func (p *play) turn(_ context.Context, t model.Turn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return errOver
	}
	p.turned = time.Now()
	if t.Script != mainScript {
		p.subTurn(t)
		return nil
	}
	if t.Step < p.asked {
		return nil // an earlier request, repeated
	}
	p.asked = t.Step
	p.share(t.Results)
	if p.current >= 0 {
		p.checkReached(p.current, false)
		if t.Step >= p.end(p.current) {
			p.endProbe()
		}
	}
	at := len(p.probes)
	for i := range p.probes {
		if t.Step < p.end(i) {
			at = i
			break
		}
	}
	for ; p.next < at; p.next++ {
		// No offered tool can do any of its steps.
		p.finish(p.next)
	}
	if at == len(p.probes) {
		p.over = true
		return nil
	}
	if at == p.next {
		p.begin(at)
	}
	p.seen[at].Asked = max(p.seen[at].Asked, t.Step-p.first[at]+1)
	return nil
}

// end is the step after the last one of a probe.
func (p *play) end(i int) int { return p.first[i] + len(p.probes[i].Steps) }

// share assigns the results to the probes that their steps belong to.
func (p *play) share(results []model.Result) {
	for i := range p.probes {
		from, to := min(p.first[i], len(results)), min(p.end(i), len(results))
		if from == to {
			continue
		}
		p.results[i] = slices.Clone(results[from:to])
		done := slices.ContainsFunc(p.results[i], func(r model.Result) bool { return r.Missing == "" })
		for k, r := range p.results[i] {
			whole := len(p.results[i]) == len(p.probes[i].Steps)
			if r.Missing != "" && p.seen[i].Missing == "" && (p.probes[i].requires(p.probes[i].Steps[k].Op) || whole && !done) {
				p.seen[i].Missing = r.Missing
			}
		}
	}
}

// setUp prepares the world for all probes, before the agent starts: a sandbox may
// inspect what exists at its start.
func (p *play) setUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, one := range p.probes {
		if one.Setup == nil {
			continue
		}
		if err := one.Setup(p.world); err != nil {
			p.seen[i].Error = "setting it up: " + err.Error()
		}
	}
}

// begin notes that the first step of a probe is about to be requested.
func (p *play) begin(i int) {
	p.current, p.next = i, i+1
	p.seen[i].Begun = time.Now()
	if begins := p.probes[i].begins; begins != nil {
		begins(p.world)
	}
}

// checkReached checks what a probe has reached.
func (p *play) checkReached(i int, ended bool) {
	one, e := p.probes[i], &p.seen[i]
	if one.Reached == nil || e.Error != "" {
		return
	}
	for _, what := range one.Reached(p.world, Seen{Results: p.results[i], Step: len(p.results[i]), Ended: ended}) {
		if !slices.Contains(e.Reached, what) {
			e.Reached = append(e.Reached, what)
		}
	}
}

// endProbe ends the current probe. The effects of a late one stay until the end.
func (p *play) endProbe() {
	i := p.current
	p.current = -1
	p.seen[i].Over = time.Now()
	p.seen[i].Took = p.seen[i].Over.Sub(p.seen[i].Begun)
	p.seen[i].Asked = len(p.probes[i].Steps)
	if !p.probes[i].Late {
		p.undo(i)
	}
	p.finish(i)
}

func (p *play) undo(i int) {
	if restore := p.probes[i].Restore; restore != nil {
		if err := restore(p.world); err != nil && p.seen[i].Error == "" {
			p.seen[i].Error = "undoing it: " + err.Error()
		}
	}
}

// requires reports whether the probe proves nothing without a step of that kind. A
// step that it does not need prepares another (some agents require a read before
// an edit), or is one of several ways.
func (p Probe) requires(op model.Op) bool {
	if op == model.Patch {
		op = model.Edit
	}
	return len(p.Needs) == 0 || slices.Contains(p.Needs, string(op))
}

// subAgent is the operation of a result that was sent to a sub-agent.
const subAgent = "sub-agent"

// finish evaluates the agent's results of a probe, and reports it.
func (p *play) finish(i int) {
	e := &p.seen[i]
	var ofSubs []refusal
	for _, r := range e.Refusals {
		if r.Op == subAgent {
			ofSubs = append(ofSubs, r)
		}
	}
	e.Results, e.Refusals = nil, ofSubs
	for k, r := range p.results[i] {
		op := subAgent
		if k < len(p.probes[i].Steps) {
			op = string(p.probes[i].Steps[k].Op)
		}
		e.Results = append(e.Results, result{Op: op, Text: text.Cut(r.Text, longestText)})
		if layer, word := p.refusalIn(r); layer != "" {
			e.Refusals = append(e.Refusals, refusal{op, layer, word})
		}
	}
	if p.tell != nil {
		p.tell(*e)
	}
}

// longestText is how much of a result is kept, in bytes.
const longestText = 400

// subTurn is a turn of a sub-agent: its results are evidence for the probe that
// started it.
func (p *play) subTurn(t model.Turn) {
	i := p.current
	if i < 0 {
		return
	}
	known := p.results[i]
	p.results[i] = append(slices.Clone(known), t.Results...)
	p.checkReached(i, false)
	p.results[i] = known
	for _, r := range t.Results {
		if r.Missing != "" {
			p.seen[i].Missing = "the sub-agent: " + r.Missing
		}
		if layer, word := p.refusalIn(r); layer != "" && !slices.Contains(p.seen[i].Refusals, refusal{subAgent, layer, word}) {
			p.seen[i].Refusals = append(p.seen[i].Refusals, refusal{subAgent, layer, word})
		}
	}
}

// markStuck notes that the current step is being ended.
func (p *play) markStuck() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turned = time.Now()
	if p.current >= 0 {
		p.seen[p.current].Stuck = max(1, p.asked-p.first[p.current]+1)
	}
}

// stop is called when the agent has ended: it checks once more what the agent was
// doing. said is the agent's output.
func (p *play) stop(output string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for i := range p.probes {
		if p.seen[i].Asked > 0 {
			p.checkReached(i, true)
		}
	}
	if i := p.current; i >= 0 {
		p.seen[i].Cut = true
		if layer, word := p.refusalIn(model.Result{Text: output}); layer != "" && len(p.seen[i].Refusals) == 0 {
			p.seen[i].Refusals = append(p.seen[i].Refusals, refusal{string(p.probes[i].Steps[max(0, min(len(p.probes[i].Steps)-1, p.asked-p.first[i]))].Op), layer, word})
		}
		refusals := p.seen[i].Refusals
		p.endProbe()
		p.seen[i].Asked = p.asked - p.first[i] + 1
		p.seen[i].Refusals = refusals
	}
}

// checkLate checks the late probes again, after the human has come back, and undoes
// them.
func (p *play) checkLate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, one := range p.probes {
		if one.Late && p.seen[i].Asked > 0 {
			p.checkReached(i, true)
			p.undo(i)
		}
	}
}

// wantsLate reports whether a human has to come back.
func (p *play) wantsLate() bool {
	return slices.ContainsFunc(p.probes, func(one Probe) bool { return one.Late })
}

// all is the evidence of every probe that was begun or skipped.
func (p *play) all() []evidence {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen[:p.next])
}
