package hooks

import "encoding/json"

// Output is what the hook of an agent prints for an answer; nothing if there is
// no objection. The exit status is always 0: with any other some agents show an
// error, and one treats it as a denial.
func (a Answer) Output(agent string) []byte {
	if a.Deny == "" {
		return nil
	}
	reason := "holdfast: " + a.Deny
	var v any
	switch agent {
	case "gemini":
		v = map[string]any{"decision": "deny", "reason": reason}
	case "copilot":
		v = map[string]any{"permissionDecision": "deny", "permissionDecisionReason": reason}
	case "opencode":
		v = map[string]any{"deny": reason}
	default:
		v = map[string]any{"hookSpecificOutput": map[string]any{
			"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
		}}
	}
	out, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return append(out, '\n')
}
