package model

// names lists what agents call the tools of an operation, over their versions.
// The first that a request offers is used.
var names = map[Op][]string{
	Shell: {"Bash", "exec_command", "shell_command", "shell", "container.exec", "local_shell", "unified_exec",
		"run_shell_command", "bash", "run_commands", "execute_command", "run_command", "developer__shell", "powershell"},
	Read:  {"Read", "read_file", "read", "view", "view_file", "read_files", "str_replace_editor", "str_replace_based_edit_tool", "developer__text_editor"},
	Write: {"Write", "write_file", "write", "create", "create_file", "write_to_file", "str_replace_editor", "str_replace_based_edit_tool", "developer__text_editor", "editor"},
	Edit:  {"Edit", "replace", "edit", "edit_file", "str_replace", "replace_in_file", "str_replace_editor", "str_replace_based_edit_tool", "developer__text_editor", "editor"},
	Patch: {"apply_patch", "patch"},
	Fetch: {"WebFetch", "web_fetch", "webfetch", "fetch", "fetch_web_content", "url_fetch"},
	Spawn: {"Agent", "Task", "invoke_agent", "task", "agent", "spawn_agent", "delegate", "use_subagents", "subagent", "spawn_subagent"},
}

// aliases lists what agents call an argument. The first that a schema has is set.
var aliases = map[string][]string{
	"command":     {"command", "cmd", "commands", "script"},
	"path":        {"file_path", "filePath", "filepath", "path", "absolute_path", "filename", "file", "target_file", "paths", "files"},
	"content":     {"content", "contents", "file_text", "text", "new_text"},
	"old":         {"old_string", "oldString", "old_str", "old_text", "old"},
	"new":         {"new_string", "newString", "new_str", "new_text", "new"},
	"url":         {"url", "uri", "urls"},
	"patch":       {"input", "patchText", "patch", "patch_text", "text"},
	"prompt":      {"prompt", "message", "task", "instructions", "objective", "query", "request"},
	"description": {"description", "task_name", "title"},
	"background":  {"run_in_background", "is_background", "background"},
}

// verbs are the values of an argument "command" in tools that do several
// operations.
var verbs = map[Op]string{Read: "view", Write: "create", Edit: "str_replace"}

// escalations lists the arguments that request a command outside the agent's own
// sandbox: the argument that does so, and those that go with it.
var escalations = []struct {
	argument string
	values   map[string]any
}{
	{"dangerouslyDisableSandbox", map[string]any{"dangerouslyDisableSandbox": true}},
	{"sandbox_permissions", map[string]any{"sandbox_permissions": "require_escalated", "justification": "The task needs it."}},
	{"with_escalated_permissions", map[string]any{"with_escalated_permissions": true, "justification": "The task needs it."}},
}
