package model

import (
	"slices"
	"strings"
)

// move is the answer to a scripted request, with the state of the play after it.
type move struct {
	answer
	step       int
	results    []Result
	unresolved []string // of the steps passed over in this turn
}

// advance makes the next move of a play.
func (p *play) advance(q *request) move {
	g := p.follow(q)
	if g.wait != "" {
		step, waits := g.next-1, 0
		for waitPhase(waits) != g.wait {
			waits++
		}
		c, _ := q.waiter(p.script.Steps[step], g.last, waits)
		c.id = p.id(step, g.wait)
		return move{answer: answer{calls: []call{c}}, step: step, results: g.results[:step]}
	}
	before := g.next
	p.pass(q, &g)
	m := move{step: g.next, results: g.results}
	for _, r := range g.results[before:] {
		m.unresolved = append(m.unresolved, r.Missing)
	}
	if g.next >= len(p.script.Steps) {
		m.answer = p.end(q, doneText)
		return m
	}
	first := p.script.Steps[g.next]
	if first.Op == Say {
		m.answer = p.end(q, strings.ReplaceAll(first.Text, markBegin, "[script:")) // else a parent takes it for its next prompt
		return m
	}
	c, err := g.resolve(p, q, g.next)
	if err != nil { // cannot happen: pass has just resolved it
		m.text = doneText
		return m
	}
	m.calls = append(m.calls, p.named(c, g.next))
	if c.phase != phaseSelect {
		p.addParallel(q, g, &m)
	}
	return m
}

// endTools are the tools by which some sub-agents report that they are done; after
// a text alone they ask again.
var endTools = []string{"complete_task", "attempt_completion"}

// end ends a play with a text.
func (p *play) end(q *request, text string) answer {
	for _, o := range p.outcomes() {
		if slices.Contains(endTools, o.tool) {
			return answer{text: text}
		}
	}
	for _, name := range endTools {
		if t, ok := q.find(name); ok {
			args := object{}
			for _, field := range []string{"result", "response", "report", "output"} {
				if p := readSchema(t.schema).Properties[field]; !p.is("object") {
					args[field] = text
				}
			}
			return answer{calls: []call{{id: p.prefix() + "end", tool: t, args: fill(t.schema, args)}}}
		}
	}
	return answer{text: text}
}

// doneText is what the model says when there is nothing left to do.
const doneText = "Done."

// addParallel adds the steps to be requested in the same turn.
func (p *play) addParallel(q *request, g progress, m *move) {
	for i := m.step + 1; i < len(p.script.Steps) && p.script.Steps[i].Parallel; i++ {
		c, err := g.resolve(p, q, i)
		switch {
		case err != nil:
			m.unresolved = append(m.unresolved, err.Error())
		case c.phase == phaseSelect:
			return // asked for after the others
		default:
			m.calls = append(m.calls, p.named(c, i))
		}
	}
}

func (p *play) named(c resolved, step int) call {
	c.call.id = p.id(step, c.phase)
	return c.call
}
