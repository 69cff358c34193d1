package detect

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Where the sessions of tests run, by default.
const (
	testHome      = "/home/you"
	testWorkspace = "/home/you/project"
)

// maxTestEvents bounds the events that "times" makes in a test.
const maxTestEvents = 5000

var testStart = func() time.Time { return time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC) }

// tests reads the sessions of a rule.
func (p *parser) tests(n *yaml.Node, t *Tests) error {
	return p.fields(n, "tests", map[string]func(*yaml.Node) error{
		"normal": func(n *yaml.Node) (err error) { t.Normal, err = p.session(n); return err },
		"raises": func(n *yaml.Node) (err error) { t.Raises, err = p.session(n); return err },
		"honest": func(n *yaml.Node) (err error) { t.Honest, err = p.session(n); return err },
	})
}

// session reads a list of events. Each comes 100 ms after the one before, or
// later by "after"; "times" repeats one, with %d in its strings for the number.
func (p *parser) session(n *yaml.Node) ([]event.Event, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, p.fail(n, "a list of events is expected here")
	}
	at := testStart()
	all := []event.Event{{Action: event.SessionStart, Object: testWorkspace, Detail: map[string]string{"home": testHome}, Time: at, Session: "test", Sensor: event.Task}}
	for _, one := range n.Content {
		e, after, times, err := p.event(one)
		if err != nil {
			return nil, err
		}
		if len(all)+times > maxTestEvents {
			return nil, p.fail(one, "a test may have %d events", maxTestEvents)
		}
		for i := range times {
			if at = at.Add(after); i > 0 && after == 0 {
				at = at.Add(10 * time.Millisecond)
			}
			at = at.Add(100 * time.Millisecond)
			all = append(all, numberedEvent(e, at, i))
		}
	}
	for i := range all {
		all[i].Seq, all[i].N = uint64(i+1), uint64(i+1)
	}
	return all, nil
}

func numberedEvent(e event.Event, at time.Time, i int) event.Event {
	with := func(s string) string { return strings.ReplaceAll(s, "%d", fmt.Sprint(i)) }
	e.Time, e.Session = at, "test"
	e.Object, e.Resolved = with(e.Object), with(e.Resolved)
	if len(e.Detail) > 0 {
		detail := map[string]string{}
		for k, v := range e.Detail {
			detail[k] = with(v)
		}
		e.Detail = detail
	}
	return e
}

func (p *parser) event(n *yaml.Node) (e event.Event, after time.Duration, times int, err error) {
	times = 1
	sensor, verdict := "", ""
	var pid, exec, parent int
	err = p.fields(n, "an event", map[string]func(*yaml.Node) error{
		"action": p.text(&e.Action), "object": p.text(&e.Object), "resolved": p.text(&e.Resolved), "verdict": p.text(&verdict),
		"layer": p.text(&e.Layer), "error": p.text(&e.Error), "rule": p.text(&e.Rule), "sensor": p.text(&sensor),
		"pid": p.number(&pid, 1<<22), "exec": p.number(&exec, 1<<30), "parent_exec": p.number(&parent, 1<<30),
		"executable": p.text(&e.Process.Executable), "sha256": p.text(&e.Process.SHA256), "cwd": p.text(&e.Process.Cwd), "argv": p.texts(&e.Process.Argv),
		"after": p.duration(&after, maxWindow), "times": p.number(&times, maxTestEvents),
		"detail": func(n *yaml.Node) error {
			if n.Decode(&e.Detail) != nil {
				return p.fail(n, "a mapping of names to texts is expected here")
			}
			return nil
		},
	})
	if err != nil {
		return e, 0, 0, err
	}
	if verdict != "" {
		if err := e.Verdict.UnmarshalText([]byte(verdict)); err != nil {
			return e, 0, 0, p.fail(n, "%v", err)
		}
	}
	e.Sensor, e.Process.PID, e.Process.Exec, e.Process.ParentExec = event.Sensor(sensor), pid, uint64(exec), uint64(parent)
	if actionOf(e.Action) == 0 {
		return e, 0, 0, p.fail(n, "%q is not an action", e.Action)
	}
	return e, after, times, nil
}
