// Package arch holds the house rules as tests: which package may import which, what the
// binary links, and how large things may grow. The tables below are policy, not a
// description of the code: when one is in the way, change the code, or change the table
// in a commit of its own that says why.
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
floor/text floor/paths floor/syslog
floor/event floor/canonical floor/sys floor/programs prove/netlab
testenv*
floor/command floor/document
prove/inside
floor/expr floor/redact supervise/control detect/honey detect/baseline prove/replay
consent/rules
policy record/audit detect consent prove/report prove/probe prove/model
record/export
record/story detect/alert prove/exposure prove/targets prove/agent agents/hooks
boundary record/incident record/bus
boundary/boundarytest* boundary/native/abitest*
boundary/native supervise network network/netstack credentials boundary/workspace agents/gateway
review agents/state consent/gate
run/session run/orders network/egress agents/reports
run/sensors run/relay
run
prove/trial
prove/harness
cli/words cli/screen cli/backend
cli/archive cli/plans
cli/lines cli/reviews cli/hooks cli/settings
cli/logs/stories cli/logs/baselines cli/logs/incidents cli/approvals
cli/runs/waits
cli/runs/summary
cli/runs
cli/logs cli/alerts cli/agents cli/policies cli/grants cli/doctor cli/references
cli prove/cli
testenv/realtest*
arch*
`

// entry lists the programs that users get, and the one package each imports.
const entry = `
cmd/holdfast cli
cmd/holdfast-prove prove/cli
`

// homes says where an import from outside is allowed in code that is not a test: the
// import path (with all below it), the packages or file name patterns, and why those. A
// module without a row may not be imported at all. "test" as a home means tests and
// test packages only.
const homes = `
C                               : nothing is built with cgo, the binary is static
unsafe                         floor/sys boundary/native *_unsafe.go *_unsafe_test.go : pointers to kernel structures; the file name tells reviewers where to look
syscall                        floor/command floor/programs prove/cli floor/sys boundary boundary/native supervise record/audit detect/alert detect/honey boundary/workspace prove/probe prove/inside prove/replay prove/targets run consent agents/state cli cmd/holdfast testenv prove/netlab network prove/trial prove/agent agents/hooks agents/gateway host_unix.go : raw calls in sys and native; elsewhere error numbers, signals and wait statuses that os gives out as these types
golang.org/x/sys               floor/sys boundary/native supervise boundary/workspace review agents/state prove/probe prove/inside prove/replay prove/targets run testenv prove/netlab network prove/harness prove/trial resolve_linux.go readfile_linux.go : workspace, review, task and the two files of policy open paths with openat2 and O_PATH; a probe speaks to the kernel itself, for it must not trust our wrappers; netlab makes namespaces, links and routes, with the messages of rtnetlink that it needs and no library for all of them; harness locks the places where it probes and asks what file system they are on; egress asks sockets for what net does not tell, and reads the TUN device
golang.org/x/term              floor/command cli prove/cli : the user's terminal is touched in one place
github.com/spf13/cobra         floor/command cli prove/cli tools/manual : commands and flags, and the pages about them
github.com/spf13/pflag         cli prove/cli tools/manual : the flag type of cobra
go.yaml.in/yaml/v3             policy consent/rules detect prove/agent prove/model prove/probe : what users write, the examples of rule sets, the list of detection rules, the drivers of agent programs, scripts of the model, the rows
cel.dev/cel-go                 test : what conditions mean is compared with it
golang.org/x/mod               record/audit : signed notes of checkpoints
github.com/miekg/dns           network : the wire format of name queries
golang.org/x/net               network : control messages of datagram sockets, which say what address was asked
gvisor.dev/gvisor              network/netstack : TCP in user space, where the kernel cannot intercept connections by itself
github.com/modelcontextprotocol/go-sdk agents/gateway test : the protocol of MCP
github.com/tailscale/hujson    agents/hooks : settings of agents with comments, edited byte by byte
software.sslmate.com/src/go-pkcs12 network : the trust store that Java reads, with the session's authority in it
github.com/goreleaser/nfpm      tools/release : packages for Debian and RPM; a module of its own
github.com/google/nftables     test : encodes the messages of the launch when their table is generated
github.com/mdlayher/netlink    test : as nftables
github.com/rhysd/actionlint    test : checks the example for GitHub in docs/ci.md
github.com/rogpeppe/go-internal/diff review : compares two texts line by line, in n log n steps
github.com/rogpeppe/go-internal test : scripts that show what a user sees
github.com/santhosh-tekuri/jsonschema test : holds what the reports are against their published schemas
`

// exceptions lists what may be larger than the budget, or otherwise unlike the
// rest, and why. A row that nothing needs any more is itself a failure.
//
//	file PATH: reason         longer than 400 lines (never than 800)
//	func PATH NAME: reason    longer than 50 lines (never than 100)
//	init PATH: reason         has a func init (tests may: it is how a test binary becomes its own helper)
const exceptions = `
init cmd/holdfast/main.go: only there the runtime promises the first thread (runtime.LockOSThread)
`

// The budgets. Lines are source lines, with comments and braces. A test
// function, and a function that names some values and returns a literal, may
// have 100 without an exception: they are tables.
const (
	fileLines, fileLinesMax = 400, 800
	funcLines, funcLinesMax = 50, 100
	fanOut                  = 12 // imports from this module a package, not counting those of its tests
)

// talkers lists the packages that may print and end the process. What runs
// inside the sandbox as a probe has no caller to return to: its output is its
// result. cli/hooks holds the hook program, which an agent executes and which has to
// be done before a tree of commands could be made. testenv executes a test binary
// once more, and passes on what it says.
const talkers = `cli cli/hooks prove/cli floor/command prove/inside testenv`

// seers lists the packages that ask unicode what cannot be seen. network reads
// paths as servers normalise them; the examiner does not share the table of what
// it examines.
const seers = `floor/text network prove/probe`
