package export

import (
	"sync"

	"holdfast.dev/holdfast/internal/floor/event"
)

// class is an event class of OCSF, with the names of the activities used here.
type class struct {
	uid        int64 // class_uid; its thousands are the category
	name       string
	activities map[int64]string
}

// Activity 99 is "other": its name is then the source's own.
const other = 99

// The classes, as OCSF 1.9 has them.
var (
	fileActivity    = &class{1001, "File System Activity", map[int64]string{1: "Create", 2: "Read", 3: "Update", 4: "Delete", 5: "Rename", 6: "Set Attributes", 7: "Set Security", 8: "Get Attributes", 14: "Open"}}
	kernelActivity  = &class{1003, "Kernel Activity", map[int64]string{4: "Invoke"}}
	processActivity = &class{1007, "Process Activity", map[int64]string{1: "Launch", 2: "Terminate"}}
	logActivity     = &class{1008, "Event Log Activity", map[int64]string{6: "Start"}}
	finding         = &class{2004, "Detection Finding", map[int64]string{1: "Create"}}
	entity          = &class{3004, "Entity Management", map[int64]string{3: "Update"}}
	networkActivity = &class{4001, "Network Activity", map[int64]string{1: "Open", 2: "Close", 6: "Traffic", 7: "Listen"}}
	httpActivity    = &class{4002, "HTTP Activity", map[int64]string{1: "Connect", 2: "Delete", 3: "Get", 4: "Head", 5: "Options", 6: "Post", 7: "Put", 8: "Trace", 9: "Patch"}}
	dnsActivity     = &class{4003, "DNS Activity", map[int64]string{1: "Query"}}
	lifecycle       = &class{6002, "Application Lifecycle", map[int64]string{3: "Start", 4: "Stop"}}
	apiActivity     = &class{6003, "API Activity", map[int64]string{2: "Read"}}
)

// methods are the activities of httpActivity; any other method is 99.
var methods = map[string]int64{
	"CONNECT": 1, "DELETE": 2, "GET": 3, "HEAD": 4, "OPTIONS": 5, "POST": 6, "PUT": 7, "TRACE": 8, "PATCH": 9,
}

// action is what an Action of an event means, and what OCSF calls it.
type action struct {
	name     string
	meaning  string // one sentence
	object   string // what Object is
	class    *class
	activity int64
	other    string // name of activity 99
	severity severity
}

// actions has every constant Action of package event: a test reads them there.
var actions = []action{
	{event.SessionStart, "The boundary is complete; the command starts.", "the workspace", lifecycle, 3, "", informational},
	{event.SessionEnd, "Everything inside is dead.", "", lifecycle, 4, "", informational},
	{event.SessionAttest, "What the boundary was found to be from inside, before the command.", "the workspace", lifecycle, other, "Attest", informational},
	{event.SessionLimit, "A limit was hit.", "the limit", lifecycle, other, "Limit", medium},

	{event.ProcExec, "A program is executed. Written before it runs.", "its path, as asked", processActivity, 1, "", informational},
	{event.ProcExit, "A process ended.", "", processActivity, 2, "", informational},
	{event.ProcSeen, "A process that was forked and executed nothing yet did something for the first time.", "", processActivity, 1, "", informational},

	{event.FileOpen, "A file was opened for reading alone. Recorded at level `full`, and where it was denied.", "the path", fileActivity, 14, "", informational},
	{event.FileWrite, "A file was opened for writing, created or emptied.", "the path", fileActivity, 3, "", informational},
	{event.FileMkdir, "A directory was made.", "the path", fileActivity, 1, "", informational},
	{event.FileRename, "A file got another name.", "the old name", fileActivity, 5, "", informational},
	{event.FileLink, "A file got a further name.", "the new name", fileActivity, 1, "", informational},
	{event.FileSymlink, "A symbolic link was made.", "the link", fileActivity, 1, "", informational},
	{event.FileUnlink, "A name was removed, of a file or a directory.", "the path", fileActivity, 4, "", informational},
	{event.FileChmod, "A mode was changed.", "the path", fileActivity, 7, "", informational},
	{event.FileChown, "An owner was changed.", "the path", fileActivity, 7, "", informational},
	{event.FileTruncate, "A file was cut or lengthened by its name.", "the path", fileActivity, 3, "", informational},
	{event.FileMknod, "A device, pipe or socket was made.", "the path", fileActivity, 1, "", informational},
	{event.FileXattr, "An extended attribute was set or removed.", "the path", fileActivity, 6, "", informational},
	{event.FileLookup, "A name outside the view, or hidden in it, was looked up.", "the path, as asked", fileActivity, 8, "", informational},
	{event.FileQuarantine, "At the end a file was held back that the host would execute.", "the path", fileActivity, other, "Quarantine", medium},

	{event.SockConnect, "A socket was connected.", "`HOST:PORT`, `unix:/PATH` or `unix:@NAME`", networkActivity, 1, "", informational},
	{event.SockBind, "A socket got an address.", "as `sock.connect`", networkActivity, 7, "", informational},
	{event.SockSend, "Something was sent to an address without a connection.", "as `sock.connect`", networkActivity, 6, "", informational},
	{event.SysCall, "A system call was made that the boundary refuses.", "its name", kernelActivity, 4, "", informational},

	{event.NetQuery, "A name was asked for.", "the name", dnsActivity, 1, "", informational},
	{event.NetConnect, "A connection through the boundary was decided on.", "`HOST:PORT`", networkActivity, 1, "", informational},
	{event.NetRequest, "An HTTP request was answered or refused, or left beside others (then without a `status`, and once more when it is answered).", "`HOST:PORT`", httpActivity, other, "", informational},
	{event.NetClose, "A connection through the boundary ended.", "`HOST:PORT`", networkActivity, 2, "", informational},

	{event.CredentialUse, "A credential was lent for a request, or was refused.", "`HOST:PORT` it is for", apiActivity, 2, "", informational},
	{event.CredentialRenew, "A login was renewed at its provider, or could not be.", "`HOST:PORT` of the token endpoint", apiActivity, other, "Renew", informational},
	{event.CredentialAlert, "A placeholder of a credential was where it may not be.", "`HOST:PORT` it was on its way to", finding, 1, "", high},
	{event.HoneyRead, "A honeytoken's file was opened.", "its path", finding, 1, "", critical},
	{event.HoneySent, "A honeytoken's value was on its way out.", "the destination", finding, 1, "", critical},

	{event.ToolCall, "An agent is about to use a tool: its own hook says so, and the process is the one that said it; or it asks an MCP server behind the gateway.", "the tool's name", apiActivity, other, "Call", informational},
	{event.ToolResult, "An agent has used a tool: its own hook says so, or the server answered.", "the tool's name", apiActivity, other, "Result", informational},
	{event.ToolLost, "A report of a tool call is missing or could not be read.", "the agent", logActivity, other, "Drop", medium},
	{event.ToolList, "Which tools an MCP server offers; written when that is new or changed.", "the server", apiActivity, 2, "", informational},
	{event.ToolDrop, "Something between an agent and an MCP server was not passed on.", "who wrote it: `agent` or `server`", apiActivity, other, "Drop", low},

	{event.ApprovalRequest, "A human is asked: what would happen waits for an answer.", "what would be executed, changed, reached or called", apiActivity, other, "Ask", low},
	{event.ApprovalAnswer, "A human answered, or nobody did in time.", "as `approval.request`", apiActivity, other, "Answer", informational},
	{event.ApprovalUse, "An answer covers an attempt, which goes on. Written before it does.", "as `approval.request`", apiActivity, other, "Use", informational},
	{event.ApprovalRule, "A rule of consent denied something without asking.", "as `approval.request`", apiActivity, other, "Deny", low},
	{event.ApprovalRevoke, "An approval was taken back.", "what it covered", apiActivity, other, "Revoke", informational},
	{event.ApprovalExpire, "The time of an approval is over.", "what it covered", apiActivity, other, "Expire", informational},
	{event.ReviewAnswer, "A change that waits for review was accepted or rejected.", "its path", fileActivity, other, "Review", informational},
	{event.ReviewApply, "An accepted change reached the tree, or could not.", "its path", fileActivity, 3, "", informational},

	{event.PolicyReload, "The policy was read again while the session ran.", "the workspace of the run", entity, 3, "", informational},
	{event.AlertRaise, "A detection rule raised an alert.", "the rule's id", finding, 1, "", medium},

	{event.RecordBegin, "The first record of a session.", "", logActivity, 6, "", informational},
	{event.RecordDrop, "Events of a sensor are missing from the log.", "", logActivity, other, "Drop", high},
	{event.RecordCut, "Events are summarised here instead of recorded one by one.", "", logActivity, other, "Summarise", informational},
	{event.RecordBlind, "From here on the sensors of the run do not see something.", "what is not seen, see [Blind spots](#blind-spots)", logActivity, other, "Blind", medium},
}

var actionByName = sync.OnceValue(func() map[string]*action {
	m := make(map[string]*action, len(actions))
	for i := range actions {
		m[actions[i].name] = &actions[i]
	}
	return m
})

// unknownAction stands for an action of a later version: OCSF has a base event for
// what fits no class.
var unknownAction = action{class: &class{0, "Base Event", nil}, activity: other, other: "Unknown", severity: informational}

func actionOf(e event.Event) *action {
	if a := actionByName()[e.Action]; a != nil {
		return a
	}
	return &unknownAction
}

// severity is severity_id of OCSF.
type severity int64

const (
	informational severity = 1 + iota
	low
	medium
	high
	critical
)

// severities are the words for a severity in the rules and sensors of Holdfast,
// and in OpenTelemetry, whose data model maps those of syslog: notice, warning,
// error, critical.
var severities = map[severity]struct {
	word, ocsf, text string
	number           int64
}{
	informational: {"info", "Informational", "INFO", 9},
	low:           {"low", "Low", "INFO2", 10},
	medium:        {"medium", "Medium", "WARN", 13},
	high:          {"high", "High", "ERROR", 17},
	critical:      {"critical", "Critical", "ERROR2", 18},
}

// severityOf is the severity in the event, else that of its action, which for a
// denial is at least low.
func severityOf(a *action, e event.Event) severity {
	for s, names := range severities {
		if e.Detail["severity"] == names.word {
			return s
		}
	}
	if e.Verdict == event.Denied {
		return max(a.severity, low)
	}
	return a.severity
}
