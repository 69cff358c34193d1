//go:build linux

package native

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSeccompTableIsSound(t *testing.T) {
	rules, err := tableRules()
	if err != nil {
		t.Fatal(err)
	}
	named := map[string][]callRule{}
	for _, r := range rules {
		if (r.group == "base") != (r.verdict == "allow") {
			t.Errorf("%v: the group base is for what is allowed, and only that", r.names)
		}
		for _, n := range r.names {
			if prev := named[n]; len(prev) > 0 && len(prev[len(prev)-1].tests) == 0 {
				t.Errorf("%s: a row follows one that always answers", n)
			}
			named[n] = append(named[n], r)
		}
	}
	known := map[string]bool{nameForeign: true, nameX32: true, nameUnknown: true}
	for _, arch := range []string{"amd64", "arm64"} {
		numbers, err := callNumbers(arch)
		if err != nil {
			t.Fatal(err)
		}
		for n := range numbers {
			known[n] = true
			if named[n] == nil {
				t.Errorf("%s on %s: no row decides it", n, arch)
			}
		}
	}
	for n := range named {
		if !known[n] {
			t.Errorf("%s: a row for a call that no architecture has", n)
		}
	}
}

func TestSeccompTableRejects(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"a missing column", "read\tbase\tallow\t\treason", "5 columns"},
		{"a row without a reason", "read\tbase\tallow\t\t\tread(2)", "only the condition"},
		{"a row without a reference", "read\tbase\tallow\t\twhy\t", "only the condition"},
		{"an answer nobody knows", "read\tbase\tEFOO\t\twhy\tread(2)", "unknown answer"},
		{"an argument that does not exist", "read\tbase\tallow\targ6 == 1\twhy\tread(2)", "arg0 to arg5"},
		{"a constant nobody knows", "read\tbase\tallow\targ0 == AF_FOO\twhy\tread(2)", "neither a constant"},
		{"a number wider than the comparison", "read\tbase\tallow\targ0 == 0x100000000\twhy\tread(2)", "neither a constant"},
		{"an operator nobody knows", "read\tbase\tallow\targ0 < 1\twhy\tread(2)", "want a comparison"},
		{"a comparison without a value", "read\tbase\tallow\targ0 not in\twhy\tread(2)", "want a comparison"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parseTable(tt.line); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestSeccompFilterRefusesWhatItCannotKeep(t *testing.T) {
	if _, err := filter("riscv64", filterOptions{}); err == nil {
		t.Error("a filter for an architecture without a list")
	}
	if _, err := filter("amd64", filterOptions{Omit: []string{"sokets"}}); err == nil {
		t.Error("a misspelt group is taken for an omission")
	}
}

// Every refusal belongs to a group; without its group, nothing of it remains.
func TestSeccompOmittedGroupRefusesNothing(t *testing.T) {
	rules, err := tableRules()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		for _, p := range seccompPairs(t, filterOptions{Omit: []string{r.group}}) {
			for nr, left := range p.policy.calls {
				for _, l := range left {
					if l.group == r.group {
						t.Fatalf("%s: call %d keeps a row of %s", p.arch, nr, r.group)
					}
				}
			}
		}
	}
	p := seccompPairs(t, filterOptions{Omit: []string{"abi", "unknown", "mount"}})[0]
	calls := []struct {
		name      string
		audit, nr uint32
	}{
		{"a foreign architecture", unix.AUDIT_ARCH_I386, 1},
		{"an x32 number", p.policy.audit, x32Bit | 1},
		{"a number without a row", p.policy.audit, 5000},
		{"mount", p.policy.audit, 165},
	}
	for _, c := range calls {
		if got, _, _ := seccompRun(p.prog, c.audit, c.nr, [6]uint64{}); got != unix.SECCOMP_RET_ALLOW {
			t.Errorf("%s is answered %#x without its group", c.name, got)
		}
	}
}

const (
	highBit            = 1 << 32
	retAllow           = unix.SECCOMP_RET_ALLOW
	retKill            = unix.SECCOMP_RET_KILL_PROCESS
	retEPERM           = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retENOSYS          = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	retEAFNOSUPPORT    = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	retEPROTONOSUPPORT = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
	retESOCKTNOSUPPORT = unix.SECCOMP_RET_ERRNO | uint32(unix.ESOCKTNOSUPPORT)
	retEBUSY           = unix.SECCOMP_RET_ERRNO | uint32(unix.EBUSY)
)

var seccompVerdicts = []struct {
	name string
	call string
	args [6]uint64
	want uint32
}{
	{"reading is allowed", "read", [6]uint64{}, retAllow},
	{"clone3 falls back", "clone3", [6]uint64{}, retENOSYS},
	{"openat2 falls back", "openat2", [6]uint64{}, retENOSYS},
	{"a thread is made", "clone", [6]uint64{0x3d0f00}, retAllow},
	{"a process is made", "clone", [6]uint64{0x1200011}, retAllow},
	{"a process that ends with signal 0x80 is no time namespace", "clone", [6]uint64{0x80}, retAllow},
	{"a user namespace by clone", "clone", [6]uint64{0x10000011}, retEPERM},
	{"a cgroup namespace by clone", "clone", [6]uint64{0x02000011}, retEPERM},
	{"descriptors are split off", "unshare", [6]uint64{0x400}, retAllow},
	{"a time namespace by unshare", "unshare", [6]uint64{0x80}, retEPERM},
	{"a mount namespace among harmless flags", "unshare", [6]uint64{0x20600}, retEPERM},
	{"a local stream", "socket", [6]uint64{1, 1, 0}, retAllow},
	{"a local stream with flags", "socket", [6]uint64{1, 1 | 0x80800, 0}, retAllow},
	{"a local packet stream", "socket", [6]uint64{1, 5, 0}, retAllow},
	{"a TCP socket", "socket", [6]uint64{2, 1 | 0x80000, 6}, retAllow},
	{"a UDP socket of IPv6", "socket", [6]uint64{10, 2, 17}, retAllow},
	{"a raw socket", "socket", [6]uint64{2, 3, 0}, retEPERM},
	{"a raw socket with flags", "socket", [6]uint64{2, 3 | 0x80000, 255}, retEPERM},
	{"a packet socket under the name of IPv4", "socket", [6]uint64{2, 10, 0x0300}, retEPERM},
	{"an echo socket", "socket", [6]uint64{2, 2, 1}, retEPERM},
	{"an echo socket of IPv6", "socket", [6]uint64{10, 2, 58}, retEPERM},
	{"SCTP", "socket", [6]uint64{2, 1, 132}, retEPROTONOSUPPORT},
	{"SCTP in messages", "socket", [6]uint64{10, 5 | 0x80000, 132}, retESOCKTNOSUPPORT},
	{"UDP-Lite", "socket", [6]uint64{2, 2 | 0x80000, 136}, retEPROTONOSUPPORT},
	{"DCCP", "socket", [6]uint64{2, 6, 33}, retESOCKTNOSUPPORT},
	{"an echo socket with a high bit", "socket", [6]uint64{2, 2, 1 | highBit}, retEPERM},
	{"a type that nothing has", "socket", [6]uint64{2, 15, 0}, retESOCKTNOSUPPORT},
	{"multipath TCP falls back", "socket", [6]uint64{2, 1, 262}, retEPROTONOSUPPORT},
	{"interfaces are listed", "socket", [6]uint64{16, 3 | 0x80000, 0}, retAllow},
	{"netlink audit", "socket", [6]uint64{16, 3, 9}, retEAFNOSUPPORT},
	{"packet", "socket", [6]uint64{17, 3, 0}, retEAFNOSUPPORT},
	{"vsock", "socket", [6]uint64{40, 1, 0}, retEAFNOSUPPORT},
	{"alg", "socket", [6]uint64{38, 5, 0}, retEAFNOSUPPORT},
	{"the local family with a high bit is the local family", "socket", [6]uint64{1 | highBit, 1, 0}, retAllow},
	{"vsock with a high bit", "socket", [6]uint64{40 | highBit, 1, 0}, retEAFNOSUPPORT},
	{"a raw type with a high bit", "socket", [6]uint64{2, 3 | highBit, 0}, retEPERM},
	{"an echo protocol with a high bit", "socket", [6]uint64{2, 2, 1 | highBit}, retEPERM},
	{"a local pair", "socketpair", [6]uint64{1, 1}, retAllow},
	{"a TIPC pair", "socketpair", [6]uint64{30, 1}, retEAFNOSUPPORT},
	{"the window size", "ioctl", [6]uint64{0, 0x5413}, retAllow},
	{"typing into the terminal", "ioctl", [6]uint64{0, 0x5412}, retEPERM},
	{"typing with a high bit", "ioctl", [6]uint64{0, 0x5412 | highBit}, retEPERM},
	{"pasting on the console", "ioctl", [6]uint64{0, 0x541c | highBit<<31}, retEPERM},
	{"a line discipline", "ioctl", [6]uint64{0, 0x5423}, retEPERM},
	{"a plain mode", "fchmodat", [6]uint64{0, 0, 0o755}, retAllow},
	{"a sticky directory", "fchmodat", [6]uint64{0, 0, 0o1777}, retAllow},
	{"a set-user-id mode", "fchmodat", [6]uint64{0, 0, 0o4755}, retEPERM},
	{"a set-group-id mode", "fchmod", [6]uint64{0, 0o2755}, retEPERM},
	{"a set-user-id mode by the newest call", "fchmodat2", [6]uint64{0, 0, 0o4755}, retEPERM},
	{"a set-user-id mode when the file is made", "openat", [6]uint64{0, 0, 0o101, 0o4755}, retEPERM},
	{"a set-user-id mode when it is made without a name", "openat", [6]uint64{0, 0, 0o20200001, 0o4755}, retEPERM},
	{"a stale register where nothing is made", "openat", [6]uint64{0, 0, 0o2000000, 0o4755}, retAllow},
	{"O_DIRECTORY of either architecture with a stale register", "openat", [6]uint64{0, 0, 0o240000, 0o6755}, retAllow},
	{"a fifo", "mknodat", [6]uint64{0, 0, 0o010644}, retAllow},
	{"a socket node", "mknodat", [6]uint64{0, 0, 0o140644}, retAllow},
	{"a character device", "mknodat", [6]uint64{0, 0, 0o020644}, retEPERM},
	{"a block device", "mknodat", [6]uint64{0, 0, 0o060644}, retEPERM},
	{"a set-user-id file by mknod", "mknodat", [6]uint64{0, 0, 0o104755}, retEPERM},
	{"rename without replacing", "renameat2", [6]uint64{0, 0, 0, 0, 1}, retAllow},
	{"rename that leaves a whiteout", "renameat2", [6]uint64{0, 0, 0, 0, 4}, retEPERM},
	{"asking for the personality", "personality", [6]uint64{0xffffffff}, retAllow},
	{"asking with all bits of the register", "personality", [6]uint64{^uint64(0)}, retAllow},
	{"no address randomisation", "personality", [6]uint64{0x0040000}, retEPERM},
	{"a nested filter", "seccomp", [6]uint64{1, 1}, retAllow},
	{"a nested listener", "seccomp", [6]uint64{1, 8}, retEBUSY},
	{"naming a thread", "prctl", [6]uint64{15}, retAllow},
	{"forging the command line", "prctl", [6]uint64{35, 14}, retEPERM},
}

func TestSeccompVerdicts(t *testing.T) {
	for _, p := range seccompPairs(t, filterOptions{}) {
		numbers, err := callNumbers(p.arch)
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range seccompVerdicts {
			nr, ok := numbers[tt.call]
			if !ok {
				t.Fatalf("%s: no call %s", p.arch, tt.call)
			}
			if got, _, _ := seccompRun(p.prog, p.policy.audit, nr, tt.args); got != tt.want {
				t.Errorf("%s: %s: %#x, want %#x", p.arch, tt.name, got, tt.want)
			}
		}
		for _, nr := range []uint32{472, 600, 4096, x32Bit - 1} {
			if got, _, _ := seccompRun(p.prog, p.policy.audit, nr, [6]uint64{}); got != retENOSYS {
				t.Errorf("%s: number %d, which nobody has judged: %#x", p.arch, nr, got)
			}
		}
		for _, audit := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
			if got, _, _ := seccompRun(p.prog, audit, numbers["getpid"], [6]uint64{}); got != retKill {
				t.Errorf("%s: architecture %#x: %#x", p.arch, audit, got)
			}
		}
	}
	amd64 := seccompPairs(t, filterOptions{})[0]
	for _, nr := range []uint32{x32Bit, x32Bit | 59, 0xffffffff} {
		if got, _, _ := seccompRun(amd64.prog, amd64.policy.audit, nr, [6]uint64{}); got != retKill {
			t.Errorf("amd64: number %#x: %#x", nr, got)
		}
	}
}
