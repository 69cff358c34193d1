//go:build linux

package native

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// image wraps p into a static ELF executable: interpreter, operations, data.
// Nothing in it depends on the build, so equal plans give equal images
// (elf(5); no section headers, no interpreter, no dynamic section).
func (p *program) image() ([]byte, error) {
	sections := []*section{&p.section, &p.tail}
	var ops [2][]byte
	for i, s := range sections {
		var err error
		if ops[i], err = s.encode(); err != nil {
			return nil, err
		}
	}
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	if machine == 0 {
		return nil, fmt.Errorf("no interpreter for %s", runtime.GOARCH)
	}
	const header = 64 + 6*56
	page := 0x1000
	if runtime.GOARCH == "arm64" {
		page = 0x10000 // the largest page of arm64
	}
	align := func(n int) int { return (n + page - 1) &^ (page - 1) }
	at := align(header + len(p.text))
	out := make([]byte, at)
	le := binary.LittleEndian
	copy(out, "\x7fELF\x02\x01\x01")
	le.PutUint16(out[16:], uint16(elf.ET_EXEC))
	le.PutUint16(out[18:], uint16(machine))
	le.PutUint32(out[20:], 1)
	le.PutUint64(out[24:], textBase+header) // entry
	le.PutUint64(out[32:], 64)              // program headers
	le.PutUint16(out[52:], 64)
	le.PutUint16(out[54:], 56)
	le.PutUint16(out[56:], 6)
	segment := func(i int, typ elf.ProgType, flags elf.ProgFlag, off, addr uint64, size int) {
		h := out[64+56*i:]
		le.PutUint32(h[0:], uint32(typ))
		le.PutUint32(h[4:], uint32(flags))
		le.PutUint64(h[8:], off)
		le.PutUint64(h[16:], addr)
		le.PutUint64(h[24:], addr)
		le.PutUint64(h[32:], uint64(size))
		le.PutUint64(h[40:], uint64(size))
		le.PutUint64(h[48:], uint64(page))
	}
	segment(0, elf.PT_LOAD, elf.PF_R|elf.PF_X, 0, textBase, header+len(p.text))
	copy(out[header:], p.text)
	for i, s := range sections {
		data := s.data.Bytes()
		segment(1+2*i, elf.PT_LOAD, elf.PF_R, uint64(at), opsBase[i], len(ops[i]))
		out = append(out, ops[i]...)
		out = append(out, make([]byte, align(len(out))-len(out))...)
		segment(2+2*i, elf.PT_LOAD, elf.PF_R|elf.PF_W, uint64(len(out)), dataBase[i], len(data))
		out = append(out, data...)
		out = append(out, make([]byte, align(len(out))-len(out))...)
		at = len(out)
	}
	segment(5, elf.PT_GNU_STACK, elf.PF_R|elf.PF_W, 0, 0, 0)
	return out, nil
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
		return nil, fmt.Errorf("placing the launch program: %w", err)
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
