package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/prove/exposure"
)

// exposure takes the inventory, in a child process if it is for another account.
func (a *app) exposure(c *cobra.Command, f exposureFlags) (exposure.Report, error) {
	if f.as != "" {
		return a.exposureAs(c, f)
	}
	if f.become != "" {
		if err := becomeUser(f.become); err != nil {
			return exposure.Report{}, err
		}
	}
	o := exposure.Options{Version: command.Version()}
	w, err := a.account(f)
	if err != nil {
		return exposure.Report{}, err
	}
	b, err := a.boundary(c.Context(), f)
	if err != nil && f.plan.workspace == "" && paths.Within(w.Dir, w.Home) {
		// This cannot be a workspace, but the question still makes sense.
		o.Notes = append(o.Notes, fmt.Sprintf("%s cannot be a workspace; the column for Holdfast is for an empty one elsewhere", w.Dir))
		var empty string
		if empty, err = os.MkdirTemp("", "holdfast-exposure-"); err != nil {
			return exposure.Report{}, err
		}
		defer os.Remove(empty)
		f.plan.workspace = empty
		b, err = a.boundary(c.Context(), f)
	}
	if err != nil {
		o.Why = err.Error()
	} else {
		o.Boundary, w.Dir, w.Hidden = b, b.Workspace, b.Values("workspace.hide")
		if len(o.Notes) > 0 {
			w.Dir = ""
		}
	}
	o.World = w
	return exposure.Compare(c.Context(), o), nil
}

// account returns this account and its machine.
func (a *app) account(f exposureFlags) (w exposure.World, err error) {
	w = exposure.World{
		UID: os.Geteuid(), GID: os.Getegid(), Env: a.Env, Dir: a.Dir, Effective: true,
		Now: time.Now(), Sudo: exposure.AskSudo, Keys: exposure.AgentKeys,
	}
	if w.Home, err = a.home(); err != nil {
		return w, err
	}
	w.User = strconv.Itoa(w.UID)
	if u, err := user.LookupId(w.User); err == nil {
		w.User = u.Username
	}
	if gids, err := os.Getgroups(); err == nil {
		for _, gid := range append(gids, w.GID) {
			w.Groups = addGroup(w.Groups, gid)
		}
	}
	if f.plan.workspace != "" {
		if w.Dir, err = filepath.Abs(f.plan.workspace); err != nil {
			return w, fmt.Errorf("finding the workspace: %w", err)
		}
	}
	return w, nil
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

// boundary returns the boundary of a run with these flags, as holdfast explains
// it.
func (a *app) boundary(ctx context.Context, f exposureFlags) (*exposure.Boundary, error) {
	program, err := a.holdfast()
	if err != nil {
		return nil, err
	}
	flags := f.plan.arguments(a.Dir)
	var b exposure.Boundary
	if err := a.askHoldfast(ctx, &b, program, slices.Concat([]string{"policy", "show", "--json"}, flags)); err != nil {
		return nil, err
	}
	b.Explain = func(queries []string) (all []exposure.Answer, err error) {
		return all, a.askHoldfast(ctx, &all, program, slices.Concat([]string{"policy", "explain", "--json"}, flags, []string{"--"}, queries))
	}
	return &b, nil
}

// askHoldfast runs holdfast and reads the JSON that it prints. Its error is that of
// holdfast.
func (a *app) askHoldfast(ctx context.Context, into any, program string, args []string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = a.Env, a.Dir, time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return errors.New(cmp.Or(errorIn(errs.String()), err.Error()))
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		return fmt.Errorf("reading what holdfast %s printed: %w", args[0], err)
	}
	return nil
}

// errorIn extracts the error that a program of ours printed.
func errorIn(printed string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(printed), "\n")
	if _, text, found := strings.Cut(line, ": error: "); found {
		return text
	}
	return line
}

// notRoot reports that only root can take the inventory of another user.
type notRoot struct{ command string }

func (e *notRoot) Error() string { return "--as needs root: only root can become another user" }
func (e *notRoot) Hint() string  { return "sudo " + e.command }

// exposureAs has a child take the inventory. The child becomes the user before it
// looks at anything, so that the kernel answers as it would to that user.
func (a *app) exposureAs(c *cobra.Command, f exposureFlags) (exposure.Report, error) {
	var r exposure.Report
	who, err := lookupUser(f.as)
	if err != nil {
		return r, command.Usage(err, "getent passwd lists the users of this machine")
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
	args := append([]string{c.Name()}, "--format", "json", "--become", who.Uid+":"+who.Gid+":"+strings.Join(groups, ","))
	if f.plan.workspace == "" {
		f.plan.workspace = a.Dir
	}
	args = append(args, f.plan.arguments(a.Dir)...)
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
		text := errorIn(errs.String())
		return r, fmt.Errorf("inspecting as %s: %w: %s", f.as, err, text)
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("reading what was seen as %s: %w", f.as, err)
	}
	r.Checks = exposure.Checks() // with what JSON leaves out
	return r, nil
}

func lookupUser(name string) (*user.User, error) {
	u, err := user.Lookup(name)
	if err != nil {
		if byID, other := user.LookupId(name); other == nil {
			return byID, nil
		}
		return nil, fmt.Errorf("looking up %q: %w", text.Line(name), err)
	}
	return u, nil
}

// becomeUser changes this process to a user for good: groups, then group, then user.
func becomeUser(text string) error {
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
		return fmt.Errorf("setting the user's groups: %w", err)
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return fmt.Errorf("setting the user's group: %w", err)
	}
	if err := syscall.Setresuid(uid, uid, uid); err != nil {
		return fmt.Errorf("becoming the user: %w", err)
	}
	return nil
}
