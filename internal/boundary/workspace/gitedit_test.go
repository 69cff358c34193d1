//go:build linux

package workspace

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// gitList is what git reads from a configuration file, name and value; nil where it
// refuses the file.
func gitList(t *testing.T, data []byte) []string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "config", "--file", name, "--no-includes", "--list", "-z").Output()
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

// plainConfig is the configuration of a repository as people have it.
const plainConfig = "[core]\n\tbare = false\n# mine\n[alias]\n\tlg = log --format='%h\\t%s' # x\n[remote \"o\"]\n\turl = https://a.example/x\n\tfetch = +refs/heads/*:refs/remotes/o/*\n[branch \"main\"]\n\tremote = o\n\tmerge = refs/heads/main\n"

// TestConfigIsEdited makes changes in a file, and asks git what is in it afterwards.
func TestConfigIsEdited(t *testing.T) {
	testenv.Need(t, testenv.Git, nil)
	for _, row := range []struct{ name, before, after, want string }{
		{"a remote is added", plainConfig, plainConfig + "[remote \"p\"]\n\turl = git@b.example:y.git\n",
			"+remote.p.url\ngit@b.example:y.git"},
		{"a value is changed", plainConfig, strings.Replace(plainConfig, "a.example/x", "b.example/y", 1),
			"-remote.o.url\nhttps://a.example/x|+remote.o.url\nhttps://b.example/y"},
		{"a section is removed", plainConfig, plainConfig[:strings.Index(plainConfig, "[branch")],
			"-branch.main.remote\no|-branch.main.merge\nrefs/heads/main"},
		{"a second value is added", plainConfig, strings.Replace(plainConfig, "\tfetch", "\tfetch = refs/pull/*:refs/remotes/o/pr/*\n\tfetch", 1),
			"+remote.o.fetch\nrefs/pull/*:refs/remotes/o/pr/*"},
		{"the file has no last line feed", "[core]\n\tbare = false", "[core]\n\tbare = false\n[user]\n\tname = x", "+user.name\nx"},
		{"the header is on the line of the setting", "[user] name = a\n[core] bare = true\n", "[user] name = b\n[core] bare = true\n", "-user.name\na|+user.name\nb"},
		{"lines end in CRLF", "[user]\r\n\tname = a\r\n[core]\r\n\tbare = true\r\n", "[user]\r\n\tname = b\r\n[core]\r\n\tbare = true\r\n", "-user.name\na|+user.name\nb"},
		{"it begins with a mark", "\ufeff[user]\n\tname = a\n", "\ufeff[user]\n\tname = b\n", "-user.name\na|+user.name\nb"},
		{"a value is joined", "[user]\n\tname = a\\\nb\n\temail = c\n", "[user]\n\tname = d\n\temail = c\n", "-user.name\nab|+user.name\nd"},
		{"a section is there twice", "[user]\n\tname = a\n[core]\n\tbare = true\n[user]\n\temail = c\n", "[user]\n\tname = b\n[core]\n\tbare = true\n[user]\n\temail = c\n", "-user.name\na|+user.name\nb"},
		{"a subsection has quotes", plainConfig, plainConfig + "[branch \"a#b;c\"]\n\tmerge = refs/heads/x\n", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			changes, err := CompareConfigs("/x", []byte(row.before), []byte(row.after))
			if err != nil {
				t.Fatal(err)
			}
			data := []byte(row.before)
			for _, c := range changes {
				if c.Refused != "" {
					continue
				}
				if data, err = c.edit(data); err != nil {
					t.Fatal(err)
				}
			}
			if got := difference(gitList(t, []byte(row.before)), gitList(t, data)); got != row.want {
				t.Errorf("git reads %q, want %q, in\n%s", got, row.want, data)
			}
			if row.before == plainConfig && !bytes.Contains(data, []byte("# mine\n")) {
				t.Errorf("a comment is gone:\n%s", data)
			}
		})
	}
}

// difference are the lines that are gone and those that came, each once.
func difference(before, after []string) string {
	var out []string
	for _, s := range before {
		if at := slices.Index(after, s); at < 0 {
			out = append(out, "-"+s)
		} else {
			after = slices.Delete(slices.Clone(after), at, at+1)
		}
	}
	for _, s := range after {
		out = append(out, "+"+s)
	}
	return strings.Join(out, "|")
}

// TestApplyConfig is about the file on the host: what is applied there, and what is not.
func TestApplyConfig(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "config")
	changes, err := CompareConfigs(name, []byte(plainConfig), []byte(plainConfig+"[user]\n\tname = n\n"))
	if err != nil || len(changes) != 1 {
		t.Fatal(changes, err)
	}
	refused := slices.Clone(changes)
	refused[0].Refused = "no"
	for _, row := range []struct {
		name    string
		make    func() error
		changes []ConfigChange
		want    string
	}{
		{"it is as it was", func() error { return os.WriteFile(name, []byte(plainConfig), 0o640) }, changes, ""},
		{"it was changed elsewhere", func() error { return os.WriteFile(name, []byte("[core]\n\tbare = true\n"), 0o640) }, changes, ""},
		{"the setting was changed", func() error { return os.WriteFile(name, []byte("[user]\n\tname = x\n"), 0o640) }, changes, "not what it was"},
		{"it is no configuration", func() error { return os.WriteFile(name, []byte("[user"), 0o640) }, changes, "not a git configuration"},
		{"it is too large", func() error { return os.WriteFile(name, bytes.Repeat([]byte("#\n"), 1<<20), 0o640) }, changes, "too large"},
		{"it is a link", func() error {
			return errors.Join(os.WriteFile(dir+"/other", []byte(plainConfig), 0o640), os.Symlink("other", name))
		}, changes, "no plain file"},
		{"it is gone", func() error { return nil }, changes, "no such file"},
		{"git has it", func() error {
			return errors.Join(os.WriteFile(name, []byte(plainConfig), 0o640), os.WriteFile(name+".lock", nil, 0o600))
		}, changes, "another program holds"},
		{"a link has the name of the lock", func() error {
			return errors.Join(os.WriteFile(name, []byte(plainConfig), 0o640), os.Symlink("other", name+".lock"))
		}, changes, "another program holds"},
		{"the change is refused", func() error { return os.WriteFile(name, []byte(plainConfig), 0o640) }, refused, "no"},
	} {
		t.Run(row.name, func(t *testing.T) {
			os.Remove(name)
			os.Remove(name + ".lock")
			if err := row.make(); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(name)
			err := ApplyConfig(row.changes, func() error {
				if _, err := os.Lstat(name + ".lock"); err != nil {
					t.Error("it was not checked under the lock")
				}
				return nil
			})
			after, _ := os.ReadFile(name)
			if row.want != "" {
				if err == nil || !strings.Contains(err.Error(), row.want) || !bytes.Equal(before, after) {
					t.Errorf("%v, and the file has\n%s", err, after)
				}
				return
			}
			if err != nil || string(after) != string(before)+"[user]\n\tname = n\n" {
				t.Errorf("%v, and the file has\n%s", err, after)
			}
			if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o640 {
				t.Errorf("the mode is %v, %v", st.Mode(), err)
			}
			if _, err := os.Lstat(name + ".lock"); err == nil {
				t.Error("the lock stayed")
			}
		})
	}
}

// TestApplyConfigChecks: where a run could write by now, nothing is written.
func TestApplyConfigChecks(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config")
	changes, err := CompareConfigs(name, []byte(plainConfig), []byte(plainConfig+"[user]\n\tname = n\n"))
	if err = errors.Join(err, os.WriteFile(name, []byte(plainConfig), 0o640)); err != nil {
		t.Fatal(err)
	}
	began := errors.New("a run began")
	if err := ApplyConfig(changes, func() error { return began }); !errors.Is(err, began) {
		t.Error(err)
	}
	if data, _ := os.ReadFile(name); string(data) != plainConfig {
		t.Errorf("the file has\n%s", data)
	}
	if _, err := os.Lstat(name + ".lock"); err == nil {
		t.Error("the lock stayed")
	}
}

// TestOfferedSettings: what could make git execute something is never offered.
func TestOfferedSettings(t *testing.T) {
	for text, offered := range map[string]bool{
		"[remote \"o\"]\nurl = https://x.example/y":                   true,
		"[remote \"o\"]\nurl = ssh://git@x.example:22/y":              true,
		"[remote \"o\"]\nurl = git@x.example:y/z.git":                 true,
		"[remote \"o\"]\nurl = https://a.b@x.example/y":               false,
		"[remote \"o\"]\nurl = https://a.b:443@x.example":             false,
		"[remote \"o\"]\nurl = https://a:b@x.example/y":               false,
		"[remote \"o\"]\nurl = https://a%2eb@x.example/y":             false,
		"[remote \"o\"]\nurl = https://a.b%2f@x.example/y":            false,
		"[remote \"o\"]\nurl = https://a.b%2f.x.example/y":            false,
		"[remote \"o\"]\nurl = https://a@a.b@x.example/y":             false,
		"[remote \"o\"]\nurl = https://a-b.c@x.example/y":             false,
		"[remote \"o\"]\nurl = https://x.example/y@z:1":               true,
		"[remote \"o\"]\nurl = a.b@x.example:y":                       false,
		"[remote \"o\"]\nurl = x.example:y@z":                         true,
		"[submodule \"s\"]\nurl = a.b@x.example:y":                    false,
		"[remote \"o\"]\nurl = ext::sh -c x":                          false,
		"[remote \"o\"]\nurl = EXT::sh":                               false,
		"[remote \"o\"]\nurl = ssh://-oProxyCommand=x/y":              false,
		"[remote \"o\"]\nurl = ssh://u@-oProxyCommand=x/y":            false,
		"[remote \"o\"]\nurl = -x":                                    false,
		"[remote \"o\"]\nurl = /srv/other.git":                        false,
		"[remote \"o\"]\nurl = ../other":                              false,
		"[remote \"o\"]\nurl = file:///srv/other.git":                 false,
		"[remote \"o\"]\nurl = \"https://x.example/\\ny\"":            false,
		"[remote \"o\"]\nurl":                                         false,
		"[remote \"o\"]\nuploadpack = x":                              false,
		"[remote \"o\"]\nreceivepack = x":                             false,
		"[remote \"o\"]\nvcs = x":                                     false,
		"[remote \"o\"]\nproxy = x":                                   false,
		"[remote \"o\"]\npromisor = true":                             false,
		"[remote \"o\"]\nmirror = true":                               false,
		"[remote \"o\"]\npush = +refs/*:refs/*":                       false,
		"[remote \"o\"]\nfetch = --upload-pack=x":                     false,
		"[remote \"o\"]\nfetch = +refs/heads/*:refs/heads/*":          false,
		"[remote \"o\"]\nfetch = +refs/*:refs/*":                      false,
		"[remote \"o\"]\nfetch = +refs/tags/*:refs/tags/*":            false,
		"[remote \"o\"]\nfetch = refs/heads/a":                        false,
		"[remote \"o\"]\nfetch = +refs/heads/*:refs/remotes/origin/*": false,
		"[remote]\npushDefault = o":                                   false,
		"[remote \"\"]\nurl = https://x.example/y":                    false,
		"[remote \"a\\\\b\"]\nurl = https://x.example/y":              false,
		"[remote.o]\nurl = https://x.example/y":                       false,
		"[branch \"b\"]\nremote = .":                                  true,
		"[branch \"b\"]\nremote = ./bare.git":                         false,
		"[branch \"b\"]\npushRemote = bare.git":                       false,
		"[branch \"b\"]\nremote = --upload-pack=x":                    false,
		"[branch \"b\"]\nremote = https://x.example/y":                false,
		"[branch \"b\"]\nmerge = refs/heads/b":                        true,
		"[branch \"b\"]\ndescription = x":                             false,
		"[branch \"b\"]\nmergeoptions = -s x":                         false,
		"[submodule \"s\"]\nurl = https://x.example/y":                true,
		"[submodule \"s\"]\nactive = true":                            true,
		"[submodule \"s\"]\nupdate = !x":                              false,
		"[submodule \"s\"]\nupdate = none":                            true,
		"[submodule]\nalternateLocation = x":                          false,
		"[user]\nname = x":                                            true,
		"[user]\nsigningkey = x":                                      false,
		"[CORE]\nfsMonitor = x":                                       false,
		"[core]\nworktree = x":                                        false,
		"[include]\npath = x":                                         false,
		"[includeIf \"gitdir:/\"]\npath = x":                          false,
		"[url \"ext::sh\"]\ninsteadOf = https://":                     false,
		"[extensions]\nworktreeConfig = true":                         false,
		"[filter \"f\"]\nclean = x":                                   false,
		"[alias]\nx = !x":                                             false,
		"[protocol \"ext\"]\nallow = always":                          false,
		"[http]\nproxy = x":                                           false,
		"[credential]\nhelper = x":                                    false,
	} {
		changes, err := CompareConfigs("/x", nil, []byte(text+"\n"))
		if err != nil || len(changes) != 1 || (changes[0].Refused == "") != offered {
			t.Errorf("%q: %+v, %v", text, changes, err)
		}
	}
}

// TestOfferedWhole: no remote, branch or submodule is offered without its address.
func TestOfferedWhole(t *testing.T) {
	for text, want := range map[string]int{
		"[remote \"o\"]\nurl = git@x.example:y\nfetch = a:refs/remotes/o/a\n[branch \"b\"]\nremote = o\nmerge = a": 4,
		"[remote \"o\"]\nfetch = a:refs/remotes/o/a\nurl = ../r.git\n[branch \"b\"]\nremote = o\nmerge = a":        0,
		"[remote \"o\"]\nurl = file:///r\nfetch = a:refs/remotes/o/a\n[remote \"p\"]\nurl = ssh://x/y":             1,
		"[branch \"b\"]\nremote = ./bare.git\nmerge = a\n[branch \"c\"]\nmerge = a":                                1,
		"[submodule \"s\"]\nactive = true\nurl = /srv/s":                                                           0,
	} {
		changes, err := CompareConfigs("/x", nil, []byte(text+"\n"))
		offered := 0
		for _, c := range changes {
			if c.Refused == "" {
				offered++
			} else if !strings.Contains(c.Refused, "a path on this machine") {
				t.Errorf("%q: %s", text, c.Refused)
			}
		}
		if err != nil || offered != want {
			t.Errorf("%q: %d are offered, want %d: %+v, %v", text, offered, want, changes, err)
		}
	}
}

// TestRefusedAreCut: a run chooses how long its names and values are, and how many. What is
// long, or would be kept as something else, is refused, and no more than its beginning is
// kept of it.
func TestRefusedAreCut(t *testing.T) {
	long := strings.Repeat("a", 600)
	for _, row := range []struct{ before, after, want string }{
		{"", "[remote \"o\"]\nurl = https://x.example/" + long, "longer than 512 bytes"},
		{"", "[remote \"o\"]\nfetch = " + long, "longer than 512 bytes"},
		{"", "[branch \"b\"]\nremote = " + long, "longer than 512 bytes"},
		{"[remote \"o\"]\nurl = https://x.example/" + long, "", "longer than 512 bytes"},
		{"", "[remote \"o\"]" + strings.Repeat("\nfetch = a", 17), "more than 16 values"},
		{"[remote \"o\"]" + strings.Repeat("\nfetch = a", 17), "", "more than 16 values"},
		{"", "[user]\nname = a\xffb", "not UTF-8"},
		{"[user]\nname = a\xffb", "[user]\nname = b", "not UTF-8"},
		{"", "[branch \"a\xff\"]\nmerge = refs/heads/a", "not UTF-8"},
		{"", "[branch \"" + long + "\"]\nmerge = refs/heads/a", "only branches"},
		{"", "[core]\n" + strings.Repeat("x", 1<<16) + " = x", "only branches"},
		{"", "[" + strings.Repeat("x", 1<<16) + "]\nx = x", "only branches"},
		{"", "[alias]" + strings.Repeat("\nx = "+long, 100), "only branches"},
	} {
		changes, err := CompareConfigs("/x", []byte(row.before), []byte(row.after))
		if err != nil || len(changes) != 1 {
			t.Errorf("%.60q: %d changes, %v", row.after, len(changes), err)
			continue
		}
		c := changes[0]
		kept := len(c.Name()) + len(strings.Join(c.Was, "")) + len(strings.Join(c.Now, ""))
		if !strings.Contains(c.Refused, row.want) || kept > 10*maxRefusedText {
			t.Errorf("%.60q: refused because %q, and %d bytes are kept", row.after, c.Refused, kept)
		}
	}
}

// FuzzConfigEdit: whatever a run leaves in its copy, git reads nothing new in the file on the
// host but the settings that were offered.
func FuzzConfigEdit(f *testing.F) {
	for _, seed := range []string{
		plainConfig, "[remote \"x\"]url=https://a/\\\n[core]fsmonitor=x\n", "[user]name=\"a\\\"\\n[core]\\nfsmonitor=x\"\n", "[user]\nname = a # b\nemail\n",
		"[branch \"a]\\\"\\\\\"]\nmerge=refs/heads/a\n", "[user]\r\nname\t=\tx\r\n", "\ufeff[user]name=x", "[user \"\"]\nname=x\n[user]\nname=y\n",
	} {
		f.Add([]byte(plainConfig), []byte(seed))
		f.Add([]byte(seed), []byte(plainConfig))
	}
	git, err := exec.LookPath("git")
	f.Fuzz(func(t *testing.T, host, copied []byte) {
		changes, cerr := CompareConfigs("/x", host, copied)
		if cerr != nil {
			return
		}
		data, allowed := host, map[string]bool{}
		for _, c := range changes {
			if c.Refused != "" {
				continue
			}
			next, err := c.edit(data)
			if err != nil {
				continue
			}
			data = next
			allowed[c.Name()] = true
		}
		if len(allowed) == 0 || err != nil || git == "" {
			return
		}
		before, after := gitList(t, host), gitList(t, data)
		if before == nil {
			return
		}
		if after == nil {
			t.Fatalf("git does not read\n%q\nwhich was\n%q", data, host)
		}
		for part := range strings.SplitSeq(difference(before, after), "|") {
			name, _, _ := strings.Cut(strings.TrimLeft(part, "+-"), "\n")
			if part != "" && !allowed[name] {
				t.Fatalf("%q changed with %v:\n%q\nwas\n%q", part, allowed, data, host)
			}
		}
	})
}
