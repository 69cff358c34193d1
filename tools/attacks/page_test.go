package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestIntoPage puts a table between the lines of a page, and no other text.
func TestIntoPage(t *testing.T) {
	var b strings.Builder
	table := table{w: &b}
	for _, r := range []row{
		{action: action{id: "a", name: "T1 one"}, alerts: []string{"some-rule (low)", "other (high)"}},
		{action: action{id: "b", name: "T1 two"}, reason: "It reads | lists."},
		{action: action{id: "c", name: "T1 three"}, alerts: []string{"some-rule (low)"}},
		{action: action{id: "d", name: "T2 four", not: "its executor is manual"}},
		{action: action{id: "e", name: "T2 five"}, status: "status 0"},
	} {
		if err := table.add(r); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("# Head\n"+pageBegin+"old\n"+pageEnd+"foot\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := table.intoPage(file); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	want := "# Head\n" + pageBegin + "\n5 actions; 2 raised an alert of low or above, 1 raised none without a reason.\n\n" + pageHead +
		"| T1 | 3 | 2 | some-rule, other | It reads \\| lists. |\n| T2 | 2 | 0 |  | Its executor is manual.<br>**no reason** |\n\n" + pageEnd + "foot\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if err := os.WriteFile(file, []byte("# Head\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := table.intoPage(file); err == nil {
		t.Error("a page without the lines is taken")
	}
}

// cells is a line of the page.
var cells = regexp.MustCompile(`^\| (T\d{4}(?:\.\d{3})?|syscall\.\w+) \| (\d+) \| (\d+) \| (.*) \| (.*) \|$`)

// TestPage compares the reference with the reasons and with the rules: what raised
// nothing has a reason, each reason is used, and each rule is there.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/attacks.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("../../docs/detection.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := readReasons(reasonsText)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), pageHead)
	text, _, _ = strings.Cut(text, "\n\n"+pageEnd)
	used := map[string]bool{}
	n := 0
	for text := range strings.Lines(text) {
		m := cells.FindStringSubmatch(strings.TrimSuffix(text, "\n"))
		if m == nil {
			t.Errorf("%q is no line of the table", text)
			continue
		}
		n++
		for _, rule := range strings.FieldsFunc(m[4], func(r rune) bool { return r == ',' || r == ' ' }) {
			if !strings.Contains(string(rules), "\n### "+rule+"\n") {
				t.Errorf("%s: there is no rule %s", m[1], rule)
			}
		}
		actions, _ := strconv.Atoi(m[2])
		raised, _ := strconv.Atoi(m[3])
		if (raised < actions) != (m[5] != "") || (raised > 0) != (m[4] != "") {
			t.Errorf("%s: %d of %d raised %q, the others nothing because of %q", m[1], raised, actions, m[4], m[5])
		}
		for why := range strings.SplitSeq(m[5], lineBreak) {
			used[why] = true
			if why != "" && !slices.ContainsFunc(unwritten[:], func(begin string) bool { return strings.HasPrefix(why, begin) }) && !reasons.has(why) {
				t.Errorf("%s: %q does not stand in reasons.txt", m[1], why)
			}
		}
	}
	if n < 100 {
		t.Errorf("the table has %d lines", n)
	}
	for id, why := range reasons {
		if !used[cell(why)] {
			t.Errorf("the table has no use for the reason of %s: %s", id, why)
		}
	}
}

// unwritten are the reasons that the command gives by itself.
var unwritten = [...]string{notHere, "Its executor is ", "It passes itself over: "}

func (r reasons) has(why string) bool {
	for _, one := range r {
		if cell(one) == why {
			return true
		}
	}
	return false
}
