//go:build linux

package probe

import (
	"bytes"
	"fmt"

	"os"
	"slices"
	"strings"
)

// Copying is a target that gives an agent copies of the user's settings and holds
// its changes there until a human takes them over.
type Copying interface {
	// WithCopies returns the target called for Claude Code.
	WithCopies() Target
	// ShowCopies returns what a human is shown of the changes.
	ShowCopies(w *World) ([]byte, error)
	// TakeOver follows the instructions at the end of that text for putting the changes
	// into the user's files. A refusal of the target is not an error.
	TakeOver(w *World, shown []byte) error
}

// takenOverAnyway may be taken over, and shows that something can be.
const takenOverAnyway = "H/.claude/commands/good.md"

// ownSessions makes the directory of the agent's sessions in this workspace, which
// its run may make.
func ownSessions(w *World) error {
	w.made(w.Path(takenOverAnyway))
	slug := strings.Map(func(r rune) rune {
		if strings.ContainsRune("/._", r) {
			return '-'
		}
		return r
	}, w.W)
	return os.MkdirAll(w.Path("H/.claude/projects/"+slug), 0o755)
}

// takenOver plays the row and has a human take over what the agent changed,
// unless all of these words are shown: then the human sees what it would do.
func takenOver(words ...string) func(*Session) {
	return func(s *Session) {
		t, ok := s.Target.(Copying)
		if !ok {
			s.Run(Command{})
			return
		}
		shown := s.withCopies(t, Command{})
		unseen := func(word string) bool { return !bytes.Contains(shown, []byte(word)) }
		if len(words) > 0 && !slices.ContainsFunc(words, unseen) {
			return
		}
		s.takeOver(t, shown)
	}
}

// takenOverLater plays the row, shows a human what the agent changed, has the agent
// change more, and then has the human take over what was shown.
func takenOverLater(late planted) func(*Session) {
	return func(s *Session) {
		after := Command{Action: s.Row.Action, Args: []string{plantsArg([]planted{late})}}
		t, ok := s.Target.(Copying)
		if !ok {
			s.Run(Command{})
			s.Run(after)
			return
		}
		shown := s.withCopies(t, Command{})
		s.withCopies(t, after)
		s.takeOver(t, shown)
	}
}

// withCopies runs c for an agent and returns what is shown of its changes.
func (s *Session) withCopies(t Copying, c Command) []byte {
	before := s.Target
	defer func() { s.Target = before }()
	s.Target = t.WithCopies()
	s.Run(c)
	shown, err := t.ShowCopies(s.World)
	if err == nil && len(shown) == 0 {
		err = fmt.Errorf("none of the agent's changes is shown")
	}
	if err != nil {
		s.Fail(err)
	}
	return shown
}

func (s *Session) takeOver(t Copying, shown []byte) {
	if err := t.TakeOver(s.World, shown); err != nil {
		s.Fail(err)
	}
}

// takenOverByLink takes the changes over and demands that the harmless one arrived.
func takenOverByLink(s *Session) {
	takenOver()(s)
	if !exists(s.World.Path(takenOverAnyway)) {
		s.Fail(fmt.Errorf("no change was applied"))
	}
}
