//go:build linux

package replay

// gitEnv is the environment of a human's git: an identity, none of this machine's
// configuration, and trust in repositories of other users, as git proposes when
// it refuses one.
var gitEnv = []string{
	"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "GIT_MERGE_AUTOEDIT=no", "GIT_CEILING_DIRECTORIES={W}/..",
	"GIT_AUTHOR_NAME=human", "GIT_AUTHOR_EMAIL=human@probe.test", "GIT_COMMITTER_NAME=human", "GIT_COMMITTER_EMAIL=human@probe.test",
	"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	"GIT_CONFIG_KEY_1=init.defaultBranch", "GIT_CONFIG_VALUE_1=main", "GIT_CONFIG_KEY_2=protocol.file.allow", "GIT_CONFIG_VALUE_2=always",
}

func git(commands ...[]string) []Step {
	var out []Step
	for _, c := range commands {
		out = append(out, Step{Argv: append([]string{"git"}, c...), Env: gitEnv})
	}
	return out
}

// Git looks at a repository and commits to it, with the fewest commands that
// trigger what git obeys there: status the file monitor, diff the drivers, add
// the filters, commit and checkout the hooks.
var Git = Program{Name: "git", Needs: []string{"git"},
	Reads: "configuration, hooks and attributes of the repository: git-config(1), githooks(5), gitattributes(5)",
	// The prober is left out: compressing it takes longer than everything else.
	Steps: git([]string{"status"}, []string{"diff"}, []string{"add", "-A", ".", ":!.probe-*"},
		[]string{"commit", "-q", "--allow-empty", "-m", "next"}, []string{"checkout", "-q", "-b", "other"})}

// GitKeeping covers what git writes besides: packed references, lists for
// servers, what was fetched, where a branch was.
var GitKeeping = Program{Name: "git housekeeping", Needs: []string{"git"}, Reads: "names below .git that git replaces: gitrepository-layout(5)",
	Steps: git([]string{"pack-refs", "--all"}, []string{"update-server-info"}, []string{"fetch", "-q", "."}, []string{"reset", "-q", "--soft", "HEAD"},
		[]string{"branch", "-f", "next"}, []string{"gc", "-q", "--auto"})}

// GitRestore restores what the index has.
var GitRestore = Program{Name: "git checkout -- .", Needs: []string{"git"}, Reads: "the names in the index: gitformat-index(5)",
	Steps: git([]string{"status"}, []string{"checkout", "--", "."}, []string{"commit", "-q", "--allow-empty", "-m", "next"})}

// GitPull pulls changes of others, also in submodules.
var GitPull = Program{Name: "git pull", Needs: []string{"git"}, Reads: "hooks and configuration of the repository and of its submodules: gitsubmodules(7), githooks(5)",
	Steps: git([]string{"pull", "-q", "--ff-only", "--recurse-submodules"})}

// GitWorktree makes another worktree and looks at an existing one.
var GitWorktree = Program{Name: "git worktree", Needs: []string{"git"}, Reads: "git-worktree(1) CONFIGURATION FILE, githooks(5) post-checkout",
	Steps: git([]string{"worktree", "add", "-q", "-b", "late", "{W}/late"}, []string{"-C", "{W}/tree", "status"}, []string{"-C", "{W}/tree", "commit", "-q", "--allow-empty", "-m", "next"})}

// GitContinue does what git status proposes for a rebase under way.
var GitContinue = Program{Name: "git rebase --continue", Needs: []string{"git"}, Reads: "the list of what is still to be done: git-rebase(1) exec",
	Steps: git([]string{"status"}, []string{"rebase", "--continue"})}

// GitPick does what git status proposes for a cherry-pick under way.
var GitPick = Program{Name: "git cherry-pick --continue", Needs: []string{"git"}, Reads: "the options of the cherry-pick: git-cherry-pick(1) --strategy",
	Steps: git([]string{"status"}, []string{"cherry-pick", "--continue"})}

// GitPatches does what git status proposes for patches that are being applied.
var GitPatches = Program{Name: "git am --skip", Needs: []string{"git"}, Reads: "the options of git apply: git-apply(1)",
	Steps: git([]string{"status"}, []string{"am", "--skip"})}

// The shells. For users who keep dotfiles in a repository, the workspace is the
// home in each, as it is or by links.
var (
	Bash = Program{Name: "bash", Needs: []string{"bash"}, Reads: "bash(1) INVOCATION, readline(3) INITIALIZATION FILE",
		Steps: []Step{
			{Argv: []string{"bash", "-l"}, Env: []string{"HOME={W}"}, Input: "exit\n"},
			{Argv: []string{"bash", "-l", "-c", "exit"}, Env: []string{"HOME={W}/second"}},
			{Argv: []string{"bash", "-l", "-c", "exit"}, Env: []string{"HOME={W}/third"}},
			{Argv: []string{"bash"}, Env: []string{"HOME={W}"}, Terminal: true, Input: "#\nexit\n"},
		}}
	Zsh = Program{Name: "zsh", Needs: []string{"zsh"}, Reads: "zsh(1) STARTUP/SHUTDOWN FILES",
		Steps: []Step{{Argv: []string{"zsh", "-l", "-i", "-c", "exit"}, Env: []string{"HOME={W}"}}}}
	// ZshCompiled has a home with start-up files that are not writable.
	ZshCompiled = Program{Name: "zsh", Needs: []string{"zsh"}, Reads: "zshbuiltins(1) zcompile: a compiled file that is newer is taken for the one that it was made of",
		Steps: Zsh.Steps}
	Less = Program{Name: "less", Needs: []string{"less"}, Reads: "lesskey(1) ENVIRONMENT SECTION: LESSOPEN may be set there",
		Steps: []Step{{Argv: []string{"less", "ok.txt"}, Env: []string{"HOME={W}"}}, {Argv: []string{"less", "ok.txt"}, Env: []string{"HOME={W}", "XDG_CONFIG_HOME={W}/.config"}}}}
	Fish = Program{Name: "fish", Needs: []string{"fish"}, Reads: "fish(1) configuration files, functions and completions that are loaded when they are used",
		Steps: []Step{{Argv: []string{"fish", "-l", "-c", "probe_tool; complete -C 'probe_tool '"}, Env: []string{"HOME={W}"}}}}
	// PathBin is the shell of a user with programs of the project on the search path.
	PathBin = Program{Name: "a shell", Needs: []string{"bash"}, Reads: "PATH, with directories of the project before those of the system",
		Steps: []Step{{Argv: []string{"bash", "-c", "ls; true"}, Env: []string{"PATH={W}/bin:{W}/node_modules/.bin:/usr/bin:/bin"}},
			{Argv: []string{"bash", "-c", "tsc; true"}, Env: []string{"PATH={W}/bin:{W}/node_modules/.bin:/usr/bin:/bin"}}}}
)

// Programs that load an environment, or run what a project names.
var (
	Direnv = Program{Name: "direnv", Needs: []string{"direnv", "bash", "less"}, Reads: "direnv(1), direnv-stdlib(1) dotenv: .envrc where it is allowed, and what that loads",
		Steps: []Step{{Argv: []string{"direnv", "exec", "{W}", "less", "ok.txt"}}, {Argv: []string{"direnv", "exec", "{W}/sub", "true"}}}}
	DirenvGit = Program{Name: "git below direnv", Needs: []string{"direnv", "bash", "git"}, Reads: "git(1) ENVIRONMENT VARIABLES, from a file that direnv loads",
		Steps: []Step{{Argv: []string{"direnv", "exec", "{W}", "git", "-c", "safe.directory=*", "diff"}}}}
	NPM = Program{Name: "npm", Needs: []string{"npm", "node"}, Reads: "package.json(5) scripts, npmrc(5) script-shell and node-options, npm-run-script(1) PATH",
		Steps: []Step{{Argv: []string{"npm", "install", "--offline", "--no-audit", "--no-fund", "--no-update-notifier"}}}}
	Make = Program{Name: "make", Needs: []string{"make"}, Reads: "make's manual, 3.2 What Name to Give Your Makefile, and 3.3 include",
		Steps: []Step{{Argv: []string{"make", "-s"}}, {Argv: []string{"make", "-s"}, Dir: "{W}/plain"}}}
	PreCommit = Program{Name: "pre-commit", Needs: []string{"/usr/bin/pre-commit", "git"}, Reads: "pre-commit.com, .pre-commit-config.yaml: repo: local",
		Steps: []Step{{Argv: []string{"/usr/bin/pre-commit", "run", "--all-files"}, Env: gitEnv}}}
	Python = Program{Name: "python3", Needs: []string{"/usr/bin/python3"}, Reads: "docs.python.org/3/library/site.html, using/cmdline.html PYTHONPATH and PYTHONSTARTUP, library/pdb.html .pdbrc",
		Steps: []Step{
			{Argv: []string{"/usr/bin/python3", "-c", "0"}, Env: []string{"PYTHONPATH=."}},
			{Argv: []string{".venv/bin/python", "-c", "0"}},
			{Argv: []string{"/usr/bin/python3", "-i"}, Env: []string{"PYTHONSTARTUP={W}/.pythonrc"}, Input: "exit()\n"},
			{Argv: []string{"/usr/bin/python3", "-m", "pdb", "prog.py"}, Input: "q\n"},
		}}
	VirtualEnvironment = Program{Name: "a virtual environment", Needs: []string{"bash"}, Reads: "docs.python.org/3/library/venv.html: programs in bin, and activate, which shells source",
		Steps: []Step{{Argv: []string{"bash", "-c", ". .venv/bin/activate; pip --version; true"}}, {Argv: []string{"bash", "-c", ".venv/bin/python -V; true"}}}}
	Pytest = Program{Name: "pytest", Needs: []string{"/usr/bin/pytest-3"}, Reads: "docs.pytest.org/en/stable/reference/customize.html, conftest.py",
		Steps: []Step{{Argv: []string{"/usr/bin/pytest-3", "-q", "-p", "no:cacheprovider"}}}}
	PythonModule = Program{Name: "python3 -m", Needs: []string{"/usr/bin/python3"}, Reads: "docs.python.org/3/using/cmdline.html -m: the working directory comes first among the places of modules",
		Steps: []Step{{Argv: []string{"/usr/bin/python3", "-m", "json.tool", "--help"}}}}
)

// Editors, terminals and other tools of a human.
var (
	Vim = Program{Name: "vim", Needs: []string{"vim"}, Reads: "vim's manual, starting.txt and 'exrc'; 'modeline' runs in a sandbox",
		Steps: []Step{
			{Argv: []string{"vim", "-N", "--not-a-term", "-c", "qa!", "ok.txt"}},
			{Argv: []string{"vim", "-N", "--not-a-term", "-c", "qa!", "notes.txt"}, Dir: "{W}/second"},
			{Argv: []string{"vim", "-N", "--not-a-term", "-c", "qa!"}, Env: []string{"HOME={W}"}, Dir: "/tmp"},
		}}
	Tmux = Program{Name: "tmux", Needs: []string{"tmux"}, Reads: "tmux(1) -f: the configuration of the home",
		Steps: []Step{{Argv: []string{"tmux", "-S", "/tmp/tmux", "new-session", "-d", "sleep 5"}, Env: []string{"HOME={W}"}},
			{Argv: []string{"tmux", "-S", "/tmp/tmux2", "new-session", "-d", "sleep 5"}, Env: []string{"HOME={W}/second"}}}}
	SSH = Program{Name: "ssh", Needs: []string{"ssh"}, Reads: "ssh_config(5) Include, Match exec, ProxyCommand, KnownHostsCommand",
		Steps: []Step{{Argv: []string{"ssh", "-F", ".ssh/config", "-o", "BatchMode=yes", "host.invalid", "true"}}}}
	GDB = Program{Name: "gdb", Needs: []string{"gdb"}, Reads: "gdb's manual, Startup: .gdbinit of the working directory, for who lets it load",
		Steps: []Step{{Argv: []string{"gdb", "-q", "-batch"}}}}
)

// Programs returns all of them by the names that rows use.
func Programs() map[string]Program {
	return map[string]Program{
		"git": Git, "git-keeping": GitKeeping, "git-restore": GitRestore, "git-pull": GitPull, "git-worktree": GitWorktree, "git-continue": GitContinue,
		"git-pick": GitPick, "git-patches": GitPatches, "bash": Bash, "zsh": Zsh, "zsh-compiled": ZshCompiled, "less": Less, "fish": Fish, "path-bin": PathBin,
		"direnv": Direnv, "direnv-git": DirenvGit, "npm": NPM, "make": Make, "pre-commit": PreCommit, "python": Python, "python-module": PythonModule,
		"virtual-environment": VirtualEnvironment, "pytest": Pytest, "vim": Vim, "tmux": Tmux, "ssh": SSH, "gdb": GDB,
	}
}

// Readers returns the lists of readers, which read files by the rules of programs
// that are not started.
func Readers() map[string][]Reader {
	return map[string][]Reader{"": nil, "services": Services, "editors": Editors, "agents": Agents}
}
