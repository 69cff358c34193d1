//go:build linux

package review

import (
	"path/filepath"
	"testing"
)

const repository = ".git/HEAD=ref: refs/heads/main\n"

// What the run itself made lead somewhere is judged as if all were applied.
func TestWhatWouldBeObeyed(t *testing.T) {
	for name, rows := range map[string][]string{
		"a new link":                {".envrc->env/rc", "env/rc=new\n"},
		"a new link to a new link":  {".vscode->a", "a->conf", "conf/rc=new\n"},
		"a new server":              {`.mcp.json={"mcpServers":{"a":{"command":"sh","args":["env/rc"]}}}`, "env/rc=new\n"},
		"an include that is new":    {".git/config=[include]\n\tpath = ../env/rc\n", "env/rc=new\n"},
		"a directory became a link": {"old->env", "env/rc=new\n"},
	} {
		f := newField(t, Overlay).lower(repository, ".git/objects/", ".git/refs/", ".git/config=\n", "old/rc=old\n", "CLAUDE.md->old/rc").upper(rows...)
		for _, c := range f.collect().Changes {
			if filepath.Base(string(c.Path)) == "rc" && !c.Flagged() {
				t.Errorf("%s: %s has no flag", name, c)
			}
		}
	}
}
