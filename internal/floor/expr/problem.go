package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"holdfast.dev/holdfast/internal/floor/event"
	floortext "holdfast.dev/holdfast/internal/floor/text"
)

// Error is what is wrong with a condition, and where: lines and columns count
// from 1, columns in characters.
type Error struct {
	Line, Column int
	Problem      string
	Near         string // the name or word that may have been meant; "" for none
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

// explain makes an error of the first thing that CEL has to say.
func (l *language) explain(issues *cel.Issues) error {
	all := issues.Errors()
	if len(all) == 0 {
		return fmt.Errorf("checking a condition: %w", issues.Err())
	}
	first := all[0]
	e := &Error{Line: max(1, first.Location.Line()), Column: first.Location.Column() + 1, Problem: first.Message}
	if m := find(`^undeclared reference to '([^']*)'`, first.Message); m != nil {
		e.Problem = fmt.Sprintf("there is no field and no function %q", m[1])
		e.Near = floortext.Nearest(m[1], l.names())
	} else if m := find(`^found no matching overload for '([^']*)' applied to '([^']*)'`, first.Message); m != nil {
		e.Problem = fmt.Sprintf("%s does not go with %s", strings.Trim(m[1], "_"), m[2])
	} else if rest, found := strings.CutPrefix(first.Message, "Syntax error: "); found {
		e.Problem = "it cannot be read: " + rest
	}
	return e
}

// find compiles its pattern each time: nobody waits here, but for the start of
// a program.
func find(pattern, s string) []string { return regexp.MustCompile(pattern).FindStringSubmatch(s) }

// names are what a condition may name: fields, and what can be called.
func (l *language) names() []string {
	all := []string{"under", "base", "lowerAscii", "startsWith", "endsWith", "contains", "matches", "size", "exists", "all", "has", "timestamp", "duration"}
	for _, f := range l.fields {
		all = append(all, f.Name)
	}
	return all
}

// words are what a field can be, where that is a closed list: a condition that
// compares it with anything else would never be true, and nobody would notice.
var words = map[string][]string{
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
		event.CredentialUse, event.CredentialAlert, event.HoneyRead, event.HoneySent,
		event.ToolCall, event.ToolResult, event.ToolLost, event.ToolList, event.ToolDrop,
		event.ApprovalRequest, event.ApprovalAnswer, event.ApprovalUse, event.ApprovalRule, event.ApprovalRevoke, event.ApprovalExpire, event.ReviewAnswer, event.ReviewApply,
		event.PolicyReload, event.AlertRaise, event.RecordBegin, event.RecordDrop, event.RecordCut, event.RecordBlind},
}

// examine looks at a condition that CEL accepts: it reports whether it has a
// comprehension, and refuses a comparison with a word that a field cannot be.
func (l *language) examine(checked *cel.Ast) (loops bool, err error) {
	native := checked.NativeRep()
	ast.PreOrderVisit(native.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			loops = true
		case ast.CallKind:
			if err == nil {
				err = l.misspelt(native, e.AsCall())
			}
		}
	}))
	return loops, err
}

func (l *language) misspelt(native *ast.AST, call ast.CallExpr) error {
	args := call.Args()
	if len(args) != 2 || !slices.Contains([]string{operators.Equals, operators.NotEquals, operators.In}, call.FunctionName()) {
		return nil
	}
	field, other := args[0], args[1]
	if field.Kind() != ast.IdentKind {
		field, other = other, field
	}
	if field.Kind() != ast.IdentKind {
		return nil
	}
	possible := l.words[field.AsIdent()]
	if possible == nil {
		return nil
	}
	compared := []ast.Expr{other}
	if other.Kind() == ast.ListKind {
		compared = other.AsList().Elements()
	}
	for _, c := range compared {
		if c.Kind() != ast.LiteralKind {
			continue
		}
		word, ok := c.AsLiteral().(types.String)
		if !ok || slices.Contains(possible, string(word)) {
			continue
		}
		at := native.SourceInfo().GetStartLocation(c.ID())
		return &Error{Line: max(1, at.Line()), Column: at.Column() + 1,
			Problem: fmt.Sprintf("%s is never %q", field.AsIdent(), string(word)), Near: floortext.Nearest(string(word), possible)}
	}
	return nil
}
