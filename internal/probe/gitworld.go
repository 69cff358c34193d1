//go:build linux

package probe

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// git runs a command of git as the user outside does, in dir, with the
// configuration of the home H and none of this machine.
func (w *World) git(dir string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + w.H, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=" + w.H + "/.gitconfig", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_CEILING_DIRECTORIES=" + w.B, "GIT_OPTIONAL_LOCKS=1", "EDITOR=true", "GIT_MERGE_AUTOEDIT=no",
		"GIT_AUTHOR_NAME=human", "GIT_AUTHOR_EMAIL=human@probe.test", "GIT_COMMITTER_NAME=human", "GIT_COMMITTER_EMAIL=human@probe.test",
		// What was written inside may belong to another user; a human who is
		// told so by git adds the exception.
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		"GIT_CONFIG_KEY_1=init.defaultBranch", "GIT_CONFIG_VALUE_1=main"}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, firstLine(out))
	}
	return out, nil
}

// gitInit makes a repository with one commit at a template.
func (w *World) gitInit(template string, config ...string) error {
	dir := w.Path(template)
	if err := w.write(filepath.Join(dir, "tracked"), "a tracked file\n"); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-q", "."}, {"add", "tracked"}, {"commit", "-q", "-m", "first"}} {
		if _, err := w.git(dir, args...); err != nil {
			return err
		}
	}
	for i := 0; i+1 < len(config); i += 2 {
		if _, err := w.git(dir, "config", config[i], w.aimed(config[i+1])); err != nil {
			return err
		}
	}
	return nil
}

// aimed puts the real directories into a command.
func (w *World) aimed(command string) string {
	return strings.NewReplacer("{O}", w.O, "{W}", w.W, "{H}", w.H).Replace(command)
}

// human does what a user does next in every repository that is found in the
// workspace, and reports what was set off by it.
func human(w *World, _ Observation) []string {
	at := ""
	for _, dir := range repositories(w.W) {
		for _, args := range [][]string{{"status"}, {"diff"}, {"log", "-p", "-1"}, {"add", "-A", "."}, {"stash", "list"},
			{"commit", "-q", "--allow-empty", "-m", "next"}, {"checkout", "-q", "-b", "other"}, {"branch"}, {"pack-refs", "--all"}, {"gc", "-q", "--auto"}} {
			// What git says is not the point, and it may well refuse.
			_, _ = w.git(dir, args...)
			if at == "" && fired(w) {
				at = "git " + strings.Join(args, " ") + " in " + w.short(dir)
			}
		}
	}
	if at != "" {
		return []string{"a program of the command's was run on the host by " + at}
	}
	return w.changes()
}

func fired(w *World) bool { return exists(filepath.Join(w.O, "fired")) }

// repositories are the directories in which git would find a repository: the
// workspace itself, those with a .git, and bare ones.
func repositories(root string) []string {
	out := []string{root}
	_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || len(out) > 64 {
			return nil
		}
		base, dir := filepath.Base(p), filepath.Dir(p)
		if strings.EqualFold(base, ".git") && dir != root {
			out = append(out, dir)
		}
		if base == "HEAD" && !strings.HasSuffix(dir, "/.git") && isDir(dir+"/objects") && isDir(dir+"/refs") {
			out = append(out, dir)
		}
		return nil
	})
	return out
}

func isDir(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}
