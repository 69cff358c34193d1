//go:build linux

package inside

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/programs"
)

// createArmed makes files with content that git obeys in files of that name, in
// directories that may not be repositories.
func createArmed(p *Probe, path string) {
	content := map[string]string{
		"HEAD":       "ref: refs/heads/main\n",
		"attributes": "* filter=evil diff=evil\n",
		"commondir":  "../..\n",
		"gitdir":     "../../../../elsewhere/.git\n",
	}[filepath.Base(path)]
	if content == "" {
		content = armed
	}
	p.Try("create "+path, func() error {
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), programs.Write(path, []byte(content), 0o755))
	})
}

// configs name a program, or more configuration, in ways that differ in key, in
// form or in what precedes them. They are megabytes, and made on demand: every
// start of the launcher includes this package.
func configs() []string {
	return []string{
		"[core]\n\tfsmonitor = ./x\n",
		"[core] fsmonitor = ./x\n",
		"[CORE]\nFsMonitor=./x\n",
		"[core]\nfsmonitor\\\n=./x\n",
		"[core]\n\tfsmonitor = \"./\"x # harmless\n",
		"\xef\xbb\xbf[core]\n\tfsmonitor = ./x\n",
		"[core]\r\n\tfsmonitor = ./x\r\n",
		"; [core]\n#\n[core]\n\tbare = false\n\thooksPath = ../evil\n",
		"[core]\n\tbare = false ; \\\n\tfsmonitor = ./x\n",
		"[user]\n\tname = a \\\n[core]\n\tfsmonitor = ./x\n",
		"[user]\n\tname = \"a\n[core]\n\tfsmonitor = ./x\n",
		"[core]\n\tsshCommand = ./x\n",
		"[core]\n\tpager = ./x\n\teditor = ./x\n\taskPass = ./x\n",
		"[include]\n\tpath = ../evil\n",
		"[includeIf \"gitdir:**\"]\n\tpath = ../evil\n",
		"[alias]\n\tst = !./x\n",
		"[filter \"a\"]\n\tclean = ./x\n\tsmudge = ./x\n",
		"[diff]\n\texternal = ./x\n",
		"[diff \"a\"]\n\ttextconv = ./x\n\tcommand = ./x\n",
		"[merge \"a\"]\n\tdriver = ./x\n",
		"[gpg]\n\tprogram = ./x\n[gpg \"ssh\"]\n\tprogram = ./x\n",
		"[credential]\n\thelper = !./x\n",
		"[credential \"https://example.org\"]\n\thelper = ./x\n",
		"[sequence]\n\teditor = ./x\n[interactive]\n\tdiffFilter = ./x\n",
		"[submodule \"a\"]\n\tupdate = !./x\n",
		"[remote \"origin\"]\n\turl = ext::sh -c ./x\n",
		"[remote \"origin\"]\n\turl = ssh://-oProxyCommand=./x/y\n",
		"[remote \"origin\"]\n\turl = https://example.org/a\n\tuploadpack = ./x\n\tvcs = x\n",
		"[url \"ext::sh -c ./x \"]\n\tinsteadOf = https://\n",
		"[core]\n\tattributesFile = ../evil\n\tworktree = /\n",
		"[trailer \"a\"]\n\tcommand = ./x\n",
		"[uploadpack]\n\tpackObjectsHook = ./x\n",
		"[core.fsmonitor]\n\tx = y\n[core]\n\talternateRefsCommand = ./x\n",
		"[branch \"main\"]\n\tremote = ext::./x\n",
		"[extensions]\n\tworktreeConfig = true\n",
		"[branch \"a\\\"]\n[core]\n\tfsmonitor = ./x\n",
		"[branch \"]\n[core]\"]\n\tremote = origin\n[core]\n\tfsmonitor = ./x\n",
		strings.Repeat("# nothing to see here\n", 60000) + "[core]\n\tfsmonitor = ./x\n",
		"[user]\n\tname = " + strings.Repeat("a", 1<<20) + "\n[core]\n\tfsmonitor = ./x\n",
		"[core]\n\tfsmonitor = ./x\n\x00[core]\n\tfsmonitor = false\n",
	}
}

// armConfigs makes a repository for each of them.
func armConfigs(p *Probe) {
	for i, config := range configs() {
		dir := p.In("W", "v"+itoa(i), ".git")
		p.Try("configuration "+itoa(i), func() error {
			return errors.Join(
				os.MkdirAll(filepath.Join(dir, "objects"), 0o755), os.MkdirAll(filepath.Join(dir, "refs"), 0o755),
				os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644),
				os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o644),
				os.WriteFile(filepath.Join(dir, "config.worktree"), []byte(armed), 0o644))
		})
	}
}

// unmakeRepo removes what identifies a repository.
func unmakeRepo(p *Probe, dir string) {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		p.Try("remove "+name, func() error { return os.RemoveAll(filepath.Join(dir, name)) })
		_ = unix.Rename(filepath.Join(dir, name), filepath.Join(dir, name+"-away"))
	}
	p.Try("overwrite a hook", func() error { return overwrite(filepath.Join(dir, "hooks", "pre-commit")) })
	p.Try("add a hook", func() error { return create(filepath.Join(dir, "hooks", "post-commit")) })
	p.Try("arm the configuration", func() error { return overwrite(filepath.Join(dir, "config")) })
}

// makeSkeleton makes what identifies a repository, and nothing that runs.
func makeSkeleton(p *Probe, dir string) {
	p.Try("make the skeleton of "+dir, func() error {
		return errors.Join(
			os.MkdirAll(filepath.Join(dir, "objects"), 0o755), os.MkdirAll(filepath.Join(dir, "refs"), 0o755),
			os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644))
	})
}

// renamePairs renames the first path to the second, the third to the fourth and
// so on.
func renamePairs(p *Probe) {
	paths := strings.Split(p.Arg("path"), "\n")
	for i := 0; i+1 < len(paths); i += 2 {
		p.Try("rename "+paths[i]+" to "+paths[i+1], func() error { return os.Rename(paths[i], paths[i+1]) })
	}
}
