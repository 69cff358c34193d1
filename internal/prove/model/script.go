package model

// Op is what a step asks the agent to do, independent of any agent.
type Op string

// The operations.
const (
	Say          Op = "say"          // text only; ends the turn and the script
	Shell        Op = "shell"        // Command
	Read         Op = "read"         // Path
	Write        Op = "write"        // Path, Content
	Edit         Op = "edit"         // Path, Old, New
	Patch        Op = "patch"        // Path, Old, New; or Text, in the agent's own patch format. Falls back to Edit
	Fetch        Op = "fetch"        // URL
	MCP          Op = "mcp"          // Server, Tool, Arguments
	Spawn        Op = "spawn"        // Script: a sub-agent is started with that script's marker in its prompt
	Unadvertised Op = "unadvertised" // Tool, Arguments: called even if it is not offered
	Tool         Op = "tool"         // Tool, Arguments: unchanged; for an offered tool of that name
)

// Step is one tool call. Fields that its operation does not use are empty.
type Step struct {
	Op         Op
	Command    string         `json:",omitempty"`
	Background bool           `json:",omitempty"` // of a shell command, if the tool has such an argument
	Escalate   bool           `json:",omitempty"` // ask, by the tool's own argument, to leave the sandbox (dangerouslyDisableSandbox, sandbox_permissions)
	Path       string         `json:",omitempty"`
	Content    string         `json:",omitempty"`
	Old, New   string         `json:",omitempty"`
	Text       string         `json:",omitempty"`
	URL        string         `json:",omitempty"`
	Server     string         `json:",omitempty"`
	Tool       string         `json:",omitempty"`
	Arguments  map[string]any `json:",omitempty"`
	Script     string         `json:",omitempty"`
	Parallel   bool           `json:",omitempty"` // requested in one turn with the step before it
}

// Script is what the model does in answer to a prompt with its marker.
type Script struct {
	Name  string
	Steps []Step
}

// Marker is what a prompt must contain to play the script of that name.
func Marker(name string) string { return "[[script:" + name + "]]" }

// Result is the result of a tool call, as the agent reports it.
type Result struct {
	ID    string
	Text  string
	Error bool // the agent marked it as a failure, if its dialect can

	// Missing says why a step has no result, and is "" when there is one: "no
	// tool for fetch" when the request offered none and the step was skipped, or
	// that the agent sent no result. What the step was meant to show is then
	// unknown.
	Missing string
}

// Turn is one request that belongs to a script, before it is answered. The same
// turn may come more than once: an agent repeats a request that was not answered
// in time, and a step may need a call before it (the agent loads a tool) or after
// it (it waits for a sub-agent).
type Turn struct {
	Script  string
	Step    int      // the requested one, from 0, the first of parallel ones; len(Steps) when the script is over
	Results []Result // one for each earlier step, in the order of the steps, whatever the agent's order
	Offered []string // names of the tools, as the request spells them
	Dialect string   // anthropic, responses, chat, gemini
	Model   string   // as the agent named it
}
