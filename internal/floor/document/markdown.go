package document

import (
	"bytes"
	"io"
	"strings"
)

// Markdown writes d as CommonMark with the task lists of GitHub.
func (d Document) Markdown(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("# " + Markdown(d.Over) + ": " + d.Title.markdown() + "\n\n> " + d.Lead.markdown() + "\n")
	for _, block := range d.Blocks {
		block.markdown(&b)
	}
	for _, s := range d.Section {
		b.WriteString("\n## " + Markdown(s.Title) + "\n")
		for _, block := range s.Blocks {
			block.markdown(&b)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (block Block) markdown(b *bytes.Buffer) {
	if len(block.Text) > 0 {
		b.WriteString("\n" + block.Text.markdown() + "\n")
	}
	if len(block.Items) > 0 {
		b.WriteByte('\n')
	}
	mark := "- "
	if block.Checks {
		mark = "- [ ] "
	}
	for _, item := range block.Items {
		b.WriteString(mark + item.Text.markdown() + "\n")
		for _, more := range item.More {
			b.WriteString("  - " + more.markdown() + "\n")
		}
	}
	if len(block.Commands) == 0 {
		return
	}
	lines := strings.Join(CleanAll(block.Commands), "\n")
	mark = fence(lines, 3)
	b.WriteString("\n" + mark + "sh\n" + lines + "\n" + mark + "\n")
}

// markdown is t in one line. Code is a code span, in which nothing means anything:
// no link, no mention, no mark-up, and not even a backslash.
func (t Prose) markdown() string {
	var b strings.Builder
	for _, s := range t {
		switch {
		case s.Look == Code:
			b.WriteString(mdSpan(s.Shown()))
		case s.Look == Bold:
			b.WriteString("**" + Markdown(s.Text) + "**")
		case strings.Trim(s.Text, " ") == "":
			b.WriteString(s.Text)
		default:
			b.WriteString(Markdown(s.Text))
		}
	}
	return b.String()
}

// markdownSpecial are the characters that mean something in CommonMark or in the
// tables of GitHub, all of ASCII, where a backslash takes the meaning away.
const markdownSpecial = "\\`*_[]<>|~&$"

// Markdown is s as text of Markdown in one line.
func Markdown(s string) string {
	s = Clean(s)
	if !strings.ContainsAny(s, markdownSpecial) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(markdownSpecial, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// mdSpan is s, which is clean, as a code span of Markdown.
func mdSpan(s string) string {
	mark, edge := fence(s, 1), ""
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || strings.HasPrefix(s, " ") || strings.HasSuffix(s, " ") {
		edge = " " // one of each side is taken away where both are there
	}
	return mark + edge + s + edge + mark
}

// fence is a run of backticks that s does not hold, of at least n.
func fence(s string, n int) string {
	run := 0
	for _, r := range s {
		if r != '`' {
			run = 0
			continue
		}
		if run++; run >= n {
			n = run + 1
		}
	}
	return strings.Repeat("`", n)
}
