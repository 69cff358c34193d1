//go:build linux

package supervise

import (
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// volatileVars are the variables that shells and terminals change with each command, and
// that programs take as a hint at most: a program believes PWD only where it names its
// working directory.
var volatileVars = map[string]bool{"PWD": true, "OLDPWD": true, "SHLVL": true, "_": true, "COLUMNS": true, "LINES": true}

// baseEnv is the environment of the command of a run, which no process inside made.
type baseEnv struct {
	has   map[string]bool // NAME=VALUE; nil until it was read
	names []string
}

// begin keeps the environment of the first execution, if l is that.
func (s *Supervisor) begin(l *execCall) {
	if s.baseEnv.has != nil || s.execs > 0 {
		return
	}
	s.baseEnv.has = map[string]bool{}
	for _, v := range s.texts(l.call.tid, l.call.environ()).list {
		name, _, _ := strings.Cut(v, "=")
		s.baseEnv.has[v], s.baseEnv.names = true, append(s.baseEnv.names, name)
	}
}

// environ is where the variables are: execve(2) and execveat(2) take them after
// the arguments.
func (c *call) environ() uint64 { return c.arg(c.info.arg + 1) }

// environment reads the variables that the program of l will get. It is called if a
// rule of consent could be about them: most executions need none.
func (s *Supervisor) environment(l *execCall) {
	t := s.texts(l.call.tid, l.call.environ())
	l.env = &t
}

// isComplete reports whether all of it was read.
func (t *texts) isComplete() bool { return !t.cut && t.errno == 0 }

// same reports whether both are the same variables in the same order.
func (t *texts) same(o *texts) bool {
	return slices.Equal(t.list, o.list) && t.cut == o.cut && t.errno == o.errno
}

// difference is the difference of an environment from that of the command of the run,
// sorted. If the environment is cut, it is not known which variables are unset.
func (g *baseEnv) difference(env []string, cut bool) []string {
	names := make(map[string]bool, len(env))
	var out []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		names[name] = true
		if !volatileVars[name] && !g.has[v] {
			out = append(out, v)
		}
	}
	for _, name := range g.names {
		if !names[name] && !volatileVars[name] && !cut {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// writeTo writes an environment into an attempt.
func (g *baseEnv) writeTo(a *event.Attempt, env []string, whole bool) {
	a.Environment, a.EnvironmentUnknown = g.difference(env, !whole), !whole
}
