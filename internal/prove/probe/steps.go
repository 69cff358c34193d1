//go:build linux

package probe

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"holdfast.dev/holdfast/internal/prove/replay"
)

// environment adds NAME=VALUE to the environment of the launcher; see [World.expand].
func environment(variables ...string) func(*World) error {
	return func(w *World) error {
		for _, v := range variables {
			w.Env = append(w.Env, w.expand(v))
		}
		return nil
	}
}

// arguments adds KEY=VALUE to those of every command.
func arguments(pairs ...string) func(*World) error {
	return func(w *World) error {
		for _, p := range pairs {
			w.Arg(w.expand(p))
		}
		return nil
	}
}

// startedBy starts the launcher from another program, which gets it as its last
// arguments.
func startedBy(argv ...string) func(*World) error {
	return func(w *World) error {
		w.Under = argv
		return nil
	}
}

// written makes files whose names and contents contain real paths.
func written(files map[string]string) func(*World) error {
	return func(w *World) error {
		var errs []error
		for path, content := range files {
			errs = append(errs, w.File(w.expand(path), w.expand(content)))
		}
		return errors.Join(errs...)
	}
}

// directories makes each directory and its parents.
func directories(templates ...string) func(*World) error {
	return func(w *World) error {
		var errs []error
		for _, t := range templates {
			errs = append(errs, os.MkdirAll(w.Path(t), 0o755))
		}
		return errors.Join(errs...)
	}
}

// removed removes what an earlier step made.
func removed(templates ...string) func(*World) error {
	return func(w *World) error {
		var errs []error
		for _, t := range templates {
			errs = append(errs, os.RemoveAll(w.Path(t)))
		}
		return errors.Join(errs...)
	}
}

// hardLink gives a file a second name. That name holds a token if the file does.
func hardLink(file, name string) func(*World) error {
	return func(w *World) error {
		if w.homes[filepath.Clean(w.Path(file))] {
			w.Holds(w.Path(name))
		}
		return os.Link(w.Path(file), w.Path(name))
	}
}

// gitRuns runs git on the host, in a directory.
func gitRuns(dir string, args ...string) func(*World) error {
	return func(w *World) error {
		words := make([]string, len(args))
		for i, a := range args {
			words[i] = w.expand(a)
		}
		_, err := w.git(w.Path(dir), words...)
		return err
	}
}

// withPrograms requires programs on the host.
func withPrograms(programs ...string) func(*World) error {
	return func(*World) error {
		for _, p := range programs {
			if !onPath(p) {
				return fmt.Errorf("%s: %w", p, ErrMissing)
			}
		}
		return nil
	}
}

// runs is a drive of several commands, one after the other. A command without an
// action is the row's own; all have the options of the row.
func runs(commands ...Command) func(*Session) {
	return func(s *Session) {
		for _, c := range commands {
			c.Options, c.Dir = s.Row.Options, s.World.Path(c.Dir)
			s.Run(c)
		}
	}
}

// replaying is a drive after which a human starts programs, in a directory; "" for
// the directory that each of them names.
func replaying(dir string, programs ...replay.Program) func(*Session) {
	return func(s *Session) {
		s.Run(Command{})
		var there []replay.Program
		for _, p := range programs {
			if dir != "" {
				p = p.In(s.World.Path(dir))
			}
			there = append(there, p)
		}
		s.Replay(there...)
	}
}

// humanStarts is a drive after which a human starts programs, and files are read
// by the rules of programs that are not started.
func humanStarts(programs []replay.Program, readers []replay.Reader) func(*Session) {
	return func(s *Session) {
		s.Run(Command{})
		if len(programs) > 0 {
			s.Replay(programs...)
		}
		s.Reread(readers...)
	}
}

// printsNone demands that none of the sequences was printed.
func printsNone(sequences ...string) func(*World, Observation) []string {
	return func(_ *World, o Observation) []string {
		for _, s := range sequences {
			if bytes.Contains(o.Stdout, []byte(s)) {
				return []string{fmt.Sprintf("the terminal was given %q", s)}
			}
		}
		return nil
	}
}

// tokenNamed matches the token of a name, in a text of a row.
var tokenNamed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{token:([^}]*)\}`) })

// expand replaces placeholders in a text: directories, tokens, and random values.
func (w *World) expand(text string) string {
	text = strings.NewReplacer("{O}", w.O, "{W}", w.W, "{H}", w.H, "{R}", w.R, "{S}", w.S, "{B}", w.B, "{random}", hexes(8),
		"{trip}", replay.Trip(w.O, w.armed.token, "owner")).Replace(text)
	return tokenNamed().ReplaceAllStringFunc(text, func(m string) string { return w.Token(tokenNamed().FindStringSubmatch(m)[1]) })
}
