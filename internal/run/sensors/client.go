//go:build linux

package sensors

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"holdfast.dev/holdfast/internal/floor/event"
)

// clients finds the process inside that has a connection, for the human who is asked about
// it. A process is found by its socket, which it may have been given: what a human
// sees is which program holds the connection, and where several programs do, none.
type clients struct {
	mu      sync.Mutex // guards what follows
	first   int        // process whose network is the run's; 0 before there is one
	process func(pid int) event.Process
	sums    map[content]string
}

// Client is the process inside that has the socket at peer, connected to port or to a
// proxy. The zero value is for one that cannot be found.
func (s *Set) Client(peer netip.AddrPort, port int) event.Process { return s.clients.find(peer, port) }

// content is a file as it was when it was read.
type content struct {
	dev, ino   uint64
	size       int64
	mtim, ctim syscall.Timespec
}

// sumMost is how large an executable is read, in bytes.
const sumMost = 512 << 20

func (c *clients) begin(first int, process func(int) event.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first, c.process = first, process
}

func (c *clients) find(peer netip.AddrPort, port int) event.Process {
	c.mu.Lock()
	first, process := c.first, c.process
	c.mu.Unlock()
	if first == 0 {
		return event.Process{}
	}
	inode := socketOf(first, peer, port)
	if inode == "" {
		return event.Process{}
	}
	pid := oneProgram(holders(first, "socket:["+inode+"]"))
	if pid == 0 {
		return event.Process{}
	}
	p := process(pid)
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	exe, err := os.Readlink(filepath.Join(dir, "exe"))
	if err != nil {
		return p
	}
	p.Executable, p.SHA256 = exe, c.sum(filepath.Join(dir, "exe"))
	p.Cwd, _ = os.Readlink(filepath.Join(dir, "cwd")) // "" where it cannot be read
	return p
}

// socketOf is the inode of a socket, "" for none or several (proc_pid_net(5)).
func socketOf(first int, peer netip.AddrPort, port int) string {
	var any, exact []string
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", first, name))
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 || fields[9] == "0" {
				continue
			}
			if local, ok := socketAddress(fields[1]); !ok || local != peer {
				continue
			}
			any = append(any, fields[9])
			if remote, ok := socketAddress(fields[2]); ok && int(remote.Port()) == port {
				exact = append(exact, fields[9])
			}
		}
		f.Close()
	}
	for _, found := range [][]string{exact, any} {
		if len(found) == 1 {
			return found[0]
		}
	}
	return ""
}

// socketAddress reads an address as the kernel writes it there: words of four bytes
// in the order of the machine, each as eight digits.
func socketAddress(text string) (netip.AddrPort, bool) {
	words, digits, ok := strings.Cut(text, ":")
	raw, err := hex.DecodeString(words)
	port, perr := strconv.ParseUint(digits, 16, 16)
	if !ok || err != nil || perr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	a, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(a.Unmap(), uint16(port)), ok
}

// oneProgram is the first of some processes that all execute the same program, 0
// for none and where they do not: any of them may be speaking, and one may have been
// given the socket so that it is named.
func oneProgram(pids []int) int {
	var same os.FileInfo
	for _, pid := range pids {
		its, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil || same != nil && !os.SameFile(same, its) {
			return 0
		}
		same = its
	}
	if len(pids) == 0 {
		return 0
	}
	return pids[0]
}

// holders are the processes of the run that have something open, by number.
func holders(first int, what string) (found []int) {
	// A user who is not root may not read the namespaces of the first process: then
	// every process with another network than ours counts.
	network, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", first))
	own, _ := os.Readlink("/proc/self/ns/net")
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, one := range all {
		if pid, err := strconv.Atoi(one.Name()); err == nil && pid >= 0 {
			if its, err := os.Readlink("/proc/" + one.Name() + "/ns/net"); err == nil && (its == network || network == "" && its != own) {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	for _, pid := range pids {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		open, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, fd := range open {
			if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && to == what {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

// sum is the hash of an executable, "" where it cannot be read. The link leads to
// what is executed, whatever has its name by now.
func (c *clients) sum(link string) string {
	f, err := os.Open(link)
	if err != nil {
		return ""
	}
	defer f.Close()
	st, err := f.Stat()
	sys, ok := st.Sys().(*syscall.Stat_t)
	if err != nil || !ok || !st.Mode().IsRegular() || st.Size() > sumMost {
		return ""
	}
	is := content{uint64(sys.Dev), sys.Ino, sys.Size, sys.Mtim, sys.Ctim}
	c.mu.Lock()
	sum := c.sums[is]
	c.mu.Unlock()
	if sum != "" {
		return sum
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, sumMost)); err != nil {
		return ""
	}
	sum = hex.EncodeToString(h.Sum(nil))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sums == nil || len(c.sums) >= 256 {
		c.sums = map[content]string{}
	}
	c.sums[is] = sum
	return sum
}
