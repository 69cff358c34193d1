package alert

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
)

// TestParseRelayed compares what is accepted with what the published schema accepts.
func TestParseRelayed(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../../docs/formats/alert-relay.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	with := func(more string) string { return `{"rule":"acme-x","severity":"high","title":"T"` + more + `}` }
	for line, want := range map[string]bool{
		with(""): true,
		with(`,"technique":["T1083","T1552.001","AML.T0051"],"key":"k","count":3,"object":"/o\u001b","explanation":"e"`): true,
		with(`,"object":"` + strings.Repeat("é", 4096) + `"`):                                                            true,
		with(`,"object":"` + strings.Repeat("é", 4097) + `"`):                                                            false,
		with(`,"key":"` + strings.Repeat("x", 257) + `"`):                                                                false,
		with(`,"explanation":"` + strings.Repeat("x", 4097) + `"`):                                                       false,
		with(`,"count":0`):               false,
		with(`,"count":1000000001`):      false,
		with(`,"count":1.5`):             false,
		with(`,"count":"1"`):             false,
		with(`,"count":null`):            false,
		with(`,"object":null`):           false,
		with(`,"technique":"T1083"`):     false,
		with(`,"technique":["T1083",7]`): false,
		with(`,"technique":["T1083\n"]`): false,
		with(`,"technique":[` + strings.Repeat(`"T1083",`, 16) + `"T1083"]`): false,
		with(`,"session":"s"`):                                                    false,
		with(`,"Object":"o"`):                                                     false,
		`{"rule":"acme-x","severity":"high","title":""}`:                          false,
		`{"rule":"acme-x","severity":"high"}`:                                     false,
		`{"rule":"acme-x","severity":"grave","title":"T"}`:                        false,
		`{"rule":"Acme","severity":"high","title":"T"}`:                           false,
		`{"rule":"ac","severity":"high","title":"T"}`:                             false,
		`{"rule":"acme-x\n","severity":"high","title":"T"}`:                       false,
		`{"rule":"acme-x","severity":"high","title":"` + strings.Repeat("x", 201): false,
		`[]`:   false,
		`null`: false,
		`"x"`:  false,
		`{}`:   false,
	} {
		_, err := ParseRelayed([]byte(line))
		if (err == nil) != want {
			t.Errorf("%.200s: %v", line, err)
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err == nil {
			err = schema.Validate(doc)
		}
		if (err == nil) != want {
			t.Errorf("the schema says of %.200s: %v", line, err)
		}
	}
	for _, line := range []string{"", "x", with("") + "x", with("") + with(""), with(`,"title":"T"`), with(`,"TITLE":"T"`), with(",\"object\":\"\xff\"")} {
		if _, err := ParseRelayed([]byte(line)); err == nil {
			t.Errorf("%q was taken", line)
		}
	}
}

func FuzzParseRelayed(f *testing.F) {
	f.Add([]byte(`{"rule":"acme-x","severity":"high","title":"T","technique":["T1083"],"count":2}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := ParseRelayed(line)
		if err == nil && (!detect.ValidID(a.Rule) || a.Severity.Level() == 0 || a.Title == "" || a.Count < 1) {
			t.Errorf("%q is %+v", line, a)
		}
	})
}

// TestRelay has secrets masked in both, and a sink that gets nothing named at the end.
func TestRelay(t *testing.T) {
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ456789"
	dir := t.TempDir()
	file := filepath.Join(dir, "alerts.jsonl")
	r, err := NewRelay(RelayOptions{Log: filepath.Join(dir, "log"), For: "a check", Options: Options{
		Grace: 1, Sinks: []policy.AlertSink{{Kind: "file", Address: file}, {Kind: "syslog", Address: "unix://" + filepath.Join(dir, "nobody")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := r.Raise(detect.Alert{Rule: "acme-x", Severity: "high", Title: "T", Count: 1, Object: "/x?t=" + token})
	if err != nil || id != r.Session()+":1" {
		t.Errorf("%q, %v", id, err)
	}
	for begun := time.Now(); len(readLines(t, file)) == 0 && time.Since(begun) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	missed, err := r.Close()
	if u := onlyOne(t, missed); err != nil || !strings.HasPrefix(u.Sink, "syslog ") {
		t.Errorf("%v, %v", missed, err)
	}
	path := filepath.Join(dir, "log", r.Session()+".jsonl")
	inRecord, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	inFile, err := os.ReadFile(file)
	if err != nil || bytes.Contains(inFile, []byte(token)) || bytes.Contains(inRecord, []byte(token)) || !bytes.Contains(inRecord, []byte(`"object":"a check"`)) {
		t.Errorf("%v, the record has\n%s, the file\n%s", err, inRecord, inFile)
	}
	if v, err := audit.Verify(t.Context(), path, audit.VerifyOptions{}); err != nil || v.Verdict != audit.Complete {
		t.Errorf("%v: %v, %v", v.Verdict, v.Problems, err)
	}
	b, err := ReadBacklog(t.Context(), path)
	if err != nil || !b.Ended || b.wants("file "+file, 1) || !b.wants(missed[0].Sink, 1) {
		t.Errorf("%+v, %v", b, err)
	}
}
