//go:build linux

package probe

import (
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

const classSyscalls = "sys.syscalls"

// callDenials are the answers of a filter. What the kernel answers once it
// looks at the arguments is no denial.
var callDenials = []string{"EPERM", "EACCES", "ENOSYS", "SIGSYS"}

func syscallsRows() []Row {
	return append(append(syscallsByNumber(), syscallsByABI()...), syscallsSockets()...)
}

// refusedCalls is a row of calls that must be refused before the kernel reads
// their arguments.
func refusedCalls(id, title, list, reference string) Row {
	return Row{ID: id, Class: classSyscalls, Kind: Sandbox, Promise: "P7", Title: title,
		Refs: []string{reference}, Accept: callDenials, Action: "calls", Args: []string{"list=" + list}}
}

func core(r Row) Row { r.Core = true; return r }

// rootOnly marks a row whose calls the kernel itself refuses to a user.
func rootOnly(r Row) Row { r.BareUser = asRoot; return r }

func syscallsByNumber() []Row {
	modules := rootOnly(refusedCalls("SYS-005", "a module is loaded into the kernel", "modules", "init_module(2)"))
	if !exists("/proc/modules") {
		modules.Bare = "this kernel takes no modules"
	}
	rows := []Row{
		core(refusedCalls("SYS-001", "io_uring, which opens and connects past any filter, is answered by the kernel", "io_uring", "io_uring(7)")),
		{ID: "SYS-001b", Class: classSyscalls, Kind: Sandbox, Promise: "P7",
			Title: "a ring is set up in a second thread", Refs: []string{"io_uring_setup(2)"}, Accept: callDenials,
			Action: "io-uring-ring"},
		refusedCalls("SYS-002", "a program is loaded into the kernel", "bpf", "bpf(2)"),
		core(refusedCalls("SYS-004", "keys of the kernel are asked for", "keys", "keyctl(2)")),
		modules,
		refusedCalls("SYS-005b", "what belongs to the whole host is changed: swap, accounting, clocks, log, next kernel", "host", "capabilities(7)"),
		refusedCalls("SYS-008", "the personality is changed to one with less protection", "personality", "personality(2)"),
		refusedCalls("SYS-010", "other processes are traced, read and robbed of descriptors", "processes", "ptrace(2)"),
		refusedCalls("SYS-010b", "parts of the kernel that exploits are built on are reached", "surface", "userfaultfd(2)"),
		refusedCalls("SYS-012", "files are opened by handles", "handles", "open_by_handle_at(2)"),
		refusedCalls("SYS-012b", "namespaces and mounts are asked for", "namespaces", "unshare(2)"),
		{ID: "SYS-018", Class: classSyscalls, Kind: Control, Promise: "P7",
			Title: "the time is read by every door that programs use", Refs: []string{"vdso(7)"},
			Action: "time-calls"},
		{ID: "SYS-026", Class: classSyscalls, Core: true, Kind: Sandbox, Promise: "P7",
			Title: "a capability is left, or could be gained by executing a program", Refs: []string{"capabilities(7)", "PR_SET_NO_NEW_PRIVS(2const)"},
			Action: "own-privileges"},
		{ID: "SYS-027", Class: classSyscalls, Kind: Sandbox, Promise: "P7",
			Title: "a thread, a child or a grandchild runs without a filter", Refs: []string{"seccomp(2)"},
			Action: "own-filters"},
	}
	if runtime.GOARCH == "amd64" {
		rows = append(rows, refusedCalls("SYS-007", "ports and descriptor tables of the processor are reached", "ports", "iopl(2)"))
	}
	return rows
}

// everyList are all calls that must be refused.
const everyList = "io_uring\nbpf\nkeys\nmodules\nhost\nports\npersonality\nprocesses\nsurface\nhandles\nnamespaces"

func syscallsByABI() []Row {
	rows := []Row{
		{ID: "SYS-017", Class: classSyscalls, Kind: Sandbox, Promise: "P7",
			Title:  "arguments carry bits that the kernel cuts off, so that a comparison misses",
			Refs:   []string{"CVE-2019-10063", "seccomp(2)"},
			Accept: append([]string{"EAFNOSUPPORT"}, callDenials...),
			Action: "high-bits"},
	}
	if runtime.GOARCH != "amd64" {
		return rows
	}
	return append(rows,
		Row{ID: "SYS-014", Class: classSyscalls, Core: true, Kind: Sandbox, Promise: "P7",
			Title: "a file outside is opened, changed and removed by the numbers of the 32 bit ABI",
			Refs:  []string{"seccomp(2)"}, Bare: withoutABI("int 0x80", int80Missing),
			Accept: ended(Denials),
			Action: "open-by-int80", Args: []string{"path=O/canary"}},
		Row{ID: "SYS-014b", Class: classSyscalls, Kind: Sandbox, Promise: "P7",
			Title: "every refused call is made by the numbers of the 32 bit ABI",
			Refs:  []string{"seccomp(2)"}, Bare: withoutABI("int 0x80", int80Missing),
			Accept: ended(callDenials),
			Action: "calls", Args: []string{"abi=int80", "list=" + everyList}},
		Row{ID: "SYS-016", Class: classSyscalls, Kind: Sandbox, Promise: "P7",
			Title: "every refused call is made by the numbers of x32",
			Refs:  []string{"CVE-2020-10751", "seccomp(2)"}, Bare: withoutABI("x32", x32Missing),
			Accept: ended(callDenials),
			Action: "calls", Args: []string{"abi=x32", "list=" + everyList}},
		Row{ID: "SYS-017b", Class: classSyscalls, Kind: Sandbox, Promise: "P7",
			Title:  "every refused call is made by a number with bits that the kernel cuts off",
			Refs:   []string{"do_syscall_64() in arch/x86/entry"},
			Accept: callDenials,
			Action: "calls", Args: []string{"abi=high", "list=" + everyList}},
	)
}

// withoutABI is the reason why a row cannot escape on a kernel that lacks an
// ABI, and "" on one that has it.
func withoutABI(name string, missing func() bool) string {
	if missing() {
		return "this kernel has no " + name
	}
	return ""
}

func x32Missing() bool {
	_, _, no := unix.RawSyscall(unix.SYS_GETPID|0x40000000, 0, 0, 0)
	return no != 0
}

// int80Missing reads what the kernel says of the 32 bit vDSO, which comes and
// goes with the ABI.
func int80Missing() bool { return !exists("/proc/sys/abi/vsyscall32") }

func syscallsSockets() []Row {
	family := func(id, title, reference string, numbers ...string) Row {
		return Row{ID: id, Class: classSyscalls, Kind: Sandbox, Promise: "P7", Title: title, Refs: []string{reference},
			Accept: append([]string{"EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EINVAL"}, callDenials...),
			Action: "families", Args: []string{"family=" + strings.Join(numbers, "\n")}}
	}
	ping := family("SYS-022", "an ICMP socket that needs no privilege", "icmp(7)", "2 2 1", "10 2 58")
	ping.Bare = withoutSocket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)
	packet := rootOnly(family("SYS-020", "a socket that sees every packet", "packet(7)", "17 3 768", "17 2 768"))
	vsock := core(family("SYS-023", "a socket to the hypervisor", "vsock(7)", "40 1 0", "40 2 0", "40 5 0"))
	ciphers := family("SYS-024", "a socket to the ciphers of the kernel", "AF_ALG in the kernel's documentation", "38 5 0")
	ciphers.Bare = withoutSocket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)
	return []Row{
		packet, ping, vsock,
		ciphers,
		family("SYS-023b", "a socket of any family but those of ordinary programs", "address_families(7)", everyFamily()...),
		{ID: "SYS-020b", Class: classSyscalls, Kind: Sandbox, Promise: "P7",
			Title: "raw sockets and rare transports", Refs: []string{"raw(7)"}, BareUser: asRoot,
			Accept: append([]string{"EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EINVAL"}, callDenials...),
			Action: "raw-sockets"},
		{ID: "SYS-023c", Class: classSyscalls, Kind: Sandbox, Promise: "P7",
			Title: "a netlink socket of any protocol but that which lists interfaces", Refs: []string{"netlink(7)"},
			Accept: append([]string{"EAFNOSUPPORT", "EPROTONOSUPPORT"}, callDenials...),
			Action: "netlinks"},
		{ID: "SYS-023d", Class: classSyscalls, Kind: Sandbox, Promise: "P7",
			Title: "a pair of sockets of a family that has no business here", Refs: []string{"socketpair(2)"},
			Accept: append([]string{"ENODEV", "EAFNOSUPPORT", "ENOTSUP", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT"}, callDenials...),
			Bare:   "few kernels have a family besides AF_UNIX and AF_TIPC that can make a pair",
			Action: "family-pairs"},
	}
}

// withoutSocket is the reason why a row cannot escape on a host that refuses
// such a socket to everybody, and "" on one that gives it.
func withoutSocket(family, kind, protocol int) string {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return "this host has no such socket: " + err.Error()
	}
	unix.Close(fd)
	return ""
}

// everyFamily is all but AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK.
func everyFamily() []string {
	var out []string
	for n := 3; n <= 45; n++ {
		if n == unix.AF_INET6 || n == unix.AF_NETLINK {
			continue
		}
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET, unix.SOCK_RAW} {
			out = append(out, fmt.Sprintf("%d %d 0", n, kind))
		}
	}
	return out
}

// ended are denials where a call by the numbers of another architecture ends the
// process: by a fault, where the kernel has no such calls, or by a supervisor.
func ended(denials []string) []string {
	return append([]string{"SIGSEGV", "SIGKILL"}, denials...)
}
