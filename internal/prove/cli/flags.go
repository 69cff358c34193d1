//go:build linux

package cli

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
)

// misfit is a set of flags that would be ignored with, or without, another one. A
// silently ignored flag looks as if it had worked.
type misfit struct {
	flags []string
	when  bool
	why   string // continues "--flag "
	hint  string
}

// fits reports a flag of prove that has no meaning with the others.
func (p prover) fits(flags *pflag.FlagSet) error {
	agent, script := p.agent.name != "", p.agent.script != ""
	return checkFlags(flags, []misfit{
		{[]string{"agent-version", "posture", "inside", "script", "agents"}, !agent, "says how an agent is tried, and none is named", "name one: holdfast prove --agent claude"},
		{[]string{"target", "target-cmd", "target-version", "unconfined-root"}, agent, "is about a sandbox; an agent is tried bare, or with --inside holdfast", "leave it out, or leave out --agent"},
		{[]string{"world"}, agent, "is about rows of the escape matrix; an agent has other probes", "leave it out, or leave out --agent"},
		{[]string{"baseline", "against"}, p.world == "all", "is about one run, and --world all makes one for each world", "name one world"},
		{[]string{"quick", "core"}, agent, "chooses rows of the escape matrix; an agent has other probes", "choose with --class and --id; see them with: holdfast prove --agent claude --list"},
		{[]string{"baseline", "against", "id", "class", "strict", "except", "list"}, script, "is for verdicts, and a script has none", "leave it out: what was seen of each step is printed"},
		{[]string{"target"}, p.command != "", "and --target-cmd name two targets", "give one of them; to play several: holdfast prove matrix"},
		{[]string{"target-version"}, p.command == "" && !agent, "belongs to --target-cmd", "known targets report their own version"},
		{[]string{"output", "format", "strict", "except", "baseline", "against", "verbose"}, p.list, "is for a report, and --list plays nothing", "leave out --list, or the other"},
		{[]string{"strict", "except"}, p.against != "", "is for a whole run; --against fails only for what has become weaker", "compare without it, or run without --against"},
		{[]string{"except"}, !p.strict, "excuses rows from --strict, which is not given", "without --strict, a row that proves nothing is not a failure"},
	})
}

// fits reports a flag of prove watch that has no meaning with the others.
func (w watcher) fits(flags *pflag.FlagSet) error {
	return checkFlags(flags, []misfit{
		{[]string{"posture", "inside"}, len(w.agents) == 0, "says how an agent is tried, and none is named", "name one: holdfast prove watch --agent claude"},
		{[]string{"target-version"}, w.command == "", "belongs to --target-cmd", "known targets report their own version"},
	})
}

func checkFlags(flags *pflag.FlagSet, all []misfit) error {
	for _, m := range all {
		for _, name := range m.flags {
			if m.when && flags.Changed(name) {
				return command.Usage(fmt.Errorf("--%s %s", name, m.why), m.hint)
			}
		}
	}
	return nil
}

// rerunCommand returns the command line that plays against the same target in the same
// place; if rows is set, with the chosen rows.
func (p prover) rerunCommand(rows bool) string {
	line := "holdfast prove --target " + p.target
	switch {
	case p.command != "":
		line = "holdfast prove --target-cmd " + text.Word(p.command)
		if p.version != "" {
			line += " --target-version " + text.Word(p.version)
		}
	case p.target == "none" && os.Geteuid() == 0:
		line += " --unconfined-root"
	}
	for _, flag := range []struct{ name, value string }{{"--dir", p.dir}, {"--prober", p.prober}} {
		if flag.value != "" {
			line += " " + flag.name + " " + text.Word(flag.value)
		}
	}
	if !rows {
		return line
	}
	if p.world != "" {
		line += " --world " + text.Word(p.world)
	}
	for _, c := range p.selection.Classes {
		line += " --class " + text.Word(c)
	}
	for _, id := range p.selection.IDs {
		line += " --id " + text.Word(id)
	}
	if p.selection.Core {
		line += " --core"
	}
	if p.selection.Quick {
		line += " --quick"
	}
	return line
}
