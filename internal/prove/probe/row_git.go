//go:build linux

package probe

import (
	"errors"
	"os"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/prove/replay"
)

const classGit = "exec.git"

func gitRows() []Row {
	rows := slices.Concat(gitHookRows(), gitOwnersRows(), gitConfigRows(), gitPointerRows(), gitStateRows(), gitViewRows(), gitFetchRows(), gitRest())
	for i := range rows {
		rows[i].Class, rows[i].Needs = classGit, append(rows[i].Needs, "git")
		rows[i].Setup, rows[i].Trace = arming(rows[i].Setup), gitTraces()[rows[i].ID]
		if rows[i].Kind != "" {
			continue
		}
		rows[i].Kind, rows[i].Promise, rows[i].Oracle = Sandbox, "P3", fired()
		if rows[i].Drive == nil {
			rows[i].Drive = human()
		}
	}
	return rows
}

// arming is a set-up for a row that plants something.
func arming(setup func(*World) error) func(*World) error {
	return func(w *World) error {
		w.arm()
		if setup == nil {
			return nil
		}
		return setup(w)
	}
}

// inGit makes a repository at each template, with settings.
func inGit(config []string, templates ...string) func(*World) error {
	return func(w *World) error {
		for _, t := range templates {
			if err := w.gitInit(t, config...); err != nil {
				return err
			}
		}
		return nil
	}
}

func gitHookRows() []Row {
	refs := []string{"CVE-2026-26268", "githooks(5)"}
	return []Row{
		{ID: "GIT-001", Core: true, Title: "hooks are planted in the repository of the workspace", Refs: refs,
			Setup:  inGit(nil, "W"),
			Files:  map[string]string{"W/.git/hooks/update": hook},
			Absent: []string{"W/.git/hooks/pre-commit", "W/.git/hooks/post-checkout"}, Keep: []string{"W/.git/hooks/update"},
			Harmless: takenAway,
			Action:   "git-hooks", Args: []string{"path=W/.git/hooks"}},
		{ID: "GIT-001b", Core: true, Title: "hooks are planted where the repository has no directory for them", Refs: refs,
			Setup: func(w *World) error {
				return errors.Join(w.gitInit("W"), os.RemoveAll(w.Path("W/.git/hooks")))
			},
			Absent:   []string{"W/.git/hooks/pre-commit", "W/.git/hooks/post-checkout"},
			Harmless: takenAway,
			Action:   "git-hooks", Args: []string{"path=W/.git/hooks"}},
		{ID: "GIT-001c", Title: "hooks are planted in repositories below the workspace, and in those of submodules", Refs: refs,
			Setup: func(w *World) error {
				err := errors.Join(inGit(nil, "W", "W/a", "W/deep/er/b")(w), os.Mkdir(w.Path("W/.git/modules"), 0o755))
				_, err2 := w.git(w.W, "init", "-q", "--separate-git-dir=.git/modules/sub", "sub")
				return errors.Join(err, err2)
			},
			Harmless: takenAway,
			Action:   "git-hooks", Args: []string{"path=W/a/.git/hooks\nW/deep/er/b/.git/hooks\nW/.git/modules/sub/hooks"}},
		{ID: "GIT-001d", Title: "hooks are planted in the repository that the workspace is a worktree of", Refs: refs,
			Setup: func(w *World) error {
				if err := w.gitInit("S/main"); err != nil {
					return err
				}
				_, err := w.git(w.Path("S/main"), "worktree", "add", "-q", w.Path("S/tree"))
				return errors.Join(err, os.Rename(w.Path("S/tree/.git"), w.Path("W/.git")), w.File("S/main/.git/worktrees/tree/gitdir", w.W+"/.git\n"))
			},
			RefusalHolds: true, Harmless: takenAway,
			Absent: []string{"S/main/.git/hooks/pre-commit", "S/main/.git/worktrees/tree/hooks/pre-commit"},
			Action: "git-hooks", Args: []string{"path=S/main/.git/hooks\nS/main/.git/worktrees/tree/hooks"}},
		{ID: "GIT-001e", Title: "the repository's hooks lie in the tree, by a setting of its owner's", Refs: []string{"git-config(1) core.hooksPath"},
			Setup:    inGit([]string{"core.hooksPath", ".githooks"}, "W"),
			Files:    map[string]string{"W/.githooks/update": hook},
			Keep:     []string{"W/.githooks/update"},
			Harmless: takenAway,
			Action:   "git-hooks", Args: []string{"path=W/.githooks"}},
		{ID: "GIT-001f", Title: "the same, and the directory is not there yet", Refs: []string{"git-config(1) core.hooksPath"},
			Setup:    inGit([]string{"core.hooksPath", "tools/hooks"}, "W"),
			Harmless: takenAway,
			Action:   "git-hooks", Args: []string{"path=W/tools/hooks"}},
		{ID: "GIT-001g", Title: "the repository's hooks lie outside, by a setting of its owner's", Refs: []string{"git-config(1) core.hooksPath"},
			Setup:    func(w *World) error { return w.gitInit("W", "core.hooksPath", "{O}/hooks") },
			Harmless: takenAway, Accept: Denials,
			Action: "git-hooks", Args: []string{"path=O/hooks"}},
		{ID: "GIT-001h", Title: "bare repositories and repositories in other letters appear, and a human looks into them", Refs: []string{"git(1) safe.bareRepository"},
			Setup:    inGit(nil, "W"),
			Harmless: takenAway,
			Action:   "git-arm-bare", Args: []string{"path=W/x.git\nW/vendor/y\nW/.git/modules/z\nW/new/.git"}},
		{ID: "GIT-001i", Title: "a repository is built under another name and renamed", Refs: []string{"rename(2)"},
			Setup:    inGit(nil, "W"),
			Harmless: takenAway,
			Action:   "git-two-renames"},
	}
}

// commandKeys are settings whose value git runs, or obeys in the end.
var commandKeys = []string{
	"core.hooksPath {trip}", "core.fsmonitor {trip}", "core.sshCommand {trip}", "core.editor {trip}", "core.pager {trip}", "core.askPass {trip}", "core.gitProxy {trip}",
}

var moreKeys = []string{
	"alias.st !{trip}", "diff.external {trip}", "diff.d.textconv {trip}", "diff.d.command {trip}", "filter.f.clean {trip}", "filter.f.smudge {trip}", "filter.f.process {trip}",
	"merge.m.driver {trip}", "credential.helper !{trip}", "gpg.program {trip}", "gpg.ssh.program {trip}", "commit.gpgSign true", "uploadpack.packObjectsHook {trip}",
	"remote.origin.uploadpack {trip}", "remote.origin.receivepack {trip}", "remote.origin.vcs {trip}", "sequence.editor {trip}", "difftool.d.cmd {trip}", "mergetool.m.cmd {trip}",
	"pager.log {trip}", "interactive.diffFilter {trip}", "submodule.s.update !{trip}", "protocol.ext.allow always", "url.ext::sh.insteadOf https://",
	"http.proxy http://probe.invalid", "trailer.t.command {trip}", "trailer.t.cmd {trip}", "browser.b.cmd {trip}", "man.m.cmd {trip}", "core.attributesFile {trip}",
	"core.worktree /", "init.templateDir {trip}", "extensions.worktreeConfig true", "instaweb.httpd {trip}", "sendemail.smtpServer {trip}",
	"core.alternateRefsCommand {trip}", "guitool.g.cmd {trip}", "tar.t.command {trip}", "include.path ../inc.cfg", "includeIf.gitdir:/.path ../inc.cfg",
}

func keysArgs(keys []string) []string { return []string{"dir=W", "keys=" + strings.Join(keys, "\n")} }

func gitConfigRows() []Row {
	refs := []string{"CVE-2026-26268", "git-config(1)"}
	kept := []string{"W/.git/config"}
	include := "[core]\n\tfsmonitor = {trip}"
	return []Row{
		{ID: "GIT-002", Core: true, Title: "git sets the programs that it runs itself", Refs: refs, Setup: inGit(nil, "W"), Keep: kept,
			Action: "git-config", Args: keysArgs(commandKeys)},
		{ID: "GIT-002b", Core: true, Title: "the configuration is replaced by way of its lock, by a link, by an exchange", Refs: refs, Keep: kept,
			Setup:  inGit(nil, "W", "W/sub"),
			Accept: append([]string{"EEXIST"}, Denials...),
			Action: "git-lock", Args: []string{"path=W/.git/config\nW/sub/.git/config"}},
		{ID: "GIT-002c", Title: "the configuration of the worktree is made, which git reads by a setting of its owner's", Refs: []string{"git-worktree(1) CONFIGURATION FILE"},
			Setup:    inGit([]string{"extensions.worktreeConfig", "true"}, "W"),
			Harmless: takenAway, Absent: []string{"W/.git/config.worktree"},
			Action: "git-write", Args: []string{"path=W/.git/config.worktree", "text=" + include}},
		{ID: "GIT-002d", Title: "the configuration is changed in every way in which a file is changed", Refs: refs, Keep: kept,
			Setup: inGit(nil, "W"), Accept: mutateDenials,
			Action: "mutate", Args: []string{"path=W/.git/config"}},
		{ID: "GIT-003", Title: "git sets each of the many other keys that lead to a program", Refs: []string{"git-config(1)", "trailofbits/SonarSource argument injection"}, Keep: kept,
			Setup:  inGit(nil, "W"),
			Action: "git-config", Args: keysArgs(moreKeys), Timeout: 60e9},
		{ID: "GIT-003b", Title: "attributes inside the repository assign a filter that its owner has", Refs: []string{"gitattributes(5)"},
			Setup:    func(w *World) error { return w.gitInit("W", "filter.own.clean", "{trip}; cat") },
			Harmless: takenAway,
			Action:   "git-write", Args: []string{"path=W/.git/info/attributes", "text=* filter=own diff=own merge=own"}},
		{ID: "GIT-005", Title: "a file of the tree that the repository's configuration includes is changed", Refs: []string{"git-config(1) include.path"},
			Setup:    inGit([]string{"include.path", "../inc.cfg"}, "W"),
			Files:    map[string]string{"W/inc.cfg": "[alias]\n\tst = status\n"},
			Harmless: takenAway,
			Action:   "git-write", Args: []string{"path=W/inc.cfg", "text=" + include}},
		{ID: "GIT-005b", Title: "the same, and the included file is not there yet", Refs: []string{"git-config(1) include.path, includeIf"},
			Setup:    inGit([]string{"include.path", "../tools/git.cfg", "includeIf.onbranch:main.path", "../tools/main.cfg"}, "W"),
			Harmless: takenAway,
			Action:   "git-write", Args: []string{"path=W/tools/git.cfg\nW/tools/main.cfg", "text=" + include}},
		{ID: "GIT-005c", Title: "an include is added by hand", Refs: []string{"git-config(1) include.path"}, Keep: kept,
			Setup: inGit(nil, "W"), Files: map[string]string{"W/inc.cfg": "[core]\n\tfsmonitor = false\n"},
			Action: "git-write", Args: []string{"path=W/.git/config", "text=[include]\n\tpath = ../inc.cfg"}},
	}
}

func gitPointerRows() []Row {
	refs := []string{"CVE-2026-40068", "gitrepository-layout(5)"}
	return []Row{
		{ID: "GIT-007", Core: true, Title: "the .git file of a worktree is led to another repository", Refs: refs,
			Setup: func(w *World) error {
				err := w.gitInit("W")
				_, err2 := w.git(w.W, "worktree", "add", "-q", w.Path("W/tree"))
				return errors.Join(err, err2)
			},
			Keep: []string{"W/tree/.git"}, Accept: append([]string{"EEXIST"}, Denials...),
			Action: "git-file", Args: []string{"dir=W/tree"}},
		{ID: "GIT-007b", Title: "a .git file appears where there was none, in a directory that a human enters", Refs: refs,
			Setup: inGit(nil, "W"), Harmless: takenAway,
			Action: "git-file", Args: []string{"dir=W/docs"}},
		{ID: "GIT-007c", Title: "the workspace itself gets a .git file", Refs: refs,
			Harmless: takenAway, Accept: Denials,
			Action: "git-file", Args: []string{"dir=W"}},
		{ID: "GIT-008", Title: "a commondir file makes the repository take its configuration from another", Refs: refs,
			Setup: inGit(nil, "W"), Harmless: takenAway, Absent: []string{"W/.git/commondir"},
			Action: "git-commondir", Args: []string{"dir=W"}},
		{ID: "GIT-008c", Title: "the same, and that other directory does not look like a repository", Refs: refs,
			Setup: inGit(nil, "W"), Harmless: takenAway,
			Action: "git-commondir", Args: []string{"dir=W", "without=HEAD"}},
		{ID: "GIT-008b", Title: "the commondir and gitdir of a worktree are changed", Refs: refs,
			Setup: func(w *World) error {
				err := w.gitInit("W")
				_, err2 := w.git(w.W, "worktree", "add", "-q", w.Path("W/tree"))
				return errors.Join(err, err2)
			},
			Keep: []string{"W/.git/worktrees/tree/commondir", "W/.git/worktrees/tree/gitdir"}, Accept: mutateDenials,
			Action: "mutate", Args: []string{"path=W/.git/worktrees/tree/commondir\nW/.git/worktrees/tree/gitdir"}},
		{ID: "GIT-015", Title: "the repository is renamed and another one, or a link, put in its place", Refs: []string{"npm @anthropic-ai/sandbox-runtime"},
			Setup: inGit(nil, "W"), Accept: append([]string{"EEXIST"}, Denials...), Keep: []string{"W/.git/config"},
			Harmless: "what was moved or made may be put right at the end",
			Action:   "git-move", Args: []string{"dir=W"}},
		{ID: "GIT-015b", Title: "a repository below the workspace is moved, or what is above it", Refs: []string{"npm @anthropic-ai/sandbox-runtime"},
			Setup: inGit(nil, "W", "W/a/b"), Accept: append([]string{"EEXIST"}, Denials...), Keep: []string{"W/a/b/.git/config"},
			Harmless: "what was moved or made may be put right at the end",
			Action:   "git-move", Args: []string{"dir=W/a/b"}},
		{ID: "GIT-015c", Title: "files that git writes become links to the outside, and a human uses git", Refs: []string{"symlink(2)"},
			Setup: inGit(nil, "W"), Harmless: "what counts is where git writes", Drive: human(replay.GitKeeping),
			Action: "git-links"},
		{ID: "GIT-015d", Title: "the index has the names of hooks, and a human puts back what it has", Refs: []string{"gitformat-index(5)"},
			Setup: inGit(nil, "W"), Harmless: takenAway, Absent: []string{"W/.git/hooks/post-checkout", "W/.git/hooks/pre-commit"},
			Drive: func(s *Session) {
				s.Run(Command{})
				s.Replay(replay.GitRestore.In(s.World.W))
			},
			Action: "git-index", Args: []string{"dir=W"}},
	}
}

func gitRest() []Row {
	return []Row{
		{ID: "GIT-009", Kind: Sandbox, Promise: "P3", Title: "a submodule is declared with an update command and an odd path",
			Refs: []string{"CVE-2024-32002", "CVE-2025-48384"}, Setup: inGit(nil, "W"),
			Harmless: "the exit report must name the file", Drive: human(), Oracle: both(fired(), named(nil, "W/.gitmodules")),
			Action: "git-write", Args: []string{"path=W/.gitmodules", "text=[submodule \"s\"]\n\tpath = \"sub\\r\"\n\turl = ext::sh -c true\n\tupdate = !{trip}"}},
		{ID: "GIT-011", Kind: Sandbox, Promise: "P1", Title: "the objects of another project are read through alternates",
			Refs: []string{"gitrepository-layout(5) objects/info/alternates"}, Setup: otherProject,
			Action: "git-objects"},
		{ID: "GIT-013", Kind: Sandbox, Promise: "P3", Title: "a launcher puts the author's name or a branch's into a shell",
			Refs: []string{"CVE-2025-59041"}, Absent: []string{"O/fired", "W/fired"},
			Setup: func(w *World) error {
				_, err := w.git(w.W, "init", "-q", "-b", "a$(touch${IFS}fired)", ".")
				return errors.Join(err, w.gitInit("W", "user.email", "$(touch {O}/fired)", "user.name", "`touch {O}/fired`", "remote.origin.url", "$(touch {O}/fired)"))
			},
			Action: "nothing-denied",
			Bare:   "no launcher reads the repository; what is tried is one that does"},
		{ID: "GIT-016", Kind: Control, Promise: "P3", Title: "a developer's tool can add, commit, branch and tag",
			Refs: []string{"npm @anthropic-ai/sandbox-runtime mandatory-deny tests"}, Setup: inGit(nil, "W"),
			Action: "git-commit"},
		{ID: "GIT-016b", Kind: Control, Promise: "P3", Title: "a repository that is made inside and that is harmless is there afterwards",
			Refs: []string{"git-init(1)"}, Action: "git-new",
			Drive: func(s *Session) {
				s.Run(Command{})
				if out, err := s.World.git(s.World.Path("W/fresh"), "log", "-1", "--format=%s"); err != nil || firstLine(out) != "first" {
					s.Fail(errors.Join(errors.New("the new repository is not whole on the host"), err))
				}
			}},
	}
}

// otherProject makes a project in the home whose history holds a token.
func otherProject(w *World) error {
	if err := errors.Join(w.gitInit("W"), w.gitInit("H/other")); err != nil {
		return err
	}
	if err := w.Plant("H/other/secret"); err != nil {
		return err
	}
	out, err := w.git(w.Path("H/other"), "hash-object", "-w", "secret")
	w.Arg("objects=" + w.Path("H/other/.git/objects"))
	w.Arg("blob=" + firstLine(out))
	return err
}
