package export

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Reference returns the fields, actions and details of events as Markdown, for
// `holdfast reference events`.
func Reference() string {
	var b strings.Builder
	b.WriteString("# Events\n\nOne event is one attempt, decision or change of state of a run, one JSON line of the record. " +
		"Queries, detection rules and exports use these names.\n\n## Fields\n\n| field | meaning | unit | OCSF | OpenTelemetry |\n| --- | --- | --- | --- | --- |\n")
	for _, f := range fields {
		meaning := f.meaning
		if f.optional {
			meaning += " Left out where it is empty."
		}
		row(&b, "`"+f.name+"`", meaning, f.unit, f.ocsf, f.otel)
	}
	b.WriteString("\n### Sensors\n\n| sensor | what it says |\n| --- | --- |\n")
	for _, s := range sensors {
		row(&b, "`"+s[0]+"`", s[1])
	}
	b.WriteString("\n### Layers\n\n| layer | why it was denied |\n| --- | --- |\n")
	for _, l := range layers {
		row(&b, "`"+l[0]+"`", l[1])
	}
	b.WriteString("\n### Blind spots\n\nWhat a `record.blind` is about. A record with one is PARTIAL.\n\n| object | what is not seen |\n| --- | --- |\n")
	for _, s := range blindSpots {
		row(&b, "`"+s[0]+"`", s[1])
	}
	b.WriteString("\n## Actions\n\nThe severity is that of an event that says none itself; a denial is at least `low`. OCSF's `type_uid` is the class and two digits of the activity.\n\n" +
		"| action | meaning | object | OCSF class | activity | severity |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, a := range actions {
		row(&b, "`"+a.name+"`", a.meaning, a.object, fmt.Sprintf("%d %s", a.class.uid, a.class.name), activityText(a), severities[a.severity].word)
	}
	b.WriteString("\n## Details\n\nValues are texts, also where they are numbers. Where one key stands in several rows, the first that fits the action counts.\n\n" +
		"| key | of | meaning | unit | OCSF | OpenTelemetry |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, d := range details {
		row(&b, "`"+d.key+"`", actionsText(d.in), d.meaning, d.unit, codeOr(d.ocsf, "unmapped.detail."+d.key), codeOr(d.otel, "holdfast.detail."+d.key))
	}
	b.WriteString("\n## Severities\n\n| severity | OCSF `severity_id` | OpenTelemetry `severityNumber` |\n| --- | --- | --- |\n")
	for s := informational; s <= critical; s++ {
		n := severities[s]
		row(&b, "`"+n.word+"`", fmt.Sprintf("%d %s", s, n.ocsf), fmt.Sprintf("%d %s", n.number, n.text))
	}
	return b.String()
}

func row(b *strings.Builder, cells ...string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	b.WriteString("|\n")
}

func codeOr(name, without string) string { return "`" + cmp.Or(name, without) + "`" }

func activityText(a action) string {
	switch {
	case a.class == httpActivity:
		return "by method"
	case a.activity == other:
		return fmt.Sprintf("%d %s", other, a.other)
	}
	return fmt.Sprintf("%d %s", a.activity, a.class.activities[a.activity])
}

func actionsText(in string) string {
	if in == "" {
		return "all"
	}
	names := strings.Fields(in)
	for i, n := range slices.Clone(names) {
		if strings.HasSuffix(n, ".") {
			n += "*"
		}
		names[i] = "`" + n + "`"
	}
	return strings.Join(names, ", ")
}
