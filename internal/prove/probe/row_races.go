//go:build linux

package probe

import (
	"fmt"
	"os"
	"strings"
	"time"
)

const classRaces = "fs.races"

func racesRows() []Row {
	return append(append(racesOfNames(), racesOfProcesses()...), racesAgainstLauncher()...)
}

const meantToWork = "writing below a directory of the workspace is meant to work; what is outside must stay as it is"

func racesOfNames() []Row {
	swapped := func(id, title, how string) Row {
		return Row{ID: id, Class: classRaces, Kind: Sandbox, Promise: "P2", Title: title,
			Refs:  []string{"CVE-2025-53109", "path_resolution(7)"},
			Files: map[string]string{"W/x/keep": ""}, Links: map[string]string{"W/y": "O"},
			Harmless: meantToWork,
			Action:   "swap-and-write", Args: []string{"path=W/x", "other=W/y", "how=" + how}}
	}
	first := core(swapped("RAC-001", "a name is removed and made again, as a directory and as a link, while it is written through", "remake"))
	first.Args = []string{"path=W/x", "other=O", "how=remake"}
	return []Row{
		first,
		swapped("RAC-001b", "a directory and a link change places by three renames while a name is written through", "rename"),
		swapped("RAC-002", "a directory and a link to the outside are exchanged in one step while a name is written through", "exchange"),
		{ID: "RAC-002b", Class: classRaces, Kind: Sandbox, Promise: "P3",
			Title: "the parent of a hook is exchanged with another directory while the hook is written",
			Refs:  []string{"renameat2(2)"},
			Files: repo("W/sub/.git", map[string]string{"W/sub/.git/canary": "", "W/sub/.git/hooks/pre-commit": hook}),
			Links: map[string]string{"W/other": "W/sub/.git/hooks"},
			Keep:  []string{"W/sub/.git/hooks/pre-commit", "W/sub/.git/hooks"}, Absent: []string{"W/sub/.git/hooks/canary"},
			Harmless: meantToWork,
			Action:   "swap-and-write", Args: []string{"path=W/sub/.git", "other=W/other", "how=exchange"}},
	}
}

func racesOfProcesses() []Row {
	row := func(id, title, way string) Row {
		return Row{ID: id, Class: classRaces, Kind: Sandbox, Promise: "P10", Title: title,
			Refs:     []string{"pid_namespaces(7)", "daemon(7)"},
			Harmless: "a process may be started; none may go on when the command has ended",
			Oracle:   goesOn, Action: "leave-behind", Args: []string{"way=" + way}}
	}
	killed := row("RAC-008b", "the launcher is killed, and what it started goes on", "session")
	killed.Kind, killed.Needs = Host, []string{"bash"}
	killed.Timeout = time.Minute
	killed.Args = append(killed.Args, "linger=1")
	killed.Setup = func(w *World) error {
		// The second start is what reports, and needs its key: the first is cut short.
		w.Under = []string{"bash", "-c", `for a; do [[ $a == key=* ]] && k=${a#key=}; done; cp "$k" key.2; "$@" >/dev/null 2>&1 & p=$!; for i in {1..400}; do [ -e second ] && break; sleep 0.05; done; ` +
			`kill -9 $p; wait; [ -e second ] || { echo "it never came up" >&2; exit 1; }; sleep 0.5; mv key.2 "$k"; exec "$@"`, "launcher"}
		return nil
	}
	return []Row{
		core(row("RAC-007", "a process in a session of its own outlives the command", "session")),
		row("RAC-007b", "an orphan outlives the command", "double"),
		row("RAC-007c", "a process that holds the output open outlives the command", "output"),
		row("RAC-007d", "a process that keeps replacing itself by a child outlives the command", "chain"),
		{ID: "RAC-008", Class: classRaces, Kind: Sandbox, Promise: "P10",
			Title: "the launcher is stopped and killed from inside, and then the outside is written",
			Refs:  []string{"pid_namespaces(7)"}, Needs: []string{"bash"},
			Setup: func(w *World) error {
				w.Under = []string{"bash", "-c", `echo $$ > launcher.pid; "$@"; exit $?`, "launcher"}
				return nil
			},
			Accept: noProcess,
			Action: "kill-launcher"},
		killed,
	}
}

// goesOn looks whether a file of the workspace still grows.
func goesOn(w *World, _ Observation) []string {
	time.Sleep(500 * time.Millisecond)
	before, err := os.Stat(w.Path("W/alive"))
	if err != nil {
		return nil
	}
	time.Sleep(700 * time.Millisecond)
	after, err := os.Stat(w.Path("W/alive"))
	if err != nil || after.Size() == before.Size() {
		return nil
	}
	return []string{"a process inside goes on writing after the end"}
}

func racesAgainstLauncher() []Row {
	return []Row{
		{ID: "RAC-005", Class: classRaces, Kind: Host, Promise: "P10",
			Title: "a policy written during a run widens it, or the next one",
			Refs:  []string{"CVE-2026-25725"}, RefusalHolds: true,
			Action: "grant-itself",
			Drive: func(s *Session) {
				s.Run(Command{})
				s.Run(Command{Action: "both", Args: []string{"path=O/canary\nO/sub/canary"}})
			}},
		{ID: "RAC-006", Class: classRaces, Kind: Sandbox, Promise: "P5",
			Title: "the first thing that a program does is to connect, before a filter or a proxy is there",
			Refs:  []string{"network_namespaces(7)"},
			Setup: func(w *World) error {
				l, err := w.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					return err
				}
				w.Arg("port=" + l.Addr[strings.LastIndex(l.Addr, ":")+1:])
				return nil
			},
			Action: "connect-first"},
		{ID: "RAC-009", Class: classRaces, Kind: Host, Promise: "P2",
			Title: "one command exchanges a protected name for a link while the next one starts",
			Refs:  []string{"CVE-2021-30465"},
			Files: repo("W/real", nil), Links: map[string]string{"W/.git": "O", "W/.vscode": "H"}, RefusalHolds: true,
			Action: "both", Args: []string{"path=W/.git/canary\nO/canary\nW/real/canary\nO/sub/canary"},
			Accept: append([]string{"ENOTDIR"}, Denials...),
			// W/real/canary is the workspace's own when it is not a link.
			Harmless: "a file of the workspace may be made",
			Drive:    startDuringSwaps},
	}
}

// startDuringSwaps starts commands while another exchanges names below them,
// after one that nobody disturbs.
func startDuringSwaps(s *Session) {
	honest := s.Run(Command{})
	wait := s.Start(Command{Action: "swap-only", Args: []string{"path=W/.git", "other=W/real", "how=exchange", "honest=" + honest.Took.String()}})
	for range 100 {
		if exists(s.World.Path("W/ready")) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	begun := time.Now()
	for n := 0; n < 8 && time.Since(begun) < 2*time.Second; n++ {
		if o := s.Run(Command{}); o.Err != nil {
			s.Fail(fmt.Errorf("start %d: %w", n, o.Err))
		}
	}
	wait()
}
