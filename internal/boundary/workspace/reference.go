//go:build linux

package workspace

import (
	"fmt"
	"strings"
)

const protectedIntro = `# Protected paths

Names in the workspace that a program of the host would execute or obey. They count at
any depth, without regard to case and in the spellings that git takes for the same name.
A directory covers all below it.

| tier | present at the start | created during the run |
| --- | --- | --- |
| deny | read-only; neither it nor a directory above it can be renamed or removed | moved to the quarantine at the end |
| flag | writable; listed at the end if it was changed or removed | listed at the end |
| hide | a secret: unreadable, unless the repository tracks it | - |
| show | an exception from hide | - |

| where | |
| --- | --- |
| project | anywhere but in git directories and trees of installed dependencies |
| anywhere | there too |
| root | at the top of the workspace |
| gitdir | in directories that git takes for a repository |

"tried with" names the program and version that executed or obeyed such a file.
"documented in" names a manual page, a file of a public repository or a page of the maker;
that entry was not tried.

## The names

| name | where | tier | what the host does | known from |
| --- | --- | --- | --- | --- |
`

// Reference returns the built-in list of names as Markdown, for
// `holdfast reference protected`.
func Reference() string {
	var b strings.Builder
	b.WriteString(protectedIntro)
	for _, r := range builtIn() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.Pattern, r.Where, r.Tier, r.Reason, r.Checked)
	}
	return b.String()
}
