package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"holdfast.dev/holdfast/internal/testenv"
)

func written(t testing.TB, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// schema compiles a JSON Schema, and lets it check formats.
func schema(t testing.TB, path string) *jsonschema.Schema {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("https://example.org/schema.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("https://example.org/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func validate(s *jsonschema.Schema, b []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

const proveSchema = "../../../docs/formats/prove.schema.json"

// documents has one of each kind of JSON document, of complete, empty and hostile
// runs.
func documents(t testing.TB) map[string][]byte {
	docs := map[string][]byte{}
	add := func(name string, r Run) {
		docs["run "+name] = written(t, func(w io.Writer) error { return JSON(w, r) })
		docs["baseline "+name] = written(t, func(w io.Writer) error { return WriteBaseline(w, r) })
		docs["changes "+name] = written(t, func(w io.Writer) error { return WriteChanges(w, Compare(sample(), r), FormatJSON, TextOptions{}) })
		docs["changes back "+name] = written(t, func(w io.Writer) error { return WriteChanges(w, Compare(r, sample()), FormatJSON, TextOptions{}) })
		docs["matrix "+name] = written(t, func(w io.Writer) error { return Matrix(w, []Run{sample(), r, r}, FormatJSON, TextOptions{}) })
	}
	add("of a sample", sample())
	add("of nothing", Run{})
	for _, s := range nasty {
		if s != "" {
			add(fmt.Sprintf("%+.20q", s), hostile(s))
		}
	}
	for name, k := range map[string]Kill{"of a sample": sampleKill(), "of nothing": {}} {
		docs["kill "+name] = written(t, func(w io.Writer) error { return WriteKill(w, k, FormatJSON, TextOptions{}) })
	}
	return docs
}

func TestJSONFollowsThePublishedSchema(t *testing.T) {
	s := schema(t, proveSchema)
	for name, b := range documents(t) {
		if err := validate(s, b); err != nil {
			t.Errorf("%s: %.2000s", name, err)
		}
		if problem := harmless(bytes.ReplaceAll(b, []byte("\n"), nil), 0); problem != "" {
			t.Errorf("%s: %.200s", name, problem)
		}
	}
}

// TestTheSchemaRefuses checks that the schema rejects invalid documents.
func TestTheSchemaRefuses(t *testing.T) {
	s := schema(t, proveSchema)
	good := string(written(t, func(w io.Writer) error { return JSON(w, sample()) }))
	for _, change := range [][2]string{
		{`"schema": 1`, `"schema": 2`}, {`"kind": "run"`, `"kind": "walk"`}, {`"verdict": "held"`, `"verdict": "HELD"`}, {`"tool":`, `"tools":`},
		{`"took": 12.345`, `"took": -1`}, {`"kind": "run"`, `"kind": "baseline"`}, {`"started": "2026-03-04T05:06:07Z"`, `"started": "today"`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("the document has no %s", change[0])
		}
		if validate(s, []byte(bad)) == nil {
			t.Errorf("a document with %s is valid", change[1])
		}
	}
}

func TestReadJSON(t *testing.T) {
	b := written(t, func(w io.Writer) error { return JSON(w, sample()) })
	r, err := ReadJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if again := written(t, func(w io.Writer) error { return JSON(w, r) }); !bytes.Equal(again, b) {
		t.Errorf("what was read is written differently:\n%s", again)
	}
	golden(t, "run.json", b)
}

func TestJSONDoesNotTellTheZone(t *testing.T) {
	r := sample()
	r.Started = r.Started.Add(123456789).In(time.FixedZone("", 5*3600))
	if b := written(t, func(w io.Writer) error { return JSON(w, r) }); !bytes.Contains(b, []byte(`"started": "2026-03-04T05:06:07.123Z"`)) {
		t.Errorf("the run has begun otherwise:\n%.300s", b)
	}
}

func TestReadJSONRefuses(t *testing.T) {
	good := string(written(t, func(w io.Writer) error { return JSON(w, sample()) }))
	for _, c := range []struct {
		name, doc, want string
		is              error
	}{
		{"a later version, whatever else it has", strings.Replace(strings.Replace(good, `"schema": 1`, `"schema": 2`, 1), `"tool"`, `"tools"`, 1), "it has 2, this program reads 1", ErrSchema},
		{"no version", strings.Replace(good, `"schema": 1,`, "", 1), "it has 0", ErrSchema},
		{"a baseline", string(written(t, func(w io.Writer) error { return WriteBaseline(w, sample()) })), `of kind "baseline"`, nil},
		{"a matrix", string(written(t, func(w io.Writer) error { return Matrix(w, nil, FormatJSON, TextOptions{}) })), `of kind "matrix"`, nil},
		{"a field that is not known", strings.Replace(good, `"tool"`, `"tools"`, 1), "unknown field", nil},
		{"a verdict that is none", strings.Replace(good, `"verdict": "held"`, `"verdict": "HELD"`, 1), "is not a verdict", nil},
		{"a row without ID", strings.Replace(good, `"id": "LNK-002"`, `"id": ""`, 1), "has no ID", nil},
		{"a second document", good + good, "invalid character", nil},
		{"half of one", good[:len(good)/2], "unexpected end", nil},
		{"a negative duration", strings.Replace(good, `"took": 12.345`, `"took": -12`, 1), "is not between", nil},
		{"a duration that overflows", strings.Replace(good, `"took": 12.345`, `"took": 1e300`, 1), "is not between", nil},
		{"nothing", "", "unexpected end", nil},
		{"more than is read", good + strings.Repeat(" ", largest), "larger than 64 MiB", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadJSON(strings.NewReader(c.doc))
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("the error is %v, not one with %q", err, c.want)
			}
		})
	}
}

func FuzzReadJSON(f *testing.F) {
	f.Add(written(f, func(w io.Writer) error { return JSON(w, sample()) }))
	f.Add(written(f, func(w io.Writer) error { return WriteBaseline(w, sample()) }))
	f.Add([]byte(`{"schema":1,"kind":"run","rows":[{"id":"a","verdict":"held","took":1e9}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, read := range []func(io.Reader) (Run, error){ReadJSON, ReadBaseline} {
			r, err := read(bytes.NewReader(b))
			if err != nil {
				continue
			}
			if _, err := ReadBaseline(bytes.NewReader(written(t, func(w io.Writer) error { return WriteBaseline(w, r) }))); err != nil && !strings.Contains(err.Error(), "twice") {
				t.Errorf("what was read cannot be written and read again: %v", err)
			}
			if problem := harmless(asText(t, r, TextOptions{Width: 80}), 80); problem != "" {
				t.Errorf("%.200s", problem)
			}
		}
	})
}

// xmllint validates a document against a schema of testdata.
func xmllint(t *testing.T, dir string, docs map[string][]byte) {
	t.Helper()
	args := []string{"--noout", "--nonet", "--schema", filepath.Join("testdata", "schemas", "jenkins-junit.xsd")}
	for name, b := range docs {
		path := filepath.Join(dir, name+".xml")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	if out, err := exec.Command("xmllint", args...).CombinedOutput(); err != nil {
		t.Errorf("xmllint: %v\n%.3000s", err, out)
	}
}

func TestJUnit(t *testing.T) {
	testenv.Need(t, "xmllint", func() error { return exec.Command("xmllint", "--version").Run() })
	strict := sample()
	strict.Strict = true
	docs := map[string][]byte{
		"sample":  written(t, func(w io.Writer) error { return JUnit(w, sample()) }),
		"strict":  written(t, func(w io.Writer) error { return JUnit(w, strict) }),
		"nothing": written(t, func(w io.Writer) error { return JUnit(w, Run{}) }),
	}
	golden(t, "junit.xml", docs["sample"])
	golden(t, "junit-strict.xml", docs["strict"])
	for i, s := range nasty {
		docs[fmt.Sprintf("hostile-%d", i)] = written(t, func(w io.Writer) error { return JUnit(w, hostile(s)) })
	}
	xmllint(t, t.TempDir(), docs)
	for name, b := range docs {
		if problem := narrow(b); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// narrow reports what the schema of Ant's task would reject. It requires more
// than that of Jenkins: every attribute, properties and outputs in each suite,
// and at most one child in a case.
func narrow(b []byte) string {
	var doc struct {
		Suites []struct {
			Attrs      []xml.Attr `xml:",any,attr"`
			Properties *struct{}  `xml:"properties"`
			Out        *string    `xml:"system-out"`
			Err        *string    `xml:"system-err"`
			Cases      []struct {
				Attrs    []xml.Attr `xml:",any,attr"`
				Children []struct {
					XMLName xml.Name
				} `xml:",any"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b, &doc); err != nil {
		return err.Error()
	}
	lacks := func(attrs []xml.Attr, names ...string) string {
		have := map[string]string{}
		for _, a := range attrs {
			have[a.Name.Local] = strings.TrimSpace(a.Value)
		}
		for _, name := range names {
			if have[name] == "" {
				return "an element lacks " + name
			}
		}
		return ""
	}
	for _, s := range doc.Suites {
		if s.Properties == nil || s.Out == nil || s.Err == nil {
			return "a suite lacks properties or an output"
		}
		if problem := lacks(s.Attrs, "package", "id", "name", "timestamp", "hostname", "tests", "failures", "errors", "time"); problem != "" {
			return problem
		}
		for _, c := range s.Cases {
			if len(c.Children) > 1 {
				return "a case has several children"
			}
			if problem := lacks(c.Attrs, "name", "classname", "time"); problem != "" {
				return problem
			}
		}
	}
	return ""
}

func FuzzJUnit(f *testing.F) {
	for _, s := range nasty {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if problem := narrow(written(t, func(w io.Writer) error { return JUnit(w, hostile(s)) })); problem != "" {
			t.Error(problem)
		}
	})
}

func TestSARIF(t *testing.T) {
	s := schema(t, filepath.Join("testdata", "schemas", "sarif-2.1.0-rtm.5.json"))
	strict := sample()
	strict.Strict = true
	docs := map[string][]byte{
		"sample":  written(t, func(w io.Writer) error { return SARIF(w, sample()) }),
		"strict":  written(t, func(w io.Writer) error { return SARIF(w, strict) }),
		"nothing": written(t, func(w io.Writer) error { return SARIF(w, Run{}) }),
	}
	golden(t, "run.sarif", docs["sample"])
	for _, text := range nasty {
		docs[fmt.Sprintf("%+.20q", text)] = written(t, func(w io.Writer) error { return SARIF(w, hostile(text)) })
	}
	for name, b := range docs {
		if err := validate(s, b); err != nil {
			t.Errorf("%s: %.2000s", name, err)
		}
	}
}

// TestSARIFFingerprints checks that a finding has the same fingerprint in another
// run, and another one for another row or target.
func TestSARIFFingerprints(t *testing.T) {
	prints := func(r Run) map[string]string {
		var log sarifLog
		if err := json.Unmarshal(written(t, func(w io.Writer) error { return SARIF(w, r) }), &log); err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, res := range log.Runs[0].Results {
			all[res.RuleID] = res.Fingerprints["holdfastRow/v1"]
			if got := log.Runs[0].Tool.Driver.Rules[res.RuleIndex].ID; got != res.RuleID {
				t.Errorf("the result of %s points at the rule %s", res.RuleID, got)
			}
		}
		return all
	}
	one, later, other := sample(), sample(), sample()
	later.Target.Version, later.Host.Kernel = "0.9.0", "7.0.0"
	for i := range later.Rows {
		later.Rows[i].Reason, later.Rows[i].Title = "another reason", "another title"
	}
	other.Target.Name = "firejail"
	a, b, c := prints(one), prints(later), prints(other)
	if len(a) != 3 || a["LNK-001"] == a["GIT-001"] || len(a["LNK-001"]) != 32 {
		t.Errorf("the fingerprints are %v", a)
	}
	for id := range a {
		if a[id] != b[id] || a[id] == c[id] {
			t.Errorf("%s: %s, later %s, of another target %s", id, a[id], b[id], c[id])
		}
	}
}

func FuzzSARIF(f *testing.F) {
	for _, s := range nasty {
		f.Add(s)
	}
	s := schema(f, filepath.Join("testdata", "schemas", "sarif-2.1.0-rtm.5.json"))
	f.Fuzz(func(t *testing.T, text string) {
		b := written(t, func(w io.Writer) error { return SARIF(w, hostile(text)) })
		if !utf8.Valid(b) {
			t.Error("it is no UTF-8")
		}
		if err := validate(s, b); err != nil {
			t.Errorf("%.1000s", err)
		}
	})
}
