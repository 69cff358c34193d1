//go:build linux

package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// lateSecret makes a credential outside while the command is looking for it.
func lateSecret(s *Session) {
	madeLate(s, "H/.config/gh/hosts.yml", "O/late")
}

// madeLate makes secrets when the command reports that it has looked once. A
// command that never does is judged by what it reports, or does not report.
func madeLate(s *Session, secrets ...string) {
	w := s.World
	wait := s.Start(Command{Options: s.Row.Options})
	w.appears("W/looked")
	var errs []error
	for _, path := range secrets {
		errs = append(errs, w.Plant(path))
	}
	errs = append(errs, w.File("W/late", ""))
	wait()
	if err := errors.Join(errs...); err != nil {
		s.Fail(err)
	}
}

func containsAny(b []byte, words ...string) bool {
	for _, w := range words {
		if strings.Contains(string(b), w) {
			return true
		}
	}
	return false
}

// armedConfigs reports configurations that name a program.
func armedConfigs(paths ...string) func(*World, Observation) []string {
	return func(w *World, _ Observation) []string {
		var out []string
		for _, p := range paths {
			if b, err := readSome(w.Path(p)); err == nil && containsAny(b, "fsmonitor", "hooksPath") {
				out = append(out, p+" names a program")
			}
		}
		return out
	}
}

// armedGitFile follows the .git file as git does.
func armedGitFile(w *World, _ Observation) []string {
	b, err := readSome(w.Path("W/tree/.git"))
	if err != nil || !containsAny(b, "gitdir:") {
		return nil
	}
	if _, err := os.Stat(w.Path("W/elsewhere/hooks/pre-commit")); err == nil {
		return []string{"W/tree/.git leads to a hook"}
	}
	return armedConfigs("W/elsewhere/config")(w, Observation{})
}

// lateWorkspaceSecret creates a hidden name while the command is looking for it.
func lateWorkspaceSecret(s *Session) {
	madeLate(s, "W/credentials.json")
}

// overlapped ends one command while another still runs.
func overlapped(short Command) func(*Session) {
	return func(s *Session) {
		long := s.Start(Command{})
		s.World.appears("W/waits")
		s.Run(short)
		if err := s.World.File("W/go", ""); err != nil {
			s.Fail(err)
		}
		long()
	}
}

// closedThenOpened closes W/x before the command and opens it afterwards, so that it can be
// examined.
func closedThenOpened(s *Session) {
	s.Run(Command{Action: "close-directory", Args: []string{"path=W/x"}})
	s.Run(Command{})
	if err := os.Chmod(s.World.Path("W/x"), 0o755); err != nil {
		s.Fail(fmt.Errorf("opening W/x again: %w", err))
	}
}

// harmful matches the keys, as git prints them, that make it run a program or
// read more configuration.
var harmful = pattern(`^(core\.(fsmonitor|hookspath|sshcommand|pager|editor|askpass|gitproxy|attributesfile|worktree|alternaterefscommand)|` +
	`include\.path|includeif\..*|alias\..*|filter\..*|diff\.(.*\.)?(external|command|textconv)|merge\..*\.driver|gpg\.(.*\.)?program|gpg\.ssh\.defaultkeycommand|` +
	`credential\.(.*\.)?helper|pager\..*|sequence\.editor|interactive\.difffilter|trailer\..*\.(command|cmd)|uploadpack\.packobjectshook|` +
	`submodule\..*\.update|remote\..*\.(uploadpack|receivepack|vcs|proxy)|url\..*\.(insteadof|pushinsteadof)|protocol\..*|init\.templatedir|` +
	`(diff|merge)tool\..*|difftool\..*|browser\..*|man\..*|instaweb\..*|web\.browser|sendemail\..*|http\..*proxy|ssh\.variant)$`)

// harmfulValue matches transports that run a program.
var harmfulValue = pattern(`^(ext::|fd::|-|ssh://-)|--upload-pack|!`)

// gitWouldRun asks git itself what it reads in the configurations that are left,
// including those of worktrees.
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

// takesRights looks for setuid and setgid programs and file capabilities.
func takesRights(w *World, _ Observation) []string {
	var out []string
	_ = filepath.WalkDir(w.W, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			out = append(out, w.short(p)+" takes the rights of its owner")
		}
		if containsAny([]byte(xattrs(p)), "security.capability") {
			out = append(out, w.short(p)+" has capabilities")
		}
		return nil
	})
	return out
}

// deepHookLeft looks for the hook that deep-repo makes.
func deepHookLeft(w *World, _ Observation) []string {
	fd, err := descendTo(w.W)
	if err != nil {
		return nil
	}
	d := os.NewFile(uintptr(fd), "deep")
	defer d.Close()
	r, err := os.OpenRoot(procFD(fd))
	if err != nil {
		return nil
	}
	defer r.Close()
	if _, err := r.Lstat(".git/hooks/pre-commit"); err == nil {
		return []string{"a hook stands at the end of the deep path"}
	}
	return nil
}

// swapped ends several commands while another one swaps directories.
func swapped(s *Session) {
	long := s.Start(Command{})
	time.Sleep(200 * time.Millisecond)
	for range 8 {
		s.Run(Command{Action: "nothing-denied"})
	}
	if err := s.World.File("W/go", ""); err != nil {
		s.Fail(err)
	}
	long()
}

// thenOpened opens what the command closed, as a puzzled human does.
func thenOpened(s *Session) {
	s.Run(Command{})
	// The puzzled human opens it.
	_ = filepath.WalkDir(s.World.Path("W/closed"), func(p string, d fs.DirEntry, _ error) error { return os.Chmod(p, 0o755) })
}

// replaceable maps the files to what programs of the host write into them.
var replaceable = map[string]string{"W/ro/f": "of the host\n", "W/rd/f": "of the host\n"}

// replacedMeanwhile has a program of the host replace both while the command runs,
// as editors and package managers do.
func replacedMeanwhile(s *Session) {
	w := s.World
	wait := s.Start(Command{Options: s.Row.Options})
	if !w.appears("W/up") {
		s.Fail(errors.New("nothing ran during which something could be replaced"))
	}
	err := errors.Join(
		w.File("W/ro/new", replaceable["W/ro/f"]), os.Rename(w.Path("W/ro/new"), w.Path("W/ro/f")),
		w.File("W/rd.new/f", replaceable["W/rd/f"]), os.Rename(w.Path("W/rd"), w.Path("W/rd.old")), os.Rename(w.Path("W/rd.new"), w.Path("W/rd")))
	if err = errors.Join(err, w.File("W/over", "")); err != nil {
		s.Fail(err)
	}
	wait()
}

// replacedReadOnly is replacedMeanwhile with a policy that makes the paths read-only, if the
// target takes one.
func replacedReadOnly(s *Session) {
	t, ok := s.Target.(Flagger)
	if ok {
		path := s.World.B + "/readonly.yaml"
		if err := os.WriteFile(path, []byte("version: 1\nextends: local\nworkspace: {readonly: [ro/f, rd]}\n"), 0o600); err != nil {
			s.Fail(err)
			return
		}
		defer func() { s.Target = t.(Target) }()
		s.Target = t.With("--policy", path)
	}
	replacedMeanwhile(s)
}
