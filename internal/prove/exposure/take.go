//go:build linux

package exposure

import (
	"context"
	"path"
	"slices"
	"strings"
)

// Options are the input of a report.
type Options struct {
	World    World
	Boundary *Boundary // nil if no plan could be made
	Why      string    // why there is no plan
	Version  string    // of Holdfast
	Notes    []string  // for the reader of the report
}

// Compare makes the inventory of the account, computes that of a freshly created
// account, and adds the tables of hosted runners.
func Compare(ctx context.Context, o Options) Report {
	w := o.World
	r := Report{
		Schema: Schema, Kind: "exposure", Version: o.Version, Time: w.Now.UTC(), Checks: Checks(),
		Notes:   o.Notes,
		Account: Account{User: w.User, UID: w.UID, GID: w.GID, Home: w.Home, Workspace: w.Dir, CI: Service(w.Env)},
	}
	for _, g := range w.Groups {
		r.Account.Groups = append(r.Account.Groups, g.Name)
	}
	found, notes := Take(ctx, w, Here)
	r.Notes = append(r.Notes, notes...)
	if o.Boundary != nil {
		if err := o.Boundary.queryAll(found, func(f Finding) (Check, bool) { return r.check(f.Check) }); err != nil {
			o.Boundary, o.Why = nil, err.Error()
		}
	}
	for i := range found {
		if c, ok := r.check(found[i].Check); ok && o.Boundary != nil {
			fate := o.Boundary.Fate(found[i], c)
			found[i].Inside = &fate
		}
	}
	r.Findings = found
	clean, _ := Take(ctx, newAccount(w), Clean)
	r.Findings = append(r.Findings, clean...)
	r.Columns = columns(r.Account, o)
	for _, runner := range []string{GitHub, GitLab} {
		if r.has(runner) {
			r.Findings = append(r.Findings, Models(runner)...)
		}
	}
	if o.Boundary == nil {
		r.Notes = append(r.Notes, "there is no column for Holdfast: "+o.Why)
	}
	return r
}

// columns are those of the report. A runner that was measured needs no model.
func columns(a Account, o Options) []Column {
	here := Column{Here, a.User, "measured", "what the account hands over on this machine, as the kernel answers to it"}
	if a.CI != "" {
		here.Title, here.Basis = a.CI, "what this job of "+a.CI+" hands over, as the kernel answers to it"
	}
	out := []Column{here, {Clean, "clean user", "computed", "a new account on this machine: the files of /etc/skel, the environment of a login shell, no groups; modes decide, access lists are ignored"}}
	if a.CI != "GitHub Actions" {
		out = append(out, Column{GitHub, "GitHub", "model", "what GitHub documents of its hosted Linux runners; nothing was measured"})
	}
	if a.CI != "GitLab CI" {
		out = append(out, Column{GitLab, "GitLab", "model", "what gitlab.com documents of its hosted Linux runners; nothing was measured"})
	}
	if o.Boundary != nil {
		out = append(out, Column{Holdfast, "holdfast", "computed", "the account inside Holdfast: what profile " + o.Boundary.Profile + " and the policy of the user and the project say, explained as holdfast why does"})
	}
	return out
}

// newAccount is the model of a clean user on the machine of w.
func newAccount(w World) World {
	const noUser = -1 // owns nothing
	out := World{
		Root: w.Root, User: "new", Home: "/etc/skel", UID: noUser, GID: noUser, Owned: true, Now: w.Now, Limit: w.Limit,
	}
	out.Env = LoginEnv(w.Root, "new", "/home/new", "/bin/sh")
	return out
}

// LoginEnv is the initial environment of a user's login shell: what login(1)
// sets, and what pam_env(8) reads from /etc/environment. root is as in
// World.Root.
func LoginEnv(root, user, home, shell string) []string {
	t := &taker{World: World{Root: root}}
	search := "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
	for line := range strings.Lines(t.text("/etc/login.defs")) {
		f := strings.Fields(line)
		if len(f) == 2 && f[0] == "ENV_PATH" {
			search = strings.TrimPrefix(f[1], "PATH=")
		}
	}
	out := []string{"HOME=" + home, "USER=" + user, "LOGNAME=" + user, "SHELL=" + shell, "PATH=" + search}
	for line := range strings.Lines(t.text("/etc/environment")) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if !ok || name == "" || strings.ContainsAny(name, "# \t\x00") || strings.Contains(value, "\x00") {
			continue
		}
		value = strings.Trim(value, `"'`)
		out = slices.DeleteFunc(out, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		out = append(out, name+"="+value)
	}
	return out
}

// ShellOf reads the login shell of a user from a table such as /etc/passwd.
func ShellOf(table, user string) string {
	for line := range strings.Lines(table) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 7 && f[0] == user && path.IsAbs(f[6]) {
			return f[6]
		}
	}
	return "/bin/sh"
}
