package policy

import (
	"errors"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestSinksAreRefused(t *testing.T) {
	for _, row := range []struct{ name, sink, want string }{
		{"text", "terminal", "a sink is the text"},
		{"nothing", "{}", "a sink has 0 kinds"},
		{"no kind", "{severity: low}", "a sink has 0 kinds"},
		{"two kinds", "{file: /f, terminal: true}", "a sink has 2 kinds"},
		{"an unknown kind, with the nearest one", "{webhok: 'https://a.example.org'}", `unknown key "webhok" in a sink, did you mean "webhook"?`},
		{"an unknown key", "{file: /f, from: low}", `unknown key "from" in a sink`},
		{"a kind given twice", "{file: /f, file: /g}", "is repeated"},
		{"a terminal that is off", "{terminal: false}", "terminal of a sink is false"},
		{"a terminal that is text", "{terminal: 'yes'}", "true or false is expected"},
		{"a terminal with a key for others", "{terminal: true, timeout: 5s}", "the sink terminal: timeout does not apply to it"},
		{"a file that is signed", "{file: /f, secret: /k}", "the sink file: secret does not apply to it"},
		{"a collector that is signed", "{otlp: 'https://a.example.org', secret: /k}", "the sink otlp: secret does not apply to it"},
		{"insecure for a daemon", "{syslog: local, insecure: true}", "the sink syslog: insecure does not apply to it"},
		{"an unknown severity", "{file: /f, severity: hihg}", `unknown severity "hihg", did you mean "high"?`},
		{"a severity that is nothing like one", "{file: /f, severity: 7}", "known: info, low, medium, high, critical"},
		{"a file that goes up", "{file: ../f}", "goes up"},
		{"a file that may be missing", "{file: '/f?'}", "cannot be optional"},
		{"a file of headers that may be missing", "{webhook: 'https://a.example.org', headers: '/h?'}", "cannot be optional"},
		{"no file", "{file: ''}", "text is expected"},
		{"a file with a line break", `{file: "/a\nb"}`, "line break"},
		{"http in the clear", "{webhook: 'http://a.example.org/x'}", "the sink webhook: its address uses http to a host that is not loopback"},
		{"http in the clear to a collector", "{otlp: 'http://10.0.0.7:4318/v1/logs'}", "the sink otlp: its address uses http"},
		{"http to a name that only looks local", "{webhook: 'http://localhost.example.org/x'}", "not loopback"},
		{"insecure with https", "{webhook: 'https://a.example.org', insecure: true}", "insecure applies to http:// only"},
		{"a password in the address", "{webhook: 'https://u:pass-word@a.example.org'}", "put them in a file of headers"},
		{"a fragment", "{webhook: 'https://a.example.org/#x'}", "a fragment"},
		{"an empty fragment", "{webhook: 'https://a.example.org/#'}", "a fragment"},
		{"no host", "{webhook: 'https:///x'}", "not a URL"},
		{"no scheme", "{webhook: a.example.org/x}", "not a URL"},
		{"another scheme", "{webhook: 'ftp://a.example.org/x'}", "not an https URL"},
		{"a URL of a file", "{otlp: 'file:///etc/passwd'}", "not a URL"},
		{"a wildcard", "{webhook: 'https://*.example.org/'}", "no valid host"},
		{"an address that programs read differently", "{webhook: 'https://127.1/'}", "no valid host"},
		{"a port beyond the last", "{webhook: 'https://a.example.org:65536/'}", "the port of its address"},
		{"an empty port", "{webhook: 'https://a.example.org:/'}", "the port of its address"},
		{"a space", "{webhook: 'https://a.example.org/a b'}", "printable ASCII"},
		{"a long address", "{webhook: 'https://a.example.org/" + strings.Repeat("x", maxURL) + "'}", "longer than 2048 bytes"},
		{"a daemon nowhere", "{syslog: remote}", "none of local, udp://"},
		{"a daemon by https", "{syslog: 'https://a.example.org:1'}", "none of local, udp://"},
		{"a daemon without a port", "{syslog: 'tls://a.example.org'}", "not tls://HOST:PORT"},
		{"a daemon with a path", "{syslog: 'tcp://a.example.org:514/x'}", "not tcp://HOST:PORT"},
		{"a socket by a relative path", "{syslog: 'unix://dev/log'}", "absolute path of a socket"},
		{"a socket with an escape", "{syslog: 'unix:///run/%2e%2e/log'}", "absolute path of a socket"},
		{"a socket that goes up", "{syslog: 'unix:///run/../log'}", "goes up"},
		{"an authority without TLS", "{syslog: 'tcp://a.example.org:514', authority: /ca}", "authority applies to tls:// only"},
		{"no time", "{otlp: 'https://a.example.org', timeout: 0s}", "not a duration from 100ms to 1m"},
		{"time without end", "{otlp: 'https://a.example.org', timeout: none}", "not a duration from"},
		{"too much time", "{otlp: 'https://a.example.org', timeout: 61s}", "not a duration from"},
		{"an alias", "{file: *f}", "not YAML"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Parse("p.yaml", "/", []byte("version: 1\nalerts:\n  sinks:\n    - "+row.sink+"\n"))
			if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "p.yaml:4: ") && row.want != "not YAML" {
				t.Fatalf("got %v, want %q", err, row.want)
			}
			if strings.Contains(err.Error(), "pass-word") {
				t.Errorf("a password is shown: %v", err)
			}
		})
	}
}

func TestRecordIsRefused(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"an unknown key", "record: {levl: full}", `unknown key "levl" in record, did you mean "level"?`},
		{"an unknown section", "alrts: {}", `unknown key "alrts", did you mean "alerts"?`},
		{"an unknown list", "alerts: {sink: []}", `unknown key "sink" in alerts, did you mean "sinks"?`},
		{"a word", "record: full", "record is the text"},
		{"an unknown level, with the nearest one", "record: {level: ful}", `record.level: unknown value "ful", did you mean "full"?`},
		{"a level that cannot be written", "record: {level: off}", `record.level: unknown value "off"; known: standard, full`},
		{"a level given twice", "record: {level: full, level: standard}", "is repeated"},
		{"several levels", "record: {level: [full]}", "a single value is expected"},
		{"honey that is true", "honeytokens: true", `honeytokens: unknown value "true"; known: off, on`},
		{"honey that is empty", "honeytokens:", "a single value is expected"},
		{"an anchor that is no list", "record: {anchor: syslog}", "a list is expected"},
		{"an anchor with a space", "record: {anchor: [file: /x]}", "an entry of record.anchor is a mapping"},
		{"an unknown anchor, with the nearest one", "record: {anchor: [sylog]}", `unknown anchor "sylog", did you mean "syslog"?`},
		{"an anchor by its path", "record: {anchor: [/var/x]}", "is not an anchor"},
		{"an anchor by the URL of a file", "record: {anchor: ['file:///x']}", "what follows file: is a path"},
		{"an anchor without a path", "record: {anchor: ['file:']}", "an empty path"},
		{"an anchor that may be missing", "record: {anchor: ['file:/x?']}", "cannot be optional"},
		{"an anchor in the clear", "record: {anchor: ['http://a.example.org']}", "not loopback"},
		{"an anchor with a password", "record: {anchor: ['https://u:pass-word@a.example.org']}", "a user or a password"},
		{"rules that go up", "alerts: {rules: [../x]}", "goes up"},
		{"rules that are no list", "alerts: {rules: /x}", "a list is expected"},
		{"sinks that are no list", "alerts: {sinks: {terminal: true}}", "alerts.sinks is a mapping; a list is expected"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Parse("p.yaml", "/", []byte("version: 1\n"+row.text+"\n"))
			if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "p.yaml:2: ") {
				t.Fatalf("got %v, want %q", err, row.want)
			}
			if strings.Contains(err.Error(), "pass-word") {
				t.Errorf("a password is shown: %v", err)
			}
		})
	}
}

func TestRecordLevels(t *testing.T) {
	for _, row := range []struct {
		profile, file, flag string
		want                RecordLevel
	}{
		{"local", "", "", RecordStandard},
		{"ci", "", "", RecordStandard},
		{"production", "", "", RecordFull},
		{"local", "record: {level: full}", "", RecordFull},
		{"production", "record: {level: standard}", "", RecordStandard},
		{"local", "", "full", RecordFull},
		{"production", "", "standard", RecordStandard},
		{"local", "record: {level: full}", "standard", RecordStandard},
	} {
		w := newWorld(t)
		w.write(userFile, "version: 1\n"+row.file+"\n", 0o600)
		o := w.options()
		if row.flag != "" {
			o = w.options("record.level", row.flag)
		}
		o.Profile = row.profile
		p := w.plan(o)
		if p.Record.Level != row.want || !p.Honeytokens || p.Record.Origin == (Origin{}) {
			t.Errorf("%+v: got %+v, honeytokens %v", row, p.Record, p.Honeytokens)
		}
	}
}

func TestRecordFlagIsChecked(t *testing.T) {
	w := newWorld(t)
	for _, level := range []string{"", "off", "Full", "full ", "standard\n"} {
		if _, err := w.compile(w.options("record.level", level)); err == nil || !strings.Contains(err.Error(), "--record.level: unknown value") {
			t.Errorf("%q: got %v", level, err)
		}
	}
}

func TestWithoutRecordSaysWhatIsLost(t *testing.T) {
	w := newWorld(t)
	p := w.plan(w.options("without", "record", "record.level", "full"))
	if p.Record.Level != RecordOff || p.Record.Origin.File != "--without" {
		t.Errorf("got %+v", p.Record)
	}
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "record.level full of --record.level") || !strings.Contains(p.Notes[0], "no system call is recorded") {
		t.Errorf("notes %q", p.Notes)
	}
}

func TestSinksOfAPlan(t *testing.T) {
	w := newWorld(t)
	w.write(userFile, strings.ReplaceAll(`version: 1
record: {anchor: ["file:~/anchor", syslog, "syslog:", "https://a.example.org/head?key=k3y"]}
alerts:
  sinks:
    - {terminal: true, severity: high}
    - {file: ~/alerts.jsonl}
    - {webhook: "https://hooks.example.org/t0ken", headers: h, secret: ROOT/k, severity: critical}
    - {webhook: "http://127.0.0.1:8080/"}
    - {webhook: "http://[::1]:8080/"}
    - {webhook: "http://10.0.0.7:8080/", insecure: true}
    - {syslog: "tls://log.example.org:6514", authority: ~/ca.pem, timeout: 1s}
    - {syslog: "unix:///var/log.sock"}
    - {otlp: "https://c.example.org:4318/v1/logs"}
`, "ROOT", w.at("outside")), 0o600)
	p := w.plan(w.options())
	at := func(line int) Origin { return Origin{File: w.at(userFile), Line: line} }
	home := w.host.Home
	want := []AlertSink{
		{Kind: "terminal", Severity: "high", Origin: at(5)},
		{Kind: "file", Address: home + "/alerts.jsonl", Severity: "low", Origin: at(6)},
		{Kind: "webhook", Address: "https://hooks.example.org/t0ken", Severity: "critical", Headers: w.host.Config + "/h", Secret: w.at("outside/k"), Timeout: 10 * time.Second, Origin: at(7)},
		{Kind: "webhook", Address: "http://127.0.0.1:8080/", Severity: "low", Timeout: 10 * time.Second, Origin: at(8)},
		{Kind: "webhook", Address: "http://[::1]:8080/", Severity: "low", Timeout: 10 * time.Second, Origin: at(9)},
		{Kind: "webhook", Address: "http://10.0.0.7:8080/", Severity: "low", Timeout: 10 * time.Second, Insecure: true, Origin: at(10)},
		{Kind: "syslog", Address: "tls://log.example.org:6514", Severity: "low", Authority: home + "/ca.pem", Timeout: time.Second, Origin: at(11)},
		{Kind: "syslog", Address: "unix:///var/log.sock", Severity: "low", Timeout: 10 * time.Second, Origin: at(12)},
		{Kind: "otlp", Address: "https://c.example.org:4318/v1/logs", Severity: "low", Timeout: 10 * time.Second, Origin: at(13)},
	}
	if !reflect.DeepEqual(p.Alerts.Sinks, want) {
		t.Errorf("got  %+v\nwant %+v", p.Alerts.Sinks, want)
	}
	anchors := []Anchor{{"file", home + "/anchor", at(2)}, {"syslog", "", at(2)}, {"http", "https://a.example.org/head?key=k3y", at(2)}}
	if !reflect.DeepEqual(p.Record.Anchor, anchors) {
		t.Errorf("got %+v", p.Record.Anchor)
	}
	e, err := Load(w.options())
	if err != nil {
		t.Fatal(err)
	}
	text := Text(Rows(e, p))
	for _, secret := range []string{"t0ken", "k3y"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is shown", secret)
		}
	}
	if !strings.Contains(text, "https://hooks.example.org/… from critical headers "+w.host.Config+"/h") {
		t.Errorf("got\n%s", text)
	}
	for _, one := range p.Env {
		if strings.Contains(one.Value, "hooks.example.org") || strings.Contains(one.Value, "alerts.jsonl") {
			t.Errorf("%s is handed in with %q", one.Name, one.Value)
		}
	}
}

func TestLaterSinksReplaceEarlierOnes(t *testing.T) {
	w := newWorld(t)
	base := "version: 1\nalerts:\n  sinks:\n    - {file: ~/a}\n    - {webhook: \"https://h.example.org/t0ken\"}\n"
	w.write("home/u/.config/holdfast/base.yaml", base, 0o600)
	w.write(userFile, "version: 1\nextends: base.yaml\nalerts: {sinks: [{file: "+w.host.Home+"/a, severity: high}]}\n", 0o600)
	p := w.plan(w.options())
	if got := p.Alerts.Sinks; len(got) != 3 || got[1].Severity != "high" || got[1].Origin.Line != 3 {
		t.Errorf("got %+v", got)
	}
	w.write(userFile, "version: 1\nalerts: {sinks: []}\n", 0o600)
	if got := w.plan(w.options()).Alerts.Sinks; got != nil {
		t.Errorf("an empty list left %+v", got)
	}
	w.write(userFile, base+"    - {webhook: \"https://h.example.org/t0ken\", severity: high}\n", 0o600)
	_, err := w.compile(w.options())
	if err == nil || !strings.Contains(err.Error(), ":6: the sink webhook https://h.example.org/… is already defined (") || strings.Contains(err.Error(), "t0ken") {
		t.Errorf("got %v", err)
	}
	w.write(userFile, "version: 1\nalerts: {sinks: [{terminal: true}, {terminal: true}]}\n", 0o600)
	if _, err := w.compile(w.options()); err == nil || !strings.Contains(err.Error(), "the sink terminal is already defined") {
		t.Errorf("got %v", err)
	}
}

func TestFilesOfSinksAreKeptApart(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"a file in the workspace", "alerts: {sinks: [{file: ~/ws/a}]}", "in view inside (workspace)"},
		{"headers in the workspace", "alerts: {sinks: [{webhook: 'https://a.example.org', headers: ~/ws/h}]}", "in view inside (workspace)"},
		{"a key in a tree that is shown", "alerts: {sinks: [{webhook: 'https://a.example.org', secret: ROOT/shown/k}]}", "in view inside (--filesystem.read)"},
		{"authorities in a tree that is shown as a copy", "alerts: {sinks: [{otlp: 'https://a.example.org', authority: ROOT/copied/ca}]}", "in view inside (--filesystem.copy)"},
		{"a file of the system", "alerts: {sinks: [{webhook: 'https://a.example.org', secret: ROOT/usr/k}]}", "in view inside (system)"},
		{"a socket in the workspace", "alerts: {sinks: [{syslog: 'unix://ROOT/home/u/ws/s'}]}", "in view inside (workspace)"},
		{"an anchor in the workspace", "record: {anchor: ['file:~/ws/a']}", "the anchor: "},
		{"a link into the workspace", "alerts: {sinks: [{file: ROOT/outside/in}]}", "in view inside (workspace)"},
		{"a link in the workspace that leads out", "alerts: {sinks: [{webhook: 'https://a.example.org', secret: ~/ws/out}]}", "the link ROOT/home/u/ws/out on the way"},
		{"a link that leads through the workspace", "alerts: {sinks: [{webhook: 'https://a.example.org', secret: ROOT/outside/through/k}]}", "the link ROOT/home/u/ws/out on the way"},
		{"a loop", "alerts: {sinks: [{file: ROOT/outside/loop}]}", "more than 40 links"},
		{"what a shell reads", "alerts: {sinks: [{file: ~/.bashrc}]}", "executes or obeys later"},
		{"what is executed by a link", "alerts: {sinks: [{file: ROOT/outside/rc}]}", "executes or obeys later"},
		{"an anchor where programs are", "record: {anchor: ['file:~/.local/bin/x']}", "executes or obeys later"},
		{"a file of the host", "alerts: {sinks: [{file: /etc/cron.d/x}]}", "belongs to the system"},
		{"the record itself", "alerts: {sinks: [{file: ~/.local/state/holdfast/log/x.jsonl}]}", "the state directory"},
		{"what is trusted", "record: {anchor: ['file:~/.local/state/holdfast/trust.json']}", "the state directory"},
		{"the policy", "alerts: {sinks: [{file: policy.yaml}]}", "the policy directory"},
		{"the program", "alerts: {sinks: [{file: ROOT/prog}]}", "the holdfast program"},
		{"rules in the workspace", "alerts: {rules: [~/ws/r]}", "so that the command could change the rules"},
		{"rules by a link that can be replaced", "alerts: {rules: [ROOT/outside/through]}", "so that the command could change the rules"},
		{"rules in a directory by a link that can be replaced", "alerts: {rules: [ROOT/outside/rules]}", "so that the command could change the rules"},
		{"rules in a directory that others can write", "alerts: {rules: [ROOT/outside/rules2]}", "chmod go-w ROOT/outside/rules2/a.yaml"},
		{"rules above the workspace", "alerts: {rules: [ROOT/home]}", "holds ROOT/home/u/ws, which is writable inside"},
		{"rules that are not there", "alerts: {rules: [~/none]}", "no such file"},
		{"rules that others can write", "alerts: {rules: [ROOT/outside/open]}", "chmod go-w"},
		{"rules that are a device", "alerts: {rules: [/dev/null]}", "neither a directory nor a regular file"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			for _, dir := range []string{"shown", "copied", "home/u/ws/r", "outside/to"} {
				w.mkdir(dir)
			}
			w.write("outside/open", "", 0o666)
			w.link("/home/u/ws/a", "outside/in")
			w.link("/outside/to", "home/u/ws/out")
			w.link("/home/u/ws/out", "outside/through")
			w.link("loop", "outside/loop")
			w.link("/home/u/.bashrc", "outside/rc")
			w.link("/home/u/ws/r/a.yaml", "outside/rules/a.yaml")
			w.write("home/u/ws/r/a.yaml", "", 0o600)
			w.write("outside/rules2/a.yaml", "", 0o666)
			w.host.Executable = w.write("prog", "", 0o755)
			w.write(userFile, "version: 1\n"+strings.ReplaceAll(row.text, "ROOT", w.root)+"\n", 0o600)
			_, err := w.compile(w.options("filesystem.read", w.at("shown"), "filesystem.copy", w.at("copied")))
			var h interface{ Hint() string }
			text := ""
			if errors.As(err, &h) {
				text = err.Error() + "\n" + h.Hint()
			}
			if !strings.Contains(text, strings.ReplaceAll(row.want, "ROOT", w.root)) || !strings.Contains(text, w.at(userFile)+":2: ") {
				t.Fatalf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestSinkMayBeInTheStateDirectory(t *testing.T) {
	w := newWorld(t)
	w.write(userFile, "version: 1\nalerts: {sinks: [{file: ~/.local/state/holdfast/alerts.jsonl}]}\n", 0o600)
	if got := w.plan(w.options()).Alerts.Sinks; len(got) != 2 || got[1].Address != w.host.State+"/alerts.jsonl" {
		t.Errorf("got %+v", got)
	}
}

func TestRulesOfAPlan(t *testing.T) {
	w := newWorld(t)
	w.write("home/u/rules/a.yaml", "", 0o600)
	w.link("/home/u/rules", "data/r")
	w.write(userFile, "version: 1\nalerts: {rules: [~/rules, "+w.at("data/r")+", ~/rules/a.yaml, '~/none?']}\n", 0o600)
	p := w.plan(w.options("filesystem.read", w.at("home/u/rules")))
	at := Origin{File: w.at(userFile), Line: 2}
	if want := []RuleSource{{w.at("home/u/rules"), at}, {w.at("home/u/rules/a.yaml"), at}}; !reflect.DeepEqual(p.Alerts.Rules, want) {
		t.Errorf("got %+v", p.Alerts.Rules)
	}
}

func TestRulesOfSomebodyElseAreRefused(t *testing.T) {
	w := newWorld(t)
	path := w.write("outside/r.yaml", "", 0o600)
	if os.Getuid() == 0 {
		if err := os.Chown(path, 4242, -1); err != nil {
			t.Fatal(err)
		}
	}
	w.host.UID++
	_, fault := explainer{host: w.host}.unchangeable(Entry{}, path)
	if fault == nil || !strings.Contains(fault.Msg, "belongs to user") {
		t.Errorf("got %v", fault)
	}
}

func TestRulesInAStrangeDirectory(t *testing.T) {
	w := newWorld(t)
	w.write("outside/[a]*?\\/a.yaml", "", 0o666)
	w.write(userFile, "version: 1\nalerts: {rules: ['"+w.at("outside/[a]*?\\")+"']}\n", 0o600)
	if _, err := w.compile(w.options()); err == nil || !strings.Contains(err.Error(), "can be written by others") {
		t.Errorf("got %v", err)
	}
}

// TestWhyDoesNotAdviseWhatIsRefused: to show a file of a sink would be refused.
func TestWhyDoesNotAdviseWhatIsRefused(t *testing.T) {
	w := newWorld(t)
	w.write("data/k", "", 0o600)
	w.mkdir("home/u/rules")
	w.write(userFile, "version: 1\nalerts: {sinks: [{webhook: 'https://a.example.org', secret: "+w.at("data/k")+"}], rules: [~/rules]}\n", 0o600)
	p := w.plan(w.options())
	for _, row := range []struct {
		path        string
		read, write bool // may be advised
	}{{"data/k", false, false}, {"data", false, false}, {"outside", true, true}, {"home/u/rules", true, false}} {
		a, err := ExplainPath(p, w.host, nil, w.at(row.path))
		if err != nil {
			t.Fatal(err)
		}
		if (a.Read.Add != "") != row.read || (a.Write.Add != "") != row.write {
			t.Errorf("%s: read %+v, write %+v", row.path, a.Read, a.Write)
		}
	}
}

func FuzzAddresses(f *testing.F) {
	for _, seed := range []string{
		"https://a.example.org/x", "http://127.0.0.1:80", "http://[::1%25lo]/", "https://a@b", "https://a:b@c.d/", "https://a.b:0/", "https://a.b#",
		"HTTPS://A.B/", "https:a.b", "//a.b", "https://a.b\\@c.d/", "https://a.b?x=y", "tls://a.b:1", "udp://[::1]:514", "unix:///a", "local", "file:/x", "syslog:",
		"http://localhost./", "http://0x7f000001/", "https://\x00", "https://a.b/%zz",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := endpoint(text, false); err == nil {
			u, err := url.Parse(text)
			if err != nil || u.User != nil || u.Hostname() == "" || u.Scheme != "https" && !(u.Scheme == "http" && localHost(u.Hostname())) {
				t.Errorf("%q was taken", text)
			}
			if shown := shownURL(text); strings.ContainsAny(shown, "\x00\r\n ?#@") || strings.Count(shown, "/") > 3 {
				t.Errorf("%q is shown as %q", text, shown)
			}
		}
		if err := syslogText(text); err == nil && strings.ContainsAny(text, "\x00\r\n#@?") && !strings.HasPrefix(text, "unix://") {
			t.Errorf("%q was taken for a daemon", text)
		}
		if a, _, err := anchorText(text); err == nil && (a.Kind == "" || strings.ContainsAny(a.String(), "\x00\r\n")) {
			t.Errorf("%q became %+v", text, a)
		}
	})
}
