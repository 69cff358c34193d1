//go:build linux

package native

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// A program is the launch as data: a flat list of raw system calls with a name
// each, and the memory that they point to. It is written here in Go, wrapped
// with the interpreter into an ELF file (elf.go) and executed as the first
// process of the launch; no Go code runs in the processes of the boundary.
//
// The layout in memory is fixed, so that every pointer is known when the
// program is written: the interpreter at textBase, the operations at opsBase,
// everything that they point to at dataBase.
//
// It has two sections. What runs once is in the first; what a process does
// for the rest of its life is in the second, so that it can give the first
// back (leave) and idle in a few pages.
type program struct {
	section         // what runs once
	tail    section // what stays
	inTail  bool    // call and bytes append to the tail
	text    []byte
}

type section struct {
	ops  []op
	data bytes.Buffer
}

const (
	launching = 0
	resident  = 1

	textBase = 0x0f000000
	opSize   = 88
	dataMax  = 0x4000000 // 64 MiB, far above ARG_MAX
)

// Where the sections are in memory.
var (
	opsBase  = [2]uint64{0x0f010000, 0x18000000}
	dataBase = [2]uint64{0x10800000, 0x18100000}
)

// opsMax is how many operations fit before the data of each section. The first has
// room for as many protected files as a workspace may have.
var opsMax = [2]int{0x1700000 / opSize, 0x100000 / opSize}

// stackPage is where the interpreter notes the page of its stack pointer: behind
// the message that it writes when an operation fails.
const stackPage = ref(0x10800000 + 32)

// noCall as an operation's number makes no system call: its result is the
// value of its first argument.
const noCall = 0xffffffff

// judge says what an operation's result means.
type judge uint32

const (
	must   judge = 0 // an error ends the launch
	ignore judge = 1
	equals judge = 2 // anything but op.want ends the launch
	jumpIf judge = 3 // op.want jumps; another error ends the launch
	always judge = 4 // jumps
	orElse judge = 5 // op.want is as good as success; another error ends the launch
	jumpOn judge = 6 // op.want jumps; everything else continues
	fails  judge = 7 // success ends the launch: the step is an attempt that must be refused
)

// op is one operation. The field order is the interpreter's.
type op struct {
	name  string
	nr    uint32
	judge judge
	args  [6]uint64
	refs  uint64 // bit i: args[i] is the address of the value
	store uint64 // address of the 8 bytes that take the result; 0 for none
	want  int64
	jump  *label
}

// ref as an argument means the 8 bytes at an address: the result of an
// earlier operation.
type ref uint64

// label is a place in the program to jump to.
type label struct{ section, index int }

// option changes an operation: how it is judged, where its result goes.
type option func(*op)

func into(addr ref) option          { return func(o *op) { o.store = uint64(addr) } }
func ignored() option               { return func(o *op) { o.judge = ignore } }
func want(v int64) option           { return func(o *op) { o.judge, o.want = equals, v } }
func or(v int64) option             { return func(o *op) { o.judge, o.want = orElse, v } }
func refused() option               { return func(o *op) { o.judge = fails } }
func goIfZero(l *label) option      { return func(o *op) { o.judge, o.want, o.jump = jumpIf, 0, l } }
func goOn(v int64, l *label) option { return func(o *op) { o.judge, o.want, o.jump = jumpOn, v, l } }

// newProgram returns an empty program. Its data starts with room for the
// message that the interpreter writes when an operation fails.
func newProgram() *program {
	p := &program{text: interpText()}
	p.data.Write(make([]byte, 64))
	return p
}

// call appends one system call. Arguments are integers, ref, or []any of them.
func (p *program) call(name string, nr uintptr, args []any, opts ...option) {
	o := op{name: name, nr: uint32(nr)}
	for i, a := range args {
		switch v := a.(type) {
		case int:
			o.args[i] = uint64(v)
		case uint64:
			o.args[i] = v
		case ref:
			o.args[i] = uint64(v)
			o.refs |= 1 << i
		default:
			panic(fmt.Sprintf("native: argument %d of %s is a %T", i, name, a))
		}
	}
	for _, f := range opts {
		f(&o)
	}
	_, sec := p.here()
	sec.ops = append(sec.ops, o)
}

// test jumps to l when the value at r is v.
func (p *program) test(name string, r ref, v int64, l *label) {
	p.call(name, noCall, []any{r}, goOn(v, l))
}

// goTo jumps to l.
func (p *program) goTo(l *label) {
	p.call("jump", noCall, nil, func(o *op) { o.judge, o.jump = always, l })
}

// placeLabel puts l before the next operation.
func (p *program) placeLabel(l *label) {
	n, sec := p.here()
	l.section, l.index = n, len(sec.ops)
}

// here is the section that is appended to.
func (p *program) here() (int, *section) {
	if p.inTail {
		return resident, &p.tail
	}
	return launching, &p.section
}

// stay makes f append to the resident section.
func (p *program) stay(f func()) {
	before := p.inTail
	p.inTail = true
	f()
	p.inTail = before
}

// leave goes on in the resident section, without the other one and without a
// stack: the interpreter uses none.
func (p *program) leave(f func()) {
	l := &label{}
	p.goTo(l)
	p.stay(func() {
		p.placeLabel(l)
		p.call("give back stack", unix.SYS_MUNMAP, []any{stackPage, 0x21000}, ignored())
		p.call("give back data", unix.SYS_MUNMAP, []any{dataBase[launching], dataMax}, ignored())
		p.call("give back operations", unix.SYS_MUNMAP, []any{opsBase[launching], opsMax[launching] * opSize}, ignored())
		f()
	})
}

// str stores s with a NUL behind it and returns its address.
func (p *program) str(s string) uint64 { return p.bytes(append([]byte(s), 0)) }

// bytes stores b, aligned to 8 bytes, and returns its address.
func (p *program) bytes(b []byte) uint64 {
	n, sec := p.here()
	data := &sec.data
	for data.Len()%8 != 0 {
		data.WriteByte(0)
	}
	addr := dataBase[n] + uint64(data.Len())
	data.Write(b)
	return addr
}

// words stores 64-bit values and returns their address.
func (p *program) words(vs ...uint64) uint64 {
	b := make([]byte, 0, 8*len(vs))
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return p.bytes(b)
}

// slot reserves 8 bytes for a result.
func (p *program) slot() ref { return ref(p.words(0)) }

// strings stores a NULL-terminated array of C strings, as execve takes it.
func (p *program) strings(ss []string) uint64 {
	ptrs := make([]uint64, 0, len(ss)+1)
	for _, s := range ss {
		ptrs = append(ptrs, p.str(s))
	}
	return p.words(append(ptrs, 0)...)
}

// encode lays the operations of a section out as the interpreter reads them.
func (s *section) encode(room int) ([]byte, error) {
	if len(s.ops) > room || s.data.Len() > dataMax {
		return nil, fmt.Errorf("the launch needs %d steps and %d bytes, but there is room for only %d and %d: name fewer paths",
			len(s.ops), s.data.Len(), room, dataMax)
	}
	b := make([]byte, 0, len(s.ops)*opSize)
	le := binary.LittleEndian
	for _, o := range s.ops {
		b = le.AppendUint32(b, o.nr)
		b = le.AppendUint32(b, uint32(o.judge))
		for _, a := range o.args {
			b = le.AppendUint64(b, a)
		}
		b = le.AppendUint64(b, o.refs)
		b = le.AppendUint64(b, o.store)
		b = le.AppendUint64(b, uint64(o.want))
		var target uint64
		if o.jump != nil {
			target = opsBase[o.jump.section] + uint64(o.jump.index)*opSize
		}
		b = le.AppendUint64(b, target)
	}
	return b, nil
}

// find returns the section and index of the operation at an address.
func (p *program) find(addr uint64) (part, index int, ok bool) {
	for i, sec := range []*section{&p.section, &p.tail} {
		if n := (addr - opsBase[i]) / opSize; addr >= opsBase[i] && n < uint64(len(sec.ops)) {
			return i, int(n), true
		}
	}
	return 0, 0, false
}

// name returns the name of the operation at an address; "" if there is none.
func (p *program) name(addr uint64) string {
	part, i, ok := p.find(addr)
	if !ok {
		return ""
	}
	if part == resident {
		return p.tail.ops[i].name
	}
	return p.ops[i].name
}

// describeOp describes the operation at an address, for error messages.
func (p *program) describeOp(addr uint64) string {
	_, i, _ := p.find(addr)
	return fmt.Sprintf("step %d, %s", i, p.name(addr))
}
