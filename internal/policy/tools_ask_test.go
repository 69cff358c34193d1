package policy

import (
	"strings"
	"testing"
)

func TestAskTool(t *testing.T) {
	p := Plan{
		Workspace: "/home/you/ws",
		Paths:     []PathRule{{Path: "/data", Access: Read, Origin: Origin{"p.yaml", 3}}, {Path: "/out", Access: Write}, {Path: "/home/you/ws/.secret", Access: Hidden}},
		Protect:   []Protected{{Path: ".git/hooks", Rule: ".git/hooks/**", Reason: "git executes it"}},
		Hidden:    []Protected{{Path: ".env", Rule: ".env"}},
		Allow:     []HostRule{{Host: "packages.example.org"}, {Host: "*.example.net"}},
	}
	private := []string{"/home/you", "/tmp", "/dev"}
	for _, tt := range []struct{ tool, arguments, want string }{
		{"Read", `{"file_path":"/home/you/ws/a"}`, ""},
		{"Read", `{"file_path":"a/../b"}`, ""},
		{"Write", `{"file_path":"made.txt","content":"x"}`, ""},
		{"Read", `{"file_path":"/home/other/.ssh/id_rsa"}`, "/home/other/.ssh/id_rsa is not in view"},
		{"Read", `{"file_path":"../../../other/x"}`, "../../../other/x is not in view"},
		{"Read", `{"file_path":"/home/you/.ssh/id_rsa"}`, ""}, // private inside
		{"Read", `{"file_path":"/home/you/ws/.env"}`, "/home/you/ws/.env is hidden as a secret"},
		{"Write", `{"file_path":".git/hooks/pre-commit"}`, ".git/hooks/pre-commit is protected: git executes it"},
		{"Read", `{"file_path":".git/hooks/pre-commit"}`, ""},
		{"Read", `{"file_path":"/data/x"}`, ""},
		{"edit", `{"filePath":"/data/x"}`, "/data/x is in view read-only"},
		{"Write", `{"file_path":"/out/x"}`, ""},
		{"Write", `{"file_path":"/usr/bin/x"}`, "/usr/bin/x is in view read-only"},
		{"Read", `{"file_path":"/usr/bin/x"}`, ""},
		{"Write", `{"file_path":"/dev/null"}`, ""},
		{"list_directory", `{"path":"/home/you/ws/.."}`, ""},
		{"LS", `{"path":"/"}`, ""},
		{"apply_patch", `{"command":"*** Begin Patch\n*** Update File: .git/hooks/x\n@@\n"}`, ".git/hooks/x is protected: git executes it"},
		{"Bash", `{"command":"cat /home/other/x"}`, ""}, // a command is no path
		{"WebFetch", `{"url":"https://packages.example.org/x"}`, ""},
		{"WebFetch", `{"url":"https://a.example.net./x"}`, ""},
		{"WebFetch", `{"url":"https://evil.example.com/x"}`, "evil.example.com is not a host that the policy allows"},
		{"WebFetch", `{"url":"http://evil.example.com/x"}`, "evil.example.com is not a host that the policy allows"},
		{"WebFetch", `{"url":"http://127.0.0.1:3000/x"}`, ""},
		{"web_fetch", `{"prompt":"look at <https://evil.example.com/x> now"}`, "evil.example.com is not a host"},
		{"Read", `{"file_path":"/home/other/\u001b[2J"}`, `/home/other/\x1b[2J is not in view`},
		{"Read", `{"file_path":5}`, ""},
		{"Read", `broken`, ""},
		{"", ``, ""},
	} {
		got, _ := p.AskTool(ToolCall{Tool: tt.tool, Arguments: tt.arguments, Cwd: "/home/you/ws"}, private, nil)
		if !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s %s: %q, want %q", tt.tool, tt.arguments, got, tt.want)
		}
	}
	if got, _ := p.AskTool(ToolCall{Tool: "read_file", Server: "github", Arguments: `{"path":"/home/other/x"}`}, private, nil); got != "" {
		t.Errorf("a path of a server's own: %s", got)
	}
	link := func(string) string { return "/home/other/x" }
	if got, _ := p.AskTool(ToolCall{Tool: "Read", Arguments: `{"path":"/home/you/ws/link"}`}, private, link); got != "/home/you/ws/link is not in view" {
		t.Errorf("a link that leads out: %q", got)
	}
}

func FuzzAskTool(f *testing.F) {
	f.Add("Read", `{"file_path":"../x"}`, "/w")
	f.Add("apply_patch", `{"input":"*** Add File: ../../x\n"}`, "/w")
	f.Add("WebFetch", `{"url":"http://[::1%25lo]/"}`, "")
	f.Fuzz(func(t *testing.T, tool, arguments, cwd string) {
		p := Plan{Workspace: "/w", Hidden: []Protected{{Path: ".env"}}}
		reason, _ := p.AskTool(ToolCall{Tool: tool, Arguments: arguments, Cwd: cwd}, []string{"/tmp"}, nil)
		if strings.ContainsAny(reason, "\n\r\x00\x1b") {
			t.Errorf("%q", reason)
		}
	})
}
