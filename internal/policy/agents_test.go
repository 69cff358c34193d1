package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// preset is the plan of a run by a preset of the world's user, in a directory.
func (w *world) preset(name, dir string) Agent {
	w.t.Helper()
	o := Options{Host: w.host, Preset: name}
	o.Host.Dir = w.mkdir(dir)
	p := w.plan(o)
	if p.Agent == nil {
		w.t.Fatalf("%s: the plan has no agent", name)
	}
	return *p.Agent
}

// TestPresetTrees: directories whose names differ only in characters that a slug lacks
// do not share history, except for programs that name its directory themselves.
func TestPresetTrees(t *testing.T) {
	names, err := PresetNames(newWorld(t).host)
	if err != nil || len(names) != 10 {
		t.Fatalf("built in: %q, %v", names, err)
	}
	for _, name := range names {
		w := newWorld(t)
		own := name != "claude" && name != "qwen"
		var seen []string
		for _, dir := range []string{"home/u/a/b", "home/u/a-b", "home/u/日本", "home/u/東京"} {
			keeps := w.preset(name, dir).Keeps
			if again := w.preset(name, dir).Keeps; !slices.Equal(keeps, again) {
				t.Errorf("%s in %s: %q, then %q", name, dir, keeps, again)
			}
			for _, keep := range keeps {
				if own && slices.Contains(seen, keep) {
					t.Errorf("%s: %s is kept for %s and for another directory", name, keep, dir)
				}
				if !own && !strings.HasSuffix(keep, "/"+slug(w.at(dir))) {
					t.Errorf("%s: %s is not where the program looks", name, keep)
				}
				seen = append(seen, keep)
			}
		}
		if name != "aider" && len(seen) != 4 { // aider's history is in the workspace
			t.Errorf("%s keeps %q", name, seen)
		}
	}
}

// TestPresetExtends: an entry in a user's file replaces the built-in preset's entry for
// the same path; the rest stays.
func TestPresetExtends(t *testing.T) {
	w := newWorld(t)
	built := w.preset("claude", "home/u/ws")
	at := w.write("home/u/.config/holdfast/presets/claude.yaml", `version: 1
extends: claude
title: My Claude
keep: [~/.mine]
copy:
  - {path: ~/.claude/settings.json, drop: [hooks]}
files:
  - {path: /etc/claude-code/managed-settings.json, content: "mine"}
  - {path: ~/.claude/more, content: "more"}
`, 0o600)
	got := w.preset("claude", "home/u/ws")
	if got.Title != "My Claude" || got.Sandbox != built.Sandbox || got.Install != built.Install || got.Origin.File != at {
		t.Errorf("texts: %+v", got)
	}
	if len(got.Keeps) != len(built.Keeps)+1 || len(got.Copies) != len(built.Copies) {
		t.Errorf("keeps %q, copies %+v", got.Keeps, got.Copies)
	}
	i := slices.IndexFunc(got.Copies, func(c AgentCopy) bool { return filepath.Base(c.Path) == "settings.json" })
	if c := got.Copies[i]; len(c.Drop) != 1 || c.Drop[0][0] != "hooks" {
		t.Errorf("the copy of the user's is not used: %+v", c)
	}
	var files []string
	for _, f := range got.Files {
		files = append(files, f.Path+" "+f.Content)
	}
	if want := []string{"/etc/claude-code/managed-settings.json mine", w.at("home/u/.claude/more") + " more"}; !slices.Equal(files, want) {
		t.Errorf("files %q, want %q", files, want)
	}
}

// TestPresetVariables: the caller's variables that the agent knows come in, except for
// those that are empty, are not one line, or have the shape of a secret.
func TestPresetVariables(t *testing.T) {
	w := newWorld(t)
	w.host.Env = []string{"ANTHROPIC_MODEL=opus", "ANTHROPIC_BETAS=ghp_0123456789abcdef0123", "ANTHROPIC_SMALL_FAST_MODEL=", "CLAUDE_CODE_EFFORT_LEVEL=a\nb", "OTHER=x"}
	o := Options{Host: w.host, Preset: "claude"}
	o.Host.Dir = w.mkdir("home/u/ws")
	p := w.plan(o)
	if got, _ := variableOf(p, "ANTHROPIC_MODEL"); got != "opus" {
		t.Errorf("ANTHROPIC_MODEL is %q", got)
	}
	for _, name := range []string{"ANTHROPIC_BETAS", "ANTHROPIC_SMALL_FAST_MODEL", "CLAUDE_CODE_EFFORT_LEVEL", "OTHER"} {
		if got, found := variableOf(p, name); found {
			t.Errorf("%s came in as %q", name, got)
		}
	}
}

// TestPresetsThatAreWrong: a preset of the user's that is wrong says where, and
// nothing runs by it.
func TestPresetsThatAreWrong(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"version: 1\ntitel: x\n", `mine.yaml:2: unknown key "titel" in a preset, did you mean "title"?`},
		{"version: 1\nextends: nobody\n", `extends: there is no preset "nobody"`},
		{"title: x\n", "mine.yaml:1: the key version is missing"},
		{"version: 1\nkeep: [/etc]\n", `mine.yaml:2: an entry of keep: "/etc" is not a path in the home`},
		{"version: 1\nkeep: [~/.x/../../y]\n", "mine.yaml:2"},
		{"version: 1\nkeep: ['~/.x/{slugs}']\n", "an unknown word in braces; known: {slug}, {sha256}, {sha256:12}"},
		{"version: 1\ncopy: [{path: ~/.x, dorp: [a]}]\n", `mine.yaml:2: unknown key "dorp" in an entry of copy`},
		{"version: 1\nvariables: [MY_SECRET]\n", "mine.yaml:2: an entry of variables: MY_SECRET looks like a secret"},
		{"version: 1\nfiles: [{path: /usr/bin/x, content: x}]\n", "is neither in the home nor below /etc"},
		{"version: 1\ncredentials: [{name: x, source: {env: X_KEY}, hosts: [example.org]}]\n", "mine.yaml:2: an entry of credentials: it has no env"},
	} {
		w := newWorld(t)
		w.write("home/u/.config/holdfast/presets/mine.yaml", c.text, 0o600)
		_, err := w.compile(Options{Host: w.host, Preset: "mine"})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	w := newWorld(t)
	w.write("home/u/.config/holdfast/presets/mine.yaml", "version: 1\n", 0o666)
	if _, err := w.compile(Options{Host: w.host, Preset: "mine"}); err == nil || !strings.Contains(err.Error(), "can be written by others") {
		t.Errorf("one that anybody can write: %v", err)
	}
}

// TestHistoryThatIsNoDirectory: what an agent keeps between runs is made writable, so
// it must be a directory: a link would make another place writable.
func TestHistoryThatIsNoDirectory(t *testing.T) {
	const no = "is a link or not a directory"
	keeping(t, "nothing is there yet", "", func(*world, string) {})
	keeping(t, "a directory", "", func(w *world, path string) { w.mkdir(path) })
	keeping(t, "a link", no, func(w *world, path string) { w.link("/outside", path) })
	keeping(t, "a file", no, func(w *world, path string) { w.write(path, "", 0o600) })
}

// TestRootHistoryOfAnotherUser is TestHistoryThatIsNoDirectory for what only root can
// lay: another user's directory is theirs.
func TestRootHistoryOfAnotherUser(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	const no = "belongs to user 54321"
	keeping(t, "the directory", no, func(w *world, path string) { w.give(w.mkdir(path)) })
	keeping(t, "the one above it", no, func(w *world, path string) { w.give(filepath.Dir(w.mkdir(path))) })
}

// keeping plans a run of an agent where lay has put something at the place of its
// history, a path below the world's root; "" wants no error.
func keeping(t *testing.T, name, want string, lay func(w *world, path string)) {
	t.Run(name, func(t *testing.T) {
		w := newWorld(t)
		keep := strings.TrimPrefix(w.preset("claude", "home/u/ws").Keeps[0], w.root)
		w.mkdir(filepath.Dir(keep))
		lay(w, keep)
		_, err := w.compile(Options{Host: w.host, Preset: "claude"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	})
}

// give makes another user the owner of a path.
func (w *world) give(path string) {
	w.t.Helper()
	if err := os.Lchown(path, 54321, 54321); err != nil {
		w.t.Fatal(err)
	}
}
