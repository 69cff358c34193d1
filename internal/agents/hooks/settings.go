package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"
)

// State is the state of one agent's hooks.
type State string

// The states.
const (
	Absent    State = "not installed"
	Installed State = "installed"
	Changed   State = "changed"   // part of it is missing or differs
	Outdated  State = "outdated"  // it executes another program than this one
	Untrusted State = "untrusted" // the agent does not execute it until its user has reviewed it
)

// entry is a hook of ours in the settings.
type entry struct {
	hookEvent string
	kind      Kind
	program   string
	group     int  // index in the list of its event
	alone     bool // its group contains nothing else
	same      bool // it equals what we would write for that program
}

// entries finds our hooks in the settings of a.
func (a agent) entries(d *document) ([]entry, error) {
	hooks, err := find(&d.root, "hooks")
	if err != nil {
		return nil, err
	}
	var out []entry
	for _, m := range a.events {
		list, err := find(hooks, m.name)
		if err != nil {
			return nil, err
		}
		for i, g := range elements(list) {
			inner, err := find(&g, "hooks")
			if err != nil {
				return nil, err
			}
			handlers := elements(inner)
			for _, h := range handlers {
				program, is := ownHookProgram(word(&h, "command"), a.name, m.kind)
				if !is {
					continue
				}
				out = append(out, entry{hookEvent: m.name, kind: m.kind, program: program, group: i, alone: len(handlers) == 1,
					same: equal(hujson.Value{Value: g.Value}.Pack(), a.group(m, program))})
			}
		}
	}
	return out, nil
}

// elements are the elements of a list; nil for any other value.
func elements(v *hujson.Value) []hujson.Value {
	if v == nil {
		return nil
	}
	list, is := v.Value.(*hujson.Array)
	if !is {
		return nil
	}
	return list.Elements
}

// equal reports whether a text is JSON equal to v, whatever its formatting.
func equal(text []byte, v any) bool {
	want, err := json.Marshal(v)
	if err != nil {
		return false
	}
	var x, y any
	return json.Unmarshal(text, &x) == nil && json.Unmarshal(want, &y) == nil && reflect.DeepEqual(x, y)
}

// errShape means that the agent would not understand the settings.
var errShape = errors.New("the key hooks is not in a form that the agent reads: correct it first")

// editSettings returns settings with our hooks added or removed; everything else is
// unchanged, byte for byte.
func (a agent) editSettings(data []byte, hook string, install bool) ([]byte, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		if !install {
			return data, nil
		}
		data = []byte("{}\n")
	}
	d, err := parseSettings(data)
	if err != nil {
		return nil, err
	}
	if d.root.Value.Kind() != '{' {
		return nil, errShape
	}
	if install {
		if state, _, err := a.inspect(data, hook); err == nil && state == Installed {
			return data, nil
		}
	}
	if err := a.removeEntries(d); err != nil {
		return nil, err
	}
	if install {
		if err := a.addEntries(d, hook); err != nil {
			return nil, err
		}
	}
	return d.bytes(), nil
}

// removeEntries removes our entries, and groups and lists that become empty.
func (a agent) removeEntries(d *document) error {
	for {
		found, err := a.entries(d)
		if err != nil || len(found) == 0 {
			return err
		}
		if err := a.removeEntry(d, found[len(found)-1]); err != nil {
			return err
		}
	}
}

// removeEntry removes one entry.
func (a agent) removeEntry(d *document, e entry) error {
	hooks, err := find(&d.root, "hooks")
	if err != nil {
		return err
	}
	list, err := find(hooks, e.hookEvent)
	if err != nil {
		return err
	}
	if !e.alone {
		inner, err := find(member(list, e.group), "hooks")
		if err != nil {
			return err
		}
		for i, h := range elements(inner) {
			if _, is := ownHookProgram(word(&h, "command"), a.name, e.kind); is {
				drop(inner, i)
				return nil
			}
		}
		return errShape
	}
	switch {
	case size(list) > 1 || hasComments(list):
		drop(list, e.group)
	case size(hooks) > 1 || hasComments(hooks):
		return dropKey(hooks, e.hookEvent)
	default:
		return dropKey(&d.root, "hooks")
	}
	return nil
}

func dropKey(v *hujson.Value, key string) error {
	i, err := index(v, key)
	if err == nil {
		drop(v, i)
	}
	return err
}

// addEntries adds our entry to the list of each event.
func (a agent) addEntries(d *document, hook string) error {
	for _, m := range a.events {
		hooks, err := find(&d.root, "hooks")
		if err != nil {
			return err
		}
		if hooks == nil {
			if err := d.appendValue(&d.root, 0, "hooks", map[string][]group{m.name: {a.group(m, hook)}}); err != nil {
				return err
			}
			continue
		}
		list, err := find(hooks, m.name)
		switch {
		case err != nil:
			return err
		case hooks.Value.Kind() != '{' || list != nil && list.Value.Kind() != '[':
			return errShape
		case list == nil:
			err = d.appendValue(hooks, 1, m.name, []group{a.group(m, hook)})
		default:
			err = d.appendValue(list, 2, "", a.group(m, hook))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inspect returns the state of our hooks in settings, and the program that they
// execute.
func (a agent) inspect(data []byte, hook string) (State, string, error) {
	if a.ownFile != nil {
		return a.inspectOwnFile(data, hook)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return Absent, "", nil
	}
	d, err := parseSettings(data)
	if err != nil {
		return "", "", err
	}
	found, err := a.entries(d)
	if err != nil || len(found) == 0 {
		return Absent, "", err
	}
	if off, err := find(&d.root, "disableAllHooks"); err == nil && off != nil && equal(hujson.Value{Value: off.Value}.Pack(), true) {
		return Changed, found[0].program, nil
	}
	seen := map[string]int{}
	for _, e := range found {
		seen[e.hookEvent]++
		if !e.same || seen[e.hookEvent] > 1 || e.program != found[0].program {
			return Changed, e.program, nil
		}
	}
	switch {
	case len(seen) != len(a.events):
		return Changed, found[0].program, nil
	case found[0].program != hook:
		return Outdated, found[0].program, nil
	}
	return Installed, hook, nil
}

// inspectOwnFile is inspect for a file that contains only our hooks.
func (a agent) inspectOwnFile(data []byte, hook string) (State, string, error) {
	switch {
	case len(data) == 0:
		return Absent, "", nil
	case bytes.Equal(data, a.ownFile(hook)):
		return Installed, hook, nil
	case !bytes.Contains(data[:min(len(data), 200)], []byte(ownMark)):
		return "", "", errors.New("it exists, but was not created by Holdfast")
	}
	for _, line := range strings.Split(string(data), "\n") {
		for _, text := range quotedIn(line) {
			program, is := ownHookProgram(text, a.name, Call)
			if !is && strings.Contains(line, "const hook") {
				program, is = text, true
			}
			if is && bytes.Equal(data, a.ownFile(program)) {
				return Outdated, program, nil
			}
		}
	}
	return Changed, "", nil
}

// quotedIn are the JSON strings in a line.
func quotedIn(line string) []string {
	var out []string
	for {
		at := strings.IndexByte(line, '"')
		if at < 0 {
			return out
		}
		d := json.NewDecoder(strings.NewReader(line[at:]))
		var text string
		if d.Decode(&text) != nil {
			return out
		}
		out, line = append(out, text), line[at+int(d.InputOffset()):]
	}
}

// describe adds the name of a file to an error.
func describe(path string, err error) error { return fmt.Errorf("reading %s: %w", path, err) }
