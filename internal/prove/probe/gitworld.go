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
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/prove/replay"
)

// git runs a git command as the user outside does before the run, in dir, with
// the configuration of the home H and none of this machine's.
func (w *World) git(dir string, args ...string) ([]byte, error) { return gitIn(dir, w.H, w.B, args...) }

func gitIn(dir, home, ceiling string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=" + home + "/.gitconfig", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_CEILING_DIRECTORIES=" + ceiling, "GIT_OPTIONAL_LOCKS=1", "EDITOR=true", "GIT_MERGE_AUTOEDIT=no",
		"GIT_AUTHOR_NAME=human", "GIT_AUTHOR_EMAIL=human@probe.test", "GIT_COMMITTER_NAME=human", "GIT_COMMITTER_EMAIL=human@probe.test",
		// Files written inside may belong to another user; when git reports that, a
		// human adds this exception.
		"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		"GIT_CONFIG_KEY_1=init.defaultBranch", "GIT_CONFIG_VALUE_1=main", "GIT_CONFIG_KEY_2=protocol.file.allow", "GIT_CONFIG_VALUE_2=always"}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, firstLine(out))
	}
	return out, nil
}

// blank is a repository with one commit, made once by git itself: path below the
// directory to content. Starting git three times for each repository of each row
// would take most of the rows' time.
var blank = sync.OnceValues(func() (map[string]string, error) {
	dir, err := os.MkdirTemp("", "repository-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "tracked"), []byte("a tracked file\n"), 0o644); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"init", "-q", "."}, {"add", "tracked"}, {"commit", "-q", "-m", "first"}} {
		if _, err := gitIn(dir, dir, dir, args...); err != nil {
			return nil, err
		}
	}
	files := map[string]string{}
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			files[rel+"/"] = ""
			return nil
		}
		b, err := os.ReadFile(p)
		files[rel] = string(b)
		return err
	})
	return files, err
})

// gitInit makes a repository with one commit at a template and adds settings:
// key, value, key, value.
func (w *World) gitInit(template string, config ...string) error {
	files, err := blank()
	if err != nil {
		return err
	}
	dir := w.Path(template)
	for name, content := range files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = w.write(path, content)
		}
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".sample") {
			if err := os.Chmod(path, 0o755); err != nil {
				return err
			}
		}
	}
	var more strings.Builder
	for i := 0; i+1 < len(config); i += 2 {
		more.WriteString(setting(config[i], w.aimed(config[i+1])))
	}
	f, err := os.OpenFile(filepath.Join(dir, ".git", "config"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(more.String())
	return err
}

// setting formats a key with its value as git config does.
func setting(key, value string) string {
	section, rest, _ := strings.Cut(key, ".")
	if i := strings.LastIndex(rest, "."); i >= 0 {
		section, rest = fmt.Sprintf("%s %q", section, rest[:i]), rest[i+1:]
	}
	return fmt.Sprintf("[%s]\n\t%s = \"%s\"\n", section, rest, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value))
}

// aimed replaces the placeholders for directories and the tripwire in a command.
func (w *World) aimed(command string) string {
	return strings.NewReplacer("{O}", w.O, "{W}", w.W, "{H}", w.H, "{trip}", replay.Trip(w.O, w.armed.token, "owner")).Replace(command)
}

// human is a drive: after the command a user does the usual next things in every
// repository found in the workspace, and what else the row asks for.
func human(more ...replay.Program) func(*Session) {
	return func(s *Session) {
		s.Run(Command{Options: s.Row.Options})
		var programs []replay.Program
		for i, dir := range repositories(s.World.W) {
			p := replay.Git.In(dir)
			if i == 0 {
				p.Steps = append(p.Steps, flatten(more)...)
			}
			programs = append(programs, p)
		}
		s.Replay(programs...)
	}
}

func flatten(programs []replay.Program) []replay.Step {
	var out []replay.Step
	for _, p := range programs {
		out = append(out, p.Steps...)
	}
	return out
}

// repositories returns the directories in which git would find a repository: the
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
