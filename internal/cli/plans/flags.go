package plans

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/backend"
	"holdfast.dev/holdfast/internal/credentials"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/policy"
)

// Flags are the flags that say which policy applies. Every command that
// makes a plan takes all of them, so that what is asked with why is what run
// does.
type Flags struct {
	Profile   string
	Policy    string
	Workspace string
	Preset    string           // of an agent program; "" for what the command says, "none" for none
	settings  []policy.Setting // in the order in which they were given
}

// Bind gives a command the flags.
func (f *Flags) Bind(c *cobra.Command) {
	set := c.Flags()
	set.Var((*command.TextFlag)(&f.Profile), "profile", "NAME of the profile: local, ci or production (default local)")
	set.Var((*command.TextFlag)(&f.Policy), "policy", "policy FILE to use instead of your own")
	set.Var((*command.TextFlag)(&f.Workspace), "workspace", "DIR that may be changed (default: nearest with .git or holdfast.yaml)")
	set.Var((*command.TextFlag)(&f.Preset), "preset", "NAME of an agent's preset, or none (run: default that of CMD)")
	for _, s := range []struct{ flag, key, metavar, usage string }{
		{"ro", "filesystem.read", "PATH", "show PATH read-only; may be repeated, like all list flags"},
		{"rw", "filesystem.write", "PATH", "show PATH writable"},
		{"hide", "workspace.hide", "NAME", "make files of this NAME in the workspace unreadable"},
		{"show", "workspace.show", "NAME", "show files of this NAME that are hidden as secrets, such as .env"},
		{"allow", "network.allow", "HOST", "allow a destination, HOST[:PORT[/KIND]]; KIND is tls, http or tcp"},
		{"host-port", "network.host-ports", "PORT", "reach the service on PORT of the host's loopback, at that port"},
		{"output", "workspace.outputs", "DIR", "DIR for results: writable, and made when missing"},
		{"worktrees", "workspace.worktrees", "DIR", "DIR beside the workspace for git worktrees: writable, made when missing"},
		{"ask", "ask", "RULE", "ask a human before what RULE is about: a set (git-push) or a condition"},
		{"deny", "deny", "RULE", "deny what RULE is about, likewise"},
		{"env", "", "NAME", "pass in a variable, NAME[=VALUE]; a secret only with its value"},
		{"without", "without", "GUARANTEE", "accept the loss of a GUARANTEE that the host cannot keep"},
		{"publish", "network.publish", "PORT", "show a PORT served inside on the host's loopback, or HOSTPORT:PORT"},
		{"record", "record.level", "LEVEL", "record at LEVEL: standard, or full with every open for reading"},
		{"memory", "limits.memory", "SIZE", "SIZE of all memory inside, such as 8GiB, or none"},
		{"processes", "limits.processes", "N", "N processes and threads, or none"},
		{"files", "limits.files", "N", "N open files of a process, or none"},
		{"disk", "limits.disk", "SIZE", "SIZE of private storage, or none"},
		{"filesize", "limits.filesize", "SIZE", "SIZE that a file may grow to, or none"},
		{"cpus", "limits.cpus", "N", "N cores, such as 2.5, or none"},
		{"time", "limits.time", "DURATION", "end the run after DURATION, such as 4h, or none"},
	} {
		set.Var(&settingFlag{all: &f.settings, flag: "--" + s.flag, key: s.key, metavar: s.metavar}, s.flag, s.usage)
	}
	for _, s := range []struct{ flag, key, value, usage string }{
		{"review", "workspace.mode", "review", "work on a view of the workspace; its changes wait for review"},
		{"scratch", "workspace.scratch", "on", "make a private directory on disk (HOLDFAST_SCRATCH), gone at the end"},
	} {
		set.Var(&switchFlag{settingFlag{all: &f.settings, flag: "--" + s.flag, key: s.key, metavar: "bool"}, s.value}, s.flag, s.usage)
		set.Lookup(s.flag).NoOptDefVal = "true"
	}
	levels := []string{string(policy.RecordStandard), string(policy.RecordFull)}
	c.RegisterFlagCompletionFunc("record", cobra.FixedCompletions(levels, cobra.ShellCompDirectiveNoFileComp))
}

// Options are the settings of the flags, for the caller's machine and user.
func (f *Flags) Options(a *command.App) (policy.Options, error) {
	host, err := policy.ThisHost(a.Env, a.Dir)
	if err != nil {
		return policy.Options{}, err
	}
	if view := backend.SystemView(); len(view) > 0 {
		host.System = view
	}
	host.Grants = credentials.Store{Dir: filepath.Join(host.State, "grants")}.Credential
	preset := f.Preset
	if preset == noPreset {
		preset = ""
	}
	return policy.Options{
		Host:      host,
		Profile:   f.Profile,
		Policy:    f.Policy,
		Workspace: f.Workspace,
		Settings:  f.settings,
		Preset:    preset,
	}, nil
}

// noPreset is what --preset takes for none.
const noPreset = "none"

// settingFlag collects the values of one flag in the list of all of them.
type settingFlag struct {
	all                *[]policy.Setting
	flag, key, metavar string
}

func (s *settingFlag) String() string { return "" }

func (s *settingFlag) Type() string { return s.metavar }

func (s *settingFlag) Set(value string) error {
	key := s.key
	if key == "" { // --env NAME passes, --env NAME=VALUE sets
		key = "environment.pass"
		if strings.Contains(value, "=") {
			key = "environment.set"
		}
	}
	*s.all = append(*s.all, policy.Setting{Flag: s.flag, Key: key, Value: value})
	return nil
}

// switchFlag is a flag without a value that sets one value of a key.
type switchFlag struct {
	settingFlag
	value string
}

func (s *switchFlag) Set(value string) error {
	switch value {
	case "true":
		return s.settingFlag.Set(s.value)
	case "false":
		return nil
	}
	return errors.New("it takes no value")
}

// Complete sets what the shell can offer for the values of flags.
func Complete(cmd *cobra.Command) {
	words := make([]string, len(policy.Losses))
	for i, g := range policy.Losses {
		words[i] = string(g)
	}
	for flag, values := range map[string][]string{"profile": policy.Profiles, "without": words} {
		cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}
