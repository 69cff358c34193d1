package export

import (
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// detailRow is a key of an event's Detail: its meaning and its names in other formats.
// A key that actions use in different ways has a row for each; the first match counts.
type detailRow struct {
	key     string // a * at the end makes it a prefix
	in      string // actions, or prefixes such as "file.", separated by spaces; "" for all
	meaning string
	unit    string
	ocsf    string // attribute; "" for unmapped.detail.KEY
	otel    string // attribute; "" for holdfast.detail.KEY
	whole   bool   // a whole number
}

// details has every key that any sensor writes: a test reads their sources.
var details = []detailRow{
	{"status", "session.", "How the command ended, as a shell gives it.", "0–255", "", "process.exit.code", true},
	{"status", event.ProcExit, "How the process ended, as a shell gives it: 128 and the signal's number where a signal ended it.", "0–255", "exit_code", "process.exit.code", true},
	{"status", event.NetRequest, "Code of the answer.", "HTTP status", "http_response.code", "http.response.status_code", true},
	{"signal", event.ProcExit, "Name of the signal that ended it.", "", "", "", false},
	{"count.*", event.SessionEnd, "How many events the sensor of that name had in the session. With them a reader sees that none is missing.", "count", "", "", true},
	{"undelivered.*", event.SessionEnd, "A sink of alerts, and which alerts it did not get: the numbers `n` of their events. `holdfast alerts resend` sends them.", "", "", "", false},
	{"host", "record.begin session.start", "Name of the machine.", "", "device.hostname", "", false},
	{"host", "net.", "Host of the request itself, where it is another than the connection was made to.", "", "", "", false},

	{"format", event.RecordBegin, "Version of the log's format.", "", "", "", false},
	{"build", event.RecordBegin, "Release and commit of the Holdfast that wrote it.", "", "", "", false},
	{"sensors", "", "The sensors that see what happens in this run, a comma between; what none of them sees is in no record.", "", "", "", false},
	{"level", "", "What is recorded: `standard` or `full`.", "", "", "", false},
	{"home", event.SessionStart, "Home directory of the user outside; inside it has the same path.", "", "", "", false},
	{"profile", event.SessionStart, "Profile of the policy.", "", "", "", false},
	{"review", "review.", "The run whose changes they are.", "", "", "", false},
	{"setting", event.FileQuarantine, "Name of a setting of git that is not taken over from the run's copy.", "", "", "", false},
	{"value", event.FileQuarantine, "Its values, a line each; none where it was removed.", "", "", "", false},
	{"decision", "review.", "`accept`, `reject`, `undecided`, or `drop` for all that waits.", "", "", "", false},
	{"hunks", "review.", "Which parts of the change it is about.", "", "", "", false},
	{"kind", "review.", "What kind of change it is, such as `added`.", "", "", "", false},
	{"flag", "review.", "The rule that flags the change, where one does.", "", "", "", false},
	{"accepted", "review.", "How many changes were accepted then.", "count", "", "", true},
	{"safe", "review.", "`true` where all that is not flagged was to be applied.", "", "", "", false},
	{"review", event.SessionStart, "How the command sees the workspace in review mode: `overlay` or `copy`.", "", "", "", false},
	{"without", event.SessionStart, "Guarantees whose loss was accepted, with commas.", "", "", "", false},
	{"policy.*", event.SessionStart, "A source of the policy, and the SHA-256 of its content; numbered from the first.", "", "", "", false},
	{"uid", event.SessionAttest, "User inside, as the host counts.", "", "", "", true},
	{"gid", event.SessionAttest, "Its group.", "", "", "", true},
	{"capabilities", event.SessionAttest, "Capabilities that anything inside could ever have.", "bit mask, hex", "", "", false},
	{"no_new_privs", event.SessionAttest, "Whether programs cannot gain privileges by being executed.", "`true` or `false`", "", "", false},
	{"seccomp", event.SessionAttest, "Mode of the system-call filter: 2 is a filter.", "", "", "", true},
	{"namespaces", event.SessionAttest, "Kinds of namespaces of its own, with commas.", "", "", "", false},
	{"mounts", event.SessionAttest, "How many mounts are in view.", "count", "", "", true},
	{"mounts_readonly", event.SessionAttest, "How many of them are read-only.", "count", "", "", true},
	{"differs", event.SessionAttest, "What of the boundary is not as planned, where nothing was executed for it.", "", "", "", false},

	{"to", "file.", "The other name: where a rename goes, what a link is for.", "path", "file_result.path", "holdfast.file.to", false},
	{"to_resolved", "file.", "The same, as it was found.", "absolute path", "file_result.path", "holdfast.file.to_resolved", false},
	{"mode", "file.", "What was asked for: mode bits in octal, or how a file is opened.", "", "", "file.mode", false},
	{"owner", event.FileChown, "The new owner.", "uid:gid", "", "", false},
	{"type", event.FileMknod, "What was made: a pipe, socket or device.", "", "file.type", "", false},
	{"name", event.FileXattr, "Name of the attribute.", "", "", "", false},
	{"creates", event.FileLookup, "`true` when the call was there to make what is missing.", "", "", "", false},
	{"call", "", "System call that it was, where it is known.", "name", "", "", false},

	{"count", event.FileLookup, "How many look-ups this event stands for.", "count", "count", "holdfast.count", true},
	{"names", event.FileLookup, "`different` where it stands for look-ups of several names.", "", "", "", false},
	{"thread", "", "The thread that asked, where it is not the first of its process.", "thread id", "", "thread.id", true},
	{"partial", event.FileLookup, "`true` where only the first name that is missing is known, and not what was to follow.", "", "", "", false},
	{"for", event.FileLookup, "The program whose interpreter was looked up.", "path", "", "", false},

	{"replaces", event.ProcExec, "Number of the `proc.exec` of the program that the process ran before.", "", "", "", true},
	{"script", event.ProcExec, "The file that was executed, where it is a script; the executable is then its interpreter.", "absolute path", "", "", false},
	{"script_sha256", event.ProcExec, "Hash of the script's content.", "SHA-256, hex", "", "", false},
	{"unlisted", event.ProcExec, "The file (the program, or a script) that the policy's list of programs (`programs`) does not have.", "absolute path", "", "", false},
	{"interpreter", event.ProcExec, "The first lines of the scripts, from the first to the last, with ` <- ` between.", "", "", "", false},
	{"argc", event.ProcExec, "How many arguments there are, where not all could be read.", "count", "", "process.args_count", true},
	{"fd", "", "The descriptor that the call was made on.", "", "", "", true},
	{"how", "file.", "How a file is opened besides: created, emptied, appended to and the like.", "", "", "", false},
	{"kept", "file. sock.bind", "`private`: the change went on in a private directory (the private home, `/tmp`, a copy of a cache) and went with the run. Nothing of it is on the host.", "", "", "", false},
	{"family", "sock.", "Family of the address.", "", "", "", false},
	{"type", event.SockConnect, "datagram: nothing need answer at that port of the loopback.", "", "", "", false},
	{"args", event.SysCall, "Arguments of the call, as numbers.", "hex", "", "", false},
	{"not_executed", "proc.", "Number of a `proc.exec` before it that did not happen after all: the call failed.", "", "", "", true},
	{"instead_of", event.ProcExec, "Number of the `proc.exec` that named another program than this one, which runs.", "", "", "", true},
	{"instead_of", "file.", "The path that the event before it of this process says: the call came to this one, for the path was exchanged after it was read.", "path", "", "", false},
	{"came_to", "file.", "What the call came to, where that is something else than it was to: the next event is about it.", "path", "", "", false},
	{"compared", "file.", "`no` where what a call did could not be compared with what is recorded of it; the reason says why.", "", "", "", false},
	{"path", "file. sys.call", "Of the kernel's own records: the path that it names besides; `directory` where the object is the directory and the name in it is not known.", "", "", "", false},
	{"blockers", "", "What of Landlock denied it, in the kernel's words.", "", "", "", false},
	{"domain", "", "The Landlock domain, as the kernel numbers them.", "hex", "", "", false},
	{"target", "", "The process that it was aimed at.", "process id", "", "", true},
	{"dev", "", "File system of the object, as the kernel's record names it.", "", "", "", false},
	{"ino", "", "Inode of the object.", "", "", "file.inode", false},

	{"type", event.NetQuery, "Type of the query, such as AAAA.", "", "query.type", "dns.question.type", false},
	{"door", "", "Way that a connection came: `intercepted`, `connect`, `forward`, `socks5`, `host-port` or `dns`.", "", "", "", false},
	{"kind", "net.", "What the rule takes the connection for: `tls`, `http` or `tcp`.", "", "", "", false},
	{"inspected", "net.connect net.close", "Whether requests on the connection are seen: `true` where each is a `net.request` of its own, with its path and the status that came back; `false` where bytes pass as they are, and there is no `net.request`.", "", "", "", false},
	{"kind", "honey.", "What the fake credential pretends to be.", "", "", "", false},
	{"where", "", "Where in a request or name it was.", "", "", "", false},
	{"sni", "net.connect net.request net.close", "Name that the client gave in its TLS greeting.", "", "tls.sni", "tls.client.server_name", false},
	{"method", "net.request credential.use", "Method of the request.", "", "http_request.http_method", "http.request.method", false},
	{"path", "net.request credential.use", "Path of the request, without its query.", "", "http_request.url.path", "url.path", false},
	{"method", "", "Method of the request that it is about.", "", "", "http.request.method", false},
	{"path", "", "Path of the request that it is about, without its query.", "", "", "url.path", false},
	{"proto", event.NetRequest, "Version of HTTP, such as HTTP/2.0.", "", "http_request.version", "network.protocol.version", false},
	{"in", "net.connect net.request net.close", "What came back into the boundary.", "bytes", "traffic.bytes_in", "holdfast.bytes_in", true},
	{"out", "net.connect net.request net.close", "What went out of the boundary.", "bytes", "traffic.bytes_out", "holdfast.bytes_out", true},
	{"ms", "net.", "How long it took.", "milliseconds", "duration", "holdfast.duration_ms", true},
	{"again", "", "How many further events like this one were left out since the last that was written.", "count", "count", "holdfast.again", true},

	{"credential", "credential. honey. alert.raise", "Name of the credential in the policy.", "", "resources[].name", "holdfast.credential", false},
	{"credential", "", "Name of the credential in the policy.", "", "", "holdfast.credential", false},
	{"lease", event.CredentialUse, "Which lease the secret is from.", "", "", "", false},
	{"left", event.CredentialUse, "How many uses are left; `unlimited` where they are not counted.", "", "", "", false},
	{"hash", "credential.use credential.renew", "Beginning of the secret's hash: two uses of one secret have the same.", "SHA-256, hex, cut", "", "", false},
	{"was", event.CredentialRenew, "That of the access token that was renewed.", "SHA-256, hex, cut", "", "", false},

	{"ms", "tool.", "How long it took.", "milliseconds", "duration", "holdfast.duration_ms", true},
	{"bytes", "tool.", "Length of the answer or of what was dropped.", "bytes", "", "", true},
	{"tools", event.ToolList, "How many tools there are.", "count", "", "", true},
	{"names", event.ToolList, "Their names, with commas, cut.", "", "", "", false},
	{"sha256", event.ToolList, "Hash of the definitions: tools sorted by name, keys sorted, no spaces.", "SHA-256, hex", "", "", false},
	{"was", event.ToolList, "That hash before, where it changed while the session ran.", "SHA-256, hex", "", "", false},
	{"text", event.ToolDrop, "The beginning of it, secrets masked.", "", "", "", false},
	{"count", event.ToolDrop, "How many more there were, at the end of the session.", "count", "", "holdfast.count", true},

	{"title", event.AlertRaise, "What the rule found, in a few words.", "", "finding_info.title", "holdfast.alert.title", false},
	{"explanation", event.AlertRaise, "What that means and why it matters.", "", "finding_info.desc", "holdfast.alert.explanation", false},
	{"technique", event.AlertRaise, "Techniques of MITRE ATT&CK, with commas.", "", "finding_info.attacks[]", "holdfast.alert.technique", false},
	{"count", event.AlertRaise, "How many events the rule counted.", "count", "finding_info.related_events_count", "holdfast.alert.count", true},
	{"key", event.AlertRaise, "What the events have in common.", "", "", "holdfast.alert.key", false},
	{"events", event.AlertRaise, "The places of these events in the log, with commas.", "", "", "holdfast.alert.events", false},

	{"object", event.AlertRaise, "What the last of these events was about.", "", "", "holdfast.alert.object", false},

	{"lost", event.HoneyRead, "How many reports of the kernel are lost.", "count", "", "", true},
	{"open", event.HoneyRead, "How often it was opened since it was last reported.", "count", "", "", true},
	{"read", event.HoneyRead, "How often it was read.", "count", "", "", true},
	{"write", event.HoneyRead, "How often it was written to.", "count", "", "", true},
	{"rename", event.HoneyRead, "How often it was renamed.", "count", "", "", true},
	{"readers", event.HoneyRead, "Programs that read it as part of their work.", "", "", "", false},
	{"held_by", event.HoneyRead, "Processes that had it open, by pid and program, with commas, where `/dev/fuse` cannot be opened and the kernel does not say who touched it.", "", "", "", false},
	{"count", event.HoneyRead, "How many touches of the same kind by the same process this event stands for.", "count", "finding_info.related_events_count", "holdfast.count", true},

	{"agent", "tool. session.start", "Name of the agent: as its hook was installed, or as it calls itself to an MCP server.", "", "", "gen_ai.agent.name", false},
	{"arguments", event.ToolCall, "What the tool was given, with secrets masked; long ones are cut.", "JSON", "", "gen_ai.tool.call.arguments", false},
	{"id", "tool.", "The agent's own number of the call.", "", "", "gen_ai.tool.call.id", false},
	{"boundary", event.SessionStart, "`none` where an agent runs outside of every boundary and only its hooks report.", "", "", "", false},
	{"cwd", "tool.", "Working directory, as the agent says.", "absolute path", "", "", false},
	{"subagent", "tool.", "The sub-agent that the call is of, as the agent names it; empty for the agent itself.", "", "", "", false},
	{"server", "tool.", "MCP server that the tool is of.", "", "", "", false},
	{"transcript", "tool.", "File of the agent's own transcript.", "path", "", "", false},
	{"conversation", "tool.", "The agent's own session.", "", "", "gen_ai.conversation.id", false},
	{"mode", "tool.", "Permission mode of the agent, in its own words.", "", "", "", false},
	{"outcome", event.ToolResult, "`ok` or `error`, where the agent or the server says so; of an MCP server also `refused` (the request failed), `cancelled`, and `lost` (the server ended).", "", "", "", false},
	{"response", event.ToolResult, "What the tool gave back, cut and with secrets masked.", "", "", "gen_ai.tool.call.result", false},
	{"count", event.ToolLost, "How many reports it stands for.", "count", "", "holdfast.count", true},

	{"id", "approval.", "The request: what `holdfast approve allow` takes.", "", "", "", false},
	{"kind", "approval.", "What the attempt is: `exec`, `file`, `connect`, `request`, `credential` or `tool`.", "", "", "", false},
	{"operation", "approval.", "What would be done to the file.", "", "", "", false},
	{"to", "approval.", "The other name of a rename or a link.", "path", "", "", false},
	{"script", "approval.", "The script that the executable would interpret.", "absolute path", "", "", false},
	{"environment", "approval.", "The variables of what would be executed that are not as the command of the run was given them. What they are set to is shown to who answers, and covered by the digest.", "names, with commas between", "", "", false},
	{"started_by", "approval.", "The program that would execute it.", "absolute path", "", "", false},
	{"server", "approval.", "MCP server that the tool is of.", "", "", "", false},
	{"agent", "approval.", "The agent that calls the tool.", "", "", "gen_ai.agent.name", false},
	{"arguments", "approval.", "What the tool would be given, with secrets masked; long ones are cut.", "JSON", "", "gen_ai.tool.call.arguments", false},
	{"digest", "approval.", "A number of exactly what would happen: two attempts of a session that are the same in everything have the same. It is keyed, so that nobody can find a short secret by trying.", "HMAC-SHA-256, hex", "", "", false},
	{"count", "approval.", "How many identical attempts waited together; of `approval.rule` how many denials this one stands for.", "count", "", "holdfast.count", true},
	{"outcome", event.ApprovalAnswer, "How the request ended: `answer`, `timeout` (nobody answered in time), `gone` (the process that asked has ended), `closed` (the run ended), `record` (it could not be recorded) or `ignored` (a webhook's answer was not valid).", "", "", "", false},
	{"outcome", event.ApprovalRule, "Why nobody was asked: `rule` (a rule of `deny:`), `nobody` (the run asks nobody), `limit` (asked too often) or `closed` (the run is over).", "", "", "", false},
	{"by", "approval. review.", "Who answered, as the signer states.", "", "", "", false},
	{"via", "approval. review.", "The way that the answer came, such as `terminal`, `command` or `webhook`.", "", "", "", false},
	{"key", "approval.", "Beginning of the hash of the public key that signed the answer.", "SHA-256, hex, cut", "", "", false},
	{"scope", "approval.", "How far an answer goes: `once`, `session` or `for`.", "", "", "", false},
	{"directory", "approval.", "The directory below which an answer holds, where it is not for the one path.", "absolute path", "", "", false},
	{"uses", "approval.", "How often an approval may be used; `unlimited` where that is not counted.", "count", "", "", false},
	{"left", "approval.", "How many uses are left; `unlimited` where they are not counted.", "count", "", "", false},
	{"expires", "approval.", "When the request or the approval ends.", "RFC 3339, UTC", "", "", false},
	{"grant", "approval.", "The approval: what `holdfast approve revoke` takes.", "", "", "", false},

	{"reason", "", "Why, in words.", "", "status_detail", "holdfast.reason", false},
	{"severity", "", "`info`, `low`, `medium`, `high` or `critical`.", "", "severity_id", "severityNumber", false},
	{"mark", "", "What makes the object noteworthy, such as `credentials`: events that have it are kept when others are summarised.", "", "", "", false},
	{"unknown", "", "What could not be found out, and why: a process that died in the middle, for example.", "", "", "", false},

	{"cut.*", "", "The field or detail of that name was longer than a record holds: the length of the whole, in bytes or arguments, and its SHA-256.", "", "", "", false},
	{"of", "record.", "The sensor whose events these are.", "", "", "", false},
	{"count", "record.", "How many they are; `unknown` where that cannot be known.", "count", "", "", true},
	{"seen", event.RecordBlind, "What is seen of it all the same.", "", "", "", false},
	{"executable", event.RecordDrop, "The program of the process that could not be seen into.", "absolute path", "", "", false},
	{"kernel", event.RecordDrop, "How many the kernel counted.", "count", "", "", true},
	{"from", "record.", "The first of them, by the sensor's count.", "count", "", "", true},
	{"to", "record.", "The last of them.", "count", "", "", true},
	{"ranges", "record.", "Which of those between they are, where it is not all.", "", "", "", false},
	{"count.*", "record.", "How many of them had the action of that name.", "count", "", "", true},
}

// detailOf is the row for a key of an event; nil where there is none.
func detailOf(action, key string) *detailRow {
	for i := range details {
		d := &details[i]
		if stem, open := strings.CutSuffix(d.key, "*"); d.key != key && (!open || !strings.HasPrefix(key, stem)) {
			continue
		}
		if d.in == "" {
			return d
		}
		for in := range strings.FieldsSeq(d.in) {
			if in == action || strings.HasSuffix(in, ".") && strings.HasPrefix(action, in) {
				return d
			}
		}
	}
	return nil
}
