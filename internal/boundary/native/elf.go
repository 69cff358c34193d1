//go:build linux

package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Numbers of elf(5). Package debug/elf has them too, but brings along what reads
// compressed debug sections, which costs every start.
const (
	typeExec     = 2
	machineAMD64 = 62
	machineARM64 = 183
	segmentLoad  = 1
	segmentStack = 0x6474e551
	runnable     = 1
	writable     = 2
	readable     = 4
)

// image wraps p into a static ELF executable: interpreter, operations, data.
// Nothing in it depends on the build, so equal plans give equal images
// (elf(5); no section headers, no interpreter, no dynamic section).
func (p *program) image() ([]byte, error) {
	machine := map[string]uint16{"amd64": machineAMD64, "arm64": machineARM64}[runtime.GOARCH]
	if machine == 0 {
		return nil, fmt.Errorf("no interpreter for %s", runtime.GOARCH)
	}
	f := newExecutable(machine, 6)
	f.text(p.text)
	for i, s := range []*section{&p.section, &p.tail} {
		ops, err := s.encode(opsMax[i])
		if err != nil {
			return nil, err
		}
		f.segment(segmentLoad, readable, opsBase[i], ops)
		f.segment(segmentLoad, readable|writable, dataBase[i], s.data.Bytes())
	}
	f.segment(segmentStack, readable|writable, 0, nil)
	return f.out, nil
}

// executable is an ELF file that is being written.
type executable struct {
	out      []byte
	page     int
	segments int // written so far
	header   int // bytes of the ELF header and the program headers
}

func newExecutable(machine uint16, segments int) *executable {
	f := &executable{page: 0x1000, header: 64 + segments*56}
	if machine == machineARM64 {
		f.page = 0x10000 // the largest page of arm64
	}
	f.out = make([]byte, f.header)
	copy(f.out, "\x7fELF\x02\x01\x01")
	le := binary.LittleEndian
	le.PutUint16(f.out[16:], typeExec)
	le.PutUint16(f.out[18:], machine)
	le.PutUint32(f.out[20:], 1)
	le.PutUint64(f.out[24:], textBase+uint64(f.header)) // entry
	le.PutUint64(f.out[32:], 64)                        // program headers
	le.PutUint16(f.out[52:], 64)
	le.PutUint16(f.out[54:], 56)
	le.PutUint16(f.out[56:], uint16(segments))
	return f
}

// text adds machine code behind the headers, in one segment with them.
func (f *executable) text(code []byte) {
	f.out = append(f.out, code...)
	f.describe(segmentLoad, readable|runnable, 0, textBase, len(f.out))
}

// segment adds content at the next page.
func (f *executable) segment(typ, flags uint32, addr uint64, content []byte) {
	if pad := len(f.out) % f.page; pad != 0 {
		f.out = append(f.out, make([]byte, f.page-pad)...)
	}
	f.describe(typ, flags, len(f.out), addr, len(content))
	f.out = append(f.out, content...)
}

// describe writes one program header.
func (f *executable) describe(typ, flags uint32, offset int, addr uint64, size int) {
	h := f.out[64+56*f.segments:]
	f.segments++
	le := binary.LittleEndian
	le.PutUint32(h[0:], typ)
	le.PutUint32(h[4:], flags)
	le.PutUint64(h[8:], uint64(offset))
	le.PutUint64(h[16:], addr)
	le.PutUint64(h[24:], addr)
	le.PutUint64(h[32:], uint64(size))
	le.PutUint64(h[40:], uint64(size))
	le.PutUint64(h[48:], uint64(f.page))
}

// start executes p from a sealed file in memory, with files as its descriptors
// and an empty environment.
func (p *program) start(files []*os.File, attr *syscall.SysProcAttr) (*os.Process, error) {
	image, err := p.image()
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("holdfast-launch", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before kernel 6.3 there is no MFD_EXEC
		fd, err = unix.MemfdCreate("holdfast-launch", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("making the launch program: %w", err)
	}
	file := os.NewFile(uintptr(fd), "holdfast-launch")
	defer file.Close()
	if _, err := file.Write(image); err != nil {
		return nil, fmt.Errorf("writing the launch program: %w", err)
	}
	seals := unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("sealing the launch program: %w", err)
	}
	// The child of os.StartProcess puts files to the numbers from 0 on, and on
	// the way to numbers above the highest of them: there the descriptor that
	// it executes could be overwritten. Its own number is above all of those.
	above := len(files)
	for _, f := range files {
		above = max(above, int(f.Fd()))
	}
	if fd, err = unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, above+len(files)+8); err != nil {
		return nil, fmt.Errorf("placing the launch program: %w: the limit of open files is too low (see 'ulimit -Hn'; 'ulimit -n 1024' is enough)", err)
	}
	defer unix.Close(fd)
	// The file is writable through no descriptor and by no name: what is
	// executed is what was written. It closes on exec, after it was opened.
	proc, err := os.StartProcess(fmt.Sprintf("/proc/self/fd/%d", fd), []string{"holdfast-janitor"},
		&os.ProcAttr{Dir: "/", Env: []string{}, Files: files, Sys: attr})
	if err != nil {
		return nil, fmt.Errorf("starting the launch program: %w", err)
	}
	return proc, nil
}
