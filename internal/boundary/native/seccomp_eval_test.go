//go:build linux

package native

import (
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// seccompRun executes prog as the kernel does. loads counts the arguments that
// were looked at; ok is false for an instruction outside the small set that the
// kernel's own interpreter understands, for a jump past the end and for a
// program that does not end.
func seccompRun(prog []unix.SockFilter, audit, nr uint32, args [6]uint64) (ret uint32, loads int, ok bool) {
	var a uint32
	for pc := 0; pc < len(prog); pc++ {
		in := prog[pc]
		taken := false
		switch in.Code {
		case unix.BPF_RET | unix.BPF_K:
			return in.K, loads, true
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			switch {
			case in.K == offNr:
				a = nr
			case in.K == offArch:
				a = audit
			case in.K >= offArgs && in.K < offArgs+48 && in.K%4 == 0:
				loads++
				a = uint32(args[(in.K-offArgs)/8] >> (8 * (in.K % 8)))
			default:
				return 0, loads, false
			}
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= in.K
			continue
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			taken = a == in.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			taken = a >= in.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			taken = a&in.K != 0
		default:
			return 0, loads, false
		}
		if taken {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	return 0, loads, false
}

// seccompPair is one architecture's table and its compiled form.
type seccompPair struct {
	arch   string
	policy *callPolicy
	prog   []unix.SockFilter
	values []uint64 // every number that a condition names, and its neighbours
}

func seccompPairs(t testing.TB, opts filterOptions) []seccompPair {
	t.Helper()
	var pairs []seccompPair
	for _, arch := range []string{"amd64", "arm64"} {
		p, err := loadPolicy(arch, opts)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := filter(arch, opts)
		if err != nil {
			t.Fatal(err)
		}
		pair := seccompPair{arch: arch, policy: p, prog: prog, values: []uint64{0, 1, ^uint64(0)}}
		for _, rules := range p.calls {
			for _, r := range rules {
				for _, test := range r.tests {
					for _, v := range append(slices.Clone(test.values), test.mask) {
						pair.values = append(pair.values, uint64(v), uint64(v)+1, uint64(v)<<32, uint64(v)|1<<40)
					}
				}
			}
		}
		slices.Sort(pair.values)
		pair.values = slices.Compact(pair.values)
		pairs = append(pairs, pair)
	}
	return pairs
}

func (p seccompPair) compare(t testing.TB, audit, nr uint32, args [6]uint64) {
	t.Helper()
	want := p.policy.decide(audit, nr, args)
	got, _, ok := seccompRun(p.prog, audit, nr, args)
	if !ok || got != want {
		t.Fatalf("%s: program answers %#x (ended: %v), table %#x, for arch %#x call %#x args %#x",
			p.arch, got, ok, want, audit, nr, args)
	}
}

func TestSeccompProgramIsTheTable(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	omits := [][]string{nil, {"abi"}, {"unknown"}, {"sockets", "setid-bits"}}
	for _, omit := range omits {
		for _, p := range seccompPairs(t, filterOptions{Omit: omit}) {
			for nr := range uint32(700) {
				for range 40 {
					p.compare(t, p.policy.audit, nr, p.args(rnd))
				}
				p.compare(t, p.policy.audit, nr|x32Bit, p.args(rnd))
				p.compare(t, unix.AUDIT_ARCH_I386, nr, p.args(rnd))
				p.compare(t, rnd.Uint32(), rnd.Uint32(), p.args(rnd))
			}
		}
	}
}

// args mixes values that conditions name with noise.
func (p seccompPair) args(rnd *rand.Rand) [6]uint64 {
	var args [6]uint64
	for i := range args {
		v := p.values[rnd.IntN(len(p.values))]
		switch rnd.IntN(4) {
		case 0:
			v |= p.values[rnd.IntN(len(p.values))]
		case 1:
			v ^= 1 << rnd.IntN(64)
		}
		args[i] = v
	}
	return args
}

func FuzzSeccompProgram(f *testing.F) {
	pairs := seccompPairs(f, filterOptions{})
	f.Add(uint32(unix.AUDIT_ARCH_X86_64), uint32(41), uint64(1), uint64(1), uint64(0), uint64(0))
	f.Add(uint32(unix.AUDIT_ARCH_AARCH64), uint32(198), uint64(1<<32|2), uint64(3), uint64(1), uint64(0))
	f.Add(uint32(unix.AUDIT_ARCH_X86_64), uint32(x32Bit|59), uint64(0), uint64(0), uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, audit, nr uint32, a0, a1, a2, a3 uint64) {
		for _, p := range pairs {
			p.compare(t, audit, nr, [6]uint64{a0, a1, a2, a3})
			p.compare(t, p.policy.audit, nr%1024, [6]uint64{a0, a1, a2, a3})
		}
	})
}

// A call whose answer is allow whatever its arguments must reach that answer
// without looking at one: only then does the kernel mark it and skip the program.
func TestSeccompAllowedCallsAreCacheable(t *testing.T) {
	for _, p := range seccompPairs(t, filterOptions{}) {
		cached := 0
		for nr, rules := range p.policy.calls {
			if len(rules) > 0 && (len(rules[0].tests) > 0 || rules[0].answer != unix.SECCOMP_RET_ALLOW) {
				continue // without a row that is left, it is allowed
			}
			cached++
			if ret, loads, ok := seccompRun(p.prog, p.policy.audit, nr, [6]uint64{}); !ok || loads != 0 || ret != unix.SECCOMP_RET_ALLOW {
				t.Errorf("%s: call %d loads %d arguments", p.arch, nr, loads)
			}
		}
		if cached < 200 {
			t.Errorf("%s: only %d calls are allowed whatever their arguments", p.arch, cached)
		}
		if len(p.prog) >= maxFilterLen {
			t.Errorf("%s: %d instructions, the kernel takes %d", p.arch, len(p.prog), maxFilterLen)
		}
		t.Logf("%s: %d instructions, %d calls cacheable", p.arch, len(p.prog), cached)
	}
}
