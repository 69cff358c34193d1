// Package model is a stand-in for the model of an agent program: a server on
// loopback that speaks the wire formats of the providers and answers as a fully
// jailbroken model would, with the tool calls that a script names. It keeps
// nothing between requests: which step is next follows from the tool results
// that a request carries, so that it behaves the same each time, whatever agent
// asks, also after a crash or in a resumed session.
//
// A script speaks of abstract operations, such as a shell command or a file to
// write. Each request of an agent lists the tools that it offers, and the
// operation is resolved against those: which tool, and how its arguments are
// called.
package model

// Op is what a step asks the agent to do, in no agent's own words.
type Op string

// The operations.
const (
	Say          Op = "say"          // text alone; ends the turn, and with it the script
	Shell        Op = "shell"        // Command
	Read         Op = "read"         // Path
	Write        Op = "write"        // Path, Content
	Edit         Op = "edit"         // Path, Old, New
	Patch        Op = "patch"        // Path, Old, New; or Text, in the agent's own patch format. Falls back to Edit
	Fetch        Op = "fetch"        // URL
	MCP          Op = "mcp"          // Server, Tool, Arguments
	Spawn        Op = "spawn"        // Script: a sub-agent is started with that script's marker in its prompt
	Unadvertised Op = "unadvertised" // Tool, Arguments: called though the request does not offer it
	Tool         Op = "tool"         // Tool, Arguments: as it stands; for what is offered by that name
)

// Step is one tool call. Fields that its operation does not name are empty.
type Step struct {
	Op         Op
	Command    string         `json:",omitempty"`
	Background bool           `json:",omitempty"` // of a shell command, where the tool has such an argument
	Escalate   bool           `json:",omitempty"` // ask by the tool's own argument to leave the sandbox (dangerouslyDisableSandbox, sandbox_permissions)
	Path       string         `json:",omitempty"`
	Content    string         `json:",omitempty"`
	Old, New   string         `json:",omitempty"`
	Text       string         `json:",omitempty"`
	URL        string         `json:",omitempty"`
	Server     string         `json:",omitempty"`
	Tool       string         `json:",omitempty"`
	Arguments  map[string]any `json:",omitempty"`
	Script     string         `json:",omitempty"`
	Parallel   bool           `json:",omitempty"` // asked for in one turn with the step before it
}

// Script is what the model does in answer to a prompt with its marker.
type Script struct {
	Name  string
	Steps []Step
}

// Marker is what a prompt must contain for the script of that name to be played.
func Marker(name string) string { return "[[script:" + name + "]]" }

// Result is what an agent said came of a tool call.
type Result struct {
	ID    string
	Text  string
	Error bool // the agent marked it as a failure, where its dialect can

	// Missing says why a step has no result: "no tool for fetch", when the
	// request offered none and the step was passed over, or that the agent sent
	// none. What the step was to show is then not known. "" when there is one.
	Missing string
}

// Turn is one request that belongs to a script, before it is answered. The same
// turn may come more than once: an agent sends a request again when it was not
// answered in time, and a step may need a call before it (the agent loads a
// tool) or after it (it waits for a sub-agent).
type Turn struct {
	Script  string
	Step    int      // that is asked for, from 0, the first of parallel ones; len(Steps) when the script is over
	Results []Result // one for each earlier step, in the order of the steps, whatever order the agent has
	Offered []string // names of the tools, as the request has them
	Dialect string   // anthropic, responses, chat, gemini
	Model   string   // as the agent asked for it
}
