//go:build linux

package harness

import (
	"slices"
	"strings"
)

// Controls is the table of what can be switched off and of what escapes then. A
// row is in it if it was seen to escape without the control; the test plays it
// both ways.
func Controls() []Control {
	return slices.Concat(viewControls(), kernelControls(), callControls(), restControls(), recordControls(), networkControls())
}

func viewControls() []Control {
	return []Control{
		{Name: "read-only binds", Omit: []string{"readonly"}, Root: true, User: true,
			Rows: []string{"LNK-014", "DNY-016", "DNY-019"},
			Why:  "Landlock holds plain writes without them, but knows neither mode and times nor second names"},
		{Name: "read-only binds and Landlock", Omit: []string{"readonly", "landlock"}, Root: true, User: true,
			Rows: []string{"DNY-017", "LNK-014"},
			Why:  "either wall alone holds writes to a tree that is shown"},
		{Name: "protected paths", Omit: []string{"protected"}, Root: true, User: true,
			Rows: []string{"DNY-003", "DNY-003b", "DNY-006", "DNY-006b", "DNY-006c", "DNY-011", "DNY-011b", "DNY-121", "AGT-321", "GIT-001", "GIT-002", "GIT-003", "PTH-015", "PTH-017", "LNK-012", "LNK-016", "RAC-002b", "RAC-341", "RVW-201", "RVW-321"},
			Why:  "a review asks the same judge; what it says of files of git (RVW-411 to RVW-414) belongs to no list of names, and what an apply compares (RVW-401, RVW-402) cannot be left out by itself"},
		{Name: "files with a second name outside", Omit: []string{"hard-links"}, Root: true, User: true,
			Rows: []string{"LNK-012"}},
		{Name: "links that something inside could have made", Omit: []string{"named-links"}, Root: true, User: true,
			Rows: []string{"LNK-101", "LNK-101b"},
			Why:  "without it a flag names what the link leads to, as the kernel would follow it"},
		{Name: "directories above mounts", Omit: []string{"pinned"}, Root: true, User: true,
			Rows: []string{"LNK-103", "LNK-103b", "LNK-441", "LNK-441b"}},
		{Name: "what is mounted is what was judged", Omit: []string{"same-file"},
			Why: "a run can exchange only what it may itself read and change, for what is mounted over stays where it is; a test of the backend exchanges each kind of path, as a host program does"},
		{Name: "hidden paths", Omit: []string{"hidden"}, User: true,
			Rows: []string{"PTH-010", "DNY-002c", "DNY-125", "LNK-105"}},
		{Name: "the fresh root", Omit: []string{"view"}, Root: true, User: true,
			Rows: []string{"PTH-001", "PTH-003", "LNK-001"},
			Why:  "what is not mounted is held by nothing else: what lies beside the workspace is put into view"},
		{Name: "masks over /proc", Omit: []string{"proc-masks"},
			Why: "the files behind them answer only to root of the first user namespace, which the command never is; the masks hold where a kernel forgets to ask"},
		{Name: "task id", Omit: []string{"task-id"}, Root: true,
			Rows: []string{"PRC-005b", "PRV-002"}},
		{Name: "environment", Omit: []string{"environment"}, Root: true, User: true,
			Rows: []string{"ENV-001", "ENV-002", "ENV-005", "ENV-006"}},
		{Name: "descriptors", Omit: []string{"descriptors"},
			Why: "the launch program is started with a list of descriptors and nothing else; the step that closes the rest closes only the launch's own"},
	}
}

func kernelControls() []Control {
	const alone = "seccomp also holds it: either alone is enough"
	return []Control{
		{Name: "seccomp", Omit: []string{"seccomp"}, Root: true, User: true,
			Rows: []string{"IPC-021", "PRO-009", "SYS-001", "SYS-002", "SYS-004", "SYS-008", "SYS-010", "SYS-012", "SYS-014", "SYS-017", "SYS-023", "SYS-027", "PRV-003", "NSM-006", "NSM-011"}},
		{Name: "no nested namespaces", Omit: []string{"namespaces-limit", "seccomp"}, User: true,
			Rows: []string{"NSM-002", "NSM-011"}, Why: alone},
		{Name: "Landlock scopes", Omit: []string{"landlock-scopes"},
			Why: "the network and pid namespaces hold abstract sockets and signals without them; they hold where a descriptor of another namespace gets in"},
		{Name: "network namespace", Omit: []string{"namespace:net"}, Root: true, User: true,
			Rows: []string{"NET-001", "NET-003", "NET-004", "NET-006"}},
		{Name: "network namespace and Landlock scopes", Omit: []string{"namespace:net", "landlock-scopes"}, Root: true, User: true,
			Rows: []string{"IPC-003"}, Why: "an abstract socket is held by either"},
		{Name: "ipc namespace", Omit: []string{"namespace:ipc"}, User: true, Rows: []string{"IPC-021b"}},
		{Name: "pid, mount and user namespaces",
			Why: "nothing can be started without them: the launch is made of them"},
		{Name: "no_new_privs and capabilities", Omit: []string{"no-new-privs", "capabilities", "seccomp", "landlock"}, Root: true, User: true,
			Rows: []string{"SYS-026"}, Why: "without no_new_privs an unprivileged process may install neither a filter nor a Landlock domain (seccomp(2), landlock(7))"},
		{Name: "capabilities", Omit: []string{"capabilities"}, User: true, Rows: []string{"SYS-026"}},
	}
}

// callControls returns the groups of the system-call list, one by one.
func callControls() []Control {
	var all []Control
	for _, g := range []struct {
		name string
		rows []string
		why  string
	}{
		{"abi", []string{"SYS-014", "SYS-014b"}, ""},
		{"admin", []string{"SYS-005b"}, ""},
		{"clock", []string{"SYS-005b", "NSM-020"}, ""},
		{"file-marks", []string{"RES-301"}, ""},
		{"handles", []string{"SYS-012"}, ""},
		{"hardware", []string{"SYS-007"}, ""},
		{"io_uring", []string{"SYS-001", "SYS-001b"}, ""},
		{"kernel", []string{"SYS-002", "SYS-010b", "SYS-017", "PRO-009"}, ""},
		{"keyrings", []string{"IPC-021"}, ""},
		{"mount", []string{"SYS-012b", "NSM-006"}, ""},
		{"namespaces", []string{"SYS-012b", "SYS-017"}, ""},
		{"opaque", []string{"SYS-012b", "NSM-011"}, ""},
		{"personality", []string{"SYS-008"}, ""},
		{"process", []string{"SYS-010"}, ""},
		{"record-exec", []string{"HST-034"}, ""},
		{"record-files", []string{"HST-026b", "HST-030"}, ""},
		{"record-lookups", nil, "its calls are reported only where /dev/fuse cannot be opened, and the record is ablated where it can be; the script log_lookups fails without it"},
		{"record-reads", []string{"HST-030c"}, ""},
		{"record-sockets", []string{"HST-030d", "HST-169"}, ""},
		{"setid-bits", []string{"PRV-003"}, ""},
		{"shared", []string{"RES-013", "RES-014"}, ""},
		{"sockets", []string{"SYS-023"}, ""},
		{"queues", nil, "what its calls take, the limit of memory counts as well; both are switched off together below"},
		{"base", nil, "its rows allow"},
		{"devices", nil, "the view has no device node and no right to make one"},
		{"listener", nil, "the first filter has no listener, and a second one only sees what the first lets through"},
		{"obsolete", nil, "the kernels of today have most of these calls only as a name"},
		{"terminal", nil, "the terminal inside is another one than the user's: what is typed into it stays there"},
		{"unknown", nil, "its rows answer for calls that nobody has judged, and no kernel that is known makes anything of their numbers"},
	} {
		runs, record := g.rows != nil, strings.HasPrefix(g.name, "record-")
		all = append(all, Control{Name: "seccomp: " + g.name, Omit: []string{"seccomp:" + g.name}, Rows: g.rows, Root: runs, User: runs, Record: record, Why: g.why})
	}
	return all
}

func restControls() []Control {
	return []Control{
		{Name: "limits", Omit: []string{"limits"}, User: true,
			Rows: []string{"RES-001", "RES-002", "RES-003b", "RES-005", "RES-015", "RES-163", "RES-163b", "RES-164", "RES-164b", "RES-164c",
				"RES-165", "RES-165b", "RES-166", "RES-167", "RES-167b", "RES-167c", "RES-167d"}, Why: "as for root; it is played once, for it uses what a machine has"},
		{Name: "limits and queues of the kernel", Omit: []string{"limits", "seccomp:queues"}, User: true,
			Rows: []string{"RES-161", "RES-162", "RES-162b"}, Why: "as for limits"},
		{Name: "quarantine", Omit: []string{"quarantine"}, Root: true, User: true,
			Rows: []string{"DNY-001", "DNY-012", "DNY-012b", "DNY-012d", "DNY-123", "RAC-124", "GIT-441", "HST-423"}},
		{Name: "attempts from inside", Omit: []string{"attempts"},
			Why: "they attest other controls and hold nothing; a test of the backend shows that one that works stops the launch"},
		{Name: "rules that deny or ask, and the look at a program's first instruction",
			Why: "they are for consent and hold nothing that the boundary does not: without a rule under 'deny' or 'ask', which only the rows of gate.consent write, there is nothing to switch off"},
		{Name: "review before changes arrive", Omit: []string{"review"}, Root: true, User: true,
			Rows: []string{"RVW-003"},
			Why:  "without it the workspace itself is written, as by every other run"},
		{Name: "terminal of its own",
			Why: "a Stream has no value that hands a descriptor in, so there is nothing to switch off"},
	}
}
