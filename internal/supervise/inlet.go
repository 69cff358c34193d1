//go:build linux

package supervise

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// inlet lets a process inside write to a file outside: it has the end of a pipe, and
// its data is written here. A descriptor of the file itself could be read through,
// reopened by its link below /proc, and given to fchmod(2) by the owner of the file,
// and could not be revoked.
type inlet struct {
	from *os.File
	to   *os.File
	left uint64          // bytes that may still be written
	over <-chan struct{} // closed when the approval has ended that it rests on; nil for never

	moving sync.Mutex // held from before a piece is read until it is written
	buf    []byte
	err    error // sticky: what was not written is missing from the file
}

// inlets are those that are open.
type inlets struct {
	running sync.WaitGroup
	signals chan os.Signal // of leases that must be given back

	mu  sync.Mutex // guards all
	all map[*inlet]struct{}
}

// inletsMost is how many may be open at a time. Each holds two descriptors and a
// buffer of the supervisor, which no limit of the run counts, is looked at before
// every call (settle), and has a pipe of those that the user may have.
const inletsMost = 256

// errWrittenEnough ends an inlet at the limit of file sizes.
var errWrittenEnough = errors.New("the file size limit is reached")

// errOver ends an inlet together with its approval.
var errOver = errors.New("the approval that allowed it has ended")

// open makes the pipe for a file, whose descriptor it takes over, and returns the end
// to hand in. The inlet ends when that end is closed everywhere inside, or over is
// closed.
func (ins *inlets) open(file int, limit uint64, nonblock bool, over <-chan struct{}) (int, error) {
	to := os.NewFile(uintptr(file), "outside")
	if !ins.room() {
		to.Close()
		return -1, unix.ENFILE
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		to.Close()
		return -1, err
	}
	_ = unix.SetNonblock(ends[0], true)
	_ = unix.SetNonblock(ends[1], nonblock)
	in := &inlet{from: os.NewFile(uintptr(ends[0]), "inlet"), to: to, left: limit, over: over, buf: make([]byte, 64<<10)}
	ins.mu.Lock()
	if ins.all == nil {
		ins.all, ins.signals = map[*inlet]struct{}{}, make(chan os.Signal, 1)
		signal.Notify(ins.signals, unix.SIGIO)
		go ins.giveBack(ins.signals)
	}
	ins.all[in] = struct{}{}
	ins.mu.Unlock()
	// A process that opens the file waits until what was written before is in it. If
	// the file is already open elsewhere, or its file system has no leases, it does not
	// wait.
	_, _ = unix.FcntlInt(to.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	ins.running.Go(func() { ins.serve(in) })
	return ends[1], nil
}

// room reports whether one more may be opened. Those that are being opened at this
// moment are not counted; they are as many as questions can be open.
func (ins *inlets) room() bool {
	ins.mu.Lock()
	defer ins.mu.Unlock()
	return len(ins.all) < inletsMost
}

// serve writes what comes until there is no more, or it may not.
func (ins *inlets) serve(in *inlet) {
	ended := make(chan struct{})
	if in.over != nil {
		ins.running.Go(func() {
			select {
			case <-in.over:
				in.from.Close()
			case <-ended:
			}
		})
	}
	for in.move() == nil {
	}
	close(ended)
	in.from.Close() // the next write(2) inside gets EPIPE
	in.to.Close()
	ins.mu.Lock()
	delete(ins.all, in)
	ins.mu.Unlock()
}

// giveBack takes the signals by which the kernel asks for a lease back.
func (ins *inlets) giveBack(signals <-chan os.Signal) {
	for range signals {
		ins.mu.Lock()
		for in := range ins.all {
			go in.yield()
		}
		ins.mu.Unlock()
	}
}

// yield writes what is there and gives the lease back, where a process waits for it.
func (in *inlet) yield() {
	in.moving.Lock()
	defer in.moving.Unlock()
	to, err := in.to.SyscallConn()
	if err != nil {
		return
	}
	_ = to.Control(func(file uintptr) {
		if kind, err := unix.FcntlInt(file, unix.F_GETLEASE, 0); err != nil || kind == unix.F_WRLCK {
			return
		}
		if from, err := in.from.SyscallConn(); err == nil {
			_ = from.Control(func(pipe uintptr) {
				for range pieces {
					if again, _ := in.piece(int(pipe)); !again {
						break
					}
				}
			})
		}
		_, _ = unix.FcntlInt(file, unix.F_SETLEASE, unix.F_UNLCK)
	})
}

// pieces is how many are written at most before a lease is given back: a pipe
// holds a MiB at most.
const pieces = 16

// piece writes one piece, if there is one. in.moving is held.
func (in *inlet) piece(pipe int) (moved bool, err error) {
	if in.err != nil {
		return false, in.err
	}
	n, err := unix.Read(pipe, in.buf)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return false, nil
	case err != nil:
		return false, err
	case n == 0:
		return false, io.EOF
	case uint64(n) > in.left:
		return false, errWrittenEnough
	}
	select {
	case <-in.over: // it may have ended just now, and this piece may have been written since
		return false, errOver
	default:
	}
	in.left -= uint64(n)
	_, in.err = in.to.Write(in.buf[:n])
	return in.err == nil, in.err
}

// move waits for one piece and writes it.
func (in *inlet) move() error {
	conn, err := in.from.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Read(func(fd uintptr) bool {
		in.moving.Lock()
		defer in.moving.Unlock()
		var moved bool
		moved, failed = in.piece(int(fd))
		return moved || failed != nil
	})
	return errors.Join(err, failed)
}

// pause is how long a call waits at most for what was written before it.
const pause = 200 * time.Millisecond

// settle waits until what was written so far is in the files: the next call may be
// about them.
func (ins *inlets) settle() {
	ins.mu.Lock()
	defer ins.mu.Unlock()
	for in := range ins.all {
		for end := time.Now().Add(pause); !in.empty() && time.Now().Before(end); {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// empty reports whether no data is in transit.
func (in *inlet) empty() bool {
	if !in.moving.TryLock() {
		return false
	}
	defer in.moving.Unlock()
	waiting := 0
	conn, err := in.from.SyscallConn()
	if err == nil {
		err = conn.Control(func(fd uintptr) { waiting, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return err != nil || waiting == 0
}

// close waits until all has been written, when nothing inside can write any more.
func (ins *inlets) close(ctx context.Context) error {
	all := make(chan struct{})
	go func() {
		ins.running.Wait()
		if ins.signals != nil {
			signal.Stop(ins.signals)
			close(ins.signals)
		}
		close(all)
	}()
	select {
	case <-all:
		return nil
	case <-ctx.Done():
		return errors.New("ending the record of system calls: a write to a file outside has not finished")
	}
}

// fileLimit is how large a file may be that a process writes.
func fileLimit(pid int) uint64 {
	var limit unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &limit) != nil {
		return 0
	}
	return limit.Cur
}
