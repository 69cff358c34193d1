package realtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/prove/model"
)

// hour is what one agent's first hour has come to.
type hour struct {
	Name    string
	Version string
	Typed   []string // the words of the command
	Asked   map[string]int
	Seconds float64 // from the start to the shell's next prompt
	Status  string
	Actions []outcome

	printed string // on the terminal, before and after the agent
	alerts  string // of medium severity and above; JSON lines
}

// Kinds of questions. Those of Holdfast and those at a first start count against
// the goal; whether a tool may be called an agent asks outside as well.
const (
	byHoldfast = "holdfast"
	onboarding = "onboarding"
	permission = "permission"
)

// holdfastSays matches a line of Holdfast's, also one that a program repeats.
var holdfastSays = regexp.MustCompile(`\bholdfast: |\bHoldfast\b`)

// endQuestion is a question of Holdfast's that waits for an answer.
var endQuestion = regexp.MustCompile(`(?m)^holdfast: .*\? \[[a-zA-Z/…]+\] *\n*\z`)

// hourPatience is how long a program may take for all of it on a busy machine.
const hourPatience = 8 * time.Minute

// asInstalled are the directories that npm puts into the user's PATH.
func (a newcomer) asInstalled(t *testing.T) []string {
	dirs := a.dirs(t)
	for i, dir := range dirs {
		// Most programs are put there by a script of their package, which was not
		// run. Codex finds the rest of itself by the one that npm put there.
		if install, _, ok := strings.Cut(dir, "/node_modules/"); ok && a.name == "codex" {
			dirs[i] = filepath.Join(install, "node_modules", ".bin")
		}
	}
	return dirs
}

func (a newcomer) firstHour(t *testing.T, root string, p *provider, dirs []string) hour {
	u := makeUser(t, root, a.name, dirs, append([]string{a.key + "=" + modelKey}, a.env...), a.home)
	script := a.name + "-hour"
	p.mu.Lock()
	p.scripts[script] = model.Script{Name: script, Steps: steps(u.repo, a.lacks)}
	p.turns[script] = -1
	p.mu.Unlock()
	h := a.play(t, u, p, script)
	h.Name, h.Version = a.name, version(dirs[0])
	h.alerts = u.alerts()
	p.mu.Lock()
	results := p.said[script]
	p.mu.Unlock()
	for n, c := range actions {
		text := "there is no result\n"
		if n < len(results) {
			text = results[n].Text + results[n].Missing + "\n"
		}
		inside := c.shows == "" || strings.Contains(text, c.shows)
		if out, err := os.ReadFile(filepath.Join(u.repo, "out", fmt.Sprint(n))); err == nil {
			text = string(out)
			inside = strings.HasSuffix(text, "status 0\n")
		}
		seen, err := u.shell(c.after)
		h.Actions = append(h.Actions, c.judge(inside, err == nil, text+seen, h.printed, holdfastSays))
	}
	return h
}

// alerts are those that a user is told about while the agent works.
func (u *newUser) alerts() string {
	out, err := u.run("holdfast", "alerts", "--all", "--json")
	if err != nil {
		u.t.Fatalf("%v: %s", err, out)
	}
	loud := ""
	for line := range strings.Lines(out) {
		var a raised
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			u.t.Fatalf("reading an alert: %v\n%s", err, line)
		}
		if slices.Index(severities, a.Severity) > slices.Index(severities, loudest) {
			loud += line
		}
	}
	return loud
}

// version is that of an install in a directory NAME@VERSION.
func version(dir string) string {
	_, after, _ := strings.Cut(dir, "@")
	v, _, _ := strings.Cut(after, "/")
	return v
}

// play types the command, the task, and what leaves the program.
func (a newcomer) play(t *testing.T, u *newUser, p *provider, script string) hour {
	h := hour{Asked: map[string]int{}, Typed: []string{"holdfast", "run", a.name}}
	s := u.openTerminal(t)
	s.a, s.h = a, &h
	began := time.Now()
	s.typed(strings.Join(h.Typed, " ") + `; echo "[status $?]"`)
	s.press("Enter")
	ready := regexp.MustCompile(a.ready)
	s.until("it waits for a task", func(screen string) bool { return ready.MatchString(screen) })
	s.give("Please do it "+model.Marker(script), model.Marker(script))
	given := time.Now()
	s.until("the model was asked for everything", func(string) bool {
		step, _ := p.reached(script)
		if step < 0 && time.Since(given) > 5*time.Second { // Enter was taken for a part of the text
			given = time.Now()
			s.press("Enter")
		}
		return step >= len(actions)
	})
	s.until("it says the last word", func(screen string) bool { return strings.Contains(screen, lastWord) })
	for _, step := range a.leave {
		time.Sleep(500 * time.Millisecond)
		if key, text := keysOf(step); key != "" {
			s.press(key)
		} else {
			s.typed(text)
		}
	}
	s.until("it ends", func(string) bool { return s.ended() != "" })
	h.Seconds, h.Status = time.Since(began).Seconds(), s.ended()
	h.printed = s.scrolled()
	return h
}

// endLine is what the shell prints when the command has ended.
var endLine = regexp.MustCompile(`(?m)^\[status (\d+)\]$`)

// ended is the exit status of the command; "" until it has ended.
func (s *terminal) ended() string {
	if m := endLine.FindStringSubmatch(s.scrolled()); m != nil {
		return m[1]
	}
	return ""
}

// give types a task and sends it off. Programs drop what is typed while they are
// still starting.
func (s *terminal) give(task, marker string) {
	s.t.Helper()
	for range 10 {
		time.Sleep(500 * time.Millisecond)
		s.answer(s.visible())
		s.typed(task)
		for range 15 {
			time.Sleep(100 * time.Millisecond)
			if strings.Contains(strings.Join(strings.Fields(s.visible()), ""), marker) {
				time.Sleep(500 * time.Millisecond)
				s.press("Enter")
				return
			}
		}
	}
	s.t.Fatalf("the task cannot be typed; the screen shows:\n%s", s.scrolled())
}

// until answers what is asked until done.
func (s *terminal) until(what string, done func(screen string) bool) {
	s.t.Helper()
	for end := time.Now().Add(hourPatience); ; time.Sleep(100 * time.Millisecond) {
		screen := s.visible()
		if !s.answer(screen) && done(screen) {
			return
		}
		if over := s.ended(); over != "" && what != "it ends" || time.Now().After(end) {
			s.t.Fatalf("waiting until %s, after status %q; the screen shows:\n%s", what, over, s.scrolled())
		}
	}
}

// answer answers a question that is visible, and counts it. A program may not
// read yet when it asks: then it is answered again.
func (s *terminal) answer(screen string) (asked bool) {
	for _, d := range append(s.a.dialogs, dialog{endQuestion.String(), "y Enter", byHoldfast}) {
		if !regexp.MustCompile(d.shows).MatchString(screen) {
			continue
		}
		if screen != s.answered {
			s.h.Asked[d.kind]++
		}
		if screen != s.answered || time.Since(s.at) > 2*time.Second {
			s.answered, s.at = screen, time.Now()
			s.press(strings.Fields(d.keys)...)
			time.Sleep(400 * time.Millisecond)
		}
		return true
	}
	return false
}
