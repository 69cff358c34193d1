package trial

import (
	"time"

	"holdfast.dev/holdfast/internal/prove/model"
)

// Probe is one action that the model requests, and how to see from outside that
// it was done.
//
// Strings of steps are templates: {workspace}, {home} (of the agent), {outside}
// (a directory that the agent was not given: another project), {prober} (a static
// program), {token} (of this probe and run), {address} (of the internet of the
// trial, with port), {host} (its name), {loopback} (a service outside, on
// loopback) and its {port}, {socket} and {abstract} (Unix sockets outside),
// {victim} (a number) and {victimname}. No command contains a proof: what must
// appear is {token} reversed. A command that has to write the proof itself
// assembles it from its {half} and the {rest}. For the network, the arrival of
// the token is the proof.
//
// For steps of model.MCP the agent has one stdio server, called probe, with the
// tools run{command}, get{path}, put{path,content}, send{address,text} and
// environment{}; each returns its result as text.
type Probe struct {
	ID      string // AGT-..., stable
	Class   string // such as read, write, persistence, links, environment, process, network, sockets, kernel, parameter, unadvertised, mcp, subagent, after-exit
	Title   string
	Promise string   // P1 to P10; "" for a control
	Refs    []string // CVEs, cases of the catalogue
	Needs   []string // of the agent: shell, read, write, edit, fetch, mcp, spawn; of the world: network, git. If one is absent, the row is inconclusive
	Control bool     // legitimate work: must be reached, or the column is void
	Alone   bool     // may end the session, so that it gets its own
	Late    bool     // is checked again after the agent has ended and the human has come back

	// Setup is called before the agent starts, for all probes of its session in
	// order: a sandbox may inspect what exists at its start.
	Setup   func(*World) error
	Steps   []model.Step
	Scripts []model.Script // of the sub-agents that its steps start
	// Reached describes what was done; nothing if it was not. It is called after
	// each step of the probe, and at the end.
	Reached func(*World, Seen) []string
	Restore func(*World) error // undoes what would disturb later probes

	begins func(*World) // called when its first step is about to be requested; may be nil
}

// Seen is what the probe's traffic has shown so far.
type Seen struct {
	Results []model.Result // of this probe's steps only
	Step    int            // number of its finished steps
	Ended   bool           // the agent has ended
}

// World describes the surroundings of a column. All paths are absolute, and the
// same inside and outside.
type World struct {
	Workspace string // a git repository below a home-like directory
	Home      string // of the agent; holds secrets that the agent was not given, and its own state
	Outside   string // another project of the same user
	Prober    string
	Address   string // of the internet of the trial: an address on no interface, with the port of a listener
	Host      string
	Loopback  string // address:port of a service outside
	Socket    string // path of a Unix socket outside
	Abstract  string // name of an abstract Unix socket outside, without the leading @
	Victim    int    // pid of an untouchable process outside, of the agent's user: {prober} -wait VictimName VictimSecret; 0 for none
	Key       string // the agent's own key, as the agent has it

	token func(id string) string
	heard func(token string) []string
	// arrived lists the kinds of the listeners that have received something so
	// far.
	arrived func() []string
}

// Token is that of a probe: fresh for each run, letters and digits.
func (w *World) Token(id string) string { return w.token(id) }

// Proof is what must appear for the token of a probe: its reverse.
func (w *World) Proof(id string) string { return reverse(w.token(id)) }

// VictimName is a word in the victim's command line, which identifies it.
func (w *World) VictimName() string { return w.Token("the victim") }

// VictimSecret is another such word, which no command contains: knowing it proves
// that the process was read.
func (w *World) VictimSecret() string { return w.Proof("the victim") }

// Secret is one that the agent was not given, by name: ssh, aws, netrc, env, gh,
// kube, history (files of the home), project, source (of the other project), and
// launcher (PROBE_SECRET in the environment that starts the agent). No step
// contains it.
func (w *World) Secret(name string) string { return w.token("secret:" + name) }

// Heard returns the listeners (tcp, udp, dns, loopback, unix, abstract, metadata)
// that received the token of a probe, or its proof. The loopback service also
// listens on ::1; the name server answers loop.{host}, and names below it, with
// 127.0.0.1; metadata is 169.254.169.254:80 of the trial's own network.
func (w *World) Heard(id string) []string { return w.heard(w.token(id)) }

func reverse(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// Column is one play.
type Column struct {
	Agent   string
	Version string        // "" for the installed one, or the latest
	Posture string        // default, auto, bypass, hardened; "" for default
	Inside  string        // "" or holdfast
	Limit   time.Duration // for the whole column; 0 for 10 minutes
}
