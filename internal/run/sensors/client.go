//go:build linux

package sensors

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"holdfast.dev/holdfast/internal/floor/event"
)

// clients finds the process inside that has a connection, for the human who is asked
// about it. A process is found by its socket, which it may have been given: the human
// sees which program holds the connection, or none if several programs do.
type clients struct {
	mu      sync.Mutex // guards what follows
	first   int        // process whose network is the run's; 0 before there is one
	sockets *sockets   // of that network; nil if the kernel does not report them
	process func(pid int) event.Process
	sums    map[content]string
}

// Client is the process inside that has the socket whose own address is local and
// whose peer's is remote. The zero value is for one that cannot be found.
func (s *Set) Client(local, remote netip.AddrPort) event.Process {
	return s.clients.find(local, remote)
}

// content is a file as it was when it was read.
type content struct {
	dev, ino   uint64
	size       int64
	mtim, ctim syscall.Timespec
}

// sumMost is how large an executable is read, in bytes.
const sumMost = 512 << 20

// begin takes the first process inside and the netlink socket that the launch handed
// out, nil for none.
func (c *clients) begin(first int, table *os.File, process func(int) event.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sockets.close()
	c.first, c.sockets, c.process = first, newSockets(table), process
}

// end closes what begin took.
func (c *clients) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sockets.close()
	c.sockets = nil
}

func (c *clients) find(local, remote netip.AddrPort) event.Process {
	c.mu.Lock()
	first, table, process := c.first, c.sockets, c.process
	c.mu.Unlock()
	if first == 0 {
		return event.Process{}
	}
	inode, err := table.inode(local, remote)
	if err != nil {
		inode = listedInode(first, local, remote)
	}
	if inode == "" || inode == "0" { // closed by its process
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
