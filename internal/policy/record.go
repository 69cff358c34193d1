package policy

import "time"

// Record is what is written down of a run.
type Record struct {
	Level  RecordLevel
	Anchor []Anchor // where the head of the log is published; empty for nowhere
	Origin Origin   // of Level
}

// RecordLevel is how much of a run is written down.
type RecordLevel string

// The levels. RecordOff is what accepting the loss of the guarantee "record"
// comes to: what the supervisor decides itself is recorded all the same.
const (
	RecordOff      RecordLevel = "off"
	RecordStandard RecordLevel = "standard" // what is executed, changed, connected or refused
	RecordFull     RecordLevel = "full"     // every open for reading too
)

// Anchor is one place where the head of the log is published, so that a log
// that was cut or written anew can be told from the one that was.
type Anchor struct {
	Kind    string // file, syslog or http
	Address string // file: absolute path, every component resolved; http: URL, with https or to loopback; syslog: ""
	Origin  Origin
}

// Alerts says where alerts go besides the record.
type Alerts struct {
	Sinks []AlertSink
	Rules []RuleSource // besides the built-in ones
}

// RuleSource is a file of rules, or a directory of such files. Nothing inside
// can change it.
type RuleSource struct {
	Path   string // absolute; every component resolved
	Origin Origin
}

// AlertSink is one place that alerts are sent to. Its files are outside of all
// that is in view, and nothing of it enters the boundary.
type AlertSink struct {
	Kind      string        // terminal, file, webhook, syslog or otlp
	Address   string        // file: absolute path; webhook, otlp: URL; syslog: "local", or a URL with udp, tcp, tls or unix; terminal: ""
	Severity  string        // the least severity that is sent: info, low, medium, high or critical
	Headers   string        // absolute path of a file with a header a line, for webhook and otlp; "" for none
	Secret    string        // absolute path of a file with the key of the signature, for webhook; "" for not signed
	Authority string        // absolute path of a PEM file with certificate authorities besides the system's; "" for none
	Timeout   time.Duration // of one attempt; 0 where none is made (terminal, file)
	Insecure  bool          // http to a host that is not loopback was asked for
	Origin    Origin
}
