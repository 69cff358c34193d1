package report

import (
	"fmt"
	"io"
	"strings"

	"holdfast.dev/holdfast/internal/floor/document"
)

// short are the verdicts for narrow columns.
var short = map[string]string{Held: "held", Escaped: "ESC!", Inconclusive: "inc.", Residual: "res.", Unseen: "uns."}

// grid is the text layout of the matrix of runs.
type grid struct {
	about, cell int // width in columns
	short       bool
}

// text writes one line per row and one column per run. The runs are listed above
// with a number each, which is the only heading of a column if there is little
// room.
func (t table) text(w io.Writer, o TextOptions) error {
	p := newPage(o)
	g := p.grid(len(t.Runs))
	var head []string
	for i, c := range t.Runs {
		p.line("%s", p.tint(bold, p.fit(fmt.Sprintf("%d  %s", i+1, c.Target.nameAndVersion()), 0)))
		p.target(c.Target)
		p.item(2, "host", c.Host.String())
		p.item(2, "begun", when(c.Started))
		p.tally("  "+pad("rows", 9), c.Total, func(verdict string) string { return tints[verdict] })
		title := fmt.Sprint(i + 1)
		if !g.short {
			title += " " + t.names()[i]
		}
		head = append(head, title)
	}
	p.WriteByte('\n')
	if g.short {
		p.line("%s", p.tint(grey, "ESC!: "+Escaped+", uns.: "+Unseen+", inc.: "+Inconclusive+", res.: "+Residual))
	}
	p.line("%s", p.tint(grey, p.cells(g, "  check", head, nil)))
	for _, class := range t.classes() {
		var counts []string
		for _, tally := range class.tallies {
			counts = append(counts, fmt.Sprintf("%d/%d", tally.Held, tally.Rows()))
		}
		p.line("%s", p.tint(bold, p.cells(g, className(class.name), counts, nil)))
		for _, row := range class.rows {
			var words, colours []string
			for _, cell := range row.Cells {
				word := cell.word()
				colours = append(colours, tints[word])
				if g.short && cell != nil {
					word = short[word]
				}
				words = append(words, word)
			}
			p.line("%s", p.cells(g, "  "+pad(document.Clean(row.ID), 8)+"  "+document.Clean(row.Title), words, colours))
		}
	}
	_, err := w.Write(p.Bytes())
	return err
}

// grid lays out n runs: the check gets at least thirty columns as long as that is
// possible.
func (p *page) grid(n int) grid {
	if p.o.Width == 0 {
		return grid{about: 72, cell: verdicts}
	}
	if room := p.o.Width - n*(verdicts+2); room >= 30 {
		return grid{about: room, cell: verdicts}
	}
	return grid{about: max(10, p.o.Width-n*7), cell: 5, short: true}
}

// cells is a line of the matrix.
func (p *page) cells(g grid, about string, cells, colours []string) string {
	var b strings.Builder
	b.WriteString(pad(cut(about, g.about), g.about))
	for i, cell := range cells {
		cell, colour := pad(cut(cell, g.cell), g.cell), ""
		if colours != nil {
			colour = colours[i]
		}
		b.WriteString("  " + p.tint(colour, cell))
	}
	return b.String()
}
