//go:build linux

package native

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const seccompIntroduction = `# System calls

Every process inside runs under a filter that looks at each system call before
the kernel carries it out. A call that no row allows gets "function not
implemented", as from an older kernel; programs fall back from that.

How to read the tables:

- The first row of a call whose condition holds gives the answer. If no condition
  of its rows holds, the call is allowed.
- Conditions look at the low 32 bits of an argument, which is what the kernel
  itself uses of it. ` + "`arg1 & X`" + ` holds when any bit of X is set; ` + "`~(X)`" + ` is every bit but X.
- "kill" ends the whole process with SIGSYS. In a recorded run the
  supervisor records the call and ends the process with SIGKILL.
- "record" lets the call go on and writes it into the record of the run,
  "record-full" does with ` + "`--record full`" + ` alone. Where ` + "`/dev/fuse`" + ` cannot be
  opened, these and the calls with "record-lookup" are looked at with both levels,
  and only those that are refused are written down besides. What the filter
  refuses is recorded too, but for the groups opaque, unknown and obsolete.
- ` + "`*foreign`" + ` is a call of another architecture, ` + "`*x32`" + ` one of the x32 variant of
  amd64, ` + "`*unknown`" + ` a number without a row.
- A calling program cannot lift the filter; it can only add a narrower one.

What this costs programs that work outside: a set-user-id or set-group-id bit
cannot be set, on directories either (` + "`git init --shared`, `install -m 4755`" + `);
debuggers and tracers cannot attach; nothing can be mounted and no namespace
made, so container tools do not work inside; ` + "`ping`" + ` has no socket; programs of
another word size (32 bit on a 64 bit system) are killed.
`

// SyscallReference returns the table of system calls as Markdown, for
// `holdfast reference syscalls`.
func SyscallReference() (string, error) {
	rules, err := tableRules()
	if err != nil {
		return "", err
	}
	var groups []string
	for _, r := range rules {
		if !slices.Contains(groups, r.group) {
			groups = append(groups, r.group)
		}
	}
	var b bytes.Buffer
	b.WriteString(seccompIntroduction)
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n| calls | answer | when | why | see |\n|---|---|---|---|---|\n", g)
		for _, r := range rules {
			if r.group != g {
				continue
			}
			when := "always"
			if r.condition != "" {
				when = "`" + strings.ReplaceAll(r.condition, "|", `\|`) + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", strings.Join(r.names, "`, `"), r.verdict, when, r.reason, r.reference)
		}
	}
	return b.String(), nil
}
