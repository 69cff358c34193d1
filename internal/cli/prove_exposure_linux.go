package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/prove/exposure"
)

// exposure takes the inventory: by a child where it is of another account.
func (a *app) exposure(c *cobra.Command, f exposureFlags) (exposure.Report, error) {
	if f.as != "" {
		return a.exposureAs(c, f)
	}
	if f.become != "" {
		if err := become(f.become); err != nil {
			return exposure.Report{}, err
		}
	}
	w := exposure.World{
		UID: os.Geteuid(), GID: os.Getegid(), Env: a.Env, Dir: a.Dir, Effective: true,
		Now: time.Now(), Sudo: exposure.AskSudo, Keys: exposure.AgentKeys,
	}
	o := exposure.Options{Version: buildVersion()}
	host, err := policy.ThisHost(a.Env, a.Dir)
	if err != nil {
		return exposure.Report{}, err
	}
	w.User, w.Home = host.Name, host.Home
	if gids, err := os.Getgroups(); err == nil {
		for _, gid := range append(gids, w.GID) {
			w.Groups = addGroup(w.Groups, gid)
		}
	}
	if f.plan.workspace != "" {
		if w.Dir, err = filepath.Abs(f.plan.workspace); err != nil {
			return exposure.Report{}, fmt.Errorf("finding the workspace: %w", err)
		}
	}
	b, err := a.boundary(c, f)
	if err != nil && f.plan.workspace == "" && paths.Within(w.Dir, w.Home) {
		// No workspace can be here, and the question is a good one all the same.
		o.Notes = append(o.Notes, fmt.Sprintf("%s cannot be a workspace; the column for Holdfast is of an empty one elsewhere", w.Dir))
		b, err = a.elsewhere(c, f)
	}
	if err != nil {
		o.Why = err.Error()
	} else {
		o.Boundary, w.Dir = b, b.Plan.Workspace
		if len(o.Notes) > 0 {
			w.Dir = ""
		}
		for _, p := range b.Plan.Hidden {
			w.Secrets = append(w.Secrets, b.Plan.Within(p))
		}
	}
	o.World = w
	return exposure.Compare(c.Context(), o), nil
}

// elsewhere is the boundary around an empty workspace.
func (a *app) elsewhere(c *cobra.Command, f exposureFlags) (*exposure.Boundary, error) {
	dir, err := os.MkdirTemp("", "holdfast-exposure-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(dir)
	f.plan.workspace = dir
	b, err := a.boundary(c, f)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func addGroup(all []exposure.Group, gid int) []exposure.Group {
	for _, g := range all {
		if g.ID == gid {
			return all
		}
	}
	g := exposure.Group{ID: gid, Name: strconv.Itoa(gid)}
	if known, err := user.LookupGroupId(g.Name); err == nil {
		g.Name = known.Name
	}
	return append(all, g)
}

// boundary is what a run with these flags would have.
func (a *app) boundary(c *cobra.Command, f exposureFlags) (*exposure.Boundary, error) {
	options, err := f.plan.options(a)
	if err != nil {
		return nil, err
	}
	_, plan, err := compile(options)
	if err != nil {
		return nil, err
	}
	names, err := protect(c, &plan)
	if err != nil {
		return nil, err
	}
	return &exposure.Boundary{Plan: plan, Host: options.Host, Names: names}, nil
}

// notRoot says that only root can look as somebody else.
type notRoot struct{ command string }

func (e *notRoot) Error() string { return "--as takes root: only root can become another user" }
func (e *notRoot) Hint() string  { return "sudo " + e.command }

// exposureAs has the inventory taken by a child that becomes the user before it
// looks at anything, so that the kernel answers as it would to that user.
func (a *app) exposureAs(c *cobra.Command, f exposureFlags) (exposure.Report, error) {
	var r exposure.Report
	who, err := lookupUser(f.as)
	if err != nil {
		return r, &usageError{err, "getent passwd lists the users of this machine"}
	}
	if os.Geteuid() != 0 {
		if who.Uid == strconv.Itoa(os.Getuid()) {
			f.as = ""
			return a.exposure(c, f)
		}
		return r, &notRoot{c.CommandPath() + " --as " + f.as}
	}
	groups, err := who.GroupIds()
	if err != nil {
		return r, fmt.Errorf("looking up the groups of %s: %w", f.as, err)
	}
	args := append(strings.Fields(c.CommandPath())[1:], "--format", "json", "--become", who.Uid+":"+who.Gid+":"+strings.Join(groups, ","))
	args = append(args, f.planArguments(a.Dir)...)
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	passwd, _ := os.ReadFile("/etc/passwd")
	cmd.Env = exposure.LoginEnv("", who.Username, who.HomeDir, exposure.ShellOf(string(passwd), who.Username))
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		text, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(errs.String()), "holdfast: error: "), "\n")
		return r, fmt.Errorf("looking as %s: %w: %s", f.as, err, text)
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("reading what was seen as %s: %w", f.as, err)
	}
	r.Checks = exposure.Checks() // with what JSON leaves out
	return r, nil
}

// planArguments are the flags of the policy for the child. It works in / and gets
// the directories in full.
func (f exposureFlags) planArguments(dir string) []string {
	full := func(p string) string {
		if filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(dir, p)
	}
	args := []string{"--workspace", full(f.plan.workspace)}
	if f.plan.profile != "" {
		args = append(args, "--profile", f.plan.profile)
	}
	if f.plan.policy != "" {
		args = append(args, "--policy", full(f.plan.policy))
	}
	for _, s := range f.plan.settings {
		value := s.Value
		if (s.Flag == "--ro" || s.Flag == "--rw") && !strings.HasPrefix(value, "~") {
			value = full(value)
		}
		args = append(args, s.Flag, value)
	}
	return args
}

func lookupUser(name string) (*user.User, error) {
	u, err := user.Lookup(name)
	if err != nil {
		if byID, other := user.LookupId(name); other == nil {
			return byID, nil
		}
		return nil, fmt.Errorf("looking up %q: %w", oneLine(name), err)
	}
	return u, nil
}

// become turns this process into a user for good: groups, then group, then user.
func become(text string) error {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return errors.New("--become takes UID:GID:GROUPS")
	}
	uid, err := strconv.Atoi(parts[0])
	gid, bad := strconv.Atoi(parts[1])
	if err := errors.Join(err, bad); err != nil {
		return fmt.Errorf("reading --become: %w", err)
	}
	var groups []int
	for _, g := range strings.Split(parts[2], ",") {
		n, err := strconv.Atoi(g)
		if err != nil {
			return fmt.Errorf("reading --become: %w", err)
		}
		groups = append(groups, n)
	}
	if err := syscall.Setgroups(groups); err != nil {
		return fmt.Errorf("taking the user's groups: %w", err)
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return fmt.Errorf("taking the user's group: %w", err)
	}
	if err := syscall.Setresuid(uid, uid, uid); err != nil {
		return fmt.Errorf("becoming the user: %w", err)
	}
	return nil
}
