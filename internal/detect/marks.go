package detect

import (
	"iter"
	mathbits "math/bits"
	"strings"
	"sync"

	"holdfast.dev/holdfast/internal/floor/event"
)

// mark is a set of words about the subject of an event. Rules use them instead
// of spelling out paths and hosts.
type mark uint64

// trait is a set of words about the program that asked: its purpose, and how it
// was called.
type trait uint64

// What a path is.
const (
	credential     mark = 1 << iota // where programs keep credentials
	usual                           // of these, what clients look for by themselves
	key                             // a private key
	secretFile                      // .env and its kind, in a workspace
	browserStore                    // cookies and passwords of a browser
	agentStore                      // where an agent keeps its own login
	otherHome                       // below the home directory of another user
	systemSecret                    // password hashes and keys of the machine
	hook                            // hooks and configuration of git
	editor                          // tasks and settings of editors
	guardrail                       // settings and instructions of agents
	pipeline                        // what a build service executes
	startup                         // what a login, a timer or an interpreter executes
	history                         // of shells
	traversal                       // climbs over several directories
	encoded                         // climbs, spelt so that a check misses it
	alias                           // a way around names: /proc/self/root, /dev/fd
	otherProcess                    // secrets of a process in /proc
	processMemory                   // memory of a process in /proc
	kernelCallback                  // what the kernel executes outside
	hostSocket                      // a socket that a service of the host listens on
	runtimeSocket                   // of these, a container runtime
	agentSocket                     // of these, an agent that holds keys
	ownLog                          // records and state of Holdfast
	ownPolicy                       // policy of Holdfast
	systemLog                       // /var/log
	memoryFile                      // a file without a place on disk
	loader                          // the dynamic loader
	generated                       // what builds and caches make and remove
	dependency                      // installed packages
	temporary                       // directories that everybody uses
	repository                      // what makes the workspace's .git a repository
	descriptor                      // an open file by its number
	sibling                         // in another project beside the workspace
	accounts                        // the users of the machine, and how names are resolved
	programDir                      // of a change: in a directory of programs
	astray                          // goes through a link out of the workspace; of a change, also by climbing
	personal                        // of a change: below the home by a full name, where a user keeps files

	metadata  // where a cloud gives out credentials
	cluster   // the interface of a cluster
	loopback  // this machine, its local sockets too
	private   // an address of a private network
	literal   // an address instead of a name
	tunnel    // a service that forwards connections
	drop      // a service that accepts data from anyone
	resolver  // name service over HTTPS or TLS
	longLabel // a name with a label that looks like encoded data
)

// What a program is for, and how it was called.
const (
	shell trait = 1 << iota
	interpreter
	fetcher
	archiver
	encoder
	packager
	client // reads credentials at their usual places, because that is its purpose
	browser
	debugger
	container // makes namespaces
	vault     // prints credentials
	issuer    // prints credentials too, among much else
	killer
	miner
	inlineCode   // code as an argument
	networkShell // a shell whose input is a connection
	piped        // a download that is executed as it arrives
	unguarded    // an agent started so that it asks for no permission
	installs     // a package manager that installs packages
	inInstall    // below one that does
	listed       // below ldd, which lists what a program loads
	supervisor   // names Holdfast in its arguments
	replaceable  // lies where programs inside can write, so one of them may have named it
	inMemory     // has no place on disk
	agent        // an agent's program, started by the user and not by anything that an agent started
	underAgent   // below an agent, and not one itself: what it does may be what a model asked for
	elevates     // runs commands as another user: sudo, su
	preloads     // loads a library, which the caller may have made, into other programs
	dumpsEnvironment
	sendsEnvironment // dumps the environment into a program that encodes or sends it
	seeksKeys        // searches for keys or passwords outside the workspace
	seeksPrivileged  // searches for programs that run as another user
	administers      // administers the machine: its services, accounts, modules, logs
	offensive        // a tool that attackers use: scanners, crackers, tunnels
	decoded          // encoded code is executed as it is decoded
	pools            // given the protocol by which miners get their work
	shreds           // destroys the content of files
)

// markNames are the words for marks, in the order of the bits.
var markNames = [...]string{
	"credential", "usual", "key", "secret-file", "browser-store", "agent-store", "other-home", "system-secret", "hook", "editor", "guardrail",
	"pipeline", "startup", "history", "traversal", "encoded", "alias", "other-process", "process-memory", "kernel-callback",
	"host-socket", "runtime-socket", "agent-socket", "own-log", "own-policy", "system-log", "memory-file", "loader", "generated",
	"dependency", "temporary", "repository", "descriptor", "sibling", "accounts", "program-directory", "astray", "personal",
	"metadata", "cluster", "loopback", "private", "literal", "tunnel", "drop", "resolver", "long-label",
}

// traitNames are the words for traits, in the order of the bits. A program that
// is not on disk has the word of such a file.
var traitNames = [...]string{
	"shell", "interpreter", "fetcher", "archiver", "encoder", "packager", "client", "browser", "debugger", "container", "vault", "issuer",
	"killer", "miner", "inline-code", "network-shell", "piped", "unguarded", "installs", "in-install", "listed", "supervisor",
	"replaceable", "memory-file", "agent", "told", "elevates", "preloads", "dumps-environment",
	"sends-environment", "seeks-keys", "seeks-privileged", "administers", "offensive", "decoded", "pools", "shreds",
}

// toPrefix precedes a mark of the second path of an event.
const toPrefix = "to:"

// markOf is the set that a word of a rule means; 0 for none.
func markOf(word string) mark { return markWords()[word] }

var markWords = sync.OnceValue(func() map[string]mark { return bits[mark](markNames[:]) })

// traitOf is the set of traits that a word of a rule means; 0 for none.
func traitOf(word string) trait { return traitWords()[word] }

var traitWords = sync.OnceValue(func() map[string]trait { return bits[trait](traitNames[:]) })

// bits gives each word the bit of its index.
func bits[S ~uint64](words []string) map[string]S {
	m := make(map[string]S, len(words))
	for i, w := range words {
		m[w] = 1 << i
	}
	return m
}

func (m mark) names(into []string, prefix string) []string {
	return namesOf(uint64(m), markNames[:], into, prefix)
}

func (t trait) names(into []string) []string { return namesOf(uint64(t), traitNames[:], into, "") }

func namesOf(set uint64, words, into []string, prefix string) []string {
	for ; set != 0; set &= set - 1 {
		into = append(into, prefix+words[mathbits.TrailingZeros64(set)])
	}
	return into
}

// Marks returns the words that rules can use about an event alone: those of its
// object and, after "to:", of its second path. What is known of the program
// that asked comes from earlier events, and only an Engine has it.
func (p Place) Marks(e event.Event) []string {
	object, to := p.marks(&e)
	words := to.names(object.names(nil, ""), toPrefix)
	if e.Action == event.ProcExec {
		words = p.program(&e.Process, e.Object).names(words)
	}
	return p.keptWords(&e, words)
}

// Common reports whether an event's object has no marks, except those of places
// where everybody keeps what is of no use to others: installed packages, build
// output, temporary files.
func (p Place) Common(e event.Event) bool {
	object, to := p.marks(&e)
	return (object|to)&^(temporary|dependency|generated) == 0
}

// marks classifies the object of e, and its second path. It does not allocate.
func (p *Place) marks(e *event.Event) (object, to mark) {
	switch kindOf(e.Action) {
	case aboutPath:
		object = p.path(e.Object)
		if e.Resolved != "" && e.Resolved != e.Object {
			object |= p.path(e.Resolved)
		}
		if e.Detail != nil {
			if s := e.Detail["to"]; s != "" {
				to = p.path(s)
			}
			if s := e.Detail["to_resolved"]; s != "" {
				to |= p.path(s)
			}
			atHome, toHome := p.keptMarks(e)
			object, to = object|atHome, to|toHome
		}
		if changes(e.Action) {
			object |= p.changeMarks(e.Object, e.Resolved)
			if e.Action == event.FileRename { // the second path of a link is the one that is read
				to |= p.changeMarks(e.Detail["to"], e.Detail["to_resolved"])
			}
		} else {
			object |= p.lookupMarks(e.Object, e.Resolved)
		}
	case aboutHost:
		if rest, ok := strings.CutPrefix(e.Object, "unix:"); ok {
			object = p.path(strings.TrimPrefix(rest, "@")) | loopback
			if e.Resolved != "" {
				object |= p.path(strings.TrimPrefix(e.Resolved, "unix:"))
			}
			break
		}
		object = hostMarks(e.Object)
	}
	return object, to
}

const (
	aboutNothing = iota
	aboutPath
	aboutHost
)

func kindOf(action string) int {
	switch {
	case strings.HasPrefix(action, "file."), action == event.ProcExec, action == event.HoneyRead:
		return aboutPath
	case strings.HasPrefix(action, "net."), strings.HasPrefix(action, "sock."), strings.HasPrefix(action, "credential."), action == event.HoneySent:
		return aboutHost
	}
	return aboutNothing
}

// pattern is a sequence of names in a path.
type pattern struct {
	before []string // names above the one that is its key, the nearest first
	rooted bool     // nothing is above
	last   bool     // nothing is below
	is     mark
}

// names are the patterns by their lowest name. The lengths of names are kept by their
// first and by their last byte: that alone rules out most names of ordinary paths.
type names struct {
	patterns    map[string][]pattern
	first, last [256]uint64
}

// may reports whether a name can be among them.
func (n *names) may(name string) bool {
	return n.first[name[0]]&n.last[name[len(name)-1]]&(1<<min(len(name), 63)) != 0
}

// pathNames is made at the first event, not at the start of every command.
var pathNames = sync.OnceValue(func() *names {
	n := &names{patterns: map[string][]pattern{}}
	for words, paths := range tableRows(pathTable) {
		var is mark
		for w := range strings.SplitSeq(words, "+") {
			is |= markOf(w)
		}
		for _, p := range paths {
			n.add(strings.ReplaceAll(p, "␣", " "), is)
		}
	}
	return n
})

// tableRows yields the lines of a table: a first word, and those after it.
func tableRows(text string) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for line := range strings.Lines(text) {
			if words := strings.Fields(line); len(words) > 1 && !yield(words[0], words[1:]) {
				return
			}
		}
	}
}

func (n *names) add(text string, is mark) {
	p := pattern{is: is}
	text, p.last = strings.CutSuffix(text, "$")
	text, p.rooted = strings.CutPrefix(text, "/")
	parts := strings.Split(text, "/")
	low := parts[len(parts)-1]
	for i := len(parts) - 2; i >= 0; i-- {
		p.before = append(p.before, parts[i])
	}
	n.patterns[low] = append(n.patterns[low], p)
	n.first[low[0]] |= 1 << min(len(low), 63)
	n.last[low[len(low)-1]] |= 1 << min(len(low), 63)
}
