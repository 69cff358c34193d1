//go:build linux

package trial

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/prove/agent"
	"holdfast.dev/holdfast/internal/prove/model"
	"holdfast.dev/holdfast/internal/testenv"
)

// steps are all steps of a probe and its sub-agents.
func steps(p Probe) []model.Step {
	all := slices.Clone(p.Steps)
	for _, s := range p.Scripts {
		all = append(all, s.Steps...)
	}
	return all
}

// texts are all template strings of a step.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, texts(e)...)
		}
		return all
	case map[string]any:
		var all []string
		for _, e := range v {
			all = append(all, texts(e)...)
		}
		return all
	case model.Step:
		return append(texts(any(v.Arguments)), v.Command, v.Path, v.Content, v.Old, v.New, v.Text, v.URL, v.Tool)
	}
	return nil
}

func TestCatalogue(t *testing.T) {
	classes := strings.Fields("control read write persistence links environment process network sockets kernel parameter parser unadvertised mcp subagent after-exit")
	needs := strings.Fields("shell read write edit fetch mcp spawn network git")
	w := &World{Workspace: workspace, Home: homeDir, Outside: outside, Prober: proberAt, token: func(id string) string { return tokenOf("test", id) }, heard: func(string) []string { return nil }}
	template := regexp.MustCompile(`\{[a-z]+\}`)
	ids, scripts, seen := map[string]bool{}, map[string]bool{}, map[string]int{}
	all := Catalogue()
	if len(all) < 55 || len(all) > 85 {
		t.Errorf("the catalogue has %d probes", len(all))
	}
	for _, p := range all {
		seen[p.Class]++
		if ids[p.ID] || !regexp.MustCompile(`^AGT-[A-Z]+(-[A-Z0-9]+)*$`).MatchString(p.ID) {
			t.Errorf("%s: a second one, or no name of a probe", p.ID)
		}
		ids[p.ID] = true
		if !slices.Contains(classes, p.Class) || p.Title == "" || len(p.Steps) == 0 || p.Reached == nil {
			t.Errorf("%s is not whole", p.ID)
		}
		if p.Control != (p.Class == "control") || p.Control != (p.Promise == "") || p.Control != (len(p.Refs) == 0) {
			t.Errorf("%s: a control has neither promise nor references, and all others have both", p.ID)
		}
		for _, n := range p.Needs {
			if !slices.Contains(needs, n) {
				t.Errorf("%s needs %q, which nobody knows", p.ID, n)
			}
		}
		for _, s := range p.Scripts {
			if scripts[s.Name] {
				t.Errorf("%s: another script is called %s", p.ID, s.Name)
			}
			scripts[s.Name] = true
		}
		for _, s := range steps(p) {
			for _, text := range texts(s) {
				filled := w.fill(p.ID, text)
				if left := template.FindString(filled); left != "" {
					t.Errorf("%s: nothing is known of %s in %q", p.ID, left, text)
				}
				if strings.Contains(filled, w.Proof(p.ID)) {
					t.Errorf("%s: the proof stands in %q", p.ID, text)
				}
			}
		}
	}
	for _, c := range classes {
		if seen[c] == 0 {
			t.Errorf("no probe is of class %s", c)
		}
	}
	if again := Catalogue(); !slices.EqualFunc(all, again, func(a, b Probe) bool { return a.ID == b.ID }) {
		t.Error("a second look gives other probes")
	}
}

// played is the evidence of the catalogue, played with an agent of this test
// binary.
func played(t *testing.T, command string) map[string]evidence {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	prober := testenv.Prober(t)
	const key, bareAt = "test", toolDir + "/bare"
	work := task{
		Key: key, Root: t.TempDir(), Mounts: []Mount{{prober, proberAt}, {exe, bareAt}}, Step: stepLimit, Limit: 8 * time.Minute,
		Launch: agent.Launch{
			Argv: []string{bareAt, command, "go on " + markerOf(mainScript)}, Dir: workspace,
			Files: []agent.Output{{Path: homeDir + "/.claude/settings.json", Content: []byte("{}\n"), Mode: 0o644}},
			Env:   append(humanEnv(), secretName+"="+tokenOf(key, "secret:launcher"), "BARE_API_KEY="+keyOf(key)),
		},
	}
	for _, p := range Catalogue() {
		work.Probes = append(work.Probes, p.ID)
	}
	s := runWorker(t.Context(), []string{exe, catalogueCommand}, work)
	if s.Error != "" || s.Ended != "" {
		t.Fatalf("the session: %s %s %s", s.Error, s.Ended, s.Said)
	}
	all := map[string]evidence{}
	for _, e := range s.Seen {
		all[e.ID] = e
	}
	return all
}

// An agent without rules or sandbox does what it is asked, and the probe sees it.
func TestEveryProbeReaches(t *testing.T) {
	all := played(t, bareCommand)
	for _, p := range Catalogue() {
		e, ok := all[p.ID]
		switch {
		case !ok:
			t.Errorf("%s was not played", p.ID)
		case e.Error != "" || e.Missing != "":
			t.Errorf("%s: %s %s", p.ID, e.Error, e.Missing)
		case len(e.Reached) == 0:
			t.Errorf("%s reached nothing in %v: %v", p.ID, e.Took, e.Results)
		}
	}
}

// A probe does not see what was not done, even if the agent repeats its commands.
func TestEveryProbeIsSilent(t *testing.T) {
	for id, e := range played(t, deafCommand) {
		if len(e.Reached) > 0 {
			t.Errorf("%s: %v, though nothing was done", id, e.Reached)
		}
	}
}
