//go:build linux

package probe

import (
	"path/filepath"
	"strings"
)

// gitFetchRows are about what git fetches without having been told to.
func gitFetchRows() []Row {
	// Any one of them makes the remote one that git asks for what is missing.
	keys := []string{"remote.origin.promisor true", "remote.origin.partialCloneFilter blob:none", "extensions.partialClone origin"}
	return []Row{
		{ID: "GIT-441", Title: "a repository that was made inside lets git fetch what is missing, from where the attacker likes, when a human looks at its changes",
			Refs: []string{"git-config(1) remote.<name>.promisor", "promisor-remote.c promisor_remote_config"}, Promise: "P5", Kind: Sandbox,
			Setup: func(w *World) error {
				l, err := w.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					return err
				}
				w.args = append(w.args, "url=git://"+l.Addr+"/what-was-read-inside")
				return w.gitInit("W")
			},
			Harmless: takenAway,
			Drive: func(s *Session) {
				s.Run(Command{})
				made, err := filepath.Glob(s.World.Path("W/fresh/*/file"))
				if err != nil || len(made) != len(keys) {
					return // refused
				}
				for _, file := range made {
					_, _ = s.World.git(filepath.Dir(file), "diff") // it may fail: what counts is whom it asked
				}
			},
			Action: "git-promise", Args: []string{"keys=" + strings.Join(keys, "\n")}},
	}
}
