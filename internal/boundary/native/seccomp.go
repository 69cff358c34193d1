//go:build linux

package native

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

//go:generate go test -run ^TestSeccompGenerated|^TestNetworkMessages . -args -update

// filterOptions changes the filter for tests that take one defence away and
// look which probe notices. The zero value is the filter that is shipped.
type filterOptions struct {
	// Omit names groups of syscalls.tsv whose refusals are left out: what they
	// would have refused is allowed. A name the table does not have is an error,
	// so that a test cannot believe it removed something.
	Omit []string

	// Level is what arrives at the listener of the filter; with levelNone there is no
	// listener.
	Level level
}

// level says which calls a filter reports to its listener (seccomp_unotify(2)).
type level int

// What is reported: nothing; what changes something, connects, executes or is
// refused; opens for reading alone too; the other calls that look up a path too,
// where no file system of the supervisor's sees look-ups. What is too frequent to
// be reported is not: stat(2) and its like.
const (
	levelNone level = iota
	levelStandard
	levelFull
	levelLookups
)

// quiet are the groups whose refusals are not reported: every program meets
// them and falls back, and they say nothing of what it wants.
var quiet = []string{"opaque", "unknown", "obsolete"}

// x32Bit marks the x32 numbers of amd64, which share the architecture value of
// the plain ones (arch/x86/include/uapi/asm/unistd.h, __X32_SYSCALL_BIT).
const x32Bit = 0x40000000

// maxFilterLen is the kernel's limit on one program (BPF_MAXINSNS).
const maxFilterLen = 4096

// filter compiles the table for arch, a GOARCH name, to classic BPF for
// SECCOMP_SET_MODE_FILTER. An architecture without a list is an error, never an
// empty filter.
func filter(arch string, opts filterOptions) ([]unix.SockFilter, error) {
	p, err := loadPolicy(arch, opts)
	if err != nil {
		return nil, fmt.Errorf("building the seccomp filter for %s: %w", arch, err)
	}
	prog, err := p.compile()
	if err != nil {
		return nil, fmt.Errorf("building the seccomp filter for %s: %w", arch, err)
	}
	return prog, nil
}

// callPolicy is the table for one architecture with its numbers filled in.
type callPolicy struct {
	audit   uint32                 // the only architecture whose numbers are looked at
	x32     bool                   // the architecture has the x32 alias
	foreign uint32                 // answer to any other architecture
	alias   uint32                 // answer to an x32 number
	unknown uint32                 // answer to a number without a row
	calls   map[uint32][]*callRule // first rule that matches answers; none: allow
}

// loadPolicy reads both data files and applies opts.
func loadPolicy(arch string, opts filterOptions) (*callPolicy, error) {
	var audit uint32 // seccomp_data.arch
	switch arch {
	case "amd64":
		audit = unix.AUDIT_ARCH_X86_64
	case "arm64":
		audit = unix.AUDIT_ARCH_AARCH64
	default:
		return nil, fmt.Errorf("no list for architecture %q", arch)
	}
	rules, err := tableRules()
	if err != nil {
		return nil, err
	}
	numbers, err := callNumbers(arch)
	if err != nil {
		return nil, err
	}
	for _, g := range opts.Omit {
		if !slices.ContainsFunc(rules, func(r callRule) bool { return r.group == g }) {
			return nil, fmt.Errorf("no group %q in the system call table", g)
		}
	}
	p := &callPolicy{
		audit: audit, x32: arch == "amd64",
		foreign: unix.SECCOMP_RET_ALLOW, alias: unix.SECCOMP_RET_ALLOW, unknown: unix.SECCOMP_RET_ALLOW,
		calls: make(map[uint32][]*callRule, len(numbers)),
	}
	for i := range rules {
		p.add(rules[i].atLevel(opts.Level), numbers, rules[i].level > opts.Level || slices.Contains(opts.Omit, rules[i].group))
	}
	return p, nil
}

// atLevel returns the rule as a filter of that level has it: what it refuses is reported to
// the listener, which then gives the answer.
func (r *callRule) atLevel(l level) *callRule {
	action := r.answer & unix.SECCOMP_RET_ACTION_FULL
	refuses := action == unix.SECCOMP_RET_ERRNO || action == unix.SECCOMP_RET_KILL_PROCESS
	if l == levelNone || !refuses || slices.Contains(quiet, r.group) {
		return r
	}
	reported := *r
	reported.answer = unix.SECCOMP_RET_USER_NOTIF
	return &reported
}

// add enters r under the number of each call it names. A call that this
// architecture does not have is left to the default.
func (p *callPolicy) add(r *callRule, numbers map[string]uint32, omit bool) {
	for _, name := range r.names {
		switch {
		case name == nameForeign && !omit:
			p.foreign = r.answer
		case name == nameX32 && !omit:
			p.alias = r.answer
		case name == nameUnknown && !omit:
			p.unknown = r.answer
		}
		nr, ok := numbers[name]
		if !ok {
			continue
		}
		rules := p.calls[nr]
		if !omit {
			rules = append(rules, r)
		}
		p.calls[nr] = rules // an omitted rule leaves the call known, without an answer
	}
}

// decide interprets the table without the assembler; the tests hold the
// compiled program against it.
func (p *callPolicy) decide(audit, nr uint32, args [6]uint64) uint32 {
	if audit != p.audit {
		return p.foreign
	}
	if p.x32 && nr&x32Bit != 0 {
		return p.alias
	}
	rules, ok := p.calls[nr]
	if !ok {
		return p.unknown
	}
	for _, r := range rules {
		if r.matches(args) {
			return r.answer
		}
	}
	return unix.SECCOMP_RET_ALLOW
}
