package event

import "context"

// Kind is what an Attempt is about.
type Kind string

// The kinds of attempts.
const (
	KindExec       Kind = "exec"       // a program is executed
	KindFile       Kind = "file"       // something in the file system is changed, outside of what the boundary lets be written
	KindConnect    Kind = "connect"    // a connection is opened
	KindRequest    Kind = "request"    // a request is made on a connection whose requests are seen
	KindCredential Kind = "credential" // a credential is used
	KindTool       Kind = "tool"       // an agent calls a tool
)

// Attempt is something that is about to happen and has not happened yet, as far
// as the sensor that sees it knows of it. Strings are bytes as they came.
type Attempt struct {
	Kind    Kind
	Process Process // the process that asks; of an exec, what would be executed: executable, its hash, argv, working directory

	// Of an exec.
	ParentExecutable string // of the process that asks
	Path             string // as it was asked for; of a file, as it was found
	Script           string // that the executable would interpret; "" for none
	ScriptSHA256     string
	Between          []string // scripts that interpret Script, where its interpreter is one: the first of them, then its own
	Command          bool     // it is the command of the run, by which it begins
	Interpreted      []string // of a Script: what the kernel puts between the executable and the arguments of Argv: what its first line has besides the executable, and it itself

	// Variables of an exec that are not as the command of the run was given them,
	// sorted: NAME=VALUE, or NAME alone where it is not set any more. What shells
	// change with each command (PWD, SHLVL and the like) is not among them.
	Environment        []string
	EnvironmentUnknown bool // not all of them are known

	// Of a file, in addition to Path.
	Operation string // write, create, mkdir, unlink, rename, link, symlink, chmod, chown, truncate, mknod or xattr
	To        string // the other path of a rename or a link

	// Of a connection, a request and a credential.
	Host     string
	Port     int
	Protocol string // tls, http or tcp
	Method   string // of a request
	URLPath  string // of a request, without the query
	Known    bool   // a rule of the policy allows the destination
	Name     string // of the credential

	// Of a tool.
	Agent, Tool, Server string
	Arguments           string // JSON

	// Argv of an exec, long texts of Arguments, or the process of a connection or a
	// request, are not all there: a condition on them counts as met.
	Cut bool
}

// Ruling is a Gate's decision on an Attempt. The zero value neither holds an attempt
// nor lets it continue: only Allowed does that.
type Ruling struct {
	Verdict Verdict // Allowed, Denied, or Unknown: a human must decide, and Wait returns the decision
	Granted bool    // Allowed because of a human's answer, and not because no rule is about it
	Rule    string  // that decided or asks, as file:line
	Reason  string  // in words, for the program that is refused

	// Unlisted is the file of an execution that the policy's list of programs does
	// not have, whatever the verdict; "" for none.
	Unlisted string

	// Over is closed when the answer that allowed it is no longer valid: its time is
	// over, or it was withdrawn. What was opened on it ends then. nil if it was allowed
	// for what it is, and not for a time.
	Over <-chan struct{}

	// Wait returns the ruling once there is one; it is Denied if ctx ends first. Wait
	// is not nil exactly if Verdict is Unknown, and must be called once.
	Wait func(ctx context.Context) Ruling
}

// Gate decides about attempts by the policy's rules of consent.
type Gate interface {
	// Judge returns at once. An attempt that no rule is about is Allowed, which
	// means that the boundary decides as it would without the gate.
	Judge(Attempt) Ruling
}
