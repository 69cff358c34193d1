package cli

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

// row is one row of the screen. Its text has no control characters.
type row struct {
	text   string
	style  string // of SGR, such as "7" for reverse; "" for plain
	cursor bool   // the cursor stands at its end
}

// fullScreen is the user's terminal while one command has all of it.
type fullScreen struct {
	in, out    *os.File
	colour     bool
	old        *term.State // nil while it is not ours
	rows, cols int
	shown      []row // what stands on it; nil when that is not known
}

// newFullScreen takes the terminal. Every way out must call leave.
func newFullScreen(in, out *os.File, colour bool) (*fullScreen, error) {
	s := &fullScreen{in: in, out: out, colour: colour}
	return s, s.enter()
}

func (s *fullScreen) enter() error {
	old, err := term.MakeRaw(int(s.in.Fd()))
	if err != nil {
		return fmt.Errorf("switching the terminal to raw mode: %w", err)
	}
	s.old, s.shown = old, nil
	sys.FlushInput(s.in) // what was typed before anything was shown was not meant for it
	if _, err := io.WriteString(s.out, screenEnter); err != nil {
		s.leave()
		return fmt.Errorf("writing to the terminal: %w", err)
	}
	s.measure()
	return nil
}

// leave gives the terminal back as it was. It may be called more than once.
func (s *fullScreen) leave() error {
	if s.old == nil {
		return nil
	}
	_, err := io.WriteString(s.out, screenLeave)
	err = errors.Join(err, term.Restore(int(s.in.Fd()), s.old))
	s.old = nil
	return err
}

// measure asks for the size, which may have changed.
func (s *fullScreen) measure() {
	cols, rows, err := term.GetSize(int(s.out.Fd()))
	if err != nil || cols < 1 || rows < 1 {
		cols, rows = 80, 24
	}
	if cols != s.cols || rows != s.rows {
		s.shown = nil
	}
	s.cols, s.rows = min(cols, 1000), min(rows, 1000)
}

// size is how much can be drawn on.
func (s *fullScreen) size() (rows, cols int) { return s.rows, s.cols }

// forget makes the next draw write every row.
func (s *fullScreen) forget() { s.shown = nil }

// keys reads keys until the terminal is gone. It is for one goroutine that nobody
// waits for: a read of a terminal cannot be ended.
func (s *fullScreen) keys(to chan<- key) { readKeys(s.in, to) }

// draw shows rows, and writes only those that changed.
func (s *fullScreen) draw(rows []row) error {
	var b strings.Builder
	if s.shown == nil {
		b.WriteString(screenReset + "\x1b[2J")
	}
	cursor := ""
	for i := range s.rows {
		var r row
		if i < len(rows) {
			r = rows[i]
		}
		r.text = clip(r.text, s.cols)
		if r.cursor {
			cursor = fmt.Sprintf("\x1b[%d;%dH\x1b[?25h", i+1, min(columns(r.text)+1, s.cols))
		}
		if s.shown != nil && s.shown[i] == r {
			continue
		}
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[2K", i+1)
		if style := s.style(r.style); style != "" {
			b.WriteString("\x1b[" + style + "m" + r.text + screenReset)
		} else {
			b.WriteString(r.text)
		}
		if s.shown != nil {
			s.shown[i] = r
		}
	}
	if s.shown == nil {
		s.shown = make([]row, s.rows)
		copy(s.shown, rows)
		for i := range s.shown {
			s.shown[i].text = clip(s.shown[i].text, s.cols)
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

// style is how a row looks: without colours only what is no colour.
func (s *fullScreen) style(style string) string {
	if s.colour || style == command.Bold || style == reverse {
		return style
	}
	return ""
}

// reverse is the style of what is selected; it is no colour.
const reverse = "7"

// columns is how many columns a text takes at most. Of what is beyond the Latin,
// Greek, Cyrillic and Semitic scripts two are counted, for much of it is wide
// (UAX #11): a line may end early, and never runs into another.
func columns(s string) int {
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

// clip is the beginning of a text that fits into columns.
func clip(s string, width int) string {
	n := 0
	for i, r := range s {
		if n += runeColumns(r); n > width {
			return s[:i]
		}
	}
	return s
}

// wrap breaks a text into lines of width columns: at spaces where there are
// some, else anywhere. Nothing of it is left out.
func wrap(s string, width int, indent string) []string {
	width = max(width, 8)
	if columns(indent) > width/2 {
		indent = ""
	}
	var out []string
	for first := true; ; first = false {
		line := s
		lead := ""
		if !first {
			lead = indent
		}
		part := clip(line, width-columns(lead))
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

// suspend stops this process; the shell that started it notices, and continues it
// on "fg". The signal is delivered to the process, and this thread may run on before
// it stops: only SIGCONT says that it was stopped and is running again.
func suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(os.Getpid(), syscall.SIGSTOP) == nil {
		<-continued
	}
}
