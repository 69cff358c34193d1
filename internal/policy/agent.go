package policy

// Agent is what a preset adds to a plan besides paths, destinations and
// credentials: what stands in the private home when the agent starts.
type Agent struct {
	Preset  string // name
	Title   string
	Origin  Origin
	Sandbox string // what became of the agent's own sandbox; "" for nothing to say
	Install string // a command that installs the program; "" for unknown

	Copies  []AgentCopy
	Files   []AgentFile
	Trust   []string // variables that name the bundle of certificates, besides those that are always set
	Keeps   []string // directories of the host that stay writable
	Missing []string // what the user has to do first, each a sentence; empty when all is there
}

// AgentCopy is a file or a directory of the user's of which the agent has a
// copy. What it changes there waits for the user.
type AgentCopy struct {
	Path   string // inside; with ~ in a preset, absolute in a plan
	Source string // on the host, resolved; "" where nothing is yet
	Place  string // on the host, where a change would go
	Origin Origin
	Except []string // of a directory: names at its top that are neither copied nor looked at

	// Of a JSON file: keys that are left out, of which only the named members are
	// copied, of which alone a change is worth looking at, where there are any, and
	// of which none is. "*" is any key.
	Drop, Only, Notable, Quiet [][]string

	Set []AgentValue // values that the copy has, whatever the file says
}

// AgentValue is a value in a JSON file.
type AgentValue struct {
	Key   []string
	Value any // text may have ${NAME} for a variable inside, ${NAME:-20} for its last 20 signs
}

// AgentFile is a file of the run's own. ${NAME} in its content stands for a
// variable inside; where one of them is not set, there is no such file.
type AgentFile struct {
	Path     string // inside; with ~ in a preset, absolute in a plan
	Content  string
	Merge    bool   // content is JSON, and is laid over the host's file of that path
	Source   string // that file of the host, resolved; "" where there is none
	Writable bool   // by the agent, in the private home; nothing of it is kept
	Origin   Origin
}
