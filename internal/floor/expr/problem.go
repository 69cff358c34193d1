package expr

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/event"
	floortext "holdfast.dev/holdfast/internal/floor/text"
)

// Error is what is wrong with a condition, and where: lines and columns count
// from 1, columns in characters.
type Error struct {
	Line, Column int
	Problem      string
	Near         string // the name or word that may have been meant; "" for none
	at           int    // byte offset, from which place computes line and column
}

// Error says it in a line.
func (e *Error) Error() string {
	s := fmt.Sprintf("condition, column %d: %s", e.Column, e.Problem)
	if e.Line > 1 {
		s = fmt.Sprintf("condition, line %d, column %d: %s", e.Line, e.Column, e.Problem)
	}
	if e.Near != "" {
		s += fmt.Sprintf("; did you mean %q?", e.Near)
	}
	return s
}

func problem(at int, format string, args ...any) error {
	return &Error{at: at, Problem: fmt.Sprintf(format, args...)}
}

// unsupported is the error about a part of CEL that conditions do not have.
func unsupported(at int, what string) error {
	return problem(at, "%s is not supported: a condition has strings, integers, true, false, lists, timestamps and durations", what)
}

func (e *Error) setPosition(condition string) {
	before := strings.ToValidUTF8(condition[:e.at], "?")
	e.Line = strings.Count(before, "\n") + 1
	e.Column = utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}

// names are what a condition may name: fields, and what can be called.
func (l *language) names() []string {
	all := []string{"has", "all", "exists", "exists_one", "filter", "map"}
	for _, f := range functions {
		if isLetter(f.name[0]) && !slices.Contains(all, f.name) {
			all = append(all, f.name)
		}
	}
	for _, f := range l.fields {
		all = append(all, f.Name)
	}
	return all
}

// words are what a field can be, where that is a closed list: a condition that
// compares it with anything else would never be true, without a sign of it.
func words() map[string][]string {
	return map[string][]string{
		"verdict": {event.Denied.String(), event.Allowed.String(), event.Unknown.String()},
		"sensor": {string(event.Task), string(event.Syscall), string(event.Tripwire), string(event.Landlock), string(event.Honey),
			string(event.Egress), string(event.Broker), string(event.Detect), string(event.Gateway), string(event.Agent), string(event.Approve), string(event.Record)},
		"layer": {"", event.LayerView, event.LayerReadonly, event.LayerProtected, event.LayerHidden, event.LayerPermissions,
			event.LayerFilter, event.LayerLandlock, event.LayerEgress, event.LayerBroker, event.LayerTools, event.LayerConsent, event.LayerGateway},
		"action": {event.SessionStart, event.SessionEnd, event.SessionAttest, event.SessionLimit,
			event.ProcExec, event.ProcExit, event.ProcSeen,
			event.FileOpen, event.FileWrite, event.FileMkdir, event.FileRename, event.FileLink, event.FileSymlink, event.FileUnlink,
			event.FileChmod, event.FileChown, event.FileTruncate, event.FileMknod, event.FileXattr, event.FileLookup, event.FileQuarantine,
			event.SockConnect, event.SockBind, event.SockSend, event.SysCall,
			event.NetQuery, event.NetConnect, event.NetRequest, event.NetClose,
			event.CredentialUse, event.CredentialRenew, event.CredentialAlert, event.HoneyRead, event.HoneySent,
			event.ToolCall, event.ToolResult, event.ToolLost, event.ToolList, event.ToolDrop,
			event.ApprovalRequest, event.ApprovalAnswer, event.ApprovalUse, event.ApprovalRule, event.ApprovalRevoke, event.ApprovalExpire, event.ReviewAnswer, event.ReviewApply,
			event.PolicyReload, event.AlertRaise, event.RecordBegin, event.RecordDrop, event.RecordCut, event.RecordBlind},
	}
}

// misspelt refuses a comparison of a field with a word that it cannot be.
func (l *language) misspelt(field, other *node) error {
	if field.op != opField {
		field, other = other, field
	}
	possible := l.words[field.name]
	if field.op != opField || possible == nil {
		return nil
	}
	compared := []*node{other}
	if other.op == opList {
		compared = other.args
	}
	for _, c := range compared {
		word, ok := c.text()
		if ok && !slices.Contains(possible, word) {
			return &Error{at: c.at, Problem: fmt.Sprintf("%s is never %q", field.name, word), Near: floortext.Nearest(word, possible)}
		}
	}
	return nil
}
