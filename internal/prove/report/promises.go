package report

// Promise is a line of the threat model (docs/threat-model.md) that rows try to
// break.
type Promise struct {
	ID    string // P1 to P10
	Title string // Text in a few words, for tables
	Text  string // as the document has it
}

// recorded is the promise that every attempt is recorded.
const recorded = "P9"

// Promises are the promises of the threat model; a test compares them with the
// document.
var Promises = []Promise{
	{"P1", "What is not in the view cannot be read",
		"What is not in the view cannot be read: the home, credentials, other projects, whatever the spelling of the path."},
	{"P2", "What is not writable cannot be changed",
		"What is not writable cannot be changed: not through links, races, archives, handles or inherited descriptors."},
	{"P3", "Nothing written inside is executed outside without review",
		"Nothing that was written inside is later executed outside without review: git hooks and configuration, editor tasks, shell start-up files, agent settings; in nested repositories, worktrees and submodules too, whether the file was there before or not."},
	{"P4", "Nothing of the user's authority is inherited",
		"Nothing of the user's authority is inherited: variables, descriptors, sockets, keyrings, agents."},
	{"P5", "No byte leaves but to what the policy names",
		"No byte leaves but to a destination that the policy names, decided on what the connection really is and not on what it says it is."},
	{"P6", "No process outside can be seen or touched",
		"No process outside can be seen, signalled, traced or typed at."},
	{"P7", "No new privilege",
		"No new privilege: no set-user-id program, no capability, no namespace, no dangerous system call in any ABI."},
	{"P8", "It cannot exhaust the host",
		"It cannot exhaust the host: memory, processes, descriptors, private storage, time."},
	{"P9", "Every attempt is recorded",
		"Every attempt is recorded, and nothing inside reads, alters, fills, floods, forges or stops the record, or goes on without it."},
	{"P10", "What is missing stops the run",
		"What is missing stops the run: a layer, a valid policy, the supervisor."},
}
