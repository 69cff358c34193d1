package packaging

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
	"go.yaml.in/yaml/v3"

	"holdfast.dev/holdfast/internal/testenv"
)

// read returns a text file of the module, by its path from the root.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.ModuleRoot(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// workflow is the part of packaging/github.yml that the tests read.
type workflow struct {
	Jobs map[string]struct {
		Env   map[string]string
		Steps []struct {
			Uses, Run string
			With      map[string]string
		}
	}
}

func readWorkflow(t *testing.T) workflow {
	t.Helper()
	var w workflow
	if err := yaml.Unmarshal([]byte(read(t, "packaging/github.yml")), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestWorkflow checks the workflow as GitHub would read it. Its actions are
// pinned to commits, which cannot be moved.
func TestWorkflow(t *testing.T) {
	lint, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := lint.Lint("contained.yml", []byte(read(t, "packaging/github.yml")), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		t.Error(e)
	}
	pinned := regexp.MustCompile(`^[\w.-]+/[\w.-]+@[0-9a-f]{40}$`)
	for _, job := range readWorkflow(t).Jobs {
		for _, step := range job.Steps {
			if step.Uses != "" && !pinned.MatchString(step.Uses) {
				t.Errorf("%s is not named by its commit", step.Uses)
			}
		}
	}
}

// TestPageShowsBoth compares docs/ci.md with the recipe and the job of the
// workflow.
func TestPageShowsBoth(t *testing.T) {
	page := read(t, "docs/ci.md")
	_, job, _ := strings.Cut(read(t, "packaging/github.yml"), "\njobs:\n")
	for _, block := range []string{"```dockerfile\n" + read(t, "packaging/Containerfile"), "```yaml\njobs:\n" + job} {
		if !strings.Contains(page, block+"```\n") {
			t.Errorf("docs/ci.md does not show\n%s", block)
		}
	}
}

// followsRecipe runs the steps of the recipe in the system, and then each command
// of the workflow in a repository with a Makefile there. The packages that the
// recipe downloads are already installed.
func followsRecipe(t *testing.T, s system) {
	script, steps := "", 0
	for line := range strings.Lines(read(t, "packaging/Containerfile")) {
		step, is := strings.CutPrefix(line, "RUN ")
		if packages := regexp.MustCompile(`^apt-get update && apt-get install --yes --no-install-recommends ([a-z -]+) && rm -rf \S+\n$`).FindStringSubmatch(step); packages != nil {
			step = "dpkg --status " + packages[1] + " >/dev/null\n"
		}
		if is {
			script, steps = script+step, steps+1
		}
	}
	if steps != 2 {
		t.Fatalf("the recipe has %d steps", steps)
	}
	// As in a GitHub container: the job runs as root, and another user owns its
	// home.
	script += `install -d -o newcomer /github/home
mkdir /work
cd /work
git init -q
printf 'all:\n\techo built >"$$HOLDFAST_OUTPUT/result"\n' >Makefile
export HOME=/github/home
`
	kept := ""
	for _, job := range readWorkflow(t).Jobs {
		for name, value := range job.Env {
			script += "export " + name + "=" + value + "\n"
		}
		for _, step := range job.Steps {
			if step.Run != "" {
				script += step.Run + "\n"
			}
			if step.With["path"] != "" {
				kept = step.With["path"]
			}
		}
	}
	script += "cat dist/result\nls " + kept + "\n"
	run(t, nil, "install", "-D", "-t", filepath.Join(s.root, "tmp/holdfast"), s.deb)
	out := s.execute(t, script)
	for _, want := range []string{"holdfast run works here with the default profile.\n", "\nbuilt\n", ".jsonl\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in what was printed:\n%s", want, out)
		}
	}
}

// TestProfileIsThatOfDoctor compares the installed profile with the one that
// `holdfast doctor` tells users to write.
func TestProfileIsThatOfDoctor(t *testing.T) {
	_, after, _ := strings.Cut(read(t, "internal/boundary/native/check.go"), "const apparmorProfile = `")
	told, _, found := strings.Cut(after, "`")
	if !found {
		t.Fatal("doctor has no profile")
	}
	installed := read(t, "packaging/apparmor")
	for line := range strings.Lines(strings.ReplaceAll(told, "%s", "/usr/bin/holdfast")) {
		if !strings.Contains(installed, strings.TrimSpace(line)) {
			t.Errorf("doctor says %q, which is not in packaging/apparmor", line)
		}
	}
}
