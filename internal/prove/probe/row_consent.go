//go:build linux

package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Consenting is a target that asks a human before something is done. Granting
// answers for w until ctx ends: the first request with that word as its last
// argument is allowed for the session, everything else is denied.
type Consenting interface {
	Granting(ctx context.Context, w *World, word string)
	// Answering answers for w until ctx ends: a request with one of the words in its
	// summary is allowed once if the word maps to true, else denied. A request with
	// none waits.
	Answering(ctx context.Context, w *World, words map[string]bool)
	// AllowingUntil allows every request for the session until enough returns true, and
	// then revokes everything.
	AllowingUntil(ctx context.Context, w *World, enough func() bool) error
}

// bareInside are repositories that may be written, but not pushed to.
func bareInside(w *World) error {
	for _, name := range []string{"r", "q"} {
		dir := w.Path("W/pushed/" + name + ".git")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if _, err := w.git(dir, "init", "-q", "--bare", "."); err != nil {
			return err
		}
	}
	return nil
}

// branches returns those that were pushed without a grant.
func branches(w *World, _ Observation) []string {
	var out []string
	for _, pattern := range []string{"W/pushed/r.git/refs/heads/*", "W/pushed/q.git/refs/heads/*"} {
		found, _ := filepath.Glob(w.Path(pattern))
		for _, path := range found {
			if w.remembered != "" && path == w.Path(w.remembered) {
				continue
			}
			out = append(out, "pushed: "+filepath.Base(path))
		}
	}
	return out
}

// consentPolicy writes a policy that asks about pushing, or denies it.
func consentPolicy(s *Session, word, more string) (string, error) {
	path := s.World.B + "/consent-" + word + ".yaml"
	return path, os.WriteFile(path, []byte("version: 1\nextends: local\n"+word+": [git-push]\n"+more), 0o600)
}

// underRule plays the row once, with a policy with that rule if the target takes
// one.
func underRule(word string) func(*Session) {
	return func(s *Session) {
		t, ok := s.Target.(Flagger)
		if !ok {
			s.Run(Command{Options: s.Row.Options})
			return
		}
		path, err := consentPolicy(s, word, "approvals: {timeout: 4s}\n")
		if err != nil {
			s.Fail(err)
			return
		}
		defer func() { s.Target = t.(Target) }()
		s.Target = t.With("--policy", path)
		s.Run(Command{Options: s.Row.Options})
	}
}

// grantedOnce has a human grant one push for the session, and nothing else.
func grantedOnce(s *Session) {
	t, ok := s.Target.(Flagger)
	human, grants := s.Target.(Consenting)
	s.World.remembered = "W/pushed/r.git/refs/heads/granted"
	if !ok || !grants {
		s.Run(Command{})
		return
	}
	path, err := consentPolicy(s, "ask", "approvals: {timeout: 20s}\n")
	if err != nil {
		s.Fail(err)
		return
	}
	defer func() { s.Target = t.(Target) }()
	s.Target = t.With("--policy", path)
	ctx, cancel := context.WithCancel(s.ctx)
	wait := s.Start(Command{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		human.Granting(ctx, s.World, "HEAD:refs/heads/granted")
	}()
	wait()
	cancel()
	<-ended
}

// Lending is a target that gets secrets from programs of the host.
type Lending interface {
	// Lends makes the text the user's own policy.
	Lends(w *World, policy string) error
	// Fetch fetches a secret of that policy once, or refuses to.
	Fetch(w *World, name string)
}

// exchangedSource makes two links in the workspace: to a directory outside with the
// user's program, and to one of the workspace, whose program leaves a mark outside.
func exchangedSource(w *World) error {
	secret := "echo " + w.Token(lentName) + "\n"
	return errors.Join(w.program("O/bin/helper", "#!/bin/sh\n"+secret), w.program("W/own/helper", fmt.Sprintf("#!/bin/sh\n: >%q\necho own\n", w.Path("O/mark"))),
		os.MkdirAll(w.Path("W/pair/0"), 0o755), os.Symlink(w.Path("O/bin"), w.Path("W/pair/0/a")), os.Symlink(w.Path("W/own"), w.Path("W/pair/0/b")))
}

// sourceOften fetches the secret until the other program has run.
func sourceOften(s *Session) {
	w := s.World
	if t, ok := s.Target.(Lending); ok {
		err := t.Lends(w, "version: 1\nextends: local\nnetwork:\n  allow: [allowed.test]\ncredentials:\n  - {name: probe, source: {command: ["+w.Path("O/tools/helper")+
			"]}, hosts: [allowed.test], header: \"Authorization: {}\", env: A_TOKEN, always: true}\n")
		if err != nil {
			s.Fail(err)
			return
		}
		for tries := 0; tries < 400 && !exists(w.Path("O/mark")); tries++ {
			t.Fetch(w, "probe")
		}
	}
	s.Run(Command{})
}

// oneMayConnect plays the row under a policy that lets only one other program
// connect to a service of the host.
func oneMayConnect(s *Session) {
	port, heard, stop, err := hearing()
	if err != nil {
		s.Fail(err)
		return
	}
	defer stop()
	if t, ok := s.Target.(Flagger); ok {
		path := s.World.B + "/lent.yaml"
		rule := "deny: [{when: 'action == \"connect\" && program != \"sleep\"'}]\n"
		if err := os.WriteFile(path, []byte("version: 1\nextends: local\n"+rule+"network: {host-ports: ["+port+"]}\n"), 0o600); err != nil {
			s.Fail(err)
			return
		}
		defer func() { s.Target = t.(Target) }()
		s.Target = t.With("--policy", path)
	}
	s.Run(Command{Args: []string{"port=" + port}, Action: s.Row.Action})
	select {
	case said := <-heard:
		if strings.Contains(said, "lent") {
			s.World.remembered = "the service heard a program that may not connect"
		}
	case <-time.After(200 * time.Millisecond):
	}
}
