package model

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// A step may take more than one call. The phase, part of the ID, says which.
const (
	phaseCall   = ""  // the call itself
	phaseSelect = "s" // before it: the agent loads the tool
	phaseWait   = "w" // after it: the agent waits for what is still running; "w", "w1", "w2"…
)

// play is one run of a script within a conversation.
type play struct {
	script Script
	number int    // number of prompts with a marker before this one: the IDs of two runs differ
	start  int    // first step of this conversation; above 0 when an earlier part was summarised
	items  []item // what came after the prompt
}

const idPrefix = "call_hf_"

// prefix begins the IDs of all calls of this play. Providers accept at most 64
// characters: letters, digits, - and _.
func (p *play) prefix() string {
	name := strings.ReplaceAll(p.script.Name, ".", "-")
	if len(name) > 30 {
		h := fnv.New32a()
		h.Write([]byte(name))
		name = fmt.Sprintf("%s-%08x", name[:20], h.Sum32())
	}
	return idPrefix + name + "_" + strconv.Itoa(p.number) + "_"
}

func (p *play) id(step int, phase string) string {
	return p.prefix() + strconv.Itoa(step) + phase
}

// decode finds the call of this play that an ID belongs to.
func (p *play) decode(id string) (step int, phase string, ok bool) {
	// Agents put a prefix or a suffix of their own around it.
	at := strings.Index(id, p.prefix())
	if at < 0 {
		return 0, "", false
	}
	rest := id[at+len(p.prefix()):]
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	step, err := strconv.Atoi(rest[:end])
	if err != nil || step >= len(p.script.Steps) {
		return 0, "", false
	}
	switch rest = rest[end:]; {
	case strings.HasPrefix(rest, phaseSelect):
		phase = phaseSelect
	case strings.HasPrefix(rest, phaseWait):
		phase = rest[:1+len(rest[1:])-len(strings.TrimLeft(rest[1:], "0123456789"))]
	}
	return step, phase, true
}

// The parts of a marker in a prompt.
const (
	markBegin = "[[script:"
	markEnd   = "]]"
	// markStep follows the name in a summary: [[script:NAME@3]] continues with
	// step 3. An agent that compacts its conversation keeps only the summary, so
	// the results in it can no longer be counted.
	markStep = "@"
)

// lastMarker returns the last marker in text that names a script.
func lastMarker(text string, lookup func(string) (Script, bool)) (Script, int, bool) {
	for text != "" {
		at := strings.LastIndex(text, markBegin)
		if at < 0 {
			break
		}
		rest := text[at+len(markBegin):]
		text = text[:at]
		inner, _, closed := strings.Cut(rest, markEnd)
		if !closed || len(inner) > 2*maxName {
			continue
		}
		name, step, _ := strings.Cut(inner, markStep)
		if s, ok := lookup(name); ok {
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 {
				n = 0
			}
			return s, min(n, len(s.Steps)), true
		}
	}
	return Script{}, 0, false
}

// find returns the play that a request belongs to: that of its last prompt with a
// marker. A sub-agent has its own.
func find(q *request, lookup func(string) (Script, bool)) (*play, bool) {
	var p *play
	number := 0
	for i, it := range q.items {
		if it.part != prompt || !strings.Contains(it.text, markBegin) {
			continue
		}
		if s, start, ok := lastMarker(it.text, lookup); ok {
			p = &play{script: s, number: number, start: start, items: q.items[i+1:]}
			number++
		}
	}
	return p, p != nil
}

// progressMarker writes the progress of a play as a marker that find understands.
func progressMarker(script string, step int) string {
	return markBegin + script + markStep + strconv.Itoa(step) + markEnd
}
