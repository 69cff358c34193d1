// Package hooks is holdfast hooks, which puts hooks into the settings of agents
// ([Command]), and the hook program that an agent executes for each of its tool calls
// ([Act]). [Report] makes a known agent inside report its calls. What a hook says is
// agents/hooks'; what the policy answers is policy's.
package hooks

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/agents/hooks"
	"holdfast.dev/holdfast/internal/cli/plans"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// app is the world of these verbs.
type app struct{ *command.App }

// Command makes the verb holdfast hooks.
func Command(world *command.App) *cobra.Command {
	a := &app{world}
	c := &cobra.Command{
		Use:   "hooks",
		Short: "Make agent programs report their tool calls, and ask the policy about them",
		Long: `Put hooks into the settings of an agent program: before and after each tool call it
executes Holdfast, which records the tool and its arguments, and tells the agent when
the policy denies the call.

Hooks inform. An agent goes on when its hook crashes, hangs or is removed: what
must not happen is prevented by the boundary of holdfast run, which needs no hook.
Agents that run inside get these hooks automatically.`,
		Example: `  holdfast hooks install claude
  holdfast hooks status
  holdfast hooks remove claude`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		newHooksChange(a, "install", "Put hooks into the settings of an agent", hooks.Place.Install),
		newHooksStatus(a),
		newHooksChange(a, "remove", "Take the hooks out of the settings of an agent", hooks.Place.Remove),
	)
	return c
}

// placeFlags are the flags that select the settings of an agent.
type placeFlags struct {
	project bool
	dir     string
}

func (f *placeFlags) bind(c *cobra.Command) {
	c.Flags().BoolVar(&f.project, "project", false, "the settings of the project in the current directory, instead of your own")
	c.Flags().Var((*command.TextFlag)(&f.dir), "dir", "DIR of the agent's settings, instead of the usual one")
	c.MarkFlagsMutuallyExclusive("project", "dir")
}

func (f *placeFlags) findPlace(a *app, agent string) (hooks.Place, error) {
	host, err := policy.ThisHost(a.Env, a.Dir)
	if err != nil {
		return hooks.Place{}, err
	}
	program, err := hookProgram()
	if err != nil {
		return hooks.Place{}, err
	}
	p := hooks.Place{Agent: agent, Home: host.Home, Hook: program, State: host.State, Getenv: a.Lookup}
	if f.project {
		p.Project = a.Dir
	}
	if f.dir != "" {
		p.Dir = f.dir
		if !filepath.IsAbs(f.dir) {
			p.Dir = filepath.Join(a.Dir, f.dir)
		}
	}
	return p, nil
}

// hookProgram returns the most stable path of this executable.
func hookProgram() (string, error) {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	return program, nil
}

func newHooksChange(a *app, verb, short string, change func(hooks.Place) (bool, hooks.Status, error)) *cobra.Command {
	var where placeFlags
	c := &cobra.Command{
		Use:     verb + " AGENT",
		Short:   short,
		Example: "  holdfast hooks " + verb + " claude\n  holdfast hooks " + verb + " codex --project",
		Args:    cobra.ExactArgs(1), ValidArgs: hooks.Agents(),
		RunE: func(_ *cobra.Command, args []string) error {
			place, err := where.findPlace(a, args[0])
			if err != nil {
				return err
			}
			changed, st, err := change(place)
			if err != nil {
				return err
			}
			word := "nothing to change"
			if changed {
				word = "changed"
			}
			fmt.Fprintf(a.Stdout, "%s: %s, %s\n", text.Line(st.File), word, st.State)
			if st.Note != "" {
				a.Note(command.Yellow, "note", "%s", st.Note)
			}
			return nil
		},
	}
	where.bind(c)
	return c
}

func newHooksStatus(a *app) *cobra.Command {
	var where placeFlags
	var asJSON bool
	c := &cobra.Command{
		Use:     "status [AGENT]",
		Short:   "Show whether the hooks of agents are installed, changed, outdated or not trusted",
		Example: "  holdfast hooks status\n  holdfast hooks status codex --json",
		Args:    cobra.MaximumNArgs(1), ValidArgs: hooks.Agents(),
		RunE: func(_ *cobra.Command, args []string) error {
			names := args
			if len(names) == 0 {
				names = hooks.Agents()
			}
			list := []hooks.Status{}
			for _, name := range names {
				place, err := where.findPlace(a, name)
				if err != nil {
					return err
				}
				st, err := place.Inspect()
				if err != nil && len(args) > 0 {
					return err
				}
				if err != nil {
					st.State, st.Note = "unreadable", err.Error()
				}
				list = append(list, st)
			}
			if asJSON {
				return command.WriteJSON(a.Stdout, list)
			}
			for _, st := range list {
				fmt.Fprintf(a.Stdout, "%-9s %-13s %s\n", st.Agent, st.State, text.Line(st.File))
				if st.Note != "" {
					fmt.Fprintf(a.Stdout, "%-9s %s\n", "", text.Safe(st.Note))
				}
			}
			return nil
		},
	}
	where.bind(c)
	c.Flags().BoolVar(&asJSON, "json", false, "answer as JSON")
	return c
}

// hookTime is the longest that the hook program takes, whatever it waits for, except
// for a human who is asked: an agent never waits longer.
const hookTime = 8 * time.Second

// Act is the hook program, which an agent executes for each tool call. It
// is not a command of the tree of commands: to make that takes longer than what
// is done here. It never fails in the eyes of the agent.
func Act(args []string) (handled bool) {
	if len(args) != 3 && len(args) != 4 || args[0] != hooks.Verb {
		return false
	}
	agent, kind := args[1], hooks.Kind(args[2])
	end := time.AfterFunc(hookTime, func() {
		if kind == hooks.Call {
			os.Stdout.Write(hooks.Unanswered().Output(agent))
		}
		os.Exit(command.ExitOK)
	})
	r := hooks.Read(agent, kind, os.Stdin)
	if len(args) == 4 {
		r.Waits, _ = strconv.Atoi(args[3]) // what is no number is not known
	}
	var answer hooks.Answer
	if hooks.InsideRun() {
		// An error needs no words: that nothing was reported is seen from outside.
		answer, _ = hooks.Send(hooks.Socket, r, func(d time.Duration) { end.Reset(d + hookTime) })
	} else {
		answer = actOutside(r)
	}
	os.Stdout.Write(answer.Output(agent))
	return true
}

// actOutside is what the hook does for an agent without a boundary.
func actOutside(r hooks.Report) hooks.Answer {
	dir := r.Cwd
	if !filepath.IsAbs(dir) {
		dir, _ = os.Getwd() // by default the agent's is ours; else the policy is not asked
	}
	host, err := policy.ThisHost(os.Environ(), dir)
	if err != nil {
		return policyErrorAnswer(r, err)
	}
	answer := judgeOutside(host, r)
	err = hooks.Outside{Log: filepath.Join(host.State, "log"), Keys: filepath.Join(host.State, "keys")}.Record(r, answer)
	if err != nil {
		fmt.Fprintln(os.Stderr, "holdfast:", text.Line(err.Error()))
	}
	return answer
}

// policyErrorAnswer denies a call for which the policy cannot be evaluated: its rules may
// apply to the call, and an unreadable project file must not remove those of the user.
func policyErrorAnswer(r hooks.Report, err error) hooks.Answer {
	if r.Kind != hooks.Call {
		return hooks.Answer{}
	}
	return hooks.Answer{Deny: "the policy cannot be evaluated for this call: " + err.Error()}
}

// judgeOutside asks the user's policy about a call.
func judgeOutside(host policy.Host, r hooks.Report) hooks.Answer {
	if r.Kind != hooks.Call {
		return hooks.Answer{}
	}
	_, plan, err := plans.Compile(policy.Options{Host: host})
	if err != nil {
		return policyErrorAnswer(r, err)
	}
	if r.Bad != "" {
		return r.Unreadable(len(plan.Tools)+len(plan.Deny) > 0)
	}
	call := policy.ToolCall{Agent: r.Agent, Tool: r.Tool, Server: r.Server, Arguments: string(r.Arguments), Cwd: r.Cwd, Subagent: r.Subagent, Cut: r.Cut}
	reason, rule := plan.DenyTool(call)
	if reason == "" {
		own := append([]string{"/tmp", "/var/tmp", "/dev", "/proc"}, hooks.Owned(r.Agent, host.Home)...)
		reason, rule = plan.AskTool(call, own, resolvePath)
	}
	if reason == "" {
		return deniedOutside(plan, r)
	}
	return hooks.Answer{Deny: reason, Rule: rule}
}

// deniedOutside applies the rules under deny to a call. Those under ask do not apply:
// without a run there is no human to ask.
func deniedOutside(plan policy.Plan, r hooks.Report) hooks.Answer {
	if len(plan.Deny) == 0 {
		return hooks.Answer{}
	}
	rules, err := plan.Consent()
	if err != nil {
		return policyErrorAnswer(r, err)
	}
	j := rules.Judge(event.Attempt{Kind: event.KindTool, Agent: r.Agent, Tool: r.Tool, Server: r.Server, Arguments: string(r.Arguments), Cut: r.Cut})
	if j.Verdict != event.Denied {
		return hooks.Answer{}
	}
	return hooks.Answer{Deny: cmp.Or(j.Reason, "a rule of consent denies it"), Rule: j.Rule.Origin, Consent: true}
}

// resolvePath resolves the links of a path, as far as it exists.
func resolvePath(path string) string {
	for rest := ""; ; {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(path)
		if up == path {
			return filepath.Join(path, rest)
		}
		rest, path = filepath.Join(filepath.Base(path), rest), up
	}
}
