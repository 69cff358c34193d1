package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// required are the attributes that OCSF 1.9 requires, written by hand from the
// classes and objects of the schema. "a|b" means one of several.
var required = map[string]string{
	"":     "activity_id category_uid class_uid metadata severity_id time type_uid",
	"1001": "actor device file",
	"1003": "actor device kernel",
	"1007": "actor device process",
	"1008": "log_file|log_name|log_provider|log_type|log_type_id",
	"2004": "finding_info",
	"3004": "entity",
	"4001": "dst_endpoint|src_endpoint",
	"4002": "dst_endpoint|src_endpoint http_request|http_response",
	"4003": "dst_endpoint|src_endpoint",
	"6002": "app",
	"6003": "actor api src_endpoint",

	"metadata":         "product version",
	"product":          "name|uid vendor_name",
	"device":           "type_id hostname|ip|uid|name",
	"os":               "name type_id",
	"actor":            "process|user|app_name|session",
	"process":          "pid|uid",
	"parent_process":   "pid|uid",
	"file":             "name type_id",
	"file_result":      "name type_id",
	"kernel":           "name type_id",
	"entity":           "name|uid",
	"api":              "operation",
	"service":          "name|uid",
	"src_endpoint":     "ip|uid|name|hostname|svc_name",
	"dst_endpoint":     "ip|uid|name|hostname|svc_name",
	"query":            "hostname",
	"http_response":    "code",
	"finding_info":     "uid title",
	"analytic":         "type_id name|uid",
	"attacks":          "tactic|technique|sub_technique",
	"technique":        "uid|name",
	"sub_technique":    "uid|name",
	"policy":           "name|uid",
	"evidences":        "process|file|dst_endpoint",
	"resources":        "name|uid",
	"attestation_list": "fingerprint|signatures",
	"fingerprint":      "algorithm_id value",
	"raw_data_hash":    "algorithm_id value",
	"hashes":           "algorithm_id value",
}

// lacking names the missing required attributes.
func lacking(where string, v any) []string {
	var bad []string
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			bad = append(bad, lacking(where, one)...)
		}
	case map[string]any:
		rules := strings.Fields(required[where])
		if where == "" {
			rules = append(rules, strings.Fields(required[fmt.Sprint(v["class_uid"])])...)
		}
		for _, rule := range rules {
			some := false
			for _, name := range strings.Split(rule, "|") {
				_, ok := v[name]
				some = some || ok
			}
			if !some {
				bad = append(bad, where+" lacks "+rule)
			}
		}
		for name, inner := range v {
			if name != "unmapped" {
				bad = append(bad, lacking(name, inner)...)
			}
		}
	}
	return bad
}

// sample is an event of an action with all fields set.
func sample(a string) event.Event {
	object := "/work/a b"
	switch family, _, _ := strings.Cut(a, "."); {
	case a == event.NetQuery:
		object = "packages.example.org"
	case family == "net" || family == "sock" || family == "credential" || a == event.HoneySent:
		object = "packages.example.org:443"
	case a == event.SysCall:
		object = "ptrace"
	case a == event.AlertRaise:
		object = "fs.credential-store"
	}
	return event.Event{
		Seq: 7, Time: time.Date(2026, 11, 22, 1, 2, 3, 4_005_006, time.UTC), Session: "s1", Sensor: event.Syscall, N: 3,
		Action: a, Object: object, Resolved: "", Verdict: event.Denied, Layer: event.LayerView, Rule: "holdfast.yaml:3", Error: "ENOENT",
		Process: event.Process{PID: 40, Exec: 2, Parent: 39, ParentExec: 1, Executable: "/usr/bin/cat", SHA256: strings.Repeat("ab", 32), Cwd: "/work", Argv: []string{"cat", "it's"}},
	}
}

func export(t testing.TB, format string, events ...event.Event) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := New(format, &b, Options{Host: "build-1", Version: "0.4.0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := w.WriteRecord(e, []byte("line "+e.Action)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decode(t testing.TB, line []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil || d.More() {
		t.Fatalf("%v in %q", err, line)
	}
	return v
}

func TestOCSFHasWhatItsClassesDemand(t *testing.T) {
	for _, a := range actions {
		full, bare := sample(a.name), event.Event{Action: a.name}
		full.Detail = map[string]string{"method": "GET", "path": "/x", "status": "200", "in": "5", "out": "6", "ms": "7", "to": "/work/b", "severity": "high",
			"reason": "why", "technique": "T1552.001,AML.T0051.001", "title": "A title", "credential": "c"}
		for _, e := range []event.Event{full, bare} {
			v := decode(t, export(t, "ocsf", e))
			if bad := lacking("", v); len(bad) > 0 {
				t.Errorf("%s: %q", a.name, bad)
			}
			if fmt.Sprint(v["class_uid"]) != fmt.Sprint(a.class.uid) || v["activity_name"] == "" {
				t.Errorf("%s is class %v, activity %v %v", a.name, v["class_uid"], v["activity_id"], v["activity_name"])
			}
		}
	}
	if bad := lacking("", decode(t, export(t, "ocsf", event.Event{Action: "of.later", Object: "x"}))); len(bad) > 0 {
		t.Errorf("an action of a later version: %q", bad)
	}
}

// at follows a path of names, with [] for the first of a list.
func at(v any, path string) any {
	for _, name := range strings.Split(path, ".") {
		name, first := strings.CutSuffix(name, "[]")
		m, _ := v.(map[string]any)
		v = m[name]
		if l, ok := v.([]any); ok && first {
			v = l[0]
		}
	}
	return v
}

func TestDetailsStandWhereTheTableSays(t *testing.T) {
	for _, d := range details {
		key := strings.ReplaceAll(d.key, "*", "x")
		for _, a := range actions {
			if detailOf(a.name, key) == nil || detailOf(a.name, key).key != d.key || detailOf(a.name, key).in != d.in {
				continue
			}
			value := "word"
			if d.whole {
				value = "17"
			}
			if d.key == "severity" {
				value = "high"
			}
			e := sample(a.name)
			e.Detail = map[string]string{key: value}
			v := decode(t, export(t, "ocsf", e))
			rest, _ := at(v, "unmapped.detail").(map[string]any)
			_, left := rest[key]
			if named := d.ocsf != ""; named == left {
				t.Errorf("%s of %s: OCSF name %q, among the unmapped: %t", key, a.name, d.ocsf, left)
			}
			if d.ocsf != "" && at(v, d.ocsf) == nil {
				t.Errorf("%s of %s: nothing at %s in %v", key, a.name, d.ocsf, v)
			}
			text := string(export(t, "otlp", e))
			name := d.otel
			if name == "" {
				name = "holdfast.detail." + key
			}
			if name != "severityNumber" && !strings.Contains(text, `"key":"`+name+`"`) {
				t.Errorf("%s of %s: no %s in %s", key, a.name, name, text)
			}
		}
	}
}

func TestOCSFMeanings(t *testing.T) {
	exec := sample(event.ProcExec)
	exec.Verdict, exec.Error = event.Allowed, ""
	write := sample(event.FileWrite)
	write.Process = event.Process{PID: 40, Exec: 2}
	write.Resolved = "/work/real"
	closed := sample(event.NetClose)
	closed.Object, closed.Verdict, closed.Error = "[2001:db8::1]:443", event.Allowed, ""
	closed.Detail = map[string]string{"in": "10", "out": "5", "ms": "1200"}
	lines := bytes.Split(bytes.TrimSpace(export(t, "ocsf", exec, write, closed)), []byte("\n"))
	for i, want := range []map[string]string{
		{"type_uid": "100701", "process.cmd_line": `cat 'it'\''s'`, "process.uid": "s1-2", "actor.process.uid": "s1-1", "action_id": "1", "launch_type_id": "3",
			"process.file.hashes[].algorithm_id": "3", "metadata.uid": "s1:7", "time": "1795309323004", "metadata.original_time": "2026-11-22T01:02:03.004005006Z"},
		{"type_uid": "100103", "file.path": "/work/real", "unmapped.object": "/work/a b", "action_id": "2", "disposition_id": "2", "policy.uid": "holdfast.yaml:3",
			"status_code": "ENOENT", "actor.process.file.path": "/usr/bin/cat", "severity_id": "2", "unmapped.layer": "view"},
		{"type_uid": "400102", "dst_endpoint.ip": "2001:db8::1", "dst_endpoint.port": "443", "traffic.bytes": "15", "traffic.bytes_in": "10", "duration": "1200", "status_id": "1"},
	} {
		v := decode(t, lines[i])
		for path, value := range want {
			if got := fmt.Sprint(at(v, path)); got != value {
				t.Errorf("line %d: %s is %s, want %s", i+1, path, got, value)
			}
		}
	}
}

// verifyChain checks an export as an outsider would: each line without its
// fingerprint, in canonical form, has that fingerprint, and names the one before.
func verifyChain(t testing.TB, data []byte) {
	t.Helper()
	before := ""
	for i, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		v := decode(t, line)
		a := at(v, "attestation_list[]").(map[string]any)
		claimed := at(a, "fingerprint.value").(string)
		delete(a, "fingerprint")
		var canonical bytes.Buffer
		enc := json.NewEncoder(&canonical)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		// encoding/json escapes these two, RFC 8785 does not.
		text := strings.NewReplacer(`\\`, `\\`, "\\u2028", "\u2028", "\\u2029", "\u2029").Replace(strings.TrimSuffix(canonical.String(), "\n"))
		if h := sha256.Sum256([]byte(text)); hex.EncodeToString(h[:]) != claimed {
			t.Fatalf("line %d has another fingerprint than it says; canonical is\n%s\nline is\n%s", i+1, text, line)
		}
		if prev, _ := at(a, "prev_event.fingerprint.value").(string); prev != before {
			t.Fatalf("line %d follows %q, not %q", i+1, prev, before)
		}
		before = claimed
	}
}

func TestOCSFIsAChain(t *testing.T) {
	var events []event.Event
	for i, a := range actions {
		e := sample(a.name)
		e.Seq = uint64(i + 1)
		e.Detail = map[string]string{"reason": "because \"\\\x01\u2028<&>", "zzz": "é", "in": "3"}
		events = append(events, e)
	}
	data := export(t, "ocsf", events...)
	verifyChain(t, data)
	h := sha256.Sum256([]byte("line " + actions[0].name))
	first := decode(t, bytes.SplitN(data, []byte("\n"), 2)[0])
	if got := at(first, "raw_data_hash.value"); got != hex.EncodeToString(h[:]) {
		t.Errorf("the record's line has another hash: %v", got)
	}
}

func TestAChainIsOfOneSession(t *testing.T) {
	a, b := sample(event.FileWrite), sample(event.FileWrite)
	b.Session = "s2"
	lines := bytes.Split(export(t, "ocsf", a, b), []byte("\n"))
	v := decode(t, lines[1])
	if at(v, "attestation_list[].prev_event") != nil || at(v, "attestation_list[].chain_uid") != "s2" {
		t.Errorf("the second session goes on the first one's chain: %s", lines[1])
	}
}
