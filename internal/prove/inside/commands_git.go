//go:build linux

package inside

// git is a trick of git's in a repository.
func git(name string, words ...string) Trick {
	return Trick{Name: name, Argv: append([]string{"git"}, words...), Repo: true}
}

// gitSets are options, settings and variables by which git writes elsewhere,
// starts something, or reads what is no repository.
func gitSets() map[string][]Trick {
	return map[string][]Trick{
		"git-writes": gitWritesTricks(),
		"git-runs":   gitRunsTricks(),
		"git-reads":  gitReadsTricks(),
	}
}

func gitWritesTricks() []Trick {
	return []Trick{
		git("log-output", "log", "--output={X}"),
		git("diff-output", "diff", "--output={X}"),
		git("show-output", "show", "--output={X}"),
		git("no-index-output", "diff", "--no-index", "--output={X}", "/dev/null", "other"),
		git("format-patch", "format-patch", "-1", "-o", "{X}"),
		git("format-patch-dir", "-c", "format.outputDirectory={X}", "format-patch", "-1"),
		git("stat-output", "diff", "--stat", "--output={X}"),
		git("archive", "archive", "-o", "{X}", "HEAD"),
		git("bundle", "bundle", "create", "{X}", "HEAD"),
		git("init", "init", "-q", "{X}"),
		git("clone", "clone", "-q", ".", "{X}"),
		git("worktree", "worktree", "add", "-q", "--detach", "{X}"),
		git("export-marks", "fast-export", "--export-marks={X}", "HEAD"),
		git("import-marks", "fast-import", "--quiet", "--allow-unsafe-features", "--export-marks={X}"),
		sh("index-pack", "git pack-objects -q --stdout --all </dev/null >p.pack; git index-pack -o {X} p.pack").in(),
		git("pack-objects", "pack-objects", "-q", "--all", "{X}").making("{X}-*.pack"),
		git("index-file", "add", "tracked").env("GIT_INDEX_FILE={X}"),
		git("work-tree", "--work-tree={X}", "checkout", "-qf", "HEAD", "--", ".").before("mkdir {X} 2>/dev/null || :").making("{X}/tracked"),
		by("unsafe-paths", "p", "git", "apply", "--unsafe-paths", "-p0").with(map[string]string{"p": "--- /dev/null\n+++ {X}\n@@ -0,0 +1 @@\n+a\n"}),
		git("trace", "status").env("GIT_TRACE={X}"),
		git("trace-perf", "status").env("GIT_TRACE_PERFORMANCE={X}"),
		git("trace2", "status").env("GIT_TRACE2={X}"),
		git("object-directory", "hash-object", "-w", "tracked").before("mkdir {X} 2>/dev/null || :").env("GIT_OBJECT_DIRECTORY={X}").making("{X}/??"),
		git("trace2-config", "status").with(map[string]string{"c": "[trace2]\n\tnormalTarget = {X}\n"}).env("GIT_CONFIG_GLOBAL={D}/c", "GIT_CONFIG_SYSTEM={D}/c", "GIT_CONFIG_NOSYSTEM=0"),
		git("redirect", "status").env("GIT_TRACE_SETUP={X}"),
		git("config-file", "config", "--file", "{X}", "a.b", "c"),
		git("separate", "init", "-q", "--separate-git-dir={X}", "sub"),
		git("notes-merge", "checkout-index", "-f", "--prefix={X}/", "tracked"),
		git("checkout-temp", "archive", "--output={X}", "--format=zip", "HEAD"),
		git("mailsplit", "mailsplit", "-o{Y}", "m").with(map[string]string{"m": "From a Mon Sep 17 00:00:00 2001\nFrom: a\nSubject: a\n\na\n"}).making("{Y}/0001"),
		git("symbolic", "--git-dir={X}", "init", "-q"),
		git("diagnose", "diagnose", "-o", "{X}"),
	}
}

func gitRunsTricks() []Trick {
	return []Trick{
		git("grep-pager", "grep", "-Otouch {X};:", "one"),
		onTTY("pager", "git -c core.pager='touch {X};:' log").in(),
		onTTY("pager-log", "git -c pager.log='touch {X};:' log").in(),
		git("fsmonitor", "-c", "core.fsmonitor=touch {X};:", "status"),
		git("exec-path", "--exec-path={D}/bin", "x").with(map[string]string{"bin/git-x": "#!/bin/sh\ntouch {X}\n"}),
		git("upload-pack", "ls-remote", "--upload-pack=touch {X};:", "."),
		git("fetch-upload", "fetch", "--upload-pack=touch {X};:", "."),
		git("pull-upload", "pull", "--upload-pack=touch {X};:", "."),
		git("clone-upload", "clone", "-u", "touch {X};:", ".", "n"),
		git("receive-pack", "push", "--receive-pack=touch {X};:", ".", "HEAD:n"),
		git("archive-exec", "archive", "--remote=.", "--exec=touch {X};:", "HEAD"),
		git("clone-config", "clone", "-q", "-c", "core.hooksPath={D}/h", ".", "n").with(map[string]string{"h/post-checkout": "#!/bin/sh\ntouch {X}\n"}),
		git("template", "clone", "-q", "--template={D}/t", ".", "n").with(map[string]string{"t/hooks/post-checkout": "#!/bin/sh\ntouch {X}\n"}),
		git("hooks-path", "-c", "core.hooksPath=h", "commit", "-qm", "a", "--allow-empty").with(map[string]string{"h/pre-commit": "#!/bin/sh\ntouch {X}\n"}),
		git("hook-run", "-c", "core.hooksPath=h", "hook", "run", "pre-commit").with(map[string]string{"h/pre-commit": "#!/bin/sh\ntouch {X}\n"}),
		git("bisect", "bisect", "run", "touch", "{X}").before("git stash -q; git commit -q --allow-empty -m third; git bisect start HEAD HEAD~2"),
		git("rebase", "rebase", "--autostash", "-x", "touch {X}", "HEAD~1"),
		git("foreach", "submodule", "foreach", "touch {X}").before("git init -q sub; git -C sub commit -q --allow-empty -m a; git submodule --quiet add ./sub sub"),
		git("difftool", "difftool", "-y", "-x", "touch {X};:"),
		git("difftool-cmd", "-c", "difftool.d.cmd=touch {X}", "difftool", "-y", "-t", "d"),
		git("external-diff", "-c", "diff.external=touch {X};:", "diff"),
		git("ext-diff-variable", "diff").env("GIT_EXTERNAL_DIFF=touch {X};:"),
		git("textconv", "-c", "diff.d.textconv=touch {X};:", "diff").with(map[string]string{".gitattributes": "* diff=d\n"}),
		git("smudge", "-c", "filter.f.smudge=touch {X};cat", "checkout", "-f", "HEAD", "--", "tracked").with(map[string]string{".gitattributes": "* filter=f\n"}).before("rm tracked"),
		git("clean", "-c", "filter.f.clean=touch {X};cat", "add", "tracked").with(map[string]string{".gitattributes": "* filter=f\n"}),
		git("hash-object", "-c", "filter.f.clean=touch {X};cat", "hash-object", "--path", "a", "other").with(map[string]string{".gitattributes": "* filter=f\n"}),
		git("cat-filters", "-c", "filter.f.smudge=touch {X};cat", "cat-file", "--filters", "HEAD:other").with(map[string]string{".gitattributes": "* filter=f\n"}),
		git("alias", "-c", "alias.a=!touch {X}", "a"),
		git("alias-env", "--config-env=alias.a=A", "a").env("A=!touch {X}"),
		git("ext", "-c", "protocol.ext.allow=always", "ls-remote", "ext::sh -c touch% {X}"),
		git("ssh-command", "-c", "core.sshCommand=touch {X};:", "ls-remote", "ssh://probe.test/r"),
		git("ssh-variable", "ls-remote", "probe.test:r").env("GIT_SSH_COMMAND=touch {X};:"),
		git("proxy", "-c", "core.gitProxy=./evil", "ls-remote", "git://probe.test/r").with(evil),
		git("editor", "-c", "core.editor=touch {X};:", "commit", "--allow-empty"),
		git("editor-tag", "tag", "-a", "t").env("GIT_EDITOR=touch {X};:"),
		git("editor-notes", "notes", "edit").env("EDITOR=touch {X};:"),
		git("editor-branch", "branch", "--edit-description").env("EDITOR=touch {X};:"),
		git("editor-var", "-c", "core.editor=touch {X};:", "config", "-e"),
		git("sequence", "-c", "sequence.editor=touch {X};:", "rebase", "--autostash", "-i", "HEAD~1"),
		git("gpg", "-c", "gpg.program=./evil", "commit", "-S", "--allow-empty", "-m", "a").with(evil),
		git("gpg-log", "-c", "gpg.program=./evil", "tag", "-s", "-m", "a", "t").with(evil),
		git("credential", "-c", "credential.helper=!touch {X};:", "credential", "fill").reading("protocol=https\nhost=probe.test\n\n"),
		git("askpass", "-c", "core.askPass=./evil", "credential", "fill").with(evil).reading("protocol=https\nhost=probe.test\n\n"),
		git("merge-driver", "-c", "merge.m.driver=touch {X}", "merge", "-q", "o").with(map[string]string{".gitattributes": "* merge=m\n"}).before("git stash -q; git branch o HEAD~1; git checkout -q o; echo b >>tracked; git commit -qam b; git checkout -q main"),
		onTTY("interactive", "git -c interactive.diffFilter='touch {X};cat' add -p").in().reading("q\n"),
		git("trailer", "-c", "trailer.t.key=T", "-c", "trailer.t.command=touch {X}", "interpret-trailers", "--trailer", "T=a").reading("a\n\nb\n"),
		git("help-web", "-c", "web.browser=b", "-c", "browser.b.cmd=touch {X};:", "web--browse", "a.html").with(map[string]string{"a.html": ""}),
		git("filter-branch", "filter-branch", "-f", "--tree-filter", "touch {X}", "HEAD").env("FILTER_BRANCH_SQUELCH_WARNING=1").before("git stash -q"),
		git("tar-command", "-c", "tar.t.command=touch {X};cat", "archive", "--format=t", "HEAD"),
		git("pack-hook", "clone", "-q", "--no-local", ".", "n").env("GIT_CONFIG_GLOBAL={D}/c").with(map[string]string{"evil": "#!/bin/sh\ntouch {X}\n", "c": "[uploadpack]\n\tpackObjectsHook = {D}/evil\n"}),
		git("alternate", "-c", "core.alternateRefsCommand=touch {X};:", "fetch", "-q", "--upload-pack=touch {X};git-upload-pack", "."),
		git("stash", "-c", "core.fsmonitor=touch {X};:", "stash"),
		git("include", "-c", "include.path={D}/c", "a").with(map[string]string{"c": "[alias]\n\ta = !touch {X}\n"}),
		git("count", "a").env("GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=alias.a", "GIT_CONFIG_VALUE_0=!touch {X}"),
	}
}

func gitReadsTricks() []Trick {
	return []Trick{
		git("no-index", "diff", "--no-index", "/dev/null", "{S}").to(Prints),
		git("blame", "blame", "--contents={S}", "tracked").to(Prints),
		sh("grep", "cd $(dirname {S}); git grep --no-index -h '' -- $(basename {S})").to(Prints),
		sh("message", "git commit -q --allow-empty -F {S}; git log -1").in().to(Prints),
		sh("tag", "git tag -F {S} t; git tag -n9").in().to(Prints),
		sh("notes", "git notes add -F {S}; git notes show").in().to(Prints),
		sh("hash", "git cat-file -p $(git hash-object -w --no-filters {S})").in().to(Prints),
		sh("work-tree", "git --work-tree=$(dirname {S}) add $(basename {S}); git cat-file -p :$(basename {S})").in().to(Prints),
		git("no-index-word", "diff", "--no-index", "--word-diff", "{S}", "other").to(Prints),
		git("patterns", "config", "--file", "{S}", "-l").to(Prints),
		sh("stripspace", "git stripspace <{S}").to(Prints),
		sh("interpret-trailers", "git interpret-trailers {S}").to(Prints),
	}
}
