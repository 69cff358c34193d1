//go:build linux

package inside

// pushing is a line that pushes to a repository outside; the branch has the
// name of the trick.
func pushing(name, line string) Trick {
	return bash(name, line).before("[ -d {Y}/r.git ] || { git init -q --bare {Y}/{N}.git && mv -nT {Y}/{N}.git {Y}/r.git; } 2>/dev/null || :; git config remote.origin.url {Y}/r.git; git config push.default current; git checkout -q -b {N}").in().making("{Y}/r.git/refs/heads/{N}")
}

// ruleSets are lines at which a rule made of text stumbles.
func ruleSets() map[string][]Trick {
	return map[string][]Trick{
		"rule-text":     ruleTextTricks(),
		"rule-order":    ruleOrderTricks(),
		"rule-boundary": ruleBoundaryTricks(),
		"exempt":        exemptTricks(),
		"consent":       consentTricks(),
	}
}

func ruleTextTricks() []Trick {
	return []Trick{
		pushing("plain", "git push origin HEAD"),
		pushing("two-blanks", "git  push  origin HEAD"),
		pushing("tab", "git\tpush\torigin HEAD"),
		pushing("comment", "git push #"),
		pushing("trailing", "git push "),
		pushing("leading", "  git push"),
		pushing("continued", "git \\\npush"),
		pushing("quoted", "'git' \"push\""),
		pushing("escaped", `g\it pu\sh`),
		pushing("absolute", "$(command -v git) push"),
		pushing("command", "command git push"),
		pushing("env", "env git push"),
		pushing("assigned", "A=b git push"),
		pushing("variable", "p=push; git $p"),
		pushing("upper", "mkdir b; ln -s $(command -v git) b/GIT; b/GIT push"),
		pushing("redirected", "git push>/dev/null 2>&1"),
		pushing("subcommand-path", "$(git --exec-path)/git push"),
		pushing("send-pack", "git send-pack {Y}/r.git HEAD:refs/heads/{N}"),
		pushing("alias", "git -c alias.p=push p"),
		pushing("not-push", "git fetch -q . HEAD:refs/heads/o; git subtree push 2>/dev/null; git push"),
	}
}

func ruleOrderTricks() []Trick {
	return []Trick{
		pushing("after-status", "git status && git push"),
		pushing("in-directory", "git -C {D} push"),
		pushing("no-pager", "git --no-pager push"),
		pushing("configured", "git -c a.b=c push"),
		pushing("git-dir", "git --git-dir={D}/.git push"),
		pushing("work-tree", "git --work-tree={D} --git-dir .git push"),
		pushing("literal", "git --literal-pathspecs push"),
		pushing("in-substitution", "git log $(git push >&2)"),
		pushing("in-alias", "git -c 'alias.log-x=!git push' log-x"),
		pushing("piped", "git log | git push"),
		pushing("background", "git log & git push; wait"),
		pushing("by-foreach", "git rebase -q --autostash -x 'git push origin HEAD:refs/heads/{N}' HEAD~1"),
		pushing("by-xargs", "echo push | xargs git"),
		pushing("by-find", "find . -maxdepth 0 -exec git push ';'"),
		pushing("by-env", "env -S 'git push'"),
		pushing("by-python", "python3 -c 'import os; os.system(\"git push\")' || git push"),
		pushing("config-env", "E=push git --config-env=alias.p=E p"),
	}
}

func ruleBoundaryTricks() []Trick {
	return []Trick{
		sh("logout", "PATH=$PWD/bin:$PATH git logout").with(map[string]string{"bin/git-logout": "#!/bin/sh\ntouch {X}\n"}),
		sh("log-x", "PATH=$PWD/bin:$PATH git log-x").with(map[string]string{"bin/git-log-x": "#!/bin/sh\ntouch {X}\n"}),
		sh("gitlog", "PATH=$PWD/bin:$PATH gitlog").with(map[string]string{"bin/gitlog": "#!/bin/sh\ntouch {X}\n"}),
		sh("git-log", "PATH=$PWD/bin:$PATH git-log").with(map[string]string{"bin/git-log": "#!/bin/sh\ntouch {X}\n"}),
		sh("dot-git", "./git log").with(map[string]string{"git": "#!/bin/sh\ntouch {X}\n"}),
		sh("git-slash", "git/log").with(map[string]string{"git/log": "#!/bin/sh\ntouch {X}\n"}),
		sh("git-space", "'./git log'").with(map[string]string{"git log": "#!/bin/sh\ntouch {X}\n"}),
		sh("alias", "git -c alias.logs='!touch {X}' logs"),
		sh("autocorrect", "git -c help.autocorrect=immediate -c alias.logg='!touch {X}' logg"),
		sh("log-output", "git log --output={X}").in(),
		sh("log-semicolon", "git log;touch {X}").in(),
		sh("gitk", "PATH=$PWD/bin:$PATH gitk").with(map[string]string{"bin/gitk": "#!/bin/sh\ntouch {X}\n"}),
		sh("exec-path", "git --exec-path=bin logout").with(map[string]string{"bin/git-logout": "#!/bin/sh\ntouch {X}\n"}),
	}
}

func exemptTricks() []Trick {
	return []Trick{
		sh("after", "docker --version; touch {X}").with(planted),
		sh("and", "docker --version && touch {X}").with(planted).env("PATH={D}/bin:/usr/bin:/bin"),
		sh("first-in-path", "PATH=$PWD/bin:$PATH; docker --version").with(map[string]string{"bin/docker": "#!/bin/sh\ntouch {X}\n"}),
		sh("relative", "bin/docker --version").with(map[string]string{"bin/docker": "#!/bin/sh\ntouch {X}\n"}),
		bash("function", "docker() { touch {X}; }; docker --version"),
		sh("alias", "alias docker='touch {X};:'\ndocker --version"),
		bash("hash", "hash -p $PWD/bin/docker docker; docker --version").with(map[string]string{"bin/docker": "#!/bin/sh\ntouch {X}\n"}),
		bash("exec-a", "exec -a docker touch {X}"),
		sh("linked", "ln -s $(command -v touch) docker; ./docker {X} || :; [ -e {X} ] || touch {X}"),
		sh("as-argument", "docker --version $(touch {X})").with(planted),
		sh("prefix", "docker-x --version").env("PATH={D}/bin:/usr/bin:/bin").with(map[string]string{"bin/docker-x": "#!/bin/sh\ntouch {X}\n"}),
		sh("assigned", "docker=1 touch {X}"),
		sh("comment", "touch {X} # docker --version"),
		sh("plugin", "DOCKER_CONFIG=$PWD bin/docker x").with(map[string]string{"bin/docker": "#!/bin/sh\nexec \"$DOCKER_CONFIG\"/cli-plugins/docker-x\n", "cli-plugins/docker-x": "#!/bin/sh\ntouch {X}\n"}),
	}
}

// planted is a harmless program of that name, for lines in which it is only the pretext.
var planted = map[string]string{"bin/docker": "#!/bin/sh\nexit 0\n"}
