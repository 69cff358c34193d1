package policy

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const userFile = "home/u/.config/holdfast/policy.yaml"

func TestLoadRefuses(t *testing.T) {
	for _, row := range []struct {
		name string
		with func(w *world, o *Options)
		want string
	}{
		{"an unknown profile", func(_ *world, o *Options) { o.Profile = "lax" }, `unknown profile "lax"`},
		{"a policy that does not exist", func(w *world, o *Options) { o.Policy = w.at("none.yaml") }, "does not exist"},
		{"a policy that is a directory", func(w *world, o *Options) { o.Policy = w.at("data") }, "is not a regular file"},
		{"a policy that others can write", func(w *world, o *Options) {
			o.Policy = w.write("data/p.yaml", "version: 1\n", 0o664)
		}, "can be written by others"},
		{"a policy of 10 MB", func(w *world, o *Options) {
			o.Policy = w.write("data/p.yaml", "version: 1\n#"+strings.Repeat("x", 10<<20), 0o644)
		}, "a policy may have at most 1048576"},
		{"a policy in the workspace", func(w *world, o *Options) {
			o.Policy = w.write("home/u/ws/p.yaml", "version: 1\n", 0o644)
		}, "is inside the workspace"},
		{"a policy that extends one in the workspace", func(w *world, o *Options) {
			w.write("home/u/ws/p.yaml", "version: 1\n", 0o644)
			o.Policy = w.write("data/p.yaml", "version: 1\nextends: "+w.at("home/u/ws/p.yaml")+"\n", 0o644)
		}, "is inside the workspace"},
		{"a circle", func(w *world, o *Options) {
			o.Policy = w.write("data/a.yaml", "version: 1\nextends: b.yaml\n", 0o644)
			w.write("data/b.yaml", "version: 1\nextends: a.yaml\n", 0o644)
		}, "data/b.yaml:2: extends forms a cycle"},
		{"a circle by a link", func(w *world, o *Options) {
			o.Policy = w.write("data/a.yaml", "version: 1\nextends: b.yaml\n", 0o644)
			w.link("a.yaml", "data/b.yaml")
		}, "forms a cycle"},
		{"ten files on top of each other", func(w *world, o *Options) {
			for i := range 10 {
				w.write(fmt.Sprintf("data/%d.yaml", i), fmt.Sprintf("version: 1\nextends: %d.yaml\n", i+1), 0o644)
			}
			o.Policy = w.at("data/0.yaml")
		}, "more than 8 files"},
		{"a profile that does not exist", func(w *world, o *Options) {
			o.Policy = w.write("data/p.yaml", "version: 1\nextends: lax\n", 0o644)
		}, "data/p.yaml:2: the policy"},
		{"ten thousand flags", func(w *world, o *Options) {
			for range 10000 {
				o.Settings = append(o.Settings, Setting{"--ro", "filesystem.read", w.at("data")})
			}
		}, "10000 policy flags are given; at most 1000 are allowed"},
		{"a project file that is a link", func(w *world, o *Options) {
			w.write("data/p.yaml", "version: 1\n", 0o644)
			w.link("/data/p.yaml", "home/u/ws/holdfast.yaml")
		}, "is a symbolic link"},
		{"a project file that is a pipe's place", func(w *world, o *Options) {
			w.mkdir("home/u/ws/holdfast.yaml")
		}, "is not a regular file"},
		{"a project file that extends a file", func(w *world, o *Options) {
			w.write("home/u/ws/holdfast.yaml", "version: 1\nextends: other.yaml\n", 0o644)
		}, "that no hash covers"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			o := w.options()
			row.with(w, &o)
			_, err := Load(o)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestLaterSourcesWin(t *testing.T) {
	w := newWorld(t)
	w.write(userFile, "version: 1\nextends: base.yaml\nlimits: {files: 3, disk: 1GiB}\nenvironment: {pass: []}\n", 0o644)
	w.write("home/u/.config/holdfast/base.yaml", "version: 1\nextends: ci\nlimits: {files: 2, time: 5m, disk: 2GiB}\n", 0o644)
	o := w.options("limits.files", "4")
	e, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if e.Profile != "ci" || len(e.Sources) != 4 {
		t.Errorf("profile %s of %d sources", e.Profile, len(e.Sources))
	}
	for key, want := range map[string]string{
		"limits.files": "4 --limits.files", "limits.disk": "1GiB " + w.at(userFile) + ":3",
		"limits.time": "5m " + w.at("home/u/.config/holdfast/base.yaml") + ":3", "limits.memory": "8GiB profile ci:",
	} {
		if got := e.entriesFor(key); len(got) != 1 || !strings.HasPrefix(got[0].Value+" "+got[0].Origin.String(), want) {
			t.Errorf("%s is %v, want %s", key, got, want)
		}
	}
	if got := e.entriesFor("environment.pass"); len(got) != 0 {
		t.Errorf("an empty list left %v", got)
	}
	o.Profile = "local"
	if e, err = Load(o); err != nil || e.Profile != "local" {
		t.Errorf("the flag lost: %s, %v", e.Profile, err)
	}
}

func TestProjectFileMayOnlyNarrow(t *testing.T) {
	for _, row := range []struct {
		name, text string
		refused    bool
	}{
		{"making a path read-only narrows", "workspace: {readonly: [sub]}", false},
		{"protecting more narrows", "workspace: {protect: [deploy.sh]}", false},
		{"protecting less widens", "workspace: {unprotect: [Makefile]}", true},
		{"taking protection away widens", "workspace: {protect: []}", true},
		{"reading widens", "filesystem: {read: [/data]}", true},
		{"reading in the workspace could widen", "filesystem: {read: [sub]}", true},
		{"a copy widens", "filesystem: {copy: [/data]}", true},
		{"writing widens", "filesystem: {write: [sub]}", true},
		{"writing nowhere narrows", "filesystem: {write: []}", false},
		{"taking read away could widen", "filesystem: {read: []}", true},
		{"a destination widens", "network: {allow: [example.org]}", true},
		{"no destination narrows", "network: {allow: []}", false},
		{"a service of the host widens", "network: {host-ports: [5432]}", true},
		{"a credential widens", "credentials: [{name: a, source: {env: A}, hosts: [a.b]}]", true},
		{"no credential narrows", "credentials: []", false},
		{"publishing widens", "network: {publish: [80]}", true},
		{"a variable that is passed already does not", "environment: {pass: [LANG, LC_TIME]}", false},
		{"another variable widens", "environment: {pass: [OTHER]}", true},
		{"no variable narrows", "environment: {pass: []}", false},
		{"setting a variable widens", "environment: {set: {A: b}}", true},
		{"less memory narrows", "limits: {memory: 1GiB}", false},
		{"as much memory does not widen", "limits: {memory: 8GiB}", false},
		{"more memory widens", "limits: {memory: 9GiB}", true},
		{"no limit widens", "limits: {memory: none}", true},
		{"a limit where there was none narrows", "limits: {time: 1h}", false},
		{"no limit where there was none is the same", "limits: {time: none}", false},
		{"accepting a loss widens", "without: [seccomp]", true},
		{"accepting no loss narrows", "without: []", false},
		{"recording more narrows", "record: {level: full}", false},
		{"recording as much does not widen", "record: {level: standard}", false},
		{"an anchor widens", "record: {anchor: ['https://a.example.org']}", true},
		{"no anchor widens", "record: {anchor: []}", true},
		{"a sink widens", "alerts: {sinks: [{terminal: true, severity: critical}]}", true},
		{"no sink widens", "alerts: {sinks: []}", true},
		{"rules widen", "alerts: {rules: [sub]}", true},
		{"no rules widen", "alerts: {rules: []}", true},
		{"honeytokens as they are do not widen", "honeytokens: on", false},
		{"no honeytokens widen", "honeytokens: off", true},
		{"the profile of the run is the same", "extends: local", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.mkdir("home/u/ws/sub")
			path := w.write("home/u/ws/holdfast.yaml", "version: 1\n"+row.text+"\n", 0o664)
			o := w.options()
			e, err := Load(o)
			if row.refused {
				if err == nil || !strings.Contains(err.Error(), path+":2: ") || !strings.Contains(err.Error(), "would widen") {
					t.Fatalf("got %v", err)
				}
				trusted(t, o)
				return
			}
			if err != nil || e.Project == nil || e.Project.Trusted {
				t.Fatalf("got %v, %v", e.Project, err)
			}
		})
	}
}

// trusted checks that a pin lets the file of o through, and no other bytes.
func trusted(t *testing.T, o Options) {
	t.Helper()
	p, err := Inspect(o)
	if err != nil || p == nil || p.Trusted || len(p.Widens) == 0 {
		t.Fatalf("inspecting: %+v, %v", p, err)
	}
	if err := Trust(o.Host, *p); err != nil {
		t.Fatal(err)
	}
	if e, err := Load(o); err != nil || !e.Project.Trusted {
		t.Fatalf("after trust: %v", err)
	}
	data, err := os.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.Path, append(data, '#', '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(o); err == nil {
		t.Error("other bytes were let through")
	}
	if err := os.WriteFile(p.Path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Distrust(o.Host, p.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(o); err == nil {
		t.Error("let through after the trust was taken back")
	}
}

func TestWhatIsTrustedIsSaidInFull(t *testing.T) {
	w := newWorld(t)
	w.write("home/u/ws/holdfast.yaml", `version: 1
network: {allow: [{host: a.example.org, methods: [GET], paths: [/x], internal: true, credential: c}]}
credentials: [{name: c, source: {command: [sh, -c, "echo x"]}, header: "X-Key: {}"}]
alerts: {sinks: [{webhook: "https://a.example.org/x?y", secret: ~/k}]}
`, 0o644)
	p, err := Inspect(w.options())
	if err != nil || len(p.Widens) != 3 {
		t.Fatalf("got %+v, %v", p, err)
	}
	for i, want := range []string{
		"network.allow: a.example.org GET /x credential c internal",
		"credentials: c from command always in X-Key for 15m: sh -c echo x",
		"alerts.sinks: webhook https://a.example.org/x?y from low secret ~/k",
	} {
		if got := p.Widens[i].String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestProjectFileMayNotRecordLess(t *testing.T) {
	w := newWorld(t)
	w.write("home/u/ws/holdfast.yaml", "version: 1\nrecord: {level: standard}\n", 0o644)
	if _, err := Load(w.options("record.level", "full")); err == nil || !strings.Contains(err.Error(), "record.level: standard would widen") {
		t.Errorf("got %v", err)
	}
	w.write("home/u/ws/holdfast.yaml", "version: 1\nrecord: {level: full}\nhoneytokens: on\n", 0o644)
	p := w.plan(w.options("record.level", "standard", "honeytokens", "off"))
	if p.Record.Level != RecordFull || !p.Honeytokens {
		t.Errorf("got %+v, honeytokens %v", p.Record, p.Honeytokens)
	}
	if p := w.plan(w.options("without", "record")); p.Record.Level != RecordOff {
		t.Errorf("a project took back what was accepted: %+v", p.Record)
	}
}

func TestTrustIsKeptFromOthers(t *testing.T) {
	w := newWorld(t)
	w.write("home/u/ws/holdfast.yaml", "version: 1\nwithout: [seccomp]\n", 0o644)
	o := w.options()
	p, err := Inspect(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := Trust(o.Host, *p); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(pinsPath(o.Host))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	if err := os.Chmod(pinsPath(o.Host), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "can be written by others") {
		t.Errorf("got %v", err)
	}
	w.write("home/u/.local/state/holdfast/trust.json", "{", 0o600)
	if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "not a list of trusted files") {
		t.Errorf("got %v", err)
	}
}

func TestUserFileMayBeALink(t *testing.T) {
	w := newWorld(t)
	w.write("data/dotfiles.yaml", "version: 1\nlimits: {files: 7}\n", 0o644)
	w.link("/data/dotfiles.yaml", userFile)
	if p := w.plan(w.options()); p.Limits.Files != 7 {
		t.Errorf("files %d", p.Limits.Files)
	}
}
