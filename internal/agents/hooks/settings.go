package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// State is what was found about the hooks of one agent.
type State string

// The states.
const (
	Absent    State = "not installed"
	Installed State = "installed"
	Changed   State = "changed"   // by somebody: some of it is missing or differs
	Outdated  State = "outdated"  // it executes another program than this one
	Untrusted State = "untrusted" // the agent does not execute it until its user has looked at it
)

// entry is a hook of ours that was found.
type entry struct {
	moment  string
	kind    Kind
	program string
	group   int  // in the list of its moment
	alone   bool // nothing else is in its group
	same    bool // it is as we would write it for that program
}

// entries finds ours in the settings of a.
func (a agent) entries(s *sheet) ([]entry, error) {
	hooks, err := s.root.find("hooks")
	if err != nil || hooks == nil {
		return nil, err
	}
	var out []entry
	for _, m := range a.events {
		list, err := hooks.find(m.name)
		if err != nil {
			return nil, err
		}
		if list == nil || list.kind != '[' {
			continue
		}
		for i, g := range list.members {
			inner, err := g.value.find("hooks")
			if err != nil {
				return nil, err
			}
			if inner == nil || inner.kind != '[' {
				continue
			}
			for _, h := range inner.members {
				program, is := ours(h.value.word("command"), a.name, m.kind)
				if !is {
					continue
				}
				out = append(out, entry{moment: m.name, kind: m.kind, program: program, group: i, alone: len(inner.members) == 1,
					same: equal(s.data[g.value.from:g.value.to], a.group(m, program))})
			}
		}
	}
	return out, nil
}

// equal says whether a text is the JSON of v, whatever its form.
func equal(text []byte, v any) bool {
	want, err := json.Marshal(v)
	if err != nil {
		return false
	}
	var x, y any
	return json.Unmarshal(text, &x) == nil && json.Unmarshal(want, &y) == nil && reflect.DeepEqual(x, y)
}

// errShape says that settings are not what the agent would read.
var errShape = errors.New("the key hooks is not what the agent reads: mend it first")

// edited is settings with our hooks in them, or without them; what else stands
// there stays as it is, byte for byte.
func (a agent) edited(data []byte, hook string, install bool) ([]byte, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		if !install {
			return data, nil
		}
		data = []byte("{}\n")
	}
	s, err := newSheet(data)
	if err != nil {
		return nil, err
	}
	if s.root.kind != '{' {
		return nil, errShape
	}
	if install {
		if state, _, err := a.inspect(data, hook); err == nil && state == Installed {
			return data, nil
		}
	}
	if err := a.strip(s); err != nil {
		return nil, err
	}
	if install {
		if err := a.put(s, hook); err != nil {
			return nil, err
		}
	}
	return s.data, nil
}

// strip takes ours out, and what is empty then.
func (a agent) strip(s *sheet) error {
	for {
		found, err := a.entries(s)
		if err != nil || len(found) == 0 {
			return err
		}
		if err := a.cutOut(s, found[len(found)-1]); err != nil {
			return err
		}
	}
}

// cutOut removes one entry.
func (a agent) cutOut(s *sheet, e entry) error {
	hooks, err := s.root.find("hooks")
	if err != nil {
		return err
	}
	list, err := hooks.find(e.moment)
	if err != nil {
		return err
	}
	if !e.alone {
		inner, err := list.members[e.group].value.find("hooks")
		if err != nil {
			return err
		}
		for i, h := range inner.members {
			if _, is := ours(h.value.word("command"), a.name, e.kind); is {
				return s.drop(inner, i)
			}
		}
		return errShape
	}
	switch {
	case len(list.members) > 1 || s.commented(list):
		return s.drop(list, e.group)
	case len(hooks.members) > 1 || s.commented(hooks):
		return s.drop(hooks, index(hooks, e.moment))
	}
	return s.drop(s.root, index(s.root, "hooks"))
}

func index(n *node, key string) int {
	for i, m := range n.members {
		if m.key == key {
			return i
		}
	}
	return -1
}

// put adds ours to each list.
func (a agent) put(s *sheet, hook string) error {
	for _, m := range a.events {
		hooks, err := s.root.find("hooks")
		if err != nil {
			return err
		}
		if hooks == nil {
			if err := s.add(s.root, 0, "hooks", map[string][]group{m.name: {a.group(m, hook)}}); err != nil {
				return err
			}
			continue
		}
		list, err := hooks.find(m.name)
		switch {
		case err != nil:
			return err
		case hooks.kind != '{' || list != nil && list.kind != '[':
			return errShape
		case list == nil:
			err = s.add(hooks, 1, m.name, []group{a.group(m, hook)})
		default:
			err = s.add(list, 2, "", a.group(m, hook))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inspect says what of ours is in settings, and which program it executes.
func (a agent) inspect(data []byte, hook string) (State, string, error) {
	if a.whole != nil {
		return a.inspectWhole(data, hook)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return Absent, "", nil
	}
	s, err := newSheet(data)
	if err != nil {
		return "", "", err
	}
	found, err := a.entries(s)
	if err != nil || len(found) == 0 {
		return Absent, "", err
	}
	if off, err := s.root.find("disableAllHooks"); err == nil && off != nil && string(s.data[off.from:off.to]) == "true" {
		return Changed, found[0].program, nil
	}
	seen := map[string]int{}
	for _, e := range found {
		seen[e.moment]++
		if !e.same || seen[e.moment] > 1 || e.program != found[0].program {
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

// inspectWhole is inspect for a file that is ours alone.
func (a agent) inspectWhole(data []byte, hook string) (State, string, error) {
	switch {
	case len(data) == 0:
		return Absent, "", nil
	case bytes.Equal(data, a.whole(hook)):
		return Installed, hook, nil
	case !bytes.Contains(data[:min(len(data), 200)], []byte(mark)):
		return "", "", errors.New("it is there and none of ours")
	}
	for _, line := range strings.Split(string(data), "\n") {
		for _, text := range quotedIn(line) {
			program, is := ours(text, a.name, Call)
			if !is && strings.Contains(line, "const hook") {
				program, is = text, true
			}
			if is && bytes.Equal(data, a.whole(program)) {
				return Outdated, program, nil
			}
		}
	}
	return Changed, "", nil
}

// quotedIn are the JSON strings in a line.
func quotedIn(line string) []string {
	var out []string
	for at := 0; at < len(line); at++ {
		if line[at] != '"' {
			continue
		}
		s := scanner{data: []byte(line), at: at}
		text, err := s.quoted()
		if err != nil {
			return out
		}
		out, at = append(out, text), s.at-1
	}
	return out
}

// describe puts the name of a file before what is wrong with it.
func describe(path string, err error) error { return fmt.Errorf("reading %s: %w", path, err) }
