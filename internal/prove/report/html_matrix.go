package report

import (
	"fmt"
	"io"
	"strings"

	"holdfast.dev/holdfast/internal/floor/document"
)

// The page of several runs side by side.
type (
	matrixPage struct {
		bare
		Columns []columnPart
		Classes []matrixClass
		Reasons []columnReasons
	}
	columnPart struct {
		Name, Anchor, Host, When, By, Brief string
		Target                              Target
		Total                               Tally
	}
	matrixClass struct {
		Name, Anchor string
		Tallies      []string
		Rows         []matrixRow
	}
	matrixRow struct {
		ID, Title string
		Cells     []string // "" if the row was not played
	}
	columnReasons struct {
		Name    string
		Reasons []reasonPart
	}
)

// html writes t as a page in one file.
func (t table) html(w io.Writer) error {
	names := t.names()
	p := matrixPage{bare: newBare(counted(len(names), "target", "targets"))}
	p.Outcome = fmt.Sprintf("%s, played against: %s.", counted(len(t.Rows), "row", "rows"), strings.Join(names, ", "))
	anchors := anchorer{}
	for i, c := range t.Runs {
		p.Columns = append(p.Columns, columnPart{
			Name: names[i], Anchor: anchors.anchorFor("target-" + names[i]), Host: c.Host.String(), When: when(c.Started), By: document.Clean(strings.TrimSpace(c.Tool + " " + c.Version)),
			Brief: c.Total.brief(), Target: Run{Target: c.Target}.cleaned().Target, Total: c.Total,
		})
		why := columnReasons{Name: names[i]}
		for _, r := range c.reasons {
			why.Reasons = append(why.Reasons, reasonPart{r.text, strings.Join(r.ids, " ")})
		}
		if len(why.Reasons) > 0 {
			p.Reasons = append(p.Reasons, why)
		}
	}
	for _, class := range t.classes() {
		part := matrixClass{Name: className(class.name), Anchor: anchors.anchorFor("class-" + class.name)}
		for _, tally := range class.tallies {
			part.Tallies = append(part.Tallies, tally.brief())
		}
		for _, row := range class.rows {
			line := matrixRow{ID: document.Clean(row.ID), Title: document.Clean(row.Title)}
			for _, cell := range row.Cells {
				verdict := ""
				if cell != nil {
					verdict = cell.Verdict
				}
				line.Cells = append(line.Cells, verdict)
			}
			part.Rows = append(part.Rows, line)
		}
		p.Classes = append(p.Classes, part)
	}
	return render(w, "matrix.html.tmpl", p)
}
