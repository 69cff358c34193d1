package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// TestProveAgents runs the Makefile's target with stand-ins for holdfast and go,
// and checks when it fails.
func TestProveAgents(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	const played = "one 1.0,2.0 all|one latest inside|two 3.0 all|two latest inside|"
	for name, tt := range map[string]struct {
		list   string // behaviour of go
		prove  string // behaviour of holdfast
		fails  bool
		played string
		says   string
	}{
		"all is held":                        {prove: "exit 0", played: played},
		"an agent's own sandbox lets it":     {prove: "test $inside = yes || exit 1", played: played},
		"ours lets it":                       {prove: "test $inside$agent != yesone || exit 1", fails: true, played: played, says: "not all was held and recorded: one\n"},
		"a column cannot be played":          {prove: "exit 2", fails: true, played: "one 1.0,2.0 all|"},
		"ours cannot be played":              {prove: "test $inside = no || exit 2", fails: true, played: played, says: "recorded: one two\n"},
		"the agents cannot be listed":        {list: "exit 1", prove: "exit 0", fails: true},
		"the list of agents is not complete": {list: "echo one 1.0,2.0; exit 1", prove: "exit 0", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			list := tt.list
			if list == "" {
				list = "echo one 1.0,2.0; echo two 3.0"
			}
			for path, text := range map[string]string{
				"Makefile":    string(makefile),
				"tools/needs": "#!/bin/sh\n",
				"path/go":     "#!/bin/sh\n" + list + "\n",
				"bin/holdfast": "#!/bin/sh\nagent=$3 inside=no how=all\ncase \"$*\" in *'--inside holdfast') inside=yes how=inside;; esac\n" +
					"printf '%s|' \"$3 $5 $how\" >>played\n" + tt.prove + "\n",
				"played": "",
			} {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := programs.Write(path, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("make", "--old-file=build", "prove-agents")
			cmd.Dir, cmd.Env = dir, []string{"PATH=" + filepath.Join(dir, "path") + ":/usr/local/bin:/usr/bin:/bin"}
			out, err := cmd.CombinedOutput()
			if (err != nil) != tt.fails || !strings.Contains(string(out), tt.says) {
				t.Errorf("%v, and it says\n%s", err, out)
			}
			got, err := os.ReadFile(filepath.Join(dir, "played"))
			if err != nil || string(got) != tt.played {
				t.Errorf("%q was played, not %q: %v", got, tt.played, err)
			}
		})
	}
}
