package policy

// File is one parsed policy: a profile, a file, or the flags of a command
// line. Its entries are in the order in which they were written.
type File struct {
	Name      string // path, or "profile local"
	SHA256    string // of its bytes, hex
	Extends   string // profile or file; "" for none
	ExtendsAt Origin
	Entries   []Entry
}

// Entry is one statement of a policy: one element of a list, one variable, or
// one value.
type Entry struct {
	Key        string      // dotted, as in "filesystem.read"
	Value      string      // as it was written; a name in environment.set
	Text       string      // value of the variable, in environment.set
	Amount     int64       // of a limit: bytes, a count, nanoseconds or thousandths of a core; 0 means none
	Ports      []int       // of network.publish and network.host-ports: on the host, inside
	Rule       *HostRule   // of network.allow, as it was written: Ports and Kind are empty where they follow from the rest
	Credential *Credential // of credentials, as it was written: its source is not looked up, and rules may add hosts
	Sink       *AlertSink  // of alerts.sinks, as it was written: its paths are not resolved
	Tool       *ToolRule   // of tools.deny
	Gate       *GateRule   // of ask and deny
	Notifier   *Notifier   // of approvals.notify, as it was written: its paths are not resolved
	Anchor     *Anchor     // of record.anchor, the same
	Clear      bool        // an empty list: takes away what earlier sources listed
	Origin     Origin
	Base       string // directory that a relative path counts from
	rank       int    // position of its source in the order of precedence
}
