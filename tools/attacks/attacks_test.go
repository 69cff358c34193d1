package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const technique1 = `
attack_technique: T0001
atomic_tests:
- name: Read a file
  auto_generated_guid: 11111111-1111-1111-1111-111111111111
  supported_platforms: [macos, linux]
  input_arguments:
    file: {default: "PathToAtomicsFolder/T0001/src/#{name}"}
    name: {default: x.txt}
    times: {default: 3}
  executor: {name: sh, command: "head -n #{times} #{file}"}
- name: For another system
  auto_generated_guid: 22222222-2222-2222-2222-222222222222
  supported_platforms: [windows]
  executor: {name: sh, command: "true"}
- name: By hand
  auto_generated_guid: 33333333-3333-3333-3333-333333333333
  supported_platforms: [linux]
  executor: {name: manual, steps: "Do it."}
`

// TestAtomic reads the Linux tests with their arguments filled in.
func TestAtomic(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "atomics", "T0001")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "T0001.yaml"), []byte(technique1), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := atomic(dir)
	if err != nil || len(all) != 2 {
		t.Fatalf("%v %v", all, err)
	}
	if want := []string{"sh", "-c", "head -n 3 " + at + "/src/x.txt"}; !slices.Equal(all[0].argv, want) || all[0].name != "T0001 Read a file" || all[0].not != "" {
		t.Errorf("%+v", all[0])
	}
	if all[1].not != "its executor is manual" {
		t.Errorf("%+v", all[1])
	}
	if _, err := atomic(t.TempDir()); err == nil {
		t.Error("an empty directory is taken for a checkout")
	}
}

// TestTable counts actions that raised nothing and have no reason, and checks
// that no text breaks a row.
func TestTable(t *testing.T) {
	r, err := readReasons("# for the reader\n\nb  It asks\tnothing of a boundary.\nT2 It reads.\n")
	if err != nil {
		t.Fatal(err)
	}
	of := func(id, not string, alerts ...string) row {
		a := action{id: id, name: "name | of\n" + id, not: not}
		return row{action: a, status: "status 0", alerts: alerts, reason: r.reasonFor(a)}
	}
	var b strings.Builder
	table := table{w: &b}
	for _, r := range []row{of("a", "", "some-rule (low)"), of("b", ""), of("c", ""), of("d", "its executor is manual"),
		{action: action{id: "e", name: "T2 list"}, reason: r.reasonFor(action{id: "e", name: "T2 list"})}, {status: "status 127"}} {
		if err := table.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.end(); err != nil || table.silent != 1 {
		t.Errorf("%d raise none without a reason, want 1: %v", table.silent, err)
	}
	for _, want := range []string{"| `a` | name \\| of a | status 0 | some-rule (low) |\n", "| none: It asks\tnothing of a boundary. |\n", "| **none, and no reason** |\n", "| none: Its executor is manual. |\n",
		"| none: It reads. |\n", "| none: A program that it needs is not here. |\n", "\n6 actions; 1 raised an alert of low or above, 1 raised none without a reason.\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	for _, bad := range []string{"a", "a x\na y"} {
		if _, err := readReasons(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, err := readReasons(reasonsText); err != nil {
		t.Error(err)
	}
}

// TestReports reads the event generator's report about an action, with and
// without colours.
func TestReports(t *testing.T) {
	for _, tt := range []struct{ text, not, failed string }{
		{"\x1b[33mWARN\x1b[0m action skipped    \x1b[33maction\x1b[0m=a \x1b[33mreason\x1b[0m=\"only applicable to containers\"\n", "it passes itself over: only applicable to containers", ""},
		{"ERRO action error   action=a error=\"open /etc/x: read-only file system\"\n", "", "open /etc/x: read-only file system"},
		{"INFO action executed   action=a\n", "", ""},
	} {
		var r row
		r.parseReport(tt.text)
		if r.not != tt.not || r.failed != tt.failed {
			t.Errorf("%q: not %q, failed %q", tt.text, r.not, r.failed)
		}
	}
}
