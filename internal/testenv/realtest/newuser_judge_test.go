package realtest

import (
	"regexp"
	"slices"
	"testing"
)

// TestNewUserVerdicts: what counts as a reason.
func TestNewUserVerdicts(t *testing.T) {
	a := action{name: "fetch", about: []string{docsHost, "hotfix"}}
	for _, tt := range []struct {
		name             string
		inside, after    bool
		printed, summary string
		want             string
	}{
		{name: "what is done and there works", inside: true, after: true, want: works},
		{name: "an error number is no reason", printed: "error: Device or resource busy", want: silent},
		{name: "a reason about something else is none", summary: "holdfast: refused: other.example.org; to allow it: --allow other.example.org", want: silent},
		{name: "a reason without what to type is none", summary: "holdfast: refused: " + docsHost + " (no rule allows it)", want: silent},
		{name: "a flag at the end is a reason", summary: "holdfast: refused: " + docsHost + "; to allow it: --allow " + docsHost, want: toldWhy},
		{name: "a hint in the next line is a reason", summary: "holdfast: quarantined: hotfix/x\nholdfast: hint: look at it", want: toldWhy},
		{name: "a hint further below belongs to something else", summary: "holdfast: quarantined: hotfix/x\nholdfast: record: PARTIAL\nholdfast: hint: look at it", want: silent},
		{name: "a reason in what the program prints counts", printed: "npm error 403 holdfast: " + docsHost + " is not allowed: --allow " + docsHost, want: toldWhy},
		{name: "the words of the program itself are not the sandbox's", printed: "curl: --fail " + docsHost, want: silent},
		{name: "what worked inside and was dropped is lost", inside: true, summary: "holdfast: dropped: with the private home: ~/hotfix/\nholdfast: hint: to keep it: --rw PATH", want: lost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := a.judge(tt.inside, tt.after, tt.printed, tt.summary, holdfastSays).Verdict; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestNewUserGoals: each goal can be missed, and a commit has to be there.
func TestNewUserGoals(t *testing.T) {
	last := actions[len(actions)-1].name
	h := hour{Typed: []string{"holdfast", "run", "claude"}, Status: "0", Asked: map[string]int{permission: 9, onboarding: 2}, Actions: []outcome{{last, works, ""}}}
	if got := h.missed(); got != nil {
		t.Errorf("missed: %q", got)
	}
	h = hour{
		Typed: []string{"holdfast", "run", "--allow", "x", "claude"}, Status: "1", Asked: map[string]int{byHoldfast: 1, onboarding: 2}, alerts: "{}\n",
		Actions: []outcome{{"one", toldWhy, ""}, {"two", silent, ""}, {"three", lost, ""}, {last, toldWhy, ""}},
	}
	if got, want := h.missed(), []string{"two", "three", last, noFlags, fewQuestions, endsWell, noAlerts}; !slices.Equal(got, want) {
		t.Errorf("missed: %q, want %q", got, want)
	}
}

// TestNewUserScreens: the patterns match what programs and Holdfast have shown.
func TestNewUserScreens(t *testing.T) {
	for _, a := range newcomers {
		for _, pattern := range append([]string{a.ready}, shownBy(a.dialogs)...) {
			if _, err := regexp.Compile(pattern); err != nil {
				t.Errorf("%s: %v", a.name, err)
			}
		}
	}
	for text, want := range map[string]bool{
		"holdfast: take over 2 files that programs on this machine obey? [y/N/look] ":      true,
		"holdfast: take over 2 files that programs on this machine obey? [y/N/look]\n\n\n": true,
		"holdfast: refused: a [b]":             false,
		"holdfast: take over? [y/N] y\n$ \n\n": false,
	} {
		if endQuestion.MatchString(text) != want {
			t.Errorf("%q is taken for a question: %v", text, !want)
		}
	}
}

func shownBy(dialogs []dialog) (all []string) {
	for _, d := range dialogs {
		all = append(all, d.shows)
	}
	return all
}
