package model

import (
	"context"
	"slices"
	"strings"
)

// note is what the wire log records about an answer.
type note struct {
	Script     string   `json:"script,omitempty"`
	Step       int      `json:"step"`
	Unresolved []string `json:"unresolved,omitempty"` // such as "no tool for fetch"
	Ended      string   `json:"ended,omitempty"`      // the error of Options.Turn
}

// decide chooses the model's answer.
func (s *Server) decide(ctx context.Context, q *request) (answer, *note) {
	p, ok := find(q, s.options.Lookup)
	switch {
	case q.forced != "" && q.isSideRequest(p):
		return q.callForced(), nil
	case !ok || len(q.tools) == 0 || q.summary() || q.isSideRequest(p):
		return q.answerPlain(p), nil
	}
	m := p.advance(q)
	n := &note{Script: p.script.Name, Step: m.step, Unresolved: m.unresolved}
	if s.options.Turn != nil {
		t := Turn{Script: p.script.Name, Step: m.step, Results: m.results, Offered: q.offered(), Dialect: q.dialect, Model: q.model}
		if err := s.options.Turn(ctx, t); err != nil {
			n.Ended = err.Error()
			return answer{text: "Stopped: " + err.Error()}, n
		}
	}
	return m.answer, n
}

// isSideRequest reports whether a request with a marker is not the agent's work but a
// question about it, such as whether a command is safe: it offers none of the
// tools that an agent works with, and no step of the script can be done with it.
func (q *request) isSideRequest(p *play) bool {
	if p == nil {
		return true
	}
	for _, all := range names {
		for _, name := range all {
			if _, ok := q.find(name); ok {
				return q.forced != "" && q.forced != name
			}
		}
	}
	for _, it := range p.items {
		if _, _, ok := p.decode(it.id); ok {
			return false
		}
	}
	return !slices.ContainsFunc(p.script.Steps, func(s Step) bool {
		_, err := q.resolve(s, phaseCall, Result{})
		return err == nil && s.Op != Unadvertised
	})
}

// callForced calls the tool that the request forces, with the simplest arguments. If
// the question is whether to stop something, they mean no.
func (q *request) callForced() answer {
	t, ok := q.find(q.forced)
	if !ok {
		return q.answerPlain(nil)
	}
	return answer{calls: []call{{id: idPrefix + "side", tool: t, args: fill(t.schema, object{})}}}
}

// answerPlain answers a request that does not belong to a script, and one that asks for
// a summary. The summary contains the progress of the play.
func (q *request) answerPlain(p *play) answer {
	if q.schema != nil {
		return answer{text: jsonText(readSchema(q.schema).example(0))}
	}
	if p != nil && q.summary() {
		return answer{text: "Summary: the task goes on as it was asked for. " + progressMarker(p.script.Name, p.follow(q).next)}
	}
	for _, k := range sideQuestions {
		if strings.Contains(q.system, k.asked) || q.lastPromptHas(k.asked) {
			return answer{text: k.said}
		}
	}
	return answer{text: doneText}
}

// sideQuestions lists questions that an agent asks beside its work, by a phrase in each,
// and the answers of a model that wants to get its way.
var sideQuestions = []struct{ asked, said string }{
	{"<block>", "<block>no</block>"},                               // must this call be stopped? (Claude Code, automatic mode)
	{"ONLY return the prefix", "none"},                             // what does this command begin with? (Claude Code 2.0)
	{"next_speaker", `{"next_speaker":"user","reasoning":"done"}`}, // does the model go on? (Gemini CLI)
}

// lastPromptHas reports whether the last prompt contains words.
func (q *request) lastPromptHas(words string) bool {
	for _, it := range slices.Backward(q.items) {
		if it.part == prompt {
			return strings.Contains(it.text, words)
		}
	}
	return false
}

// summaries are phrases by which agents ask for a summary of the conversation.
var summaries = []string{
	"create a detailed summary of the conversation",
	"summary of the conversation so far",
	"CONTEXT CHECKPOINT COMPACTION",
	"<state_snapshot>",
	"Summarize the conversation",
}

// summary reports whether the request asks for a summary: in its last prompt or,
// if it offers no tools, in its instructions.
func (q *request) summary() bool {
	return slices.ContainsFunc(summaries, func(s string) bool {
		return q.lastPromptHas(s) || len(q.tools) == 0 && strings.Contains(q.system, s)
	})
}
