//go:build linux

package probe

// classes are the files of rows, in the order in which they are played and reported.
var classes = []string{
	"fs.links", "fs.path-strings", "fs.deny-carveouts", "fs.procfs-sysfs-dev", "ns.mounts-namespaces", "fd.handles", "fs.races", "ipc.unix-sockets",
	"tty.terminal", "process.control", "sys.syscalls", "priv.escalation", "env.leakage-injection", "fs.credentials", "exec.git", "exec.deferred-files",
	"res.exhaustion", "host.supervisor", "fs.archives", "policy.command-parsing", "policy.argument-injection", "net.direct-egress", "net.dns",
	"net.metadata-loopback-encodings", "net.proxy-parsing", "net.permitted-channels", "gate.consent", "agent.startup-trust", "agent.mcp", "gate.review",
}
