//go:build linux

package native

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data. The low half of an argument comes first on
// both architectures, which are little-endian.
const (
	offNr   = 0
	offArch = 4
	offArgs = 16
)

// maxJump is how far a conditional jump reaches: its offsets are one byte.
const maxJump = 255

// nrSpan is a run of numbers, up to the next span, that share one piece of code.
type nrSpan struct {
	first uint32
	code  []unix.SockFilter
	ret   bool // code is one return, so equal neighbours can be merged
}

func bpfLoad(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func bpfReturn(k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
}

func bpfJump(op uint16, k uint32, yes, no int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k, Jt: uint8(yes), Jf: uint8(no)}
}

// encodeFilter lays a program out as the kernel reads it: struct sock_filter
// (bpf(2), linux/filter.h), one after another.
func encodeFilter(program []unix.SockFilter) []byte {
	raw := make([]byte, 0, unix.SizeofSockFilter*len(program))
	for _, f := range program {
		raw = binary.LittleEndian.AppendUint16(raw, f.Code)
		raw = append(raw, f.Jt, f.Jf)
		raw = binary.LittleEndian.AppendUint32(raw, f.K)
	}
	return raw
}

// compile lays the program out as: architecture, x32 bit, then a balanced
// search over the numbers. It uses only instructions that the kernel's own
// interpreter of filters knows (seccomp_is_const_allow, Linux 5.11), so that
// every number whose answer is allow whatever the arguments is marked once when
// the filter is installed and costs no program run afterwards.
func (p *callPolicy) compile() ([]unix.SockFilter, error) {
	prog := []unix.SockFilter{
		bpfLoad(offArch),
		bpfJump(unix.BPF_JEQ, p.audit, 1, 0),
		bpfReturn(p.foreign),
		bpfLoad(offNr),
	}
	if p.x32 {
		prog = append(prog, bpfJump(unix.BPF_JSET, x32Bit, 0, 1), bpfReturn(p.alias))
	}
	spans, err := p.spans()
	if err != nil {
		return nil, err
	}
	prog = append(prog, searchCode(spans)...)
	if len(prog) >= maxFilterLen {
		return nil, fmt.Errorf("program has %d instructions, limit %d", len(prog), maxFilterLen)
	}
	return prog, nil
}

// spans covers every number from 0 up, gaps and the end included.
func (p *callPolicy) spans() ([]nrSpan, error) {
	var out []nrSpan
	put := func(s nrSpan) {
		if n := len(out); n > 0 && s.ret && out[n-1].ret && out[n-1].code[0] == s.code[0] {
			return
		}
		out = append(out, s)
	}
	unknown := []unix.SockFilter{bpfReturn(p.unknown)}
	next := uint32(0)
	for _, nr := range slices.Sorted(maps.Keys(p.calls)) {
		if nr != next {
			put(nrSpan{first: next, code: unknown, ret: true})
		}
		code, err := callCode(p.calls[nr])
		if err != nil {
			return nil, err
		}
		put(nrSpan{first: nr, code: code, ret: len(code) == 1})
		next = nr + 1
	}
	put(nrSpan{first: next, code: unknown, ret: true})
	return out, nil
}

// searchCode halves the spans until one is left. Each half is position independent.
func searchCode(spans []nrSpan) []unix.SockFilter {
	if len(spans) == 1 {
		return spans[0].code
	}
	mid := len(spans) / 2
	low, high := searchCode(spans[:mid]), searchCode(spans[mid:])
	var code []unix.SockFilter
	if len(low) <= maxJump {
		code = append(code, bpfJump(unix.BPF_JGE, spans[mid].first, len(low), 0))
	} else {
		code = append(code, bpfJump(unix.BPF_JGE, spans[mid].first, 0, 1),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(low))})
	}
	return append(append(code, low...), high...)
}

// callCode is the code of one call: its rules in order, then allow.
func callCode(rules []*callRule) ([]unix.SockFilter, error) {
	var code []unix.SockFilter
	for _, r := range rules {
		one := []unix.SockFilter{bpfReturn(r.answer)}
		for _, t := range slices.Backward(r.tests) {
			one = append(t.code(len(one)), one...)
		}
		if len(one) > maxJump {
			return nil, fmt.Errorf("the condition %q of %v is too long", r.condition, r.names)
		}
		code = append(code, one...)
		if len(r.tests) == 0 {
			return code, nil
		}
	}
	return append(code, bpfReturn(unix.SECCOMP_RET_ALLOW)), nil
}

// code falls through when t holds and skips rest instructions when it does not.
func (t argTest) code(rest int) []unix.SockFilter {
	code := []unix.SockFilter{bpfLoad(offArgs + 8*uint32(t.arg) + uint32(t.shift()/8))}
	if t.anyBit {
		return append(code, bpfJump(unix.BPF_JSET, t.mask, 0, rest))
	}
	if t.mask != ^uint32(0) {
		code = append(code, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: t.mask})
	}
	for i, v := range t.values {
		left := len(t.values) - 1 - i // comparisons that follow this one
		yes, no := left, 0
		if t.negate {
			yes = left + rest
		} else if left == 0 {
			no = rest
		}
		code = append(code, bpfJump(unix.BPF_JEQ, v, yes, no))
	}
	return code
}
