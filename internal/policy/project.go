package policy

import (
	"fmt"
	"slices"
	"strings"
)

// WideningError says that a project's file asks for more than the user's own
// sources give, and is not trusted.
type WideningError struct {
	Project Project
}

func (e *WideningError) Error() string {
	var lines []string
	for i, w := range e.Project.Widens {
		if i == shownErrors {
			lines = append(lines, fmt.Sprintf("and %d more", len(e.Project.Widens)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s: %s would widen what you allow", w.Origin, w))
	}
	return strings.Join(lines, "\n")
}

// Hint is how to trust the file.
func (e *WideningError) Hint() string {
	return "read the file; then trust these bytes with: holdfast policy trust " + quote(e.Project.Path)
}

// String is an entry as one would write it.
func (e Entry) String() string {
	switch {
	case e.Clear:
		return e.Key + ": []"
	case e.Key == "environment.set":
		return e.Key + ": " + e.Value
	case e.Notifier != nil:
		return e.Key + ": " + printable(e.Notifier.full())
	case e.Sink != nil:
		return e.Key + ": " + printable(e.Sink.full())
	case e.Credential != nil: // what is executed is what a human must know to trust it
		return e.Key + ": " + printable(e.Credential.String()+e.Credential.Source.full())
	}
	return e.Key + ": " + printable(e.Value)
}

// withProject puts the project's file on top when it may be.
func (e Effective) withProject(h Host, path string, data []byte) (Effective, error) {
	f, err := Parse(path, e.Workspace, data)
	if err != nil {
		return Effective{}, err
	}
	if f.Extends != "" && f.Extends != e.Profile {
		return Effective{}, fault(f.ExtendsAt, "choose the profile with --profile", "extends: %q: a project's file comes on top of the profile of the run (%s) and cannot name another, or a file that no hash covers", printable(f.Extends), e.Profile)
	}
	pins, err := readPins(h)
	if err != nil {
		return Effective{}, err
	}
	p := Project{Path: path, SHA256: f.SHA256, Trusted: pins.has(path, f.SHA256)}
	for _, one := range f.Entries {
		if e.widens(one) {
			p.Widens = append(p.Widens, one)
		}
	}
	if len(p.Widens) > 0 && !p.Trusted {
		return Effective{}, &WideningError{Project: p}
	}
	e.apply(f)
	e.Project = &p
	return e, nil
}

// widens reports whether an entry could allow anything that e does not.
func (e Effective) widens(one Entry) bool {
	k, _ := lookup(one.Key)
	switch k.project {
	case ignored:
		return false
	case adds:
		return one.Clear
	case clears:
		return !one.Clear
	case listed:
		mode := e.word("programs.else")
		return !one.Clear && mode != "" && mode != programsOff && !slices.ContainsFunc(e.of(one.Key), func(old Entry) bool { return old.Value == one.Value })
	case subset:
		return !one.Clear && !slices.ContainsFunc(e.of(one.Key), func(old Entry) bool {
			base, wild := strings.CutSuffix(old.Value, "*")
			return old.Value == one.Value || wild && strings.HasPrefix(one.Value, base)
		})
	case raises:
		return slices.Index(k.words, one.Value) < slices.Index(k.words, e.word(one.Key))
	case lowers:
		if k.kind == patience { // of which 0 is the least
			return one.Amount > e.amount(one.Key)
		}
		if one.Clear || one.Amount == 0 {
			return e.amount(one.Key) != 0
		}
		old := e.amount(one.Key)
		return old != 0 && one.Amount > old
	}
	return true
}

// word of a key that is in force; "" for none.
func (e Effective) word(name string) string {
	if all := e.of(name); len(all) > 0 {
		return all[len(all)-1].Value
	}
	return ""
}

// amount of a limit that is in force; 0 for none.
func (e Effective) amount(name string) int64 {
	if all := e.of(name); len(all) > 0 {
		return all[len(all)-1].Amount
	}
	return 0
}
