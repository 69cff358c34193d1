// Package trial tries real agent programs. An agent is started in namespaces of
// its own, with a home, a workspace and an internet made for it, against the
// stand-in of package model, which asks for one probe after the other, as a
// jailbroken model would. After each step the world outside is looked at: what
// the agent says of it is never evidence.
//
// One play of all probes is a column: agent, version, posture, and what it runs
// inside of. A column whose controls fail is void.
package trial

import (
	"time"

	"holdfast.dev/holdfast/internal/prove/model"
)

// Probe is one thing that the model asks for, and how it is seen from outside
// that it was done.
//
// Strings of steps are templates: {workspace}, {home} (of the agent), {outside}
// (a directory that the agent was not given: another project), {prober} (a
// static program), {token} (of this probe and run), {address} (of the internet
// of the trial, with port), {host} (its name), {loopback} (a service outside, on
// loopback) and its {port}, {socket} and {abstract} (Unix sockets outside),
// {victim} (a number) and {victimname}. A proof never stands in a command: what
// must appear is {token} reversed. A command that has to write it itself puts it
// together from its {half} and the {rest}. What arrives somewhere in the network is
// proof by that it arrives.
//
// For steps of model.MCP the agent has one stdio server, called probe, with the
// tools run{command}, get{path}, put{path,content}, send{address,text} and
// environment{}; each answers with what came of it as text.
type Probe struct {
	ID      string // AGT-..., stable
	Class   string // such as read, write, persistence, links, environment, process, network, sockets, kernel, parameter, unadvertised, mcp, subagent, after-exit
	Title   string
	Promise string   // P1 to P10; "" for a control
	Refs    []string // CVEs, cases of the catalogue
	Needs   []string // of the agent: shell, read, write, edit, fetch, mcp, spawn; of the world: network, git. What is absent makes the row inconclusive
	Control bool     // honest work: must be reached, or the column is void
	Alone   bool     // the session may end with it, so that it gets one of its own
	Late    bool     // is looked at again when the agent has ended and the human has come back

	// Setup is called before the agent starts, for all probes of its session in
	// their order: a sandbox may look at what there is when it starts.
	Setup   func(*World) error
	Steps   []model.Step
	Scripts []model.Script // of the sub-agents that its steps start
	// Reached looks for what was done, and says it in words; nothing when it
	// was not. It is asked after each step of the probe, and at the end.
	Reached func(*World, Seen) []string
	Restore func(*World) error // undoes what would disturb the probes after it

	begins func(*World) // is called when its first step is about to be asked for; may be nil
}

// Seen is what the wire has shown of a probe so far.
type Seen struct {
	Results []model.Result // of the steps of this probe alone
	Step    int            // how many of its steps are over
	Ended   bool           // the agent has ended
}

// World is what a column is tried in. All paths are absolute, and the same
// inside and outside.
type World struct {
	Workspace string // a git repository below a home-like directory
	Home      string // of the agent; holds secrets that the agent was not given, and its own state
	Outside   string // another project of the same user
	Prober    string
	Address   string // of the internet of the trial: an address on no interface, with the port of a listener
	Host      string
	Loopback  string // address:port of a service outside
	Socket    string // path of a Unix socket outside
	Abstract  string // its twin, without the leading @
	Victim    int    // pid of a process outside that nobody may touch, of the agent's user: {prober} -wait VictimName VictimSecret; 0 for none
	Key       string // the agent's own key, as it was given to it

	token func(id string) string
	heard func(token string) []string
	// arrived lists what the listeners were sent so far, by their kinds.
	arrived func() []string
}

// Token is that of a probe: fresh for each run, letters and digits.
func (w *World) Token(id string) string { return w.token(id) }

// Proof is what must appear for the token of a probe: its reverse.
func (w *World) Proof(id string) string { return reversed(w.token(id)) }

// VictimName is a word of the victim's command line, by which it is known.
func (w *World) VictimName() string { return w.Token("the victim") }

// VictimSecret is another, which stands in no command: who has it has seen the
// process.
func (w *World) VictimSecret() string { return w.Proof("the victim") }

// Secret is one that the agent was not given, by name: ssh, aws, netrc, env, gh,
// kube, history (files of the home), project, source (of the other project), and
// launcher (PROBE_SECRET of the environment that the agent is started from). It is
// in no step.
func (w *World) Secret(name string) string { return w.token("secret:" + name) }

// Heard says which listeners (tcp, udp, dns, loopback, unix, abstract, metadata)
// were sent the token of a probe, or its proof. The loopback service listens on
// ::1 too; the name server answers loop.{host}, and names below it, with
// 127.0.0.1; metadata is 169.254.169.254:80 of the trial's own network.
func (w *World) Heard(id string) []string { return w.heard(w.token(id)) }

func reversed(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// Column is one play.
type Column struct {
	Agent   string
	Version string        // "" for the one that is installed, or the latest
	Posture string        // default, auto, bypass, hardened; "" for default
	Inside  string        // "" or holdfast
	Limit   time.Duration // of the whole; 0 for 10 minutes
}
