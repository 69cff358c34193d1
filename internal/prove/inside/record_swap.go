//go:build linux

package inside

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// exchangedName is a name of nine bytes; another thread exchanges the first four.
type exchangedName struct {
	first uint32
	rest  [8]byte
	now   atomic.Bool // a call is about to be made
	over  atomic.Bool
}

// The values of the first four bytes.
var goodName, evilName = binary.NativeEndian.Uint32([]byte("good")), binary.NativeEndian.Uint32([]byte("evil"))

// exchange changes the name a moment after a call is about to be made.
func (n *exchangedName) exchange() {
	runtime.LockOSThread()
	for i := 0; !n.over.Load(); i++ {
		for !n.now.Load() && !n.over.Load() {
			runtime.Gosched()
		}
		for began := time.Now(); time.Since(began) < time.Duration(i%120)*time.Microsecond; {
		}
		atomic.StoreUint32(&n.first, evilName)
		for n.now.Load() && !n.over.Load() {
			runtime.Gosched()
		}
		atomic.StoreUint32(&n.first, goodName)
	}
}

// exchangeNames makes files good-N, some of which become evil-N: those whose name
// the kernel read after the exchange.
func exchangeNames(p *Probe) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.Try("make files by a name that another thread exchanges", func() error {
		dir, err := unix.Open(p.In("W", "exchanged"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(dir)
		n := &exchangedName{first: goodName}
		go n.exchange()
		defer n.over.Store(true)
		for i := range 400 {
			n.now.Store(false)
			for atomic.LoadUint32(&n.first) != goodName {
				runtime.Gosched()
			}
			copy(n.rest[:], fmt.Sprintf("-%04d", i))
			n.now.Store(true)
			fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(dir), Pointer(&n.first), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644, 0, 0)
			if errno != 0 {
				return Errno(errno)
			}
			unix.Close(int(fd))
		}
		return nil
	})
}
