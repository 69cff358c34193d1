package probe

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reference returns all rows by class as Markdown, for `holdfast prove reference rows`.
func Reference() string {
	classes := map[string][]Row{}
	for _, r := range All() {
		classes[r.Class] = append(classes[r.Class], r)
	}
	var b bytes.Buffer
	writeClasses(&b, classes)
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		writeClass(&b, class, classes[class])
	}
	return b.String()
}

// writeClasses writes a table of the classes.
func writeClasses(b *bytes.Buffer, classes map[string][]Row) {
	b.WriteString("# Rows of the escape matrix\n\n| class | rows | headline cases | promises |\n| --- | --- | --- | --- |\n")
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
		fmt.Fprintf(b, "| %s | %d | %d | %s |\n", class, len(classes[class]), core, strings.Join(slices.Sorted(maps.Keys(promises)), ", "))
	}
	fmt.Fprintf(b, "\n%d rows, %d of them headline cases.\n", rows, cores)
}

// writeClass writes the rows of a class.
func writeClass(b *bytes.Buffer, class string, rows []Row) {
	fmt.Fprintf(b, "\n## %s\n\n%d rows. Play them with `holdfast prove --class %s`.\n", class, len(rows), class)
	for _, r := range rows {
		fmt.Fprintf(b, "\n### %s\n\n%s.\n\n", r.ID, escaped(sentence(r.Title)))
		for _, f := range facts(r) {
			if f[1] != "" {
				fmt.Fprintf(b, "- %s: %s\n", f[0], f[1])
			}
		}
	}
}

// facts returns what Reference prints about a row, one line each.
func facts(r Row) [][2]string {
	kind := string(r.Kind)
	if r.Core {
		kind += ", headline case"
	}
	accept := r.Accept
	if accept == nil && r.Kind != Control {
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

func notIn(r Row) string {
	var out []string
	for _, w := range slices.Sorted(maps.Keys(r.NotIn)) {
		out = append(out, w+", for "+r.NotIn[w])
	}
	return strings.Join(out, "; ")
}

func traceWords(t Trace) []string {
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

// escaped escapes what Markdown would interpret.
func escaped(s string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`, "|", `\|`, "\n", " ").Replace(s)
}
