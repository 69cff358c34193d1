package screen

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// Sequences of ECMA-48 and of xterm that every terminal of the last 30 years
// has, so that no description of terminals has to be read.
const (
	screenEnter = "\x1b[?1049h\x1b[?7l\x1b[?25l\x1b[?2004h" // other screen, no wrapping, no cursor, pastes are marked
	screenLeave = "\x1b[?2004l\x1b[0m\x1b[?25h\x1b[?7h\x1b[?1049l"
	screenReset = "\x1b[0m"
)

// Row is one row of the screen. Its text has no control characters.
type Row struct {
	Text   string
	Style  string // of SGR, such as "7" for reverse; "" for plain
	Cursor bool   // the cursor is at its end
}

// FullScreen is the user's terminal while one command has all of it.
type FullScreen struct {
	in, out    *os.File
	colour     bool
	old        *term.State // nil while it is not ours
	rows, cols int
	shown      []Row // what is on it; nil if unknown
}

// NewFullScreen takes the terminal. Every way out must call Leave.
func NewFullScreen(in, out *os.File, colour bool) (*FullScreen, error) {
	s := &FullScreen{in: in, out: out, colour: colour}
	return s, s.Enter()
}

// Enter takes the terminal, also again after a stop.
func (s *FullScreen) Enter() error {
	old, err := term.MakeRaw(int(s.in.Fd()))
	if err != nil {
		return fmt.Errorf("switching the terminal to raw mode: %w", err)
	}
	s.old, s.shown = old, nil
	sys.FlushInput(s.in) // what was typed before anything was shown was not meant for it
	if _, err := io.WriteString(s.out, screenEnter); err != nil {
		s.Leave()
		return fmt.Errorf("writing to the terminal: %w", err)
	}
	s.Measure()
	return nil
}

// Leave gives the terminal back as it was. It may be called more than once.
func (s *FullScreen) Leave() error {
	if s.old == nil {
		return nil
	}
	_, err := io.WriteString(s.out, screenLeave)
	err = errors.Join(err, term.Restore(int(s.in.Fd()), s.old))
	s.old = nil
	return err
}

// Measure asks for the size, which may have changed.
func (s *FullScreen) Measure() {
	cols, rows, err := term.GetSize(int(s.out.Fd()))
	if err != nil || cols < 1 || rows < 1 {
		cols, rows = 80, 24
	}
	if cols != s.cols || rows != s.rows {
		s.shown = nil
	}
	s.cols, s.rows = min(cols, 1000), min(rows, 1000)
}

// Size is how much can be drawn on.
func (s *FullScreen) Size() (rows, cols int) { return s.rows, s.cols }

// Forget makes the next draw write every row.
func (s *FullScreen) Forget() { s.shown = nil }

// Keys reads keys until the terminal is gone. It needs a goroutine that is not waited
// for: a read of a terminal cannot be ended.
func (s *FullScreen) Keys(to chan<- Key) { readKeys(s.in, to) }

// Draw shows rows, and writes only those that changed.
func (s *FullScreen) Draw(rows []Row) error {
	var b strings.Builder
	if s.shown == nil {
		b.WriteString(screenReset + "\x1b[2J")
	}
	cursor := ""
	for i := range s.rows {
		var r Row
		if i < len(rows) {
			r = rows[i]
		}
		r.Text = Clip(r.Text, s.cols)
		if r.Cursor {
			cursor = fmt.Sprintf("\x1b[%d;%dH\x1b[?25h", i+1, min(Columns(r.Text)+1, s.cols))
		}
		if s.shown != nil && s.shown[i] == r {
			continue
		}
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[2K", i+1)
		if style := s.style(r.Style); style != "" {
			b.WriteString("\x1b[" + style + "m" + r.Text + screenReset)
		} else {
			b.WriteString(r.Text)
		}
		if s.shown != nil {
			s.shown[i] = r
		}
	}
	if s.shown == nil {
		s.shown = make([]Row, s.rows)
		copy(s.shown, rows)
		for i := range s.shown {
			s.shown[i].Text = Clip(s.shown[i].Text, s.cols)
		}
	}
	if cursor == "" {
		cursor = "\x1b[?25l"
	}
	b.WriteString(cursor)
	if _, err := io.WriteString(s.out, b.String()); err != nil {
		return fmt.Errorf("writing to the terminal: %w", err)
	}
	return nil
}

// style is how a row looks: without colours, only styles that are not colours.
func (s *FullScreen) style(style string) string {
	if s.colour || style == command.Bold || style == Reverse {
		return style
	}
	return ""
}

// Reverse is the style of what is selected; it is no colour.
const Reverse = "7"

// Columns is how many columns a text takes at most. Of what is beyond the Latin,
// Greek, Cyrillic and Semitic scripts two are counted, for much of it is wide
// (UAX #11): a line may end early, and never runs into another.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	if r < 0x1100 || r >= 0x2010 && r < 0x2600 { // punctuation, arrows and lines
		return 1
	}
	return 2
}

// Clip is the beginning of a text that fits into columns.
func Clip(s string, width int) string {
	n := 0
	for i, r := range s {
		if n += runeColumns(r); n > width {
			return s[:i]
		}
	}
	return s
}

// Wrap breaks a text into lines of width columns: at spaces where there are
// some, else anywhere. Nothing of it is left out.
func Wrap(s string, width int, indent string) []string {
	width = max(width, 8)
	if Columns(indent) > width/2 {
		indent = ""
	}
	var out []string
	for lead := ""; ; lead = indent {
		part := Clip(s, width-Columns(lead))
		if len(part) < len(s) {
			if at := strings.LastIndexByte(part, ' '); at > len(part)/2 {
				part = part[:at+1]
			}
		}
		out = append(out, lead+part)
		if s = s[len(part):]; s == "" {
			return out
		}
	}
}

// Suspend stops this process; the shell that started it notices, and continues it on
// "fg". The signal is delivered to the process, and this thread may run on before it
// stops: only SIGCONT shows that it was stopped and is running again.
func Suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(os.Getpid(), syscall.SIGSTOP) == nil {
		<-continued
	}
}
