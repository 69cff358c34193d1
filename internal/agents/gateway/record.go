package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"holdfast.dev/holdfast/internal/floor/canonical"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
)

// How much of a text is recorded, in bytes.
const (
	excerpt   = 200     // of dropped messages and error texts
	arguments = 4 << 10 // of a call
	redacted  = 64 << 10
	nameMost  = 200
	dropsMost = 20      // events about dropped messages; further ones are counted
	toolsMost = 10_000  // maximum number of a server's tools whose definitions are compared
	pagesMost = 4 << 20 // of these definitions
)

// record writes the record of a session.
type record struct {
	config Config

	mu     sync.Mutex // guards what follows, and keeps events in order
	closed bool
	report Report
	agent  string // name that it gives itself
	server string
	pages  []json.RawMessage // of a tool list that is not complete
	paged  int               // bytes of them
	digest string            // of the last list
	slow   map[string]bool   // which sides were slowed down
	more   map[string]int    // drops that were only counted, by side
	drops  int
}

func newRecord(c Config) *record {
	if c.Redact == nil {
		c.Redact = func(s string) string { return s }
	}
	return &record{config: c, server: c.Name, slow: map[string]bool{}, more: map[string]int{}}
}

// emit adds the names of agent and server, and writes an event; mu is held.
func (r *record) emit(e event.Event) error {
	if r.closed {
		return nil
	}
	if r.agent != "" {
		e.Detail["agent"] = r.agent
	}
	if e.Object != r.server {
		e.Detail["server"] = r.server
	}
	return r.config.Sink.Emit(e)
}

// recordRequest records a request of the agent before it is passed on: what cannot be
// recorded does not happen. The parameters of a tool call are replaced by those
// that were judged. A call to which a rule of consent may apply is returned, and
// not recorded yet.
func (r *record) recordRequest(m *jsonrpc.Request) (*toolCall, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.agent == "" {
		r.agent = peerName(m.Params, "clientInfo")
	}
	if m.Method != "tools/call" {
		return nil, nil
	}
	c, err := parseCall(m.Params)
	if err != nil {
		return nil, err
	}
	m.Params = c.params
	r.report.Calls++
	reason, rule := r.policyDenial(c)
	if reason == "" && r.config.hasConsentRules() {
		return &c, nil
	}
	e := r.callEvent(m, c)
	if reason != "" {
		e.Verdict, e.Layer, e.Rule = event.Denied, event.LayerTools, rule
		e.Detail["reason"] = reason
	}
	if err := r.emit(e); err != nil {
		return nil, unrecordedError(err)
	}
	if reason != "" {
		return nil, &deniedError{reason}
	}
	return nil, nil
}

// callEvent is the event of an allowed call; mu is held.
func (r *record) callEvent(m *jsonrpc.Request, c toolCall) event.Event {
	return event.Event{Action: event.ToolCall, Object: text.Head(c.name, nameMost), Verdict: event.Allowed, Detail: map[string]string{
		"id": idText(m.ID), "arguments": r.text(string(c.arguments), arguments),
	}}
}

func unrecordedError(err error) error { return fmt.Errorf("the call cannot be recorded: %w", err) }

// deniedError means that the policy denies a call.
type deniedError struct{ reason string }

func (e *deniedError) Error() string { return "denied: " + e.reason }

// policyDenial returns why the policy denies a call; "" if it does not. A server
// chooses its own name, so rules about its program's name must apply too.
func (r *record) policyDenial(c toolCall) (reason, rule string) {
	if r.config.Deny == nil {
		return "", ""
	}
	for _, server := range []string{r.config.Name, r.server} {
		if reason, rule = r.config.Deny(r.agent, server, c.name, c.arguments); reason != "" {
			break
		}
	}
	return reason, rule
}

// recordAnswer records the answer to a request of the agent.
func (r *record) recordAnswer(c *call, m *jsonrpc.Response, size int) {
	switch c.method {
	case "initialize", "server/discover":
		if name := peerName(m.Result, "serverInfo"); name != "" {
			r.mu.Lock()
			r.server = name
			r.mu.Unlock()
		}
	case "tools/list":
		r.recordTools(c, m)
	case "tools/call":
		o := outcome{word: "ok", size: size}
		switch {
		case m.Error != nil:
			o.word, o.text = "refused", m.Error.Error()
		case string(member(m.Result, "isError")) == "true":
			o.word = "error"
			if first, _, err := elements(member(m.Result, "content"), 1); err == nil && len(first) > 0 {
				o.text = textOf(first[0], "text")
			}
		}
		if !c.cancelled {
			r.result(c, m.ID, o)
		}
	}
}

// outcome is the result of a call.
type outcome struct {
	word string // ok, error, refused, cancelled or lost
	text string // of a failure
	size int    // bytes of the answer
}

// result records the end of a tool call; other requests are not recorded.
func (r *record) result(c *call, id jsonrpc.ID, o outcome) {
	if c.method != "tools/call" {
		return
	}
	detail := map[string]string{"id": idText(id), "outcome": o.word, "ms": strconv.FormatInt(time.Since(c.began).Milliseconds(), 10)}
	if o.size > 0 {
		detail["bytes"] = strconv.Itoa(o.size)
	}
	if o.text != "" {
		detail["reason"] = r.text(o.text, excerpt)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// A lost event has already ended the run: see Config.Sink.
	r.emit(event.Event{Action: event.ToolResult, Object: text.Head(c.tool, nameMost), Verdict: event.Allowed, Detail: detail})
}

// recordTools records the list of tools if it is new or has changed.
func (r *record) recordTools(c *call, m *jsonrpc.Response) {
	page, more, err := elements(member(m.Result, "tools"), toolsMost)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.first {
		r.pages, r.paged = nil, 0
	}
	for _, t := range page {
		r.paged += len(t)
	}
	if more || len(r.pages)+len(page) > toolsMost || r.paged > pagesMost {
		r.pages, r.paged = nil, pagesMost // later pages are ignored too
		r.recordTooManyTools()
		return
	}
	r.pages = append(r.pages, page...)
	if textOf(m.Result, "nextCursor") != "" {
		return
	}
	tools := describe(r.pages)
	r.pages = nil
	if tools.sum == r.digest {
		return
	}
	detail := map[string]string{"sha256": tools.sum, "tools": strconv.Itoa(tools.count), "names": text.Head(tools.names, arguments)}
	if r.digest != "" {
		detail["was"] = r.digest
	}
	r.digest = tools.sum
	r.emit(event.Event{Action: event.ToolList, Object: r.server, Verdict: event.Allowed, Detail: detail})
}

// recordTooManyTools records once that there are too many tools to compare; mu is held.
func (r *record) recordTooManyTools() {
	const none = "not known"
	if r.digest == none {
		return
	}
	detail := map[string]string{"reason": "there are more definitions of tools than are compared"}
	if r.digest != "" {
		detail["was"] = r.digest
	}
	r.digest = none
	r.emit(event.Event{Action: event.ToolList, Object: r.server, Verdict: event.Unknown, Detail: detail})
}

// tools identifies what a server offers, independent of its formatting.
type tools struct {
	sum, names string
	count      int
}

// describe normalises definitions of tools: without white space, with keys and
// tools sorted by name.
func describe(definitions []json.RawMessage) tools {
	type one struct{ name, text string }
	all := make([]one, len(definitions))
	for i, d := range definitions {
		dec := json.NewDecoder(strings.NewReader(string(d)))
		dec.UseNumber()
		var v any
		dec.Decode(&v)                  // decoded before
		text, _ := canonical.Marshal(v) // and consists only of such values
		m, _ := v.(map[string]any)      // a tool that is no object has no name
		name, _ := m["name"].(string)
		all[i] = one{name, string(text)}
	}
	slices.SortFunc(all, func(a, b one) int { return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.text, b.text)) })
	h := sha256.New()
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.name
		h.Write([]byte(t.text + "\n"))
	}
	return tools{sum: hex.EncodeToString(h.Sum(nil)), names: strings.Join(names, ","), count: len(all)}
}

// drop records a message that is not passed on.
func (r *record) drop(who, reason string, size int, content string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	content = r.text(content, excerpt)
	if who == "server" {
		if r.report.Dropped++; r.report.Dropped == 1 {
			r.report.First = content
		}
	}
	if r.drops++; r.drops > dropsMost {
		r.more[who]++
		return
	}
	r.emit(event.Event{Action: event.ToolDrop, Object: who, Verdict: event.Denied, Layer: event.LayerGateway,
		Detail: map[string]string{"reason": text.Head(reason, excerpt), "bytes": strconv.Itoa(size), "text": content}})
}

// recordSlowed records once for each side that it exceeded its rate.
func (r *record) recordSlowed(who string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slow[who] {
		return
	}
	r.slow[who] = true
	r.emit(event.Event{Action: event.SessionLimit, Object: "messages of the " + who, Verdict: event.Denied, Layer: event.LayerGateway,
		Detail: map[string]string{"reason": "there were more than the limit, so they were passed on more slowly"}})
}

// close ends the record.
func (r *record) close() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, who := range []string{"agent", "server"} {
		if n := r.more[who]; n > 0 {
			r.emit(event.Event{Action: event.ToolDrop, Object: who, Verdict: event.Denied, Layer: event.LayerGateway,
				Detail: map[string]string{"reason": "more of the kind", "count": strconv.Itoa(n)}})
		}
	}
	r.closed = true
	return r.report
}

// text redacts a text and shortens it. If it was cut before redaction, it may end
// in the middle of a secret, so the last part is discarded.
func (r *record) text(s string, most int) string {
	short := len(s) > redacted
	s = r.config.Redact(text.Head(s, redacted))
	if short {
		s = s[:max(0, len(s)-arguments)]
	}
	return text.Cut(s, most)
}

// metaPrefix begins the keys of the protocol's own data in each message since
// 2026-07-28, which no longer has initialize.
const metaPrefix = "io.modelcontextprotocol/"

// peerName is the name and version that a side reports; "" for none.
func peerName(object json.RawMessage, key string) string {
	side := member(object, key)
	if side == nil {
		side = member(member(object, "_meta"), metaPrefix+key)
	}
	return strings.TrimSpace(text.Head(textOf(side, "name"), nameMost) + " " + text.Head(textOf(side, "version"), nameMost))
}

// count is a number with its unit.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
