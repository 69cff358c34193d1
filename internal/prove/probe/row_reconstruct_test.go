//go:build linux

package probe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// TestAccount checks that a record which differs from a deed is found out.
func TestAccount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	if err := os.WriteFile(path, []byte(strings.Join([]string{
		`{"action":"file.write","object":"/w/a","verdict":"denied","layer":"view","error":"ENOENT"}`,
		`{"action":"file.write","object":"/h/a","verdict":"allowed","detail":{"kept":"private"}}`,
		`{"action":"proc.exec","object":"/bin/sh","verdict":"allowed","process":{"exec":2,"argv":["sh","echo x"]}}`,
		`{"action":"proc.exec","object":"/bin/true","verdict":"allowed","process":{"exec":3,"parent_exec":2,"argv":["true","y"]}}`,
		`{"action":"proc.exit","verdict":"allowed","process":{"exec":2},"detail":{"status":"3"}}`,
		`{"action":"net.request","object":"a.test:80","verdict":"allowed","detail":{"path":"/q","status":"200"}}`,
		`{"action":"net.request","object":"a.test:80","verdict":"denied","layer":"egress","detail":{"path":"/r"}}`,
		`{"action":"tool.call","object":"Bash","verdict":"allowed","detail":{"id":"t1"}}`,
	}, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	told, err := readAccount(Record{Path: path})
	if err == nil {
		err = told.calls([]byte(`{"tools":[{"id":"t1","main":2}]}`))
	}
	if err != nil {
		t.Fatal(err)
	}
	request := func(path string, change func(*inside.Deed)) inside.Deed {
		d := inside.Deed{Action: "net.request", Object: "a.test:80", Quiet: true, By: map[string]string{"path": path}}
		change(&d)
		return d
	}
	same := func(*inside.Deed) {}
	refused := func(d *inside.Deed) { d.Denied, d.Error = true, "ECONNREFUSED" }
	for name, c := range map[string]struct {
		deed inside.Deed
		why  string
	}{
		"as it was":                     {inside.Deed{Action: "file.write", Object: "/w/a", Denied: true, Error: "ENOENT"}, ""},
		"another object":                {inside.Deed{Action: "file.write", Object: "/w/b", Denied: true, Error: "ENOENT"}, "not recorded"},
		"another action":                {inside.Deed{Action: "file.unlink", Object: "/w/a", Denied: true, Error: "ENOENT"}, "not recorded"},
		"another verdict":               {inside.Deed{Action: "file.write", Object: "/w/a"}, "recorded as denied"},
		"another error":                 {inside.Deed{Action: "file.write", Object: "/w/a", Denied: true, Error: "EACCES"}, "its error"},
		"another layer":                 {inside.Deed{Action: "file.write", Object: "/w/a", Denied: true, Error: "ENOENT", Layer: "consent"}, `by "view"`},
		"kept":                          {inside.Deed{Action: "file.write", Object: "/h/a", Kept: true}, ""},
		"not kept":                      {inside.Deed{Action: "proc.exec", Object: "/bin/true", Kept: true}, "reached the host"},
		"how it ended":                  {inside.Deed{Action: "proc.exec", Shown: "echo x", Exit: "3"}, ""},
		"how it ended otherwise":        {inside.Deed{Action: "proc.exec", Shown: "echo x", Exit: "SIGKILL"}, "its end is recorded"},
		"an end that is not there":      {inside.Deed{Action: "proc.exec", Shown: "y", Exit: "0"}, "its end is not recorded"},
		"who executed it":               {inside.Deed{Action: "proc.exec", Shown: "y", Parent: "echo x"}, ""},
		"another who executed it":       {inside.Deed{Action: "proc.exec", Shown: "y", Parent: "z"}, "who executed"},
		"a request":                     {request("/q", func(d *inside.Deed) { d.Says = map[string]string{"status": "200"} }), ""},
		"another status":                {request("/q", func(d *inside.Deed) { d.Says = map[string]string{"status": "404"} }), "recorded with"},
		"another path":                  {request("/p", same), "not recorded"},
		"a refused request":             {request("/r", refused), ""},
		"a request recorded as refused": {request("/r", same), "recorded as denied"},
		"a request recorded as allowed": {request("/q", refused), "recorded as allowed"},
		"a request that failed":         {request("/q", func(d *inside.Deed) { d.Error = "ETIMEDOUT" }), "otherwise than it should"},
		"a call of a tool":              {inside.Deed{Action: "tool.call", Quiet: true, By: map[string]string{"id": "t1"}, Main: "echo x"}, ""},
		"a call joined otherwise":       {inside.Deed{Action: "tool.call", Quiet: true, By: map[string]string{"id": "t1"}, Main: "y"}, "which program"},
	} {
		if why := told.difference(c.deed); (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q, want %q", name, why, c.why)
		}
	}
}
