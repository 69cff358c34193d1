package incident

import (
	"fmt"

	"holdfast.dev/holdfast/internal/floor/document"
	"holdfast.dev/holdfast/internal/floor/event"
)

// layerWords are, by layer, its name and what it does, in plain words.
var layerWords = map[string][2]string{
	event.LayerView:        {"the view", "inside, it does not exist"},
	event.LayerReadonly:    {"the read-only view", "inside, it can be read and not changed"},
	event.LayerProtected:   {"the protection of what a host executes", "such files cannot be changed inside, and new ones are moved out of the workspace at the end"},
	event.LayerHidden:      {"the hiding of secrets", "inside, this file of the workspace cannot be read"},
	event.LayerPermissions: {"the permissions of the file", "its owner and mode bits"},
	event.LayerFilter:      {"the system-call filter", "the kernel did not carry the call out"},
	event.LayerLandlock:    {"Landlock", "the kernel's own list of what may be opened"},
	event.LayerEgress:      {"the network policy", "no rule allows it, or one denies it"},
	event.LayerBroker:      {"the terms of the credential", "it is lent for other uses than this"},
	event.LayerTools:       {"the policy's rules for tools", "the agent was told no; it is the agent that obeys"},
	event.LayerConsent:     {"consent", "a rule of the policy refused it, or the person who was asked"},
	event.LayerGateway:     {"the gateway", "it is not a message of the protocol, or above a limit"},
	"":                     {"a limit of the run", "or no layer is named in the record"},
	unknownLayer:           {"a layer that this version does not know", "see the record"},
}

// layerName is the name of a layer in plain words.
func layerName(layer string) string {
	if words, known := layerWords[layer]; known {
		return words[0]
	}
	return layerWords[unknownLayer][0]
}

// verbs are what an action tries to do to its object, and what it did where nothing
// refused it.
var verbs = map[string][2]string{
	event.ProcExec:        {"execute", "executed"},
	event.FileOpen:        {"read", "read"},
	event.FileWrite:       {"write", "wrote"},
	event.FileMkdir:       {"make the directory", "made the directory"},
	event.FileRename:      {"rename", "renamed"},
	event.FileLink:        {"make the second name", "made the second name"},
	event.FileSymlink:     {"make the symbolic link", "made the symbolic link"},
	event.FileUnlink:      {"remove", "removed"},
	event.FileChmod:       {"change the mode of", "changed the mode of"},
	event.FileChown:       {"change the owner of", "changed the owner of"},
	event.FileTruncate:    {"cut short", "cut short"},
	event.FileMknod:       {"make the device or pipe", "made the device or pipe"},
	event.FileXattr:       {"change attributes of", "changed attributes of"},
	event.FileLookup:      {"find", "found"},
	event.FileQuarantine:  {"leave in the workspace", "left in the workspace"},
	event.SockConnect:     {"connect to", "called connect for"},
	event.SockBind:        {"listen on", "listened on"},
	event.SockSend:        {"send to", "sent to"},
	event.SysCall:         {"make the system call", "made the system call"},
	event.NetQuery:        {"look up the name", "looked up the name"},
	event.NetConnect:      {"reach", "reached"},
	event.NetRequest:      {"send a request to", "sent a request to"},
	event.CredentialUse:   {"use a credential at", "used a credential at"},
	event.CredentialRenew: {"have a login renewed at", "had a login renewed at"},
	event.CredentialAlert: {"send a credential where it does not belong:", "sent a credential where it does not belong:"},
	event.HoneyRead:       {"open the fake credential", "opened the fake credential"},
	event.HoneySent:       {"send a fake credential to", "sent a fake credential to"},
	event.ToolCall:        {"call the tool", "called the tool"},
	event.ToolDrop:        {"send something that is not a message, as the", "sent something that is not a message, as the"},
	event.ToolLost:        {"report a tool call:", "made a tool call of which the report is missing:"},
	event.ApprovalAnswer:  {"be allowed by a person:", "was allowed by a person:"},
	event.ApprovalRule:    {"do what a rule of consent is about:", "did what a rule of consent is about:"},
	event.ApprovalRevoke:  {"keep the permission for", "lost the permission for"},
	event.ApprovalExpire:  {"keep the permission for", "lost, by time, the permission for"},
	event.ReviewAnswer:    {"have a change accepted:", "had a change accepted:"},
	event.ReviewApply:     {"have a change applied:", "had a change applied:"},
	event.SessionLimit:    {"go beyond the limit", "went beyond the limit"},
	event.PolicyReload:    {"have the policy loaded again for", "had the policy loaded again for"},
}

// infinitive is an action as it follows "tried to".
func infinitive(action string) string {
	if v := verbs[action][0]; v != "" {
		return v
	}
	return "do something that this version does not know to"
}

// pastTense is an action that was carried out.
func pastTense(action string) string {
	if v := verbs[action][1]; v != "" {
		return v
	}
	return "did something that this version does not know to"
}

// verdictWords are what the verdict on the record means for the reader.
var verdictWords = map[string]string{
	"COMPLETE":     "every event that a sensor had is in the record, as it was written. What this report says happened can be relied on; what no sensor sees is listed at its end.",
	"PARTIAL":      "what is in the record is as it was written, but a sensor was missing or could not see a part of the run. That something is not in this report does not mean that it was not attempted: read what could not be seen, at the end, first.",
	"GAPS":         "what is in the record is as it was written, but events were lost or only counted, or the run was broken off. That something is not in this report does not mean that it did not happen.",
	"TAMPERED":     "the record was altered, cut or put elsewhere after it was written. Nothing in this report can be relied on: use it only for hints, and assume that nothing is known of the run.",
	"UNVERIFIABLE": "nothing vouches for the record: it was signed by a key that this user does not have. What this report says may be invented.",
}

// plural is n things.
func plural(n uint64, one, many string) document.Words {
	if n == 1 {
		return document.Words("1 " + one)
	}
	return document.Words(fmt.Sprintf("%d %s", n, many))
}

// size is a number of bytes as a person reads it.
func size(n uint64) document.Words {
	if n < 1024 {
		return plural(n, "byte", "bytes")
	}
	f, unit := float64(n), ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB"} {
		if f /= 1024; f < 1024 {
			break
		}
	}
	return document.Words(fmt.Sprintf("%.1f %s", f, unit))
}
