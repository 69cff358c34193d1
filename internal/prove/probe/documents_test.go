//go:build linux

package probe_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/probe"
)

//go:generate go test -count=1 -run ^TestDocumentsAreCurrent$ . -args -probe.update

var update = flag.Bool("probe.update", false, "write the pages of docs/probes")

const pages = "../../../docs/probes"

// TestDocumentsAreCurrent compares docs/probes with the rows: a page a class.
func TestDocumentsAreCurrent(t *testing.T) {
	want := map[string][]byte{}
	classes := map[string][]probe.Row{}
	for _, r := range probe.All() {
		classes[r.Class] = append(classes[r.Class], r)
	}
	for class, rows := range classes {
		want[class+".md"] = page(class, rows)
	}
	want["README.md"] = index(classes)
	if *update {
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(pages, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	there, err := os.ReadDir(pages)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		if want[f.Name()] == nil {
			t.Errorf("%s/%s belongs to no class", pages, f.Name())
		}
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(pages, name)); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s/%s is not what the rows say: go generate ./internal/prove/probe (%v)", pages, name, err)
		}
	}
}

const generated = "<!-- generated from the rows by: go generate ./internal/prove/probe -->\n\n"

func index(classes map[string][]probe.Row) []byte {
	var b bytes.Buffer
	b.WriteString("# Probes\n\n" + generated)
	b.WriteString("Each page has the rows of one class. How a verdict is given, and how a row is written, stands in [prove](../prove.md).\n\n")
	b.WriteString("| class | rows | headline cases | promises |\n| --- | --- | --- | --- |\n")
	rows, cores := 0, 0
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		core, promises := 0, map[string]bool{}
		for _, r := range classes[class] {
			if r.Core {
				core++
			}
			if r.Promise != "" {
				promises[string(r.Promise)] = true
			}
		}
		rows, cores = rows+len(classes[class]), cores+core
		fmt.Fprintf(&b, "| [%s](%s.md) | %d | %d | %s |\n", class, class, len(classes[class]), core, strings.Join(slices.Sorted(maps.Keys(promises)), ", "))
	}
	fmt.Fprintf(&b, "\n%d rows in all, %d of them headline cases.\n", rows, cores)
	return b.Bytes()
}

func page(class string, rows []probe.Row) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s%d rows. Play them with `holdfast prove --class %s`.\n", class, generated, len(rows), class)
	for _, r := range rows {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n", r.ID, escaped(sentence(r.Title)))
		for _, f := range facts(r) {
			if f[1] != "" {
				fmt.Fprintf(&b, "- %s: %s\n", f[0], f[1])
			}
		}
	}
	return b.Bytes()
}

// facts are what the page says of a row, a line each.
func facts(r probe.Row) [][2]string {
	kind := string(r.Kind)
	if r.Core {
		kind += ", headline case"
	}
	accept := r.Accept
	if accept == nil && r.Kind != probe.Control {
		accept = []string{"the usual denials"}
	}
	return [][2]string{
		{"promise", string(r.Promise)},
		{"kind", kind},
		{"references", escaped(strings.Join(r.Refs, "; "))},
		{"needs", strings.Join(r.Needs, ", ")},
		{"counts as a denial", strings.Join(accept, " ")},
		{"may succeed, because", escaped(r.Harmless)},
		{"must be seen as", code(traceWords(r.Trace))},
		{"is not in the record, because", escaped(r.Trace.None)},
		{"known to get through", escaped(r.Residual)},
		{"cannot escape without a sandbox", escaped(r.Bare)},
		{"cannot escape for an ordinary user without a sandbox", escaped(r.BareUser)},
		{"is played alone, because", escaped(r.Alone)},
		{"is played in all worlds but", escaped(notIn(r))},
	}
}

func notIn(r probe.Row) string {
	var out []string
	for _, w := range slices.Sorted(maps.Keys(r.NotIn)) {
		out = append(out, w+", for "+r.NotIn[w])
	}
	return strings.Join(out, "; ")
}

func traceWords(t probe.Trace) []string {
	var out []string
	for _, a := range t.Events {
		out = append(out, a.String())
	}
	for _, rule := range t.Rules {
		out = append(out, "alert "+rule)
	}
	return out
}

func code(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, "`"+strings.ReplaceAll(w, "`", "'")+"`")
	}
	return strings.Join(out, ", ")
}

func sentence(title string) string {
	if title == "" {
		return ""
	}
	return strings.ToUpper(title[:1]) + title[1:]
}

// escaped takes away what Markdown would read as its own.
func escaped(s string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`, "|", `\|`, "\n", " ").Replace(s)
}
