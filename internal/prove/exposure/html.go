package exposure

import (
	"fmt"
	"html/template"
	"io"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/floor/text"
)

// HTML writes r as one page that needs no network and no scripts.
func HTML(w io.Writer, r Report) error {
	if err := page().Execute(w, view{r}); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// view is a report with the methods that the page calls.
type view struct{ Report }

// group is one class with its checks that found something.
type group struct {
	Class  string
	Checks []Check
}

// Groups are the classes with the checks that have a finding in some column.
func (v view) Groups() []group {
	var out []group
	for _, class := range Classes {
		g := group{Class: class}
		for _, c := range v.Checks {
			if c.Class != class {
				continue
			}
			for _, col := range v.Columns {
				if len(v.Of(col.ID, c.ID)) > 0 {
					g.Checks = append(g.Checks, c)
					break
				}
			}
		}
		if len(g.Checks) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// When is the time of the report for people.
func (v view) When() string { return v.Time.Format(time.DateTime) + " UTC" }

var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("exposure").Funcs(template.FuncMap{"plain": text.Line}).Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Exposure of {{plain .Account.User}}</title>
<style>
:root { color-scheme: light dark; --line: #8886; --high: #b3261e; --medium: #8a5a00; --low: #3a5f8a; }
@media (prefers-color-scheme: dark) { :root { --high: #ff8a80; --medium: #ffc46b; --low: #9cc4f0; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
thead th { position: sticky; top: 0; background: Canvas; }
.high { color: var(--high); font-weight: 700; } .medium { color: var(--medium); font-weight: 600; } .low { color: var(--low); }
code { overflow-wrap: anywhere; } dt { font-weight: 600; } dd { margin: 0 0 .4rem 1.5rem; } section { break-inside: avoid; }
@media print { body { margin: 0; max-width: none; } thead th { position: static; } }
</style>
</head>
<body>
<main>
<h1>What {{plain .Account.User}} hands to an agent</h1>
<p>{{.When}}{{if .Version}}, holdfast {{plain .Version}}{{end}}{{if .Account.CI}}, in a job of {{plain .Account.CI}}{{end}}{{if .Account.Workspace}}, started in <code>{{plain .Account.Workspace}}</code>{{end}}</p>
<table>
<caption>Who is compared</caption>
<thead><tr><th scope="col">Column</th><th scope="col">Kind</th><th scope="col">Basis</th><th scope="col">Findings</th></tr></thead>
<tbody>{{range .Columns}}<tr><th scope="row">{{plain .ID}}</th><td>{{.Kind}}</td><td>{{plain .Basis}}</td><td>{{$.Summary .ID}}</td></tr>
{{end}}</tbody>
</table>
<table>
<caption>What each hands over</caption>
<thead><tr><th scope="col">Check</th>{{range .Columns}}<th scope="col">{{plain .ID}}</th>{{end}}</tr></thead>
{{range .Groups}}<tbody><tr><th colspan="9" scope="rowgroup">{{.Class}}</th></tr>
{{range $c := .Checks}}<tr><th scope="row">{{$c.Title}}</th>{{range $.Columns}}{{with $.Of .ID $c.ID}}<td class="{{(index . 0).Level}}">{{(index . 0).Level}}{{if gt (len .) 1}} ({{len .}}){{end}}</td>{{else}}<td>–</td>{{end}}{{end}}</tr>
{{end}}</tbody>
{{end}}</table>
<h2>In detail</h2>
{{range .Groups}}{{range $c := .Checks}}{{with $.Of "here" $c.ID}}<section>
<h3>{{$c.Title}} <span class="{{(index . 0).Level}}">{{(index . 0).Level}}</span></h3>
<dl><dt>Why it matters</dt><dd>{{$c.Why}}</dd><dt>What to do</dt><dd>{{$c.Do}}</dd></dl>
<table>
<thead><tr><th scope="col">What</th><th scope="col">Detail</th><th scope="col">Inside Holdfast</th></tr></thead>
<tbody>{{range .}}<tr><td><code>{{plain .Object}}</code><br>{{plain .What}}</td><td>{{range .Detail}}{{plain .}}<br>{{end}}</td><td>{{with .Inside}}<strong>{{.Kind}}</strong>: {{plain .Why}}{{if .Rule}} <code>[{{plain .Rule}}]</code>{{end}}{{else}}not known{{end}}</td></tr>
{{end}}</tbody>
</table>
</section>
{{end}}{{end}}{{end}}
<h2>Sources for the hosted runners</h2>
<ul>{{range .Findings}}{{if .Source}}<li>{{plain .Column}}: {{plain .What}} (<a href="{{.Source}}">{{.Source}}</a>)</li>
{{end}}{{end}}</ul>
{{if .Notes}}<h2>What was not inspected</h2><ul>{{range .Notes}}<li>{{plain .}}</li>{{end}}</ul>{{end}}
</main>
</body>
</html>
`))
})
