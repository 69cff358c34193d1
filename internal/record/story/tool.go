package story

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
)

// Tool is a call of an agent's tool, as its hook reported it, and what was seen
// from outside between the report of the call and that of its result: programs
// that the agent started then, and what its own process did.
//
// That something happened in that time is seen; that it belongs to the call is
// concluded. If the agent had several calls in progress at once, Among says so.
type Tool struct {
	Name      string    `json:"name"`
	Agent     string    `json:"agent,omitempty"`
	Server    string    `json:"server,omitempty"`
	Subagent  string    `json:"subagent,omitempty"`
	ID        string    `json:"id,omitempty"`
	Arguments string    `json:"arguments,omitempty"`
	Denied    bool      `json:"denied,omitempty"`
	Rule      string    `json:"rule,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Status    string    `json:"status,omitempty"` // as the agent says; "" where it did not
	Seq       uint64    `json:"seq"`
	Begin     time.Time `json:"begin"`
	End       time.Time `json:"end,omitzero"`       // of the result; zero when none was reported
	By        uint64    `json:"by,omitempty"`       // program that called: the agent; 0 when it is not known
	Reporter  uint64    `json:"reporter,omitempty"` // program that reported it
	Main      uint64    `json:"main,omitempty"`     // the first of the programs whose command line has the command of the arguments
	Programs  []uint64  `json:"programs,omitempty"` // that were started meanwhile, the first ones
	More      uint64    `json:"more,omitempty"`     // programs and objects that are not listed
	Own       []Object  `json:"own,omitempty"`      // what the agent's process did itself; What says which
	Among     int       `json:"among,omitempty"`    // other calls of the same agent in progress at the same time

	command string
	passed  bool // a call that was made together with it, or later, has its result
}

const (
	maxTools     = 5_000
	maxOpen      = 64  // calls of one agent in progress
	maxOfTool    = 40  // programs, and objects, of one
	maxArguments = 600 // bytes of arguments that are kept
	hookVerb     = "hook"
	hookedAhead  = 4 // arguments of a hook program: program, verb, agent, moment
)

// tool takes what an agent's hook reported, and what a gateway passed on.
func (b *Builder) tool(e *event.Event) {
	switch e.Action {
	case event.ToolCall:
		b.toolCall(e)
	case event.ToolResult:
		b.toolResult(e)
	default:
		b.addNote(&b.s.Notes, e)
	}
}

func (b *Builder) toolCall(e *event.Event) {
	agent := b.agentOf(e)
	id := e.Detail["id"]
	for _, t := range b.open[agent] {
		if id != "" && t.ID == id { // some agents call their hook twice
			t.Arguments = b.retain(text.Cut(e.Detail["arguments"], maxArguments))
			b.setDenial(t, e)
			return
		}
	}
	if len(b.s.Tools) >= maxTools || !b.admit(len(e.Object)+maxArguments, ofAll) {
		b.s.Left.Other++
		return
	}
	d := e.Detail
	t := &Tool{
		Name: b.retain(e.Object), Agent: b.retain(d["agent"]), Server: b.retain(d["server"]), Subagent: b.retain(d["subagent"]), ID: b.retain(id),
		Arguments: b.retain(text.Cut(d["arguments"], maxArguments)), command: commandOf(d["arguments"]), Seq: e.Seq, Begin: e.Time, By: agent, Reporter: e.Process.Exec,
	}
	b.s.Tools = append(b.s.Tools, t)
	b.closePassed(agent, t.Subagent)
	b.setDenial(t, e)
	if t.Denied || len(b.open[agent]) >= maxOpen {
		return
	}
	for _, other := range b.open[agent] {
		other.Among++
		t.Among++
	}
	b.open[agent] = append(b.open[agent], t)
}

// closePassed closes the calls whose result will not be reported: an agent
// makes calls together, and makes no others before it has the results of all.
// Some agents do not report the results of failed calls.
func (b *Builder) closePassed(agent uint64, subagent string) {
	b.open[agent] = slices.DeleteFunc(b.open[agent], func(t *Tool) bool { return t.Subagent == subagent && t.passed })
}

func (b *Builder) setDenial(t *Tool, e *event.Event) {
	if e.Verdict == event.Denied {
		t.Denied, t.Rule, t.Reason = true, b.retain(e.Rule), b.retain(e.Detail["reason"])
	}
}

// commandOf is the command among a tool's arguments, if it takes commands: it
// is searched for in command lines.
func commandOf(arguments string) string {
	var a struct {
		Command string `json:"command"`
		Cmd     string `json:"cmd"`
	}
	if json.Unmarshal([]byte(arguments), &a) != nil {
		return ""
	}
	if a.Command == "" {
		a.Command = a.Cmd
	}
	return unquoteCommand(strings.TrimSpace(a.Command[:min(len(a.Command), 200)]))
}

// unquoteCommand removes from a command what quoting it once more adds or changes, and spells
// line breaks and tabs as escapes do: agents pass commands to a shell in quotes, in which
// each quote gets backslashes or other quotes around it, and a line break may be an escape.
func unquoteCommand(command string) string { return withoutQuotes.Replace(command) }

var withoutQuotes = strings.NewReplacer("$'", "", "'", "", `"`, "", `\`, "", "\n", "n", "\t", "t")

// toolResult ends the call with the same id, or else the oldest of that name.
func (b *Builder) toolResult(e *event.Event) {
	agent := b.agentOf(e)
	id := e.Detail["id"]
	at := slices.IndexFunc(b.open[agent], func(t *Tool) bool {
		return id != "" && t.ID == id || (id == "" || t.ID == "") && t.Name == cutText(e.Object)
	})
	if at < 0 {
		return
	}
	t := b.open[agent][at]
	t.End, t.Status = e.Time, b.retain(e.Detail["outcome"])
	b.open[agent] = slices.Delete(b.open[agent], at, at+1)
	for _, other := range b.open[agent] {
		other.passed = other.passed || other.Subagent == t.Subagent
	}
}

// shells are programs between an agent and its hook, or a command.
var shells = []string{"sh", "bash", "dash", "zsh", "ash", "busybox"}

// agentOf is the agent that called its hook: the next program above the
// reporter that is not a shell; 0 if it is not known, as outside a boundary.
func (b *Builder) agentOf(e *event.Event) uint64 {
	p := b.programs[b.execOf(e)]
	for range 8 {
		if p == nil {
			return 0
		}
		if p = b.programs[p.Parent]; p != nil && !slices.Contains(shells, filepath.Base(p.Executable)) {
			return p.Exec
		}
	}
	return 0
}

// underWay are the calls that a program may have been started for: those of the
// nearest agent above it.
func (b *Builder) underWay(p *Program) []*Tool {
	for range maxOpen {
		if p == nil {
			return nil
		}
		if open := b.open[p.Exec]; len(open) > 0 {
			return open
		}
		p = b.programs[p.Parent]
	}
	return nil
}

// addStarted adds a program to the calls in progress.
func (b *Builder) addStarted(p *Program) {
	if len(b.open) == 0 || isHook(p.Argv) {
		return
	}
	open := b.underWay(b.programs[p.Parent])
	if len(open) == 0 {
		return
	}
	line := unquoteCommand(strings.Join(p.Argv, " "))
	for _, t := range open {
		if t.Main == 0 && t.command != "" && strings.Contains(line, t.command) {
			t.Main = p.Exec
		}
		if len(t.Programs) >= maxOfTool && t.Main != p.Exec {
			t.More++
			continue
		}
		t.Programs = append(t.Programs, p.Exec)
	}
}

// isHook reports whether a command line is that of a hook, or of the shell that
// starts it.
func isHook(argv []string) bool {
	if len(argv) >= 3 && slices.Contains(shells, filepath.Base(argv[0])) {
		argv = strings.Fields(argv[len(argv)-1])
	}
	return len(argv) == hookedAhead && argv[1] == hookVerb && slices.Contains([]string{"call", "result", "end"}, argv[3])
}

// listWords are what the lists of a program are called.
var listWords = map[byte]string{'r': "read", 'w': "wrote", 'm': "renamed", 'd': "removed", 'c': "changed", 's': "connected to", 'b': "listened on", 'x': "refused"}

// addOwn adds what an agent's own process does to its calls in progress.
func (b *Builder) addOwn(of *Program, list byte, name, to string) {
	for _, t := range b.open[of.Exec] {
		o := Object{Name: cutText(name), To: cutText(to), Count: 1, What: listWords[list]}
		at := slices.IndexFunc(t.Own, func(have Object) bool { return have.Name == o.Name && have.To == o.To && have.What == o.What })
		switch {
		case at >= 0:
			t.Own[at].Count++
		case len(t.Own) >= maxOfTool || !b.admit(len(name)+len(to), ofFiles):
			t.More++
		default:
			o.Name, o.To = b.retain(name), b.retain(to)
			t.Own = append(t.Own, o)
		}
	}
}
