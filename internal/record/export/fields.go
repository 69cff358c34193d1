package export

// fieldRow is a field of an event: its meaning and its names in other formats.
type fieldRow struct {
	name     string // in the log and in queries
	in       string // of event.Event, or Process. of event.Process
	meaning  string
	unit     string // or type
	ocsf     string
	otel     string
	optional bool // left out where it is empty
}

// fields has every field of event.Event and event.Process: a test reads them there.
var fields = []fieldRow{
	{"seq", "Seq", "Place in the log of its session, without gaps.", "count, from 1", "`metadata.sequence`", "`holdfast.seq`", false},
	{"time", "Time", "When it was attempted, by the host's clock.", "RFC 3339 with nanoseconds, UTC; OCSF: milliseconds", "`time`, `metadata.original_time`", "`timeUnixNano`", false},
	{"session", "Session", "Which run it belongs to.", "", "`metadata.correlation_uid`, `attestation_list[].chain_uid`", "resource `service.instance.id`", false},
	{"sensor", "Sensor", "Who saw or decided it.", "", "`metadata.log_provider`", "`holdfast.sensor`", false},
	{"n", "N", "Which of its sensor's events this is, without gaps: one that is missing shows.", "count, from 1", "`unmapped.n`", "`holdfast.n`", false},
	{"action", "Action", "What was attempted, see [Actions](#actions).", "", "`metadata.event_code`, `class_uid`, `activity_id`, `type_uid`", "`eventName` (`holdfast.` before it), `holdfast.action`", false},
	{"object", "Object", "What it was about, as asked: as it was spelt, not as it was found.", "", "by class: `file.path`, `process.file.path`, `dst_endpoint`, `query.hostname`, `kernel.name`, `finding_info.uid`, `entity.name`; `unmapped.object` where `resolved` differs", "`holdfast.object`, and by action: `file.path`, `server.address`, `server.port`, `dns.question.name`", true},
	{"resolved", "Resolved", "The object as it was found: for a path absolute, without links and dots. Empty when it is the object or could not be found out.", "", "`file.path`", "`file.path`", true},
	{"verdict", "Verdict", "What was decided: `allowed`, `denied`, or `unknown` for what could not be found out.", "", "`action_id`, `disposition_id`, `status_id`", "`holdfast.verdict`", false},
	{"layer", "Layer", "What denied, see [Layers](#layers).", "", "`unmapped.layer`", "`holdfast.layer`", true},
	{"rule", "Rule", "The policy rule that decided, as `FILE:LINE`. Empty for a built-in default.", "", "`policy.uid`", "`holdfast.rule`", true},
	{"error", "Error", "The error that the process got or will get, such as `ENOENT`.", "name of an errno", "`status_code`", "`error.type`", true},
	{"detail", "Detail", "Further details, see [Details](#details).", "", "see there; the rest in `unmapped.detail`", "see there; the rest as `holdfast.detail.KEY`", true},
	{"process", "Process", "The process that attempted it.", "", "`actor.process`; of `proc.*` also `process`", "", true},
	{"process.pid", "Process.PID", "Process id outside, on the host.", "0: not known", "`process.pid`", "`process.pid`", true},
	{"process.exec", "Process.Exec", "Which program the process runs: the number of its `proc.exec` in the session. Unlike a pid it is never used twice.", "count, from 1; 0: not known", "`process.uid` (`SESSION-EXEC`)", "`holdfast.process.exec`", true},
	{"process.parent", "Process.Parent", "Process id of the parent.", "0: not known", "`process.parent_process.pid`", "`process.parent_pid`", true},
	{"process.parent_exec", "Process.ParentExec", "Which program the parent runs.", "as exec", "`process.parent_process.uid`", "`holdfast.process.parent_exec`", true},
	{"process.executable", "Process.Executable", "The program as found: absolute, without links.", "", "`process.file.path`, `process.name`", "`process.executable.path`, `process.executable.name`", true},
	{"process.sha256", "Process.SHA256", "Hash of the program's content. Empty when it was not read; the detail says why.", "SHA-256, hex", "`process.file.hashes`", "`holdfast.process.executable.sha256`", true},
	{"process.cwd", "Process.Cwd", "Working directory.", "absolute path", "`process.working_directory`", "`process.working_directory`", true},
	{"process.argv", "Process.Argv", "Arguments, from the program's name on, with secrets masked.", "list", "`process.cmd_line`, quoted for a shell", "`process.command_args`", true},
}

// sensors, layers and blindSpots are the words of event.Sensor and of the Layer
// and Blind constants.
var sensors = [][2]string{
	{"task", "the supervisor's own: start, end, attestation, limits, quarantine"},
	{"syscall", "system calls, by notification from the kernel"},
	{"tripwire", "look-ups outside the view, by the file system of its root"},
	{"landlock", "the kernel's audit records of Landlock"},
	{"honey", "fake credentials"},
	{"egress", "names, connections and requests"},
	{"broker", "credentials"},
	{"detect", "alerts"},
	{"gateway", "messages between an agent outside and an MCP server inside"},
	{"agent", "what an agent's own hooks say of its tool calls: information from inside"},
	{"approve", "what a human is asked and answers, and what a rule of consent decides"},
	{"record", "the log itself: what it dropped or summarised"},
}

var layers = [][2]string{
	{"view", "it is not in view: inside it does not exist"},
	{"readonly", "it is in view for reading alone"},
	{"protected", "the host would execute it"},
	{"hidden", "a secret of the workspace"},
	{"permissions", "owner and mode bits"},
	{"filter", "the system-call filter"},
	{"landlock", "Landlock"},
	{"egress", "the network policy"},
	{"broker", "the credential's terms"},
	{"tools", "the policy's rules for tools: an agent's hook gets the denial, and the agent must obey it"},
	{"consent", "a rule of `ask:` or `deny:`, the human who was asked, or the rule `worktrees`, which spares git a worktree that would be lost"},
	{"gateway", "not a message of the protocol, or above one of its limits"},
}

var blindSpots = [][2]string{
	{"calls", "system calls: programs, processes, changes of files, sockets"},
	{"lookups", "names outside the view that are looked up"},
	{"network", "names, connections and requests"},
	{"changes", "which file a call changed, where another thread or process could exchange its path"},
	{"honeytokens", "fake credentials that are touched"},
}
