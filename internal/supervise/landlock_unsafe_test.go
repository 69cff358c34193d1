//go:build linux

package supervise

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/testenv"
)

// landlockedVar makes this test binary a process that restricts itself and then
// executes itself to try what is denied. That one is the value "tries".
const landlockedVar = "HOLDFAST_LANDLOCKED"

func init() {
	switch os.Getenv(landlockedVar) {
	case "makes":
		runtime.LockOSThread()
		fmt.Println(os.Getpid())
		os.Stdin.Read(make([]byte, 1)) // until it is known which process makes the domain
		if err := landlockSelf(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		err := syscall.Exec("/proc/self/exe", os.Args, []string{landlockedVar + "=tries"})
		fmt.Println(err)
		os.Exit(1)
	case "tries":
		more, _ := strconv.Atoi(os.Args[1])
		for range more {
			os.ReadFile("/etc/group")
		}
		_, err := os.ReadFile("/etc/passwd")
		fmt.Println(err)
		_, err = os.ReadDir("/etc")
		fmt.Println(err)
		fmt.Println(os.Mkdir("/tmp/landlocked-"+string([]byte{'a', '"', 10, 'b'}), 0o755))
		os.Exit(0)
	}
}

// landlockSelf denies reading and making directories, everywhere, except for the
// reading of this program.
func landlockSelf() error { return landlockTo("/proc/self/exe") }

// landlockTo denies this thread reading and making directories except for reading below
// a path.
func landlockTo(path string) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	attr := [3]uint64{unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), 24, 0)
	if errno != 0 {
		return fmt.Errorf("ruleset: %w", errno)
	}
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	rule := struct {
		rights uint64
		fd     int32
	}{unix.LANDLOCK_ACCESS_FS_READ_FILE, int32(at)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, set, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("rule: %w", errno)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, unix.LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON, 0); errno != 0 {
		return fmt.Errorf("restrict: %w", errno)
	}
	return nil
}

// auditOn is the feature that the kernel has audit, which is switched on for the
// time of a test alone: it slows the whole machine down.
const auditOn = testenv.Feature("audit")

func TestRootLandlockAuditHearsEveryDenial(t *testing.T) { hearAll(t, 0) }

func TestRootLandlockAuditHearsAFlood(t *testing.T) { hearAll(t, 20000) }

// switchOnAudit switches the kernel's audit on for the time of a test, as
// auditctl -e 1 does (AUDIT_SET, linux/audit.h).
func switchOnAudit(t *testing.T) {
	t.Helper()
	if on, _, err := auditStatus(); err != nil || on {
		return
	}
	set := func(enabled uint32) error {
		s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
		if err != nil {
			return err
		}
		defer unix.Close(s)
		le := binary.LittleEndian
		status := make([]byte, 40) // struct audit_status
		le.PutUint32(status, 1)    // AUDIT_STATUS_ENABLED
		le.PutUint32(status[4:], enabled)
		msg := le.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(status)))
		msg = le.AppendUint16(msg, 1001) // AUDIT_SET
		msg = le.AppendUint16(msg, unix.NLM_F_REQUEST)
		msg = append(append(msg, 1, 0, 0, 0, 0, 0, 0, 0), status...)
		return unix.Sendto(s, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err := set(1); err != nil {
		t.Logf("switching audit on: %v", err)
	}
	t.Cleanup(func() {
		if err := set(0); err != nil {
			t.Errorf("switching audit off again: %v", err)
		}
	})
}

func hearAll(t *testing.T, more int) {
	switchOnAudit(t)
	sink := &memorySink{}
	a, err := NewLandlockAudit(LandlockConfig{Sink: sink, Failed: func(err error) { t.Error(err) }})
	testenv.Need(t, auditOn, func() error { return err })
	go a.Serve()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, strconv.Itoa(more))
	cmd.Env = []string{landlockedVar + "=makes"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	maker := 0
	said := bufio.NewReader(out)
	if _, err := fmt.Fscanln(said, &maker); err != nil {
		t.Fatal(err)
	}
	a.Domain(maker)
	in.Write([]byte("\n"))
	answers, err := io.ReadAll(said)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	t.Logf("%s", answers)
	stats, err := a.Close()
	t.Logf("%+v %v", stats, err)
	dropped := false
	seen := map[string]bool{}
	for _, e := range sink.all() {
		seen[e.Action+" "+e.Object] = true
		dropped = dropped || e.Action == event.RecordDrop
	}
	// The kernel drops records when more than its backlog wait, and reports it at the
	// end.
	if err != nil || !stats.Ended || stats.Kernel < uint64(more+3) || stats.Denials+stats.Lost != stats.Kernel || dropped != (stats.Lost > 0) {
		t.Errorf("%+v, %v, a record of loss: %v", stats, err, dropped)
	}
	for _, want := range []string{event.FileOpen + " /etc/passwd", event.FileOpen + " /etc", event.FileMkdir + " /tmp"} {
		if !seen[want] && stats.Lost == 0 {
			t.Errorf("no event %q", want)
		}
	}
}
