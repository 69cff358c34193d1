package boundary

import (
	"os"
	"syscall"

	"holdfast.dev/holdfast/internal/policy"
)

// Observation asks that what is attempted inside arrives at the supervisor:
// system calls by notification (seccomp_unotify(2)), look-ups outside the view
// by a file system that the supervisor serves. Nothing that is allowed inside
// is decided there; what the filter refuses is refused by the supervisor's
// answer, and by ENOSYS when it is gone.
type Observation struct {
	// Level is what arrives; RecordOff asks for nothing.
	Level policy.RecordLevel

	// Open is called once with the listener, right after the filter was
	// installed and before anything else happens in the boundary: from then on
	// notifications must be answered. It owns the watch whether or not it fails.
	Open func(Watch) error

	// Root is called with a device of FUSE whose file system is the root of the
	// view: what is looked up and is not there arrives at its server. The
	// launch builds the root through it, so it has to be served at once. It owns
	// the device. Sealed is called when the root is complete. Nil, or a host whose
	// /dev/fuse this user may not open, gives an ordinary root of tmpfs: then
	// opens for reading and rare look-ups arrive at the listener, at both levels.
	Root   func(RootDevice) error
	Sealed func()

	// Store is called once after Root with the directory that has what files of the
	// private directories hold, which the receiver of Root serves. It owns the
	// directory, an O_PATH descriptor of a file system in memory.
	Store func(dir *os.File) error

	// Denials is called with the first process inside before it restricts itself, and
	// asks the kernel to write what Landlock refuses there into the host's audit
	// records, where root can read them (Landlock ABI 7). Nil for not.
	Denials func(first int)
}

// RootDevice is a device of FUSE that was opened inside.
type RootDevice struct {
	File     *os.File // owned by the receiver
	First    int      // pid of the first process inside, in the host's pid namespace
	UID, GID int      // of everything inside, as the host sees them

	Private []string // absolute paths of directories that any process inside may change
	Covers  string   // absolute path of the directory with what is mounted over what is hidden
	Made    []Entry  // what is there from the beginning, directories before what they hold

	// Charge takes bytes of memory, which the receiver needs for what files in
	// Private hold, from what everything inside may use; never nil. An error says
	// that there are not as many.
	Charge func(bytes int64) error
}

// Entry is a directory, a file or a link of the root.
type Entry struct {
	Path    string // absolute
	Mode    uint32 // type and permissions (stat(2))
	Content string // of a file; the target of a link
}

// Watch is where notifications arrive.
type Watch struct {
	Listener *os.File      // owned by the receiver
	Sockets  *os.File      // a netlink socket that reports the sockets inside (sock_diag(7)); nil if the kernel lacks it; owned by the receiver
	Trees    []policy.Tree // what the view is made of; of two for one path the later wins
	First    int           // pid of the first process inside, in the host's pid namespace
	UID, GID int           // of everything inside, as the host sees them
	Closed   bool          // no address but those of the loopback can be reached
	Portal   bool          // the third process inside is the boundary's own and hands out sockets

	Uncompared bool // calls are not compared with what they did: for tests of that alone

	// Refuse returns the error that a reported call is refused with; false for a call
	// that may continue. Name names a call.
	Refuse func(nr uint32, args [6]uint64) (syscall.Errno, bool)
	Name   func(nr uint32) string
}
