//go:build linux

package probe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// deniesRepos are repositories in odd shapes.
func deniesRepos() []Row { return append(deniesElsewhere(), deniesHalves()...) }

// deniesElsewhere are repositories whose parts lie elsewhere, or that point at
// another's.
func deniesElsewhere() []Row {
	outside := repo("S/main/.git", map[string]string{
		"S/main/.git/hooks/pre-commit":      hook,
		"S/main/.git/worktrees/w/HEAD":      "ref: refs/heads/w\n",
		"S/main/.git/worktrees/w/commondir": "../..\n",
		"S/main/.git/worktrees/w/gitdir":    "../../../../w/.git\n",
	})
	worktree := merged(outside, map[string]string{"W/.git": "gitdir: ../main/.git/worktrees/w\n"})
	main := []string{"S/main/.git/config", "S/main/.git/hooks/pre-commit", "S/main/.git/worktrees/w/commondir", "S/main/.git/worktrees/w/gitdir"}
	return []Row{
		{ID: "DNY-011c", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title: "hooks and configuration of the repository that a worktree belongs to, outside the workspace, are changed",
			Refs:  []string{"git-worktree(1)", "CVE-2026-40068"},
			Files: worktree, Keep: main, Accept: mutateDenials, RefusalHolds: true,
			Action: "mutate", Args: []string{"path=" + strings.Join(main, "\n")}},
		{ID: "DNY-011d", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:  "hooks and configuration are added to the repository that a worktree belongs to",
			Refs:   []string{"git-worktree(1)"},
			Files:  worktree,
			Shared: []string{"S/main/.git"},
			Absent: []string{"S/main/.git/hooks/post-commit", "S/main/.git/worktrees/w/config.worktree", "S/main/.git/config.worktree", "S/main/.git/info/attributes"},
			Action: "create-armed", Args: []string{"path=S/main/.git/hooks/post-commit\nS/main/.git/worktrees/w/config.worktree\nS/main/.git/config.worktree\nS/main/.git/info/attributes"},
			Harmless: takenAway, RefusalHolds: true},
		{ID: "DNY-011h", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title: "the same, where that repository has no hooks yet and reads a configuration of each worktree",
			Refs:  []string{"git-worktree(1) CONFIGURATION FILE"},
			Files: merged(repo("S/main/.git", map[string]string{
				"S/main/.git/config":                "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n",
				"S/main/.git/worktrees/w/HEAD":      "ref: refs/heads/w\n",
				"S/main/.git/worktrees/w/commondir": "../..\n",
				"S/main/.git/worktrees/w/gitdir":    "../../../../w/.git\n"}),
				map[string]string{"W/.git": "gitdir: ../main/.git/worktrees/w\n"}),
			Shared: []string{"S/main/.git"},
			Absent: []string{"S/main/.git/hooks/post-checkout", "S/main/.git/worktrees/w/config.worktree", "S/main/.git/modules/m/hooks/pre-commit"},
			Oracle: armedConfigs("S/main/.git/config", "S/main/.git/modules/m/config", "S/main/.git/worktrees/other/config.worktree"),
			Action: "create-armed", Args: []string{"path=S/main/.git/hooks/post-checkout\nS/main/.git/worktrees/w/config.worktree\n" +
				"S/main/.git/modules/m/hooks/pre-commit\nS/main/.git/modules/m/config\nS/main/.git/modules/m/HEAD\nS/main/.git/modules/m/objects/x\nS/main/.git/modules/m/refs/x\n" +
				"S/main/.git/worktrees/other/HEAD\nS/main/.git/worktrees/other/commondir\nS/main/.git/worktrees/other/gitdir\nS/main/.git/worktrees/other/config.worktree"},
			Harmless: takenAway, RefusalHolds: true},
		{ID: "DNY-011e", Class: classDenies, Kind: Sandbox, Promise: "P1",
			Title: "a .git file in the workspace names the repository of another project, which does not know of it",
			Refs:  []string{"gitrepository-layout(5)", "CVE-2022-24765"},
			Files: merged(repo("S/other/.git", map[string]string{"W/.git": "gitdir: ../other/.git\n", "W/sub/.git": "gitdir: ../../other/.git\n"})),
			Plant: []string{"S/other/.git/secret", "S/other/.git/COMMIT_EDITMSG"}, RefusalHolds: true,
			Action: "both", Args: []string{"path=S/other/.git/secret\nS/other/.git/COMMIT_EDITMSG"}},
		{ID: "DNY-011f", Class: classDenies, Kind: Sandbox, Promise: "P1",
			Title: "a worktree's backward link is forged, so that another project's repository seems to be the workspace's",
			Refs:  []string{"gitrepository-layout(5)"},
			Files: merged(repo("W/fake", map[string]string{"W/.git": "gitdir: fake/worktrees/w\n", "W/fake/worktrees/w/HEAD": "ref: refs/heads/w\n",
				"W/fake/worktrees/w/commondir": "../../../../other/.git\n", "W/fake/worktrees/w/gitdir": "../../../.git\n"}), repo("S/other/.git", nil)),
			Plant: []string{"S/other/.git/secret"}, RefusalHolds: true,
			Action: "both", Args: []string{"path=S/other/.git/secret"}},
		{ID: "DNY-011g", Class: classDenies, Kind: Sandbox, Promise: "P1",
			Title: "a repository's configuration and alternates name directories outside, which come into view",
			Refs:  []string{"gitrepository-layout(5) objects/info/alternates", "git-config(1) core.hooksPath, core.worktree, include.path"},
			Setup: func(w *World) error {
				for name, content := range repo("W/.git", map[string]string{
					"W/.git/objects/info/alternates": w.Path("H/.aws") + "\n" + w.O + "\n",
					"W/.git/config": fmt.Sprintf("[core]\n\thooksPath = %s\n\tworktree = %s\n\tattributesFile = %s\n[include]\n\tpath = %s\n",
						w.O, w.H, w.Path("H/.netrc"), w.Path("H/.ssh/id_probe")),
				}) {
					if err := w.File(name, content); err != nil {
						return err
					}
				}
				return nil
			},
			RefusalHolds: true,
			Action:       "both", Args: []string{"path=O/canary\nO/sub/canary\nH/.aws/credentials\nH/.netrc\nH/.ssh/id_probe"}},
	}
}

// deniesHalves are repositories that are not whole, or not yet.
func deniesHalves() []Row {
	return []Row{
		{ID: "DNY-012n", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "hooks are left where there is no repository yet, for the one that a human makes there",
			Refs:     []string{"git-init(1)"},
			Absent:   []string{"W/new/.git/hooks/pre-commit", "W/.git/hooks/pre-commit", "W/.git/info/attributes"},
			Oracle:   armedConfigs("W/new/.git/config", "W/.git/config"),
			Harmless: takenAway,
			Action:   "create-armed", Args: []string{"path=W/new/.git/hooks/pre-commit\nW/new/.git/config\nW/.git/hooks/pre-commit\nW/.git/config\nW/.git/info/attributes"}},
		{ID: "DNY-012o", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title: "a new repository's configuration names a program in one of the many ways that git understands",
			Refs:  []string{"git-config(1)", "CVE-2022-24765", "CVE-2017-1000117", "CVE-2025-48384"},
			Needs: []string{"git"}, Oracle: gitWouldRun,
			Harmless: takenAway,
			Action:   "arm-configs"},
		{ID: "DNY-012p", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title: "the skeleton of a repository is removed so that its hooks are no longer seen as such",
			Refs:  []string{"gitrepository-layout(5)"},
			Files: repo("W/sub/.git", map[string]string{"W/sub/.git/hooks/pre-commit": hook}),
			Keep:  []string{"W/sub/.git/hooks/pre-commit", "W/sub/.git/config"}, Absent: []string{"W/sub/.git/hooks/post-commit"},
			Harmless: takenAway,
			Action:   "unmake-repo", Args: []string{"path=W/sub/.git"}},
		{ID: "DNY-012q", Class: classDenies, Kind: Host, Promise: "P3",
			Title:    "one command makes the half of a repository that runs programs, and the next the half that makes it one",
			Refs:     []string{"gitrepository-layout(5)"},
			Oracle:   armedConfigs("W/half/config", "W/sub/.git/config", "W/sub/half.git/config"),
			Absent:   []string{"W/half/hooks/pre-commit", "W/sub/.git/hooks/pre-commit", "W/sub/half.git/hooks/pre-commit"},
			Harmless: takenAway, RefusalHolds: true,
			Action: "make-skeleton", Args: []string{"path=W/half\nW/sub/.git\nW/sub/half.git"},
			Drive: func(s *Session) {
				s.Run(Command{Action: "create-armed", Args: []string{"path=W/half/config\nW/half/hooks/pre-commit\nW/sub/.git/config\nW/sub/.git/hooks/pre-commit\nW/sub/half.git/config\nW/sub/half.git/hooks/pre-commit"}})
				s.Run(Command{})
			}},
		{ID: "DNY-012r", Class: classDenies, Kind: Host, Promise: "P3",
			Title:    "one command makes harmless names, and the next renames them to protected ones",
			Refs:     []string{"rename(2)"},
			Absent:   []string{"W/.vscode/tasks.json", "W/.mcp.json", "W/deep/.claude/settings.json", "W/kept/.git/hooks/pre-commit"},
			Harmless: takenAway, RefusalHolds: true,
			Action: "rename-pairs", Args: []string{"path=W/plain\nW/.vscode\nW/plain.json\nW/.mcp.json\nW/shallow\nW/deep\nW/kept/git\nW/kept/.git"},
			Drive: func(s *Session) {
				s.Run(Command{Action: "create-armed", Args: []string{"path=W/plain/tasks.json\nW/plain.json\nW/shallow/claude/settings.json\n" +
					"W/kept/git/hooks/pre-commit\nW/kept/git/config\nW/kept/git/HEAD\nW/kept/git/objects-later\nW/kept/git/refs-later"}})
				s.Run(Command{Action: "rename-pairs", Args: []string{"path=W/shallow/claude\nW/shallow/.claude\nW/kept/git/objects-later\nW/kept/git/objects\nW/kept/git/refs-later\nW/kept/git/refs"}})
				s.Run(Command{})
			}},
		{ID: "DNY-016d", Class: classDenies, Kind: Sandbox, Promise: "P2",
			Title: "caches of tools in the home are changed",
			Refs:  []string{"overlayfs in the kernel's documentation"},
			Files: map[string]string{"H/.cache/go-build/00/a": "x", "H/.npm/_cacache/a": "x", "H/go/pkg/mod/a@v1/a.go": "x", "H/.cargo/registry/a": "x",
				"H/.cache/pip/a": "x", "H/.m2/repository/a": "x", "H/.gradle/caches/a": "x"},
			Accept: mutateDenials, Harmless: "what is in view may be a private copy",
			Action: "mutate", Args: []string{"path=H/.cache/go-build/00/a\nH/.npm/_cacache/a\nH/go/pkg/mod/a@v1/a.go\nH/.cargo/registry/a\nH/.cache/pip/a\nH/.m2/repository/a\nH/.gradle/caches/a"}},
	}
}

// harmful are the keys, as git prints them, from which it runs a program or
// takes more configuration.
var harmful = pattern(`^(core\.(fsmonitor|hookspath|sshcommand|pager|editor|askpass|gitproxy|attributesfile|worktree|alternaterefscommand)|` +
	`include\.path|includeif\..*|alias\..*|filter\..*|diff\.(.*\.)?(external|command|textconv)|merge\..*\.driver|gpg\.(.*\.)?program|gpg\.ssh\.defaultkeycommand|` +
	`credential\.(.*\.)?helper|pager\..*|sequence\.editor|interactive\.difffilter|trailer\..*\.(command|cmd)|uploadpack\.packobjectshook|` +
	`submodule\..*\.update|remote\..*\.(uploadpack|receivepack|vcs|proxy)|url\..*\.(insteadof|pushinsteadof)|protocol\..*|init\.templatedir|` +
	`(diff|merge)tool\..*|difftool\..*|browser\..*|man\..*|instaweb\..*|web\.browser|sendemail\..*|http\..*proxy|ssh\.variant)$`)

// harmfulValue finds transports that run a program.
var harmfulValue = pattern(`^(ext::|fd::|-|ssh://-)|--upload-pack|!`)

// gitWouldRun asks git itself what it reads in the configurations that are
// left, those of worktrees included.
func gitWouldRun(w *World, _ Observation) []string {
	configs, _ := filepath.Glob(w.Path("W/v*/.git/config*"))
	var out []string
	for _, c := range configs {
		cmd := exec.Command("git", "config", "--file", c, "--no-includes", "--null", "--list")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/", "GIT_CONFIG_NOSYSTEM=1"}
		b, _ := cmd.Output() // what it printed before an error is what it would obey
		for entry := range strings.SplitSeq(string(b), "\x00") {
			key, value, _ := strings.Cut(entry, "\n")
			if harmful().MatchString(strings.ToLower(key)) || harmfulValue().MatchString(value) {
				out = append(out, fmt.Sprintf("%s says %s = %q", w.short(c), key, value))
			}
		}
	}
	return out
}
