package model

import (
	"encoding/json"
	"strings"
)

// waiter is the call that waits for what a step left running, if the agent did
// not wait by itself; last is its latest result, waits how often it was asked.
func (q *request) waiter(s Step, last Result, waits int) (call, bool) {
	if s.Background || last.Error {
		return call{}, false
	}
	if t, ok := q.find("wait"); ok {
		if id, ok := wordAfter(last.Text, "running with cell ID "); ok {
			return call{tool: t, args: fill(t.schema, object{"cell_id": id, "yield_time_ms": 30000})}, true
		}
	}
	if t, ok := q.find("write_stdin"); ok && s.Op == Shell {
		if id, ok := wordAfter(last.Text, "running with session ID "); ok && json.Valid([]byte(id)) {
			return call{tool: t, args: fill(t.schema, object{"session_id": json.RawMessage(id), "chars": "", "yield_time_ms": 30000})}, true
		}
	}
	if s.Op == Spawn && waits == 0 {
		return q.waitAgent(last)
	}
	return call{}, false
}

// waitAgent waits for the sub-agent that a result names.
func (q *request) waitAgent(last Result) (call, bool) {
	for _, name := range []string{"wait_agent", "wait"} {
		t, ok := q.find(name)
		if !ok {
			continue
		}
		args := object{"timeout_ms": 600000}
		props := readSchema(t.schema).Properties
		var made struct {
			AgentID string `json:"agent_id"`
			Name    string `json:"task_name"`
		}
		if err := json.Unmarshal([]byte(last.Text), &made); err != nil || made.AgentID+made.Name == "" {
			return call{}, false // not started
		}
		for _, list := range []string{"targets", "ids"} {
			if _, ok := props[list]; ok {
				args[list] = []any{made.AgentID}
			}
		}
		return call{tool: t, args: fill(t.schema, args)}, true
	}
	return call{}, false
}

// wordAfter is the word that follows mark in text, without trailing punctuation.
func wordAfter(text, mark string) (string, bool) {
	at := strings.LastIndex(text, mark)
	if at < 0 {
		return "", false
	}
	word := text[at+len(mark):]
	if end := strings.IndexAny(word, " \n\t"); end >= 0 {
		word = word[:end]
	}
	word = strings.TrimRight(word, ".,;)\"'")
	return word, word != "" && len(word) < 200
}
