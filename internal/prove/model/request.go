package model

import (
	"encoding/json"
	"slices"
	"strings"
)

// request is what all dialects have in common.
type request struct {
	dialect string
	model   string
	stream  bool
	system  string // instructions; read only to find out what kind of answer is wanted
	tools   []tool
	forced  string          // name of the one tool that the answer must call; "" for free choice
	schema  json.RawMessage // of the JSON that the answer must be; nil for text
	items   []item          // the conversation, oldest first
}

// kind is how a tool is called.
type kind int

// The kinds of tools.
const (
	function   kind = iota // arguments are JSON that follows a schema
	custom                 // one text
	localShell             // of the Responses API, which has its own item
	toolSearch             // likewise of the Responses API
	foreign                // run by the provider, such as web search; agents do not run it
)

// tool is a tool that a request offers.
type tool struct {
	name      string // name by which it is called
	namespace string // of the Responses API; "" for none
	kind      kind
	schema    json.RawMessage // nil when unknown
	about     string          // description
	deferred  bool            // listed, but must be loaded before it can be called
	nested    bool            // called by the program that code mode's tool exec runs
}

// fullName is the name with its namespace.
func (t tool) fullName() string {
	if t.namespace == "" {
		return t.name
	}
	return t.namespace + "." + t.name
}

// part is the kind of an item.
type part int

// The parts of a conversation.
const (
	prompt part = iota // text of the user
	called             // a tool call of the model
	result             // the result of a call
	spoken             // text of the model
)

// item is one piece of a conversation. A message may have several.
type item struct {
	part part
	id   string // of the call
	name string // of the tool; for a result only where the dialect repeats it
	text string // of prompts, results and the model's answers; arguments of a call
	bad  bool   // the result is marked as an error
}

// call is one tool call of an answer.
type call struct {
	id   string
	tool tool
	args map[string]any // for functions
	text string         // for custom tools, and programs of code mode
	argv []string       // for localShell
}

// answer is the model's answer: text, calls, or both.
type answer struct {
	text  string
	calls []call
}

// offered lists the names of all tools that can be called, as the request spells
// them.
func (q *request) offered() []string {
	var all []string
	for _, t := range q.tools {
		if !t.deferred {
			all = append(all, t.fullName())
		}
	}
	return all
}

// find returns the offered tool with exactly that name.
func (q *request) find(name string) (tool, bool) {
	i := slices.IndexFunc(q.tools, func(t tool) bool { return !t.deferred && (t.name == name || t.fullName() == name) })
	if i < 0 {
		return tool{}, false
	}
	return q.tools[i], true
}

// contentText is the text of a content field: a string, or a list of blocks of which
// some have text. Anything else is "".
func contentText(raw json.RawMessage) string {
	var all []string
	for _, b := range blocks(raw) {
		if b.Text != "" {
			all = append(all, b.Text)
		} else if other := b.ToolName + b.Encrypted; other != "" {
			all = append(all, other)
		}
	}
	return strings.Join(all, "\n")
}

// block is a piece of content in any of the dialects.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	ToolName  string          `json:"tool_name"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Encrypted string          `json:"encrypted_content"` // message to a sub-agent of Codex; our server encrypts nothing
}

// blocks reads a content field, which is a string, a block or a list of either.
func blocks(raw json.RawMessage) []block {
	if len(raw) == 0 {
		return nil
	}
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return []block{{Type: "text", Text: s}}
		}
	case '{':
		var b block
		if json.Unmarshal(raw, &b) == nil {
			return []block{b}
		}
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return nil
		}
		var all []block
		for _, one := range list {
			if len(one) > 0 && one[0] != '[' { // no nested lists: the sender would choose the depth of recursion
				all = append(all, blocks(one)...)
			}
		}
		return all
	}
	return nil
}
