//go:build linux

package supervise

import (
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// passing are the variables that shells and terminals change with each command,
// and that no program takes for more than a hint: PWD counts for a program only
// where it is the directory in which it stands.
var passing = map[string]bool{"PWD": true, "OLDPWD": true, "SHLVL": true, "_": true, "COLUMNS": true, "LINES": true}

// given is the environment of the command of a run, which nobody inside made.
type given struct {
	has   map[string]bool // NAME=VALUE; nil until it was read
	names []string
}

// begin keeps the environment of the first execution, if l is that.
func (s *Supervisor) begin(l *launch) {
	if s.given.has != nil || s.execs > 0 {
		return
	}
	s.given.has = map[string]bool{}
	for _, v := range s.texts(l.call.tid, l.call.environ()).list {
		name, _, _ := strings.Cut(v, "=")
		s.given.has[v], s.given.names = true, append(s.given.names, name)
	}
}

// environ is where the variables are: execve(2) and execveat(2) take them after
// the arguments.
func (c *call) environ() uint64 { return c.arg(c.info.arg + 1) }

// environment reads the variables that are to be given to the program of l. It is
// called where a rule of consent could be about it: most executions need none.
func (s *Supervisor) environment(l *launch) {
	t := s.texts(l.call.tid, l.call.environ())
	l.env = &t
}

// known says whether all of it was read.
func (t *texts) known() bool { return !t.cut && t.errno == 0 }

// same says whether both are the same variables in the same order.
func (t *texts) same(o *texts) bool {
	return slices.Equal(t.list, o.list) && t.cut == o.cut && t.errno == o.errno
}

// changed is what of an environment is not as the command of the run was given
// it, sorted. Of one that is cut it is not known what is not set any more.
func (g *given) changed(env []string, cut bool) []string {
	names := make(map[string]bool, len(env))
	var out []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		names[name] = true
		if !passing[name] && !g.has[v] {
			out = append(out, v)
		}
	}
	for _, name := range g.names {
		if !names[name] && !passing[name] && !cut {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// put writes an environment into an attempt.
func (g *given) put(a *event.Attempt, env []string, whole bool) {
	a.Environment, a.EnvironmentUnknown = g.changed(env, !whole), !whole
}
