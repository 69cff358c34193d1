package model

import (
	"fmt"
	"strconv"
	"strings"
)

// progress is how far a play has come, according to the request.
type progress struct {
	next     int // step
	results  []Result
	searched map[int]Result // by step, the result of the search for its tool
	wait     string         // phase of step next-1 in which the agent must be asked to wait; "" for none
	last     Result         // the previous result of step next-1
}

// resolve resolves a step, using the result of a search for its tool.
func (g progress) resolve(p *play, q *request, step int) (resolved, error) {
	if found, ok := g.searched[step]; ok {
		return q.resolve(p.script.Steps[step], phaseSelect, found)
	}
	return q.resolve(p.script.Steps[step], phaseCall, Result{})
}

// outcome is a result with the tool that was called.
type outcome struct {
	Result
	tool string // name of the called tool; "" when the request does not say
}

// outcomes lists the results of a play in the order of the conversation.
func (p *play) outcomes() []outcome {
	names := map[string]string{}
	for _, it := range p.items {
		if it.part == called {
			names[it.id] = it.name
		}
	}
	var all []outcome
	for _, it := range p.items {
		if it.part != result {
			continue
		}
		o := outcome{Result{ID: it.id, Text: it.text, Error: it.bad}, it.name}
		if o.tool == "" {
			o.tool = names[it.id]
		}
		all = append(all, o)
	}
	return all
}

// follow finds the next step. If the agent keeps our IDs, they determine it. If
// it makes its own, the order does: then steps for which the request has no tool
// are assumed to have been skipped, as they would be now.
func (p *play) follow(q *request) progress {
	all := p.outcomes()
	for _, o := range all {
		if _, _, ok := p.decode(o.ID); ok {
			return p.byID(q, all)
		}
	}
	return p.byOrder(q, all)
}

const summedUp = "the conversation was summed up"

// byID assigns the results to the steps that their IDs name.
func (p *play) byID(q *request, all []outcome) progress {
	found := map[string]Result{}
	g := progress{next: p.start, searched: map[int]Result{}}
	for _, o := range all {
		step, phase, ok := p.decode(o.ID)
		if !ok {
			continue // a call that the agent made by itself
		}
		key := fmt.Sprint(step, phase)
		if was, ok := found[key]; ok { // one result sent in parts
			o.Text, o.Error = was.Text+"\n"+o.Text, was.Error || o.Error
		}
		found[key] = o.Result
		if phase == phaseSelect {
			g.searched[step] = found[key]
		} else {
			g.next = max(g.next, step+1)
		}
	}
	for i := range g.next {
		r, last, waits := p.gather(q, g, i, found)
		g.results, g.last = append(g.results, r), last
		if i == g.next-1 {
			g.wait = p.wait(q, i, last, waits)
		}
	}
	return g
}

// gather combines the result of one step with those that came while the agent
// waited.
func (p *play) gather(q *request, g progress, i int, found map[string]Result) (r, last Result, waits int) {
	r, ok := found[strconv.Itoa(i)]
	switch {
	case ok:
		r.Missing = p.refused(i, r)
	case i < p.start:
		r.Missing = summedUp
	default:
		r.Missing = p.absenceReason(q, g, i)
	}
	last = r
	for {
		more, ok := found[fmt.Sprint(i, waitPhase(waits))]
		if !ok {
			return r, last, waits
		}
		r.Text, r.Error = r.Text+"\n"+more.Text, r.Error || more.Error
		last, waits = more, waits+1
	}
}

func waitPhase(n int) string {
	if n == 0 {
		return phaseWait
	}
	return phaseWait + strconv.Itoa(n)
}

// byOrder gives each result to the step that would have been requested.
func (p *play) byOrder(q *request, all []outcome) progress {
	g := progress{next: p.start, searched: map[int]Result{}}
	for range p.start {
		g.results = append(g.results, Result{Missing: summedUp})
	}
	waits := 0
	for _, o := range all {
		if g.wait != "" && isWait(o.tool) {
			r := &g.results[g.next-1]
			r.Text, r.Error, waits = r.Text+"\n"+o.Text, r.Error || o.Error, waits+1
			g.wait, g.last = p.wait(q, g.next-1, o.Result, waits), o.Result
			continue
		}
		g.wait = ""
		p.pass(q, &g)
		if g.next >= len(p.script.Steps) {
			break
		}
		if c, err := g.resolve(p, q, g.next); err == nil && c.phase == phaseSelect && o.tool == c.tool.name {
			g.searched[g.next] = o.Result
			continue
		}
		o.Missing = p.refused(g.next, o.Result)
		g.results = append(g.results, o.Result)
		g.next, waits = g.next+1, 0
		g.wait, g.last = p.wait(q, g.next-1, o.Result, 0), o.Result
	}
	return g
}

// pass skips the steps that no tool of the request can do.
func (p *play) pass(q *request, g *progress) {
	for g.next < len(p.script.Steps) && p.script.Steps[g.next].Op != Say {
		_, err := g.resolve(p, q, g.next)
		if err == nil {
			return
		}
		g.results = append(g.results, Result{Missing: err.Error()})
		g.next++
	}
}

// absenceReason says why a step has no result. What the request cannot do now, it is
// assumed not to have been able to do then.
func (p *play) absenceReason(q *request, g progress, step int) string {
	if c, err := g.resolve(p, q, step); err != nil {
		return err.Error()
	} else if c.phase == phaseSelect {
		return missingTool(p.script.Steps[step]) // not even searched for
	}
	return "the agent sent no result"
}

// refused reports that the program of a call found no tool, which only shows when
// it runs.
func (p *play) refused(step int, r Result) string {
	if op := p.script.Steps[step].Op; op != MCP && op != Tool {
		return "" // no program searched for it: the words come from a command
	}
	if none := missingTool(p.script.Steps[step]); strings.Contains(r.Text, programMark+none) {
		return none
	}
	return ""
}

// maxWaits limits how often an agent is asked to wait for one step, 30 seconds
// each time.
const maxWaits = 20

// wait returns the phase in which the agent must be asked to wait for what a step
// left running; last is the latest result of the step. It returns "" if nothing
// is running.
func (p *play) wait(q *request, step int, last Result, waits int) string {
	if last.Missing != "" || waits >= maxWaits {
		return ""
	}
	if _, ok := q.waiter(p.script.Steps[step], last, waits); !ok {
		return ""
	}
	return waitPhase(waits)
}

func isWait(name string) bool { return strings.HasPrefix(name, "wait") || name == "write_stdin" }
