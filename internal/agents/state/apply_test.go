//go:build linux

package state

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// An agent that was given a part of a file can never remove the rest.
func TestApplyRemovesNothingUnseen(t *testing.T) {
	const host = `{"hooks":{"Stop":"x"},"permissions":{"allow":["a"],"deny":["d"]},"projects":{"/other":{"n":1},"/own":{"n":1}},"theme":"dark"}`
	for _, row := range []struct{ name, seen, left, want string }{
		{"an empty object for one that it saw in part", `{"permissions":{"allow":["a"]},"theme":"dark"}`, `{"permissions":{},"theme":"dark"}`, strings.Replace(host, `"allow":["a"],`, "", 1)},
		{"an empty object for one that it did not see", `{"theme":"dark"}`, `{"theme":"dark","hooks":{}}`, ""},
		{"an empty object for the projects", `{"projects":{"/own":{"n":1}}}`, `{"projects":{}}`, strings.Replace(host, `,"/own":{"n":1}`, `,"/own":{}`, 1)},
		{"null for an object", `{"permissions":{"allow":["a"]}}`, `{"permissions":null}`, ""},
		{"a text for an object", `{"permissions":{"allow":["a"]}}`, `{"permissions":"no"}`, ""},
		{"a list for an object that it did not see", `{}`, `{"hooks":[]}`, ""},
		{"a value below a text", `{}`, `{"theme":{"a":1}}`, ""},
		{"a value that was changed here since", `{"theme":"light"}`, `{"theme":"blue"}`, ""},
		{"a value that was removed, and was changed here since", `{"theme":"light"}`, `{}`, ""},
		{"a list that it saw", `{"permissions":{"deny":["d"]}}`, `{"permissions":{"deny":[]}}`, strings.Replace(host, `["d"]`, `[]`, 1)},
		{"a list that it saw in part", `{"permissions":{"deny":[]}}`, `{"permissions":{"deny":["e"]}}`, ""},
		{"a value that is so already", `{"theme":"light"}`, `{"theme":"dark"}`, host},
		{"a new value in an object that it did not see", `{}`, `{"hooks":{"Start":"y"}}`, strings.Replace(host, `{"Stop":"x"}`, `{"Start":"y","Stop":"x"}`, 1)},
	} {
		t.Run(row.name, func(t *testing.T) {
			seen, err := parseJSON([]byte(row.seen))
			if err != nil {
				t.Fatal(err)
			}
			left, err := parseJSON([]byte(row.left))
			if err != nil {
				t.Fatal(err)
			}
			keys := differences(seen, left, nil, nil)
			if len(keys) == 0 {
				t.Fatal("nothing would be shown")
			}
			got, err := withKeys([]byte(host), keys)
			squeezed := strings.NewReplacer("\n", "", " ", "").Replace(string(got))
			if row.want == "" && err == nil || row.want != "" && squeezed != row.want {
				t.Errorf("got %s, %v", squeezed, err)
			}
		})
	}
}

// A link below the copied path is never followed; one that leads to it is shown.
func TestApplyGoesWhereItWasShown(t *testing.T) {
	home, state := t.TempDir(), t.TempDir()
	mkdirs(t, home, "dot/commands", "bin")
	for name, target := range map[string]string{".agent": "dot", "dot/commands/linked": "../../bin", "dot/file.md": "commands/real.md", "dot/nowhere": "../gone/x"} {
		if err := os.Symlink(target, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, state+"/new", "text\n")
	c := &Changes{Dir: state}
	for _, row := range []struct{ name, place, rest, real string }{
		{"through a link to what was copied", ".agent/commands/a/b.md", "a/b.md", "dot/commands/a/b.md"},
		{"through a link below it", ".agent/commands/linked/x", "linked/x", ""},
		{"to a link below it", ".agent/file.md", "file.md", ""},
		{"to a link that leads nowhere", ".agent/nowhere", "", ""},
		{"below what is not there", ".new/a/b", "b", ".new/a/b"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := ChangedFile{Place: filepath.Join(home, row.place), Rest: row.rest, Change: "added", New: "new", Mode: 0o700}
			real, err := f.Real()
			if row.real == "" {
				if err == nil || c.Apply(f) == nil {
					t.Errorf("it goes to %s, %v", real, err)
				}
				return
			}
			if err != nil || real != filepath.Join(home, row.real) {
				t.Fatalf("it goes to %s, %v", real, err)
			}
			if err := c.Apply(f); err != nil {
				t.Error(err)
			}
			if st, err := os.Lstat(real); err != nil || st.Mode() != 0o700 {
				t.Errorf("%v, %v", st, err)
			}
		})
	}
	if left, err := os.ReadDir(home + "/bin"); err != nil || len(left) > 0 {
		t.Errorf("behind the link are %v, %v", left, err)
	}
}

// The digest changes when anything that would be applied changes.
func TestDigestOfWhatWaits(t *testing.T) {
	home, state := t.TempDir(), t.TempDir()
	write(t, state+"/new", "text\n")
	write(t, state+"/other", "texT\n")
	base := func() []*Changes {
		return []*Changes{{Dir: state, ID: "1", Preset: "p", Files: []ChangedFile{{Place: home + "/a", Change: "added", New: "new", Mode: 0o600}}}}
	}
	seen := map[string]string{}
	for name, change := range map[string]func([]*Changes) []*Changes{
		"as it is":      func(c []*Changes) []*Changes { return c },
		"another text":  func(c []*Changes) []*Changes { c[0].Files[0].New = "other"; return c },
		"another mode":  func(c []*Changes) []*Changes { c[0].Files[0].Mode = 0o700; return c },
		"another place": func(c []*Changes) []*Changes { c[0].Files[0].Place += "b"; return c },
		"another value": func(c []*Changes) []*Changes { c[0].Files[0].Keys = []KeyChange{{Key: []string{"k"}}}; return c },
		"what came after": func(c []*Changes) []*Changes {
			return append([]*Changes{{Dir: state, ID: "2", Preset: "p"}}, c...)
		},
	} {
		digest, err := Digest(change(base()))
		if err != nil || seen[digest] != "" {
			t.Errorf("%s: the digest is that of %s, %v", name, seen[digest], err)
		}
		seen[digest] = name
	}
	was, err := Digest(base())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", home+"/b"); err != nil {
		t.Fatal(err)
	}
	write(t, home+"/c", "")
	if err := os.Symlink("c", home+"/a"); err != nil {
		t.Fatal(err)
	}
	if now, err := Digest(base()); err != nil || now == was {
		t.Errorf("a link came into its place, and the digest stayed: %v", err)
	}
}

func mkdirs(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMergeLeavesOut: of the host's file, what is dropped is not inside.
func TestMergeLeavesOut(t *testing.T) {
	host := func() ([]byte, error) { return []byte(`{"env": {"TOKEN": "x", "REGION": "y"}, "helper": "z"}`), nil }
	got, err := mergeJSON(host, policy.AgentFile{Drop: [][]string{{"env", "TOKEN"}, {"helper"}, {"none", "x"}}}, `{"sandbox": false}`)
	want := map[string]any{"env": map[string]any{"REGION": "y"}, "sandbox": false}
	if have, bad := parseJSON([]byte(got)); err != nil || bad != nil || !reflect.DeepEqual(have, want) {
		t.Errorf("got %s, %v", got, err)
	}
}
