// Package arch holds the house rules as tests: who may import whom, what the
// binary links, and how large things may grow. The tables below are policy, not
// a description of the code: when one is in the way, change the code, or change
// the table in a commit of its own that says why.
//
// The package has no code besides its tests. Run it with -count=1: what it
// reads is not among the inputs that the test cache knows.
package arch

// layers lists the packages below internal/, lowest layer first, a line each.
// A package imports only packages of the lines above it. One with a star is
// for tests: only tests and other starred packages import it. A program below a
// package, such as a generator, needs no entry. Packages of
// later capabilities have their place already.
const layers = `
event sys testenv*
probe/inside
policy audit detect approve report probe
sandbox
sandbox/sandboxtest* sandbox/native/abitest*
sandbox/native sandbox/oci supervise egress egress/netstack broker workspace gateway
task
harness server k8s
cli
realtest*
arch*
`

// entry lists the programs that users get, and the one package each imports.
const entry = `
cmd/holdfast cli
`

// homes says where an import from outside may stand in code that is not a
// test: the import path (with all below it), the packages or file name
// patterns, and why those. A module without a row may not be imported at all.
// "test" as a home means tests and test packages only.
const homes = `
C                                                : nothing is built with cgo, the binary is static
unsafe                         sys sandbox/native *_unsafe.go : pointers to kernel structures; the file name tells reviewers where to look
syscall                        sys sandbox sandbox/native workspace probe task cli cmd/holdfast testenv egress host_unix.go : raw calls in sys and native; elsewhere error numbers, signals and wait statuses that os gives out as these types
golang.org/x/sys               sys sandbox/native workspace probe task testenv egress resolve_linux.go readfile_linux.go : workspace, task and the two files of policy open paths with openat2 and O_PATH; a probe speaks to the kernel itself, for it must not trust our wrappers; testenv makes networks for tests; egress asks sockets for what net does not tell, and reads the TUN device
golang.org/x/term              cli               : the user's terminal is touched in one place
github.com/spf13/cobra         cli               : commands and flags
github.com/spf13/pflag         cli               : the flag type of cobra
go.yaml.in/yaml/v3             policy workspace  : what users write, and the list of protected paths
github.com/miekg/dns           egress            : the wire format of name queries
golang.org/x/net               egress            : control messages of datagram sockets, which say what address was asked
gvisor.dev/gvisor              egress/netstack   : TCP in user space, where the kernel cannot intercept connections by itself
github.com/hashicorp/vault/api broker            : a source of credentials
software.sslmate.com/src/go-pkcs12 egress      : the trust store that Java reads, with the session's authority in it
github.com/google/nftables     test             : encodes the messages of the launch when their table is generated
github.com/mdlayher/netlink    test             : as nftables
github.com/rogpeppe/go-internal test             : scripts that show what a user sees
`

// exceptions lists what may be larger than the budget, or otherwise unlike the
// rest, and why. A row that nothing needs any more is itself a failure.
//
//	file PATH: reason         longer than 400 lines (never than 800)
//	func PATH NAME: reason    longer than 50 lines (never than 100)
//	init PATH: reason         has a func init (tests may: it is how a test binary becomes its own helper)
const exceptions = `
`

// The budgets. Lines are source lines, with comments and braces. A test
// function, and a function that names some values and returns a literal, may
// have 100 without an exception: they are tables.
const (
	fileLines, fileLinesMax = 400, 800
	funcLines, funcLinesMax = 50, 100
	fanOut, fanOutWide      = 8, 16 // imports from this module a package, not counting those of its tests
)

// wide lists the packages that plug others together.
const wide = `task cli server`

// talkers lists the packages that may print and end the process. What runs
// inside the sandbox as a probe has no caller to return to: its output is its
// result. testenv executes a test binary once more, and passes on what it says.
const talkers = `cli probe/inside testenv`
