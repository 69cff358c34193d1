//go:build linux

package probe

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

const classTerminal = "tty.terminal"

// noTerminal are Denials and what something answers that is no terminal, or
// not one's own.
var noTerminal = append([]string{"EIO", "ENOTTY", "ENXIO", "EBADF", "EINVAL"}, Denials...)

func terminalRows() []Row {
	return append(terminalInput(), terminalOutput()...)
}

func terminalInput() []Row {
	typing := func(id, title, action string) Row {
		return Row{ID: id, Class: classTerminal, Kind: Sandbox, Promise: "P6", Title: title,
			Refs:  []string{"CVE-2017-5226", "CVE-2023-28100", "TIOCSTI(2const)"},
			Needs: []string{"bash"}, Options: Options{Terminal: true}, Accept: noTerminal,
			Harmless: "the terminal may be one of the sandbox's own; what counts is whether the user's shell was typed at",
			Setup:    shellThatReads, Oracle: shellWasTypedAt, Proof: true, Action: action}
	}
	byInt80 := typing("TTY-002b", "a line is typed at the user's shell by the calls of another ABI", "type-by-int80")
	byInt80.Bare = withoutABI("int 0x80", int80Missing)
	byInt80.Accept = ended(noTerminal)
	stolen := typing("TTY-001b", "a new session takes the user's terminal and types", "take-terminal")
	stolen.BareUser = asRoot
	console := typing("TTY-003", "text is selected and pasted on a console", "console-calls")
	console.Bare = "the terminal of a test is no console"
	return []Row{
		core(typing("TTY-001", "a line is typed at the user's shell", "type")),
		stolen,
		core(typing("TTY-002", "a line is typed at the user's shell by a request with high bits", "type-high")),
		byInt80,
		console,
		{ID: "TTY-003b", Class: classTerminal, Kind: Sandbox, Promise: "P7",
			Title: "the kernel is asked for a line discipline that has been exploited",
			Refs:  []string{"CVE-2017-2636", "CVE-2023-6546", "TIOCSETD(2const)"}, Options: Options{Terminal: true},
			Accept:   callDenials,
			BareUser: "the host may let only root load one, by dev.tty.ldisc_autoload",
			Action:   "disciplines"},
		{ID: "TTY-004", Class: classTerminal, Kind: Host, Promise: "P6",
			Title: "modes and size of the user's terminal are changed and stay so",
			Refs:  []string{"termios(3)", "stty(1)"}, Needs: []string{"bash"}, Options: Options{Terminal: true},
			Setup: func(w *World) error {
				w.Under = []string{"bash", "-c", `b=$(stty -g; stty size); "$@"; a=$(stty -g; stty size); [ "$a" = "$b" ] || echo terminal-was-changed`, "shell"}
				return nil
			},
			Accept:   noTerminal,
			Harmless: "a terminal of its own may be changed",
			Oracle: func(_ *World, o Observation) []string {
				if bytes.Contains(o.Stdout, []byte("terminal-was-changed")) {
					return []string{"the user's terminal has other modes or another size"}
				}
				return nil
			},
			Action: "leave-modes"},
		{ID: "TTY-005", Class: classTerminal, Kind: Control, Promise: "P6",
			Title: "a program has a terminal, knows its size and makes others",
			Refs:  []string{"pty(7)"}, Options: Options{Terminal: true},
			Action: "own-terminal"},
	}
}

// shellThatReads starts the launcher from a shell that reads the next line
// from its terminal, as the user's does.
func shellThatReads(w *World) error {
	b, err := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti")
	if err == nil && strings.TrimSpace(string(b)) == "0" {
		return fmt.Errorf("%w: a kernel that lets programs type", ErrMissing)
	}
	w.Under = []string{"bash", "-c", `"$@"; while IFS= read -r -t 0.4 line; do echo "the shell read:$line"; done`, "shell"}
	return nil
}

func shellWasTypedAt(_ *World, o Observation) []string {
	if bytes.Contains(o.Stdout, []byte("the shell read:typed-by-a-probe")) {
		return []string{"the user's shell read what was typed inside"}
	}
	return nil
}

// escapes are sequences on which a terminal does more than print.
var escapes = map[string]string{
	"OSC 52, the clipboard":             "\x1b]52;c;cHJvYmU=\x07",
	"OSC 52, ended by ST":               "\x1b]52;c;cHJvYmU=\x1b\\",
	"OSC 52, introduced by one byte":    "\x9d52;c;cHJvYmU=\x9c",
	"OSC 52 inside a passthrough":       "\x1bPtmux;\x1b\x1b]52;c;cHJvYmU=\x07\x1b\\",
	"OSC 8, a link":                     "\x1b]8;;file:///etc/passwd\x1b\\text\x1b]8;;\x1b\\",
	"OSC 50, the font":                  "\x1b]50;?\x07",
	"DECRQSS, an answer that is typed":  "\x1bP$qm\x1b\\",
	"a title that is typed back":        "\x1b]2;probe\x07\x1b[21t",
	"a device status that is typed":     "\x1b[6n",
	"APC":                               "\x1b_Gprobe\x1b\\",
	"the answerback":                    "\x1b[c\x05",
	"OSC 1337, a file":                  "\x1b]1337;File=inline=1:cHJvYmU=\x07",
	"OSC 777 and OSC 9, a notification": "\x1b]777;notify;probe;probe\x07\x1b]9;probe\x07",
}

func terminalOutput() []Row {
	printing := func(id, title, reference string, prefixes ...string) Row {
		var chosen, lines []string
		for name, sequence := range escapes {
			for _, prefix := range prefixes {
				if strings.HasPrefix(name, prefix) {
					chosen = append(chosen, sequence)
					lines = append(lines, fmt.Sprintf("%x", sequence))
				}
			}
		}
		return Row{ID: id, Class: classTerminal, Kind: Host, Promise: "P6", Title: title, Refs: []string{reference},
			Options: Options{Terminal: true}, Harmless: "printing is no escape; what reaches the user's terminal is",
			Oracle: func(_ *World, o Observation) []string {
				for _, sequence := range chosen {
					if bytes.Contains(o.Stdout, []byte(sequence)) {
						return []string{fmt.Sprintf("the terminal was given %q", sequence)}
					}
				}
				return nil
			},
			Action: "print-escapes", Args: []string{"hex=" + strings.Join(lines, "\n")}}
	}
	const relayed = "output is relayed to the terminal as it is, as by every program that runs another; a filter belongs to the record and the reports"
	clipboard := printing("TTY-006", "the clipboard of the user is written by what the command prints", "CVE-2022-24130", "OSC 52")
	rest := printing("TTY-007", "what the command prints makes the terminal type, lie or load", "CVE-2003-0063",
		"OSC 8", "OSC 50", "DECRQSS", "a title", "a device", "APC", "the answerback", "OSC 1337", "OSC 777")
	clipboard.Residual, rest.Residual = relayed, relayed
	return []Row{clipboard, rest}
}
