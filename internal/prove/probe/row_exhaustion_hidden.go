//go:build linux

package probe

import (
	"strconv"
	"time"
)

// hiddenMemory are rows of memory that is in no process's count: it belongs to
// the kernel, or to files that no descriptor or mapping shows.
func hiddenMemory() []Row {
	row := func(id, title, kind string, refs ...string) Row {
		return Row{ID: id, Kind: Sandbox, Title: title, Refs: refs,
			Options: Options{Memory: 192 * mebi}, Drive: cutShort(nil), Alone: "it is measured by what the machine has left",
			Action: "hide-memory", Args: append(mostArg(448*mebi), "kind="+kind), Setup: manyKeys, Timeout: 60 * time.Second}
	}
	return []Row{
		row("RES-161", "memory is used by System V segments that nobody maps any more", "segments that are not mapped", "shmop(2)"),
		row("RES-162", "memory is used by messages in queues", "message queues", "msgop(2)"),
		row("RES-162b", "memory is used by sets of semaphores", "semaphores", "semget(2)"),
		row("RES-163", "memory is used by a memory file of a process that cannot be looked into", "a file of a process that cannot be looked into", "PR_SET_DUMPABLE(2const)"),
		row("RES-163b", "memory is used by shared pages that were unmapped page by page", "shared pages that are no longer mapped", "madvise(2) MADV_DONTNEED"),
		row("RES-164", "memory is used by data that waits in sockets", "socket buffers", "unix(7)"),
		row("RES-164b", "memory is used by watches of epoll", "watches of epoll", "epoll(7)"),
		row("RES-164c", "memory is used by tables for pages that were only read", "tables of pages that are only read", "VmPTE in proc_pid_status(5)"),
	}
}

// hiddenDisk are rows of space and inodes of the workspace that a sum of the
// sizes of readable files does not have.
func hiddenDisk() []Row {
	row := func(id, title, action string, most int, args ...string) Row {
		return Row{ID: id, Kind: Sandbox, Title: title, Refs: []string{"statfs(2)"},
			Options: Options{Disk: 32 * mebi}, Drive: cutShort(nil),
			Action: action, Args: append([]string{"most=" + strconv.Itoa(most)}, args...), Timeout: 60 * time.Second}
	}
	unseen := func(id, kind string) Row {
		return row(id, "the workspace is filled by "+kind, "hide-disk", 128*mebi, "kind="+kind)
	}
	return []Row{
		row("RES-165", "the workspace is filled with directories", "many-dirs", 100*mebi),
		row("RES-165b", "the workspace is filled with links", "many-links", 100*mebi),
		row("RES-166", "the inodes of the workspace's disk are taken by empty files", "hide-inodes", 40000, "path=W"),
		unseen("RES-167", "a directory that cannot be read"),
		unseen("RES-167b", "files of a process that cannot be looked into"),
		unseen("RES-167c", "files that are only mapped"),
		unseen("RES-167d", "files that are on their way through a socket"),
	}
}
