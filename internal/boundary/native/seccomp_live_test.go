//go:build linux

package native

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/testenv"
)

// seccompSample is a call that a row of the table refuses.
type seccompSample struct {
	name string
	rule *callRule
	call seccompCall
}

// seccompSamples makes calls that satisfy r's condition in every way that one
// bit or one value can. What the condition does not look at is filler.
func seccompSamples(name string, nr uint32, r *callRule, filler uint64) []seccompSample {
	lists := make([][]uint64, len(r.tests))
	for i, t := range r.tests {
		lists[i] = t.satisfying()
	}
	var out []seccompSample
	add := func(pick []int, highBits bool) {
		call := seccompCall{door: "native", nr: nr}
		for i := range call.args {
			call.args[i] = filler
		}
		seen := map[int]bool{} // two tests of one argument look at different bits of it
		for i, t := range r.tests {
			if !seen[t.arg] {
				call.args[t.arg] = 0
			}
			seen[t.arg] = true
			call.args[t.arg] |= lists[i][pick[i]] | harmless[name]
			if highBits {
				call.args[t.arg] |= 1 << 32
			}
		}
		out = append(out, seccompSample{name: fmt.Sprintf("%s %#x", name, call.args), rule: r, call: call})
	}
	for i := range lists {
		for j := range lists[i] {
			pick := make([]int, len(lists))
			pick[i] = j
			add(pick, false)
			add(pick, true)
		}
	}
	if len(lists) == 0 {
		add(nil, false)
	}
	return out
}

// harmless are bits that make a call fail that would do something if the filter
// let it through: clone wants CLONE_VM with CLONE_SIGHAND, and unshare knows no
// flag 1.
var harmless = map[string]uint64{"clone": unix.CLONE_SIGHAND, "unshare": 1}

// satisfying lists arguments for which t holds: each bit, each value, or a few
// that are none of the values.
func (t argTest) satisfying() []uint64 {
	var out []uint64
	switch {
	case t.anyBit:
		for m := t.mask; m != 0; m &= m - 1 {
			out = append(out, 1<<bits.TrailingZeros32(m))
		}
	case t.negate:
		for _, v := range []uint32{3, 4, 9, 17, 38, 40, 0x40000, 1 << 31} {
			if t.holds(v) {
				out = append(out, uint64(v))
			}
		}
	default:
		for _, v := range t.values {
			out = append(out, uint64(v))
		}
	}
	return out
}

// seccompRefused makes samples for every row of the table that refuses with an
// errno.
func seccompRefused(t *testing.T) []seccompSample {
	t.Helper()
	p, err := loadPolicy(runtime.GOARCH, filterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := callNumbers(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	var out []seccompSample
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		nr := numbers[name]
		for _, r := range p.calls[nr] {
			if r.verdict == "allow" {
				continue
			}
			reached := reaching(p, name, nr, r)
			if len(reached) == 0 {
				t.Errorf("%s, row %q: no sample reaches it", name, r.condition)
			}
			out = append(out, reached...)
		}
	}
	for _, nr := range []uint32{500, 1000, 1 << 20} {
		r := &callRule{verdict: "ENOSYS", answer: p.unknown}
		out = append(out, seccompSample{name: fmt.Sprint(nr), rule: r, call: seccompCall{door: "native", nr: nr}})
	}
	return out
}

// reaching keeps the samples that no other row of the same call answers. The
// filler is -1, which is no descriptor, no address and no set of flags, or a
// small number where an earlier row would refuse that.
func reaching(p *callPolicy, name string, nr uint32, r *callRule) []seccompSample {
	for _, filler := range []uint64{^uint64(0), 1, 2, 3, 0} {
		var out []seccompSample
		for _, s := range seccompSamples(name, nr, r, filler) {
			if seccompFirst(p.calls[nr], s.call.args) == r.condition {
				out = append(out, s)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// seccompFirst is the condition of the row that answers.
func seccompFirst(rules []*callRule, args [6]uint64) string {
	for _, r := range rules {
		if r.matches(args) {
			return r.condition
		}
	}
	return "none"
}

// The kernel itself must give each row's answer, and without the filter it must
// give another one wherever the call exists and this user may try it.
func TestSeccompRowsOnThisKernel(t *testing.T) {
	samples := seccompRefused(t)
	calls := make([]seccompCall, len(samples))
	plain := make([]seccompCall, len(samples))
	for i, s := range samples {
		calls[i], plain[i] = s.call, s.call
		if s.call.nr == unix.SYS_VHANGUP {
			plain[i].nr = unix.SYS_GETPID // takes no argument that could make it fail
		}
	}
	with, killed := seccompProbe(t, childFiltered, calls)
	if killed || len(with) != len(samples) {
		t.Fatalf("the probe ended after %d of %d calls (killed: %v)", len(with), len(samples), killed)
	}
	without, killed := seccompProbe(t, childPlain, plain)
	if killed || len(without) != len(samples) {
		t.Fatalf("the control ended after %d of %d calls (killed: %v)", len(without), len(samples), killed)
	}
	same := map[string]bool{}
	numberName := map[uint32]string{}
	for _, s := range samples {
		numberName[s.call.nr], _, _ = strings.Cut(s.name, " ")
	}
	differ := 0
	for i, s := range samples {
		want := int(s.rule.answer & unix.SECCOMP_RET_DATA)
		if with[i] != want {
			t.Errorf("%s, row %q: errno %d (%v), want %s", s.name, s.rule.condition, with[i], unix.Errno(with[i]), s.rule.verdict)
		}
		if without[i] != want {
			differ++
		} else {
			same[fmt.Sprintf("%s %s", numberName[s.call.nr], s.rule.verdict)] = true
		}
	}
	t.Logf("%d samples, %d answered otherwise without the filter; no difference here: %v",
		len(samples), differ, slices.Sorted(maps.Keys(same)))
	if differ*2 < len(samples) {
		t.Errorf("only %d of %d samples differ without the filter", differ, len(samples))
	}
}

// Each row by its x32 number: killed, whatever it asks for.
func TestSeccompX32OnThisKernel(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		return // the bit means nothing there; TestSeccompVerdicts covers the program
	}
	seen := map[uint32]bool{}
	var calls []seccompCall
	for _, s := range seccompRefused(t) {
		if !seen[s.call.nr] {
			seen[s.call.nr] = true
			x32 := s.call
			x32.nr |= x32Bit
			calls = append(calls, x32)
		}
	}
	for _, nr := range []uint32{0, 1, 2, 39, 41, 56, 59, 257, 512, 520, 547} {
		calls = append(calls, seccompCall{door: "native", nr: x32Bit | nr})
	}
	seccompAllKilled(t, calls)
	seccompNotKilled(t, calls[len(calls)-11:len(calls)-7])
}

// The 32 bit list by int $0x80: killed, and alive without the row.
func TestSeccompInt80OnThisKernel(t *testing.T) {
	testenv.Need(t, "ia32", func() error {
		if runtime.GOARCH != "amd64" {
			return errors.New("a 64 bit process of this architecture cannot enter the 32 bit list")
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = []string{seccompChildVar + "=" + childPlain, "GOTRACEBACK=none"}
		cmd.Stdin = strings.NewReader(seccompCall{door: "int80", nr: 20}.String())
		return cmd.Run()
	})
	var calls []seccompCall
	// read, open, execve, getpid, ptrace, ioctl, socketcall, clone, unshare,
	// openat, socket, io_uring_setup, clone3 and a number that no list has
	for _, nr := range []uint32{3, 5, 11, 20, 26, 54, 102, 120, 310, 295, 359, 425, 435, 9999} {
		calls = append(calls, seccompCall{door: "int80", nr: nr})
	}
	seccompAllKilled(t, calls)
	seccompNotKilled(t, []seccompCall{{door: "int80", nr: 20}, {door: "int80", nr: 9999}})
}

func seccompAllKilled(t *testing.T, calls []seccompCall) {
	t.Helper()
	for _, c := range calls {
		results, killed := seccompProbe(t, childFiltered, []seccompCall{{door: "native", nr: unix.SYS_GETPID}, c})
		if !killed || len(results) != 1 {
			t.Errorf("%s %#x: results %v, killed %v", c.door, c.nr, results, killed)
		}
	}
	t.Logf("%d calls killed", len(calls))
}

// seccompNotKilled is the control: the same calls without the rows of abi.
func seccompNotKilled(t *testing.T, calls []seccompCall) {
	t.Helper()
	for _, mode := range []string{childPlain, childOmit + "abi"} {
		if results, killed := seccompProbe(t, mode, calls); killed || len(results) != len(calls) {
			t.Errorf("%s: killed %v after %v: the kill is not the filter's", mode, killed, results)
		}
	}
}

// Without its group each of these is no longer refused: the tests above would
// notice if the filter were not there.
func TestSeccompWithoutTheGroupOnThisKernel(t *testing.T) {
	groups := map[string]bool{}
	samples := seccompRefused(t)
	for _, s := range samples {
		if s.rule.group != "" && s.call.nr != unix.SYS_VHANGUP {
			groups[s.rule.group] = true
		}
	}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		var calls []seccompCall
		var of []seccompSample
		for _, s := range samples {
			if s.rule.group == g && s.call.nr != unix.SYS_VHANGUP {
				calls, of = append(calls, s.call), append(of, s)
			}
		}
		got, killed := seccompProbe(t, childOmit+g, calls)
		if killed || len(got) != len(calls) {
			t.Errorf("%s: ended after %d of %d calls (killed: %v)", g, len(got), len(calls), killed)
			continue
		}
		differ := 0
		for i, s := range of {
			if got[i] != int(s.rule.answer&unix.SECCOMP_RET_DATA) {
				differ++
			}
		}
		t.Logf("%s: %d of %d answered otherwise", g, differ, len(calls))
		if differ == 0 && g != "obsolete" && g != "unknown" && os.Geteuid() == 0 {
			t.Errorf("%s: omitting the group changed nothing", g)
		}
	}
}

// What programs do all day must work under the filter as it does outside.
func TestSeccompOrdinaryCallsOnThisKernel(t *testing.T) {
	numbers, err := callNumbers(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	none := ^uint64(0)
	tests := []struct {
		name, call string
		args       [6]uint64
		want       unix.Errno
	}{
		{"a local stream with flags", "socket", [6]uint64{1, 1 | 0x80800}, 0},
		{"a local stream with a high bit in the family", "socket", [6]uint64{1 | 1<<32, 1}, 0},
		{"a TCP socket", "socket", [6]uint64{2, 1, 6}, 0},
		{"a UDP socket", "socket", [6]uint64{2, 2, 17}, 0},
		{"a route socket", "socket", [6]uint64{16, 3}, 0},
		{"an unknown type flag goes to the kernel", "socket", [6]uint64{1, 0x101}, unix.EINVAL},
		{"mode bits of no consequence", "openat", [6]uint64{none, 0, 0, 0o4755}, unix.EFAULT},
		{"a plain mode", "fchmod", [6]uint64{none, 0o755}, unix.EBADF},
		{"a request on no descriptor", "ioctl", [6]uint64{none, 0x5413, 0}, unix.EBADF},
		{"asking for the personality", "personality", [6]uint64{0xffffffff}, 0},
		{"a fifo at no address", "mknodat", [6]uint64{none, 0, 0o010644}, unix.EFAULT},
		{"unshare of nothing", "unshare", [6]uint64{}, 0},
		{"a landlock rule set at no address", "landlock_create_ruleset", [6]uint64{}, unix.EFAULT},
		{"a signal to no process", "kill", [6]uint64{1 << 30}, unix.ESRCH},
		{"random bytes", "getrandom", [6]uint64{}, 0},
	}
	calls := make([]seccompCall, len(tests))
	for i, tt := range tests {
		calls[i] = seccompCall{door: "native", nr: numbers[tt.call], args: tt.args}
	}
	got, killed := seccompProbe(t, childFiltered, calls)
	if killed || len(got) != len(tests) {
		t.Fatalf("ended after %d of %d calls (killed: %v)", len(got), len(tests), killed)
	}
	for i, tt := range tests {
		if got[i] != int(tt.want) {
			t.Errorf("%s: errno %d (%v), want %d", tt.name, got[i], unix.Errno(got[i]), int(tt.want))
		}
	}
}
