package policy

import (
	"fmt"
	"slices"
	"strings"
)

// InsideFile is where an agent program finds what holds in its run.
const InsideFile = "/etc/holdfast/policy.txt"

// Told returns what an agent program is told of the boundary that it runs in, as an
// addition to the instructions that it reads. It is the same for every agent.
func (p Plan) Told() string {
	work := "You may write to " + printable(p.Workspace) + ", the workspace."
	if p.Review {
		work += " The user sees and accepts each of your changes before it reaches the real files."
	}
	return fmt.Sprintf(`
# You run inside Holdfast, a boundary that holds for you and all that you start

- %s The home directory is private and dropped at the end, except your history. System directories are read-only.
- Files that programs of the user execute or obey (git's hooks, AGENTS.md, CLAUDE.md, .vscode, workflows of CI, …) cannot be changed where they exist (EROFS, EBUSY, EACCES). New ones may be made, and branches, remotes and submodules set in git's configuration: after the run the user is shown them and asked. Use no other name for them, and no way around it.
- The network reaches only what %s lists. Another host is refused at once: do not try again or look for a mirror, name the host to the user.
- There is no root, sudo, docker, ssh agent or keyring. Keys in variables are placeholders, which work only at their own hosts.
- Make git worktrees in the workspace: elsewhere git cannot make their directory, unless the user begins with: holdfast run --worktrees DIR.
- Where something that you need is refused, stop and say so. The user can look it up with: holdfast policy explain PATH-OR-HOST, and start anew with: holdfast run --allow HOST, --ro PATH or --rw PATH.
`, work, InsideFile)
}

// Inside returns what holds in a run, for what runs inside: nothing that it could not
// find out there by trying. Where an entry comes from, and where a secret is, is not in
// it.
func (p Plan) Inside() string {
	var b strings.Builder
	b.WriteString("# What holds in this run. Written by Holdfast at its start; it is a description.\n")
	section := func(name string, all []string) {
		if len(all) == 0 {
			all = []string{"none"}
		}
		fmt.Fprintf(&b, "%s:\n", name)
		for _, one := range all {
			fmt.Fprintf(&b, "  %s\n", printable(one))
		}
	}
	write, read := []string{p.Workspace}, []string{}
	for _, r := range p.Paths {
		at := r.At
		if at == "" {
			at = r.Path
		}
		if r.Access == Write {
			write = append(write, at)
		} else {
			read = append(read, at)
		}
	}
	section("writable", write)
	section("readable, besides the system", read)
	var hosts, published, local []string
	for _, r := range p.Allow {
		if r.Answered {
			continue
		}
		hosts = append(hosts, r.String())
	}
	for _, one := range p.HostPorts {
		local = append(local, fmt.Sprint(one.Host))
	}
	for _, one := range p.Publish {
		published = append(published, fmt.Sprint(one.Inside))
	}
	section("network", slices.Compact(hosts))
	section("ports of this machine that localhost reaches", local)
	section("ports inside that the user's browser reaches", published)
	section("limits", []string{fmt.Sprintf("memory %d bytes, processes %d, private disk %d bytes, time %v; 0 is none", p.Limits.Memory, p.Limits.Processes, p.Limits.Disk, p.Limits.Time)})
	return b.String()
}
