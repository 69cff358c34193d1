package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// peerOpens opens and closes a file many times and prints the nanoseconds of
// each, the best of several lots: `bench peer opens COUNT PATH read|write`. It is
// the loop of the goal against strace.
func peerOpens(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("opens needs 3 arguments, not %d", len(args))
	}
	count, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("reading a number: %w", err)
	}
	flags := uintptr(syscall.O_RDONLY)
	if args[2] == "write" {
		flags = syscall.O_WRONLY
	}
	path, err := syscall.BytePtrFromString(args[1])
	if err != nil {
		return fmt.Errorf("converting the path: %w", err)
	}
	const lots = 10
	best := math.Inf(1)
	for range lots {
		began := time.Now()
		for range count / lots {
			const here = -100 // AT_FDCWD
			at := here
			fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(path)), flags, 0, 0, 0)
			if errno != 0 {
				return fmt.Errorf("opening the file: %w", errno)
			}
			syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
		}
		best = min(best, float64(time.Since(began).Nanoseconds())/float64(count/lots))
	}
	return json.NewEncoder(os.Stdout).Encode(best)
}

// measureOpens measures one notified open.
func (b *bench) measureOpens(s *section) {
	b.logf("record: one open")
	if err := b.opensInto(s); err != nil {
		s.fail("one open: %v", err)
	}
}

// prepareOpens puts this program and a file into a workspace.
func prepareOpens(b *bench, dir string) error {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("reading this program: %w", err)
	}
	if err := programs.Write(filepath.Join(dir, "peer"), self, 0o755); err != nil {
		return fmt.Errorf("copying this program: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o644); err != nil {
		return fmt.Errorf("making a file: %w", err)
	}
	return b.user.chownTree(dir)
}

func (b *bench) opensInto(s *section) error {
	w := workload{name: "opens", dir: "opens", prepare: prepareOpens}
	if err := b.fixture(w); err != nil {
		return err
	}
	dir := b.workspace(w.dir)
	ways, err := b.recordWays(dir)
	if err != nil {
		return err
	}
	const count = 20000
	found := map[string]map[string][]float64{"read": {}, "write": {}}
	for range b.recordRounds() {
		for kind, of := range found {
			for _, way := range ways {
				out, _, err := b.runCopies(way, dir, []string{filepath.Join(dir, "peer"), "peer", "opens", strconv.Itoa(count), filepath.Join(dir, "file"), kind}, 1)
				if err != nil {
					return err
				}
				ns, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
				if err != nil {
					return fmt.Errorf("reading what one open took: %w", err)
				}
				of[way.name] = append(of[way.name], ns)
			}
		}
	}
	b.opensTable(s, found)
	return b.forgetRecords()
}

func (b *bench) opensTable(s *section, found map[string]map[string][]float64) {
	t := table{header: []string{"openat and close", "bare ns", "no record ns", "standard ns", "full ns", "without /dev/fuse ns", "strace ns"}}
	for _, kind := range []string{"read", "write"} {
		of := func(way string) string { return number(spreadOf(found[kind][way]).median) }
		t.add("to "+kind, of(bare), of(unrecorded), of(standard), of(full), of(fuseless), of(traced))
	}
	s.tables = append(s.tables, captioned{caption: "One open", table: t,
		text: "Wall time of one pair in a loop of 20,000 on one thread, the best of ten lots, the median of the rounds. Under standard only an open to write is notified, under full and without /dev/fuse both are."})
	for _, g := range []struct{ kind, way string }{{"write", standard}, {"read", full}} {
		ratio := spreadOf(found[g.kind][g.way]).median / spreadOf(found[g.kind][traced]).median
		s.verdicts = append(s.verdicts, judge(fmt.Sprintf("an open to %s, recorded (%s), times strace", g.kind, g.way), 0.4, ratio, "%.2f"))
	}
}

// peerFuse becomes the user and executes a program, in a mount namespace that the
// caller made, with a FUSE device that the user may open, as in distributions, or
// may not. Arguments: the device, user, group, the program with its arguments.
func peerFuse(args []string) error {
	if len(args) < 4 {
		return fmt.Errorf("this stage needs 4 arguments, not %d", len(args))
	}
	if err := syscall.Mount(args[0], "/dev/fuse", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting a device over the host's: %w", err)
	}
	uid, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("reading the user: %w", err)
	}
	gid, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("reading the group: %w", err)
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(gid, gid, gid), syscall.Setresuid(uid, uid, uid)); err != nil {
		return fmt.Errorf("becoming the user: %w", err)
	}
	return fmt.Errorf("executing %s: %w", args[3], syscall.Exec(args[3], args[3:], os.Environ()))
}

// measureTripwire measures the root that detects every lookup of a missing file, against
// a plain tmpfs.
func (b *bench) measureTripwire(s *section) {
	b.logf("record: tripwire")
	if os.Geteuid() != 0 {
		s.remarks = append(s.remarks, "The tripwire was not measured: only root can switch it on and off.")
		return
	}
	if err := b.tripwireInto(s); err != nil {
		s.fail("tripwire: %v", err)
	}
}

const (
	plainRoot = "tmpfs"
	wiredRoot = "tripwire"
)

// deviceModes are the modes of the device for each root: the user may open it, or
// may not.
var deviceModes = map[string]uint32{plainRoot: 0o600, wiredRoot: 0o666}

// beforeDevice is the start of a command line that runs holdfast through unshare,
// with the FUSE device of the root of that name.
func (b *bench) beforeDevice(root string) ([]string, error) {
	self := filepath.Join(b.dir, "bin", "peer")
	text, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = programs.Write(self, text, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("copying this program: %w", err)
	}
	device, mode := filepath.Join(b.dir, "copies", "fuse."+root), deviceModes[root]
	const fuse = 10<<8 | 229 // devices.txt of the kernel
	if err := syscall.Mknod(device, syscall.S_IFCHR|mode, fuse); err != nil && !errors.Is(err, syscall.EEXIST) {
		return nil, fmt.Errorf("making a device: %w", err)
	}
	if err := os.Chmod(device, os.FileMode(mode)); err != nil {
		return nil, fmt.Errorf("making a device: %w", err)
	}
	return []string{"--mount", "--propagation", "private", self, "peer", "fuse", device, strconv.Itoa(b.user.uid), strconv.Itoa(b.user.gid), b.holdfast}, nil
}

// wiredWays start holdfast with a FUSE device that the user may open, and with
// one that the user may not, which decides which root is used; it checks that.
func (b *bench) wiredWays(repo string) ([]contestant, error) {
	var ways []contestant
	for _, name := range []string{plainRoot, wiredRoot} {
		before, err := b.beforeDevice(name)
		if err != nil {
			return nil, err
		}
		ways = append(ways, contestant{name: name, root: true, program: "/usr/bin/unshare", env: b.env, before: append(before, "run", "--")})
	}
	for _, way := range ways {
		out, _, err := b.runCopies(way, repo, []string{"cat", "/proc/self/mountinfo"}, 1)
		if err != nil {
			return nil, err
		}
		for _, m := range parseMounts(out) {
			if m.point == "/" && strings.HasPrefix(m.fstype, "fuse") != (way.name == wiredRoot) {
				return nil, fmt.Errorf("the root under %s is %s", way.name, m.fstype)
			}
		}
	}
	return ways, nil
}

func (b *bench) tripwireInto(s *section) error {
	repo := b.workspace("repo")
	if _, err := os.Stat(repo); err != nil {
		return fmt.Errorf("the repository is missing: %w", err)
	}
	ways, err := b.wiredWays(repo)
	if err != nil {
		return err
	}
	t := table{header: []string{"workload", "tmpfs ms", "tripwire ms", "ratio of medians", "10th to 90th percentile of rounds"}}
	src := filepath.Join(repo, "src")
	for _, w := range []struct {
		name    string
		command []string
	}{
		{"rg by absolute paths", repeatCommand(4, "rg "+needle+" "+src)},
		{"rg over /usr/share and /usr/include", repeatCommand(2, "rg --no-ignore -c "+needle+" /usr/share/perl /usr/include || true")},
		{"python start", repeatCommand(20, "python3 -c 'import json'")},
	} {
		c, err := b.measureBothRoots(w.name, w.command, ways, repo)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		times := c.ratioTo(wiredRoot, plainRoot)
		of := func(way string) string { return number(spreadOf(c.withoutStart(way)).median) }
		t.add(w.name, of(plainRoot), of(wiredRoot), fmt.Sprintf("%.3f", times.median), fmt.Sprintf("%.3f–%.3f", times.p10, times.p90))
		s.verdicts = append(s.verdicts, judge("tripwire root, "+w.name+": processor time, times tmpfs", 1.05, times.median, "%.3f"))
	}
	s.tables = append(s.tables, captioned{caption: "Tripwire root", table: t,
		text: "The same run (standard) with a root that is a tmpfs and with one that is the tripwire; the user may not open /dev/fuse in the one and may in the other. Processor time without the start."})
	return b.forgetRecords()
}

// measureBothRoots measures a command in both ways.
func (b *bench) measureBothRoots(name string, command []string, ways []contestant, dir string) (*cost, error) {
	c := newCost(name)
	w := recordWorkload{workload: workload{name: name, command: command}}
	for round := range max(3, 2*b.recordRounds()) + 1 {
		for _, way := range ways {
			if err := b.recordOnce(c, w, way, dir, round > 0); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}
