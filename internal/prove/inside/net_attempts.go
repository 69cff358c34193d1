//go:build linux

package inside

import (
	"fmt"
	"net/url"
	"strings"
)

// attempt is a way to get an answer from a server that must not be reached.
type attempt struct {
	name string
	get  func() ([]byte, error)
}

// atOnce is how many attempts of an action run at a time: they mostly wait.
const atOnce = 24

// runAttempts makes attempts concurrently, and returns a function that waits for the
// result of each.
func runAttempts(all []attempt) (outcome func(i int) ([]byte, error)) {
	type result struct {
		b   []byte
		err error
	}
	results := make([]chan result, len(all))
	slots := make(chan struct{}, atOnce)
	for i, a := range all {
		results[i] = make(chan result, 1)
		go func() {
			slots <- struct{}{}
			b, err := a.get()
			<-slots
			results[i] <- result{b, err}
		}()
	}
	return func(i int) ([]byte, error) {
		r := <-results[i]
		return r.b, r.err
	}
}

// netAttempts makes attempts to get a forbidden answer, and reports them in
// order.
func netAttempts(p *Probe, all []attempt) {
	outcome := runAttempts(all)
	for i, a := range all {
		p.Read(a.name, func() ([]byte, error) { return judgeReply(outcome(i)) })
	}
}

// netMust makes attempts that an allowed server must answer.
func netMust(p *Probe, all []attempt) {
	outcome := runAttempts(all)
	for i, a := range all {
		p.Control(a.name+" answers", func() error { return judgeControl(outcome(i)) })
	}
}

// netControls makes the controls of an action that gets URLs: the lines of ok, or
// the allowed server through the doors of tries.
func netControls(p *Probe, tries [][2]string) {
	controls := doorLines(p.Arg("ok"))
	if p.Arg("ok") == "" {
		seen := map[string]bool{}
		for _, t := range tries {
			raw := "http://allowed.test/"
			if u, err := url.Parse(t[1]); err == nil && u.Scheme == "https" {
				raw = "https://allowed.test/"
			}
			if !seen[t[0]+raw] {
				seen[t[0]+raw] = true
				controls = append(controls, [2]string{t[0], raw})
			}
		}
	}
	netMust(p, gets(controls))
}

// gets returns attempts to get URLs through doors.
func gets(lines [][2]string) []attempt {
	var all []attempt
	for _, t := range lines {
		all = append(all, attempt{fmt.Sprintf("%s %q", t[0], t[1]), func() ([]byte, error) { return fetch(t[0], t[1]) }})
	}
	return all
}

// linesOf returns attempts for the lines of an argument, named by their
// beginnings.
func linesOf(text string, get func(line string) ([]byte, error)) []attempt {
	var all []attempt
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			all = append(all, attempt{fmt.Sprintf("%.120s", line), func() ([]byte, error) { return get(line) }})
		}
	}
	return all
}
