package policy

import "testing"

// A command starts where the user is if that is in the workspace, and at its top
// if not: it could not reach a directory outside.
func TestCommandStartsInTheWorkspace(t *testing.T) {
	for _, row := range []struct{ name, cwd, want string }{
		{"at the top", "data/ws", "data/ws"},
		{"below", "data/ws/sub", "data/ws/sub"},
		{"below, by a link", "data/link", "data/ws/sub"},
		{"above", "data", "data/ws"},
		{"beside, with a name that begins alike", "data/ws2", "data/ws"},
		{"a directory that is gone", "data/none", "data/ws"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.mkdir("data/ws/sub")
			w.mkdir("data/ws2")
			w.link("/data/ws/sub", "data/link")
			o := Options{Host: w.host, Workspace: w.at("data/ws")}
			o.Host.Dir = w.at(row.cwd)
			if p := w.plan(o); p.Dir != w.at(row.want) {
				t.Errorf("starts in %s, want %s", p.Dir, w.at(row.want))
			}
		})
	}
}
