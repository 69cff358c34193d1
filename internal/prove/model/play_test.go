package model

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// run lets a test agent work until the model has nothing more to do, and returns
// the conversation. edit changes a turn before the agent keeps it.
func run(t testing.TB, s *Server, a agent, prompts []string, tools []map[string]any, stream bool, edit func(exchange) exchange) []exchange {
	t.Helper()
	var history []exchange
	for range 200 {
		e := ask(t, s, a, prompts, history, tools, stream)
		if twin := ask(t, s, a, prompts, history, tools, !stream); !reflect.DeepEqual(e, twin) {
			t.Fatalf("streamed and whole differ:\n%+v\n%+v", e, twin)
		}
		if len(e.calls) == 0 {
			return append(history, e)
		}
		e = e.answered(echo)
		if edit != nil {
			e = edit(e)
		}
		history = append(history, e)
	}
	t.Fatalf("no end after %d turns: %+v", len(history), history[len(history)-1])
	return nil
}

// told lists the calls of a conversation as text.
func told(history []exchange) []string {
	var all []string
	for _, e := range history {
		var calls []string
		for _, c := range e.calls {
			text := c.Name
			if c.Text != "" {
				text += " " + strings.ReplaceAll(c.Text, "\n", "|")
			} else {
				text += " " + jsonText(c.Args)
			}
			calls = append(calls, text)
		}
		if e.text != "" {
			calls = append(calls, e.text)
		}
		all = append(all, strings.Join(calls, " & "))
	}
	return all
}

func expect(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

var demo = []Script{{Name: "demo", Steps: []Step{
	{Op: Shell, Command: "echo a"},
	{Op: Fetch, URL: "http://example.org/"},
	{Op: Write, Path: "/f", Content: "x"},
	{Op: Shell, Command: "echo b"},
	{Op: Read, Path: "/f", Parallel: true},
	{Op: Say, Text: "that was all"},
	{Op: Shell, Command: "never"},
}}}

var plainTools = []map[string]any{offer("bash", "command", "description"), offer("read", "filePath"), offer("write", "filePath", "content")}

var demoTold = []string{
	`bash {"command":"echo a","description":"run a command"}`,
	`write {"content":"x","filePath":"/f"}`,
	`bash {"command":"echo b","description":"run a command"} & read {"filePath":"/f"}`,
	`that was all`,
}

// TestEveryDialectPlaysTheSame plays one script over all dialects, streamed and
// not, with IDs kept, decorated and replaced.
func TestEveryDialectPlaysTheSame(t *testing.T) {
	for name, a := range allAgents() {
		for ids, edit := range map[string]func(string) string{
			"kept":     func(id string) string { return id },
			"dressed":  func(id string) string { return "fc_" + id + "-x" },
			"replaced": func(id string) string { return fmt.Sprintf("own-%x", len(id)) },
			"lost":     func(string) string { return "" },
		} {
			for _, stream := range []bool{true, false} {
				t.Run(fmt.Sprint(name, "/", ids, "/", stream), func(t *testing.T) {
					var mu sync.Mutex
					var turns []Turn
					s := New(Options{Scripts: demo, Turn: func(_ context.Context, turn Turn) error {
						mu.Lock()
						defer mu.Unlock()
						turns = append(turns, turn)
						return nil
					}})
					got := run(t, s, a, []string{"go " + Marker("demo")}, plainTools, stream, func(e exchange) exchange {
						for i := range e.calls {
							e.calls[i].ID = edit(e.calls[i].ID)
						}
						return e
					})
					expect(t, told(got), demoTold)
					last := turns[len(turns)-1]
					if last.Step != 5 || last.Script != "demo" || last.Dialect != name || last.Model != "m" || len(last.Results) != 5 {
						t.Fatalf("%+v", last)
					}
					if r := last.Results[1]; r.Missing != "no tool for fetch" || r.Text != "" {
						t.Errorf("the step that no tool can do: %+v", r)
					}
					// The test agent of the Messages API returns the results in
					// reverse order, as Claude Code may: then only the IDs
					// identify them.
					if ids != "replaced" && ids != "lost" || name != "anthropic" {
						if r := last.Results[4]; !strings.HasPrefix(r.Text, "came of read") || r.Missing != "" {
							t.Errorf("the result of a parallel call: %+v", r)
						}
					}
					if !slices.Equal(last.Offered, []string{"bash", "read", "write"}) {
						t.Errorf("offered: %v", last.Offered)
					}
				})
			}
		}
	}
}

// TestTurnIsAskedFirst: the harness inspects the world before the next step, and
// may end the play.
func TestTurnIsAskedFirst(t *testing.T) {
	var steps []int
	s := New(Options{Scripts: demo, Turn: func(_ context.Context, turn Turn) error {
		steps = append(steps, turn.Step)
		if turn.Step == 3 {
			return errors.New("the time is over")
		}
		return nil
	}})
	got := run(t, s, chatAgent{}, []string{Marker("demo")}, plainTools, true, nil)
	expect(t, told(got), append(slices.Clone(demoTold[:2]), "Stopped: the time is over"))
	if want := []int{0, 0, 2, 2, 3, 3}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
}

func TestWhichScript(t *testing.T) {
	s := New(Options{Scripts: []Script{
		{Name: "one", Steps: []Step{{Op: Shell, Command: "one"}}},
		{Name: "two", Steps: []Step{{Op: Shell, Command: "two"}}},
	}})
	bash := plainTools[:1]
	first := func(t *testing.T, tools []map[string]any, history []exchange, prompts ...string) string {
		return told([]exchange{ask(t, s, anthropicAgent{}, prompts, history, tools, true)})[0]
	}
	one, two := `bash {"command":"one","description":"run a command"}`, `bash {"command":"two","description":"run a command"}`
	for _, tt := range []struct {
		name    string
		prompts []string
		want    string
	}{
		{"a marker", []string{"go [[script:one]] now"}, one},
		{"the last prompt with one", []string{"[[script:one]]", "[[script:two]]"}, two},
		{"a prompt without one is not the last", []string{"[[script:one]]", "a reminder"}, one},
		{"the last marker of a prompt", []string{"[[script:one]] and [[script:two]]"}, two},
		{"none", []string{"hello"}, "Done."},
		{"one that nobody wrote", []string{"[[script:three]]"}, "Done."},
		{"one that nobody wrote after one that is there", []string{"[[script:one]] [[script:three]]"}, one},
		{"one that is not closed", []string{"[[script:one]] [[script:two"}, one},
		{"one that never ends", []string{strings.Repeat("[[script:", 1000)}, "Done."},
		{"going on after a summary", []string{"[[script:one@1]]"}, "Done."},
		{"going on after more steps than there are", []string{"[[script:one@99]]"}, "Done."},
		{"a step that is no number", []string{"[[script:one@x]]"}, one},
		{"a step below none", []string{"[[script:one@-1]]"}, one},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, []string{first(t, bash, nil, tt.prompts...)}, []string{tt.want})
		})
	}
	t.Run("without tools", func(t *testing.T) {
		expect(t, []string{first(t, nil, nil, "[[script:one]]")}, []string{"Done."})
	})
	t.Run("a second play has IDs of its own", func(t *testing.T) {
		a := ask(t, s, chatAgent{}, []string{"[[script:one]]"}, nil, bash, false).calls[0].ID
		b := ask(t, s, chatAgent{}, []string{"[[script:one]]", "[[script:one]]"}, nil, bash, false).calls[0].ID
		if a == b {
			t.Errorf("both have %s", a)
		}
	})
}

// TestLongNamesStayIDs: providers accept at most 64 characters.
func TestLongNamesStayIDs(t *testing.T) {
	name := strings.Repeat("a.b_", 16)
	p := play{script: Script{Name: name, Steps: make([]Step, 1000)}, number: 99}
	for _, phase := range []string{phaseCall, phaseSelect, phaseWait, waitPhase(12)} {
		id := p.id(999, phase)
		if len(id) > 64 || strings.Contains(id, ".") {
			t.Errorf("%d characters: %s", len(id), id)
		}
		if step, got, ok := p.decode(id); !ok || step != 999 || got != phase {
			t.Errorf("%s is %d %q %v", id, step, got, ok)
		}
	}
	for _, id := range []string{"", "call_hf_", p.prefix(), p.prefix() + "1000", p.prefix() + "99999999999999999999", "call_hf_x_99_1"} {
		if _, _, ok := p.decode(id); ok {
			t.Errorf("%s is one of ours", id)
		}
	}
}

// TestASummaryCarriesOn: an agent that compacts its conversation keeps only the
// summary.
func TestASummaryCarriesOn(t *testing.T) {
	s := New(Options{Scripts: demo})
	for name, a := range allAgents() {
		t.Run(name, func(t *testing.T) {
			history := run(t, s, a, []string{Marker("demo")}, plainTools, true, nil)[:2]
			asked := []string{Marker("demo") + "\nCONTEXT CHECKPOINT COMPACTION: create a summary"}
			summary := ask(t, s, a, asked, history, plainTools, true)
			if len(summary.calls) > 0 {
				t.Fatalf("%+v", summary)
			}
			// Two calls were made, for the steps 0 and 2.
			var results []Result
			s := New(Options{Scripts: demo, Turn: func(_ context.Context, turn Turn) error {
				results = turn.Results
				return nil
			}})
			got := run(t, s, a, []string{"What was done: " + summary.text}, plainTools, true, nil)
			expect(t, told(got), demoTold[2:])
			if len(results) != 5 || results[0].Missing != summedUp || results[3].Missing != "" {
				t.Errorf("%+v", results)
			}
		})
	}
}

// TestOnlyAProgramSaysThatAToolIsMissing: a command cannot, whatever it prints.
func TestOnlyAProgramSaysThatAToolIsMissing(t *testing.T) {
	steps := []Step{{Op: Shell, Command: "a"}, {Op: MCP, Server: "s", Tool: "t"}}
	var results []Result
	s := New(Options{Scripts: []Script{{Name: "m", Steps: steps}}, Turn: func(_ context.Context, turn Turn) error {
		results = turn.Results
		return nil
	}})
	tools := []map[string]any{with(offer("exec"), "kind", "custom", "about", execAbout)}
	run(t, s, responsesAgent{}, []string{Marker("m")}, tools, true, func(e exchange) exchange {
		e.calls[0].Result = "holdfast: no tool for shell\nholdfast: no tool for mcp s t"
		return e
	})
	if len(results) != 2 || results[0].Missing != "" || results[1].Missing != "no tool for mcp s t" {
		t.Errorf("%+v", results)
	}
}
