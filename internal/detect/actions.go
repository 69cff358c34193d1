package detect

import (
	"slices"

	"holdfast.dev/holdfast/internal/floor/event"
)

// actionNames are the actions that rules can be about. The index of an action
// is its number; 0 is none.
var actionNames = [...]string{
	"", event.SessionStart, event.SessionEnd, event.SessionAttest, event.SessionLimit,
	event.ProcExec, event.ProcExit, event.ProcSeen,
	event.FileOpen, event.FileWrite, event.FileMkdir, event.FileRename, event.FileLink, event.FileSymlink, event.FileUnlink, event.FileChmod,
	event.FileChown, event.FileTruncate, event.FileMknod, event.FileXattr, event.FileLookup, event.FileQuarantine,
	event.SockConnect, event.SockBind, event.SockSend, event.SysCall,
	event.NetQuery, event.NetConnect, event.NetRequest, event.NetClose,
	event.CredentialUse, event.CredentialRenew, event.CredentialAlert, event.HoneyRead, event.HoneySent,
	event.ToolCall, event.ToolResult, event.ToolLost, event.ToolList, event.ToolDrop,
	event.ApprovalRequest, event.ApprovalAnswer, event.ApprovalUse, event.ApprovalRule, event.ApprovalRevoke, event.ApprovalExpire, event.ReviewAnswer, event.ReviewApply,
	event.PolicyReload, event.RecordBegin, event.RecordDrop, event.RecordCut, event.RecordBlind,
}

// actionOf is the number of an action; 0 for one that no rule can be about.
func actionOf(name string) int { return max(0, slices.Index(actionNames[:], name)) }
