package exposure

// The classes, in the order of a report.
const (
	credentials = "credentials"
	variables   = "environment"
	sockets     = "sockets"
	powers      = "rights"
	planting    = "places to plant"
	neighbours  = "neighbours"
	services    = "services"
	kernel      = "kernel"
	ci          = "continuous integration"
)

// Classes are all classes, in the order of a report.
var Classes = []string{credentials, variables, sockets, powers, planting, neighbours, services, kernel, ci}

const (
	noGroups = "what it opens (sockets, devices, logs) is not in view, and no new rights can be had"
	ownProc  = "inside there is a /proc of its own, in which only the run's processes are"
)

// others are the checks that are not about a single file.
var others = []Check{
	{ID: "dotenv", Class: credentials, Title: "secrets in the workspace", Why: "an agent reads the whole workspace, and what it read goes to the model", Do: "keep them outside the workspace; workspace.hide takes more names"},
	{ID: "system-secret", Class: credentials, Title: "secrets of the system", Why: "hashes of passwords, host keys: they give away another account, or this machine's identity", Do: "restore the modes that the system came with (0640 root:shadow, 0600)"},
	{ID: "git-helper", Class: credentials, Title: "credential helpers of git", Via: ByReading, Why: "git asks them without asking you, so every program of yours can", Do: "a helper that keeps nothing (cache with a short timeout), or credentials of the policy"},
	{ID: "git-url", Class: credentials, Title: "secrets in git configurations", Why: "every program in the checkout can read them", Do: "git remote set-url without the password; persist-credentials: false for actions/checkout"},
	{ID: "variable", Class: variables, Title: "variables with secrets", Via: ByVariable, Why: "every process that is started inherits them, and prints them when asked", Do: "start the agent from a shell without them, or " + useBroker},
	{ID: "service-variable", Class: variables, Title: "variables of services", Via: ByVariable, Why: "they say which accounts and machines are yours", Do: "nothing where none of them is a secret"},
	{ID: "docker-socket", Class: sockets, Title: "sockets of container engines", Via: BySocket, Why: "whoever can start a container with a mount of / is root", Do: "a rootless engine in an account of its own"},
	{ID: "vm-socket", Class: sockets, Title: "sockets of libvirt, LXD and Incus", Via: BySocket, Why: "whoever can start a machine with any disk is root", Do: "take the account out of the group"},
	{ID: "system-socket", Class: sockets, Title: "sockets of system services", Via: BySocket, Why: "the service acts with rights that the account lacks", Do: "restrict it in the service's own configuration"},
	{ID: "ssh-agent", Class: sockets, Title: "ssh agents", Via: BySocket, Why: "keys cannot be copied out, but be used: to log in, to push, to sign", Do: "ssh-add -c, so that each use is asked about; no agent forwarding"},
	{ID: "gpg-agent", Class: sockets, Title: "gpg agents", Via: BySocket, Why: "it signs and decrypts while a passphrase is cached", Do: "default-cache-ttl 0 in gpg-agent.conf"},
	{ID: "keyring-socket", Class: sockets, Title: "sockets of keyrings", Via: BySocket, Why: "an open keyring gives out passwords", Do: "lock it when it is not in use"},
	{ID: "display", Class: sockets, Title: "X11 and Wayland", Via: BySocket, Why: "on X11 every client reads every key and types into every window", Do: "use Wayland; xhost -; no X11 forwarding"},
	{ID: "session-bus", Class: sockets, Title: "D-Bus session and systemd of the user", Via: BySocket, Why: "systemd-run --user starts a program outside of whatever the agent is in", Do: "an account of its own for agents"},
	{ID: "system-bus", Class: sockets, Title: "D-Bus system bus", Via: BySocket, Why: "services of the system answer there, polkit decides which", Do: "nothing: every account has it"},
	{ID: "multiplexer", Class: sockets, Title: "tmux, screen and editor sockets", Via: BySocket, Why: "keys sent there are typed by you, outside", Do: "no tmux server in the account that agents run in"},
	{ID: "ide", Class: sockets, Title: "sockets of VS Code and other editors", Via: BySocket, Why: "the editor opens files and runs commands, outside", Do: "start agents outside of the editor's terminal"},
	{ID: "sound", Class: sockets, Title: "sound and camera", Via: BySocket, Why: "it listens to the microphone", Do: "an account of its own for agents"},
	{ID: "abstract", Class: sockets, Title: "abstract sockets", Via: BySocket, Why: "they have no mode: every process in the network namespace can connect", Do: "see who listens: ss -xlp"},
	{ID: "root", Class: powers, Title: "it is root", Via: ByKernel, Inside: "the run has a user id of its own, and no capability over the host", Why: "nothing on this machine is out of reach", Do: "run agents from an ordinary account"},
	{ID: "group", Class: powers, Title: "groups that are root, or nearly", Via: ByKernel, Inside: noGroups, Why: "docker, lxd, disk, kvm and the like give root without a password", Do: "gpasswd -d USER GROUP"},
	{ID: "sudo", Class: powers, Title: "sudo without a password", Via: ByKernel, Inside: "no_new_privs: sudo gains nothing", Why: "root, for every program that asks", Do: "ask for a password: remove NOPASSWD from sudoers"},
	{ID: "capability", Class: powers, Title: "capabilities", Via: ByKernel, Inside: "all capabilities over the host are dropped", Why: "each is a part of root's rights", Do: "start agents from a shell without them: setpriv --inh-caps=-all --ambient-caps=-all"},
	{ID: "path", Class: planting, Title: "directories of PATH that can be written", Via: ByWriting, Why: "a program put there is started by you, later, by the name of another", Do: "put them last in PATH, or make them read-only"},
	{ID: "path-relative", Class: planting, Title: "relative entries of PATH", Via: ByKernel, Inside: "relative entries are left out of PATH inside", Why: "a program of the workspace takes the place of another", Do: "write absolute directories only"},
	{ID: "startup", Class: planting, Title: "files that the account obeys later", Via: ByWriting, Why: "what is written there is executed at the next login, or by the next program", Do: "nothing outside Holdfast helps much: they are yours to write"},
	{ID: "environ", Class: neighbours, Title: "environments of other processes", Via: ByKernel, Inside: ownProc, Why: "variables of your other programs are in /proc, their secrets too", Do: "an account of its own for agents"},
	{ID: "port", Class: services, Title: "services that listen for this machine", Via: ByPort, Why: "loopback is taken for trusted: databases and debuggers often ask for no password", Do: "give them a password, or a socket with a mode"},
	{ID: "metadata", Class: services, Title: "metadata service of a cloud", Via: ByMetadata, Why: "it hands out the credentials of the machine to whoever asks", Do: "IMDSv2 with a hop limit of 1, and a role with few rights"},
	{ID: "ptrace", Class: kernel, Title: "tracing other processes", Via: ByKernel, Inside: ownProc + "; ptrace is refused", Why: "an agent attaches to your shell or your ssh, and takes its keys", Do: "sysctl kernel.yama.ptrace_scope=1"},
	{ID: "userns", Class: kernel, Title: "user namespaces for all users", Via: ByKernel, Inside: "new namespaces are refused inside", Why: "they expose much kernel code to all users; sandboxes, Holdfast too, are built on them", Do: "keep the kernel up to date"},
	{ID: "tiocsti", Class: kernel, Title: "typing into terminals (TIOCSTI)", Via: ByKernel, Inside: "TIOCSTI is refused, and the run has a terminal of its own", Why: "a program types commands that your shell executes when it ends", Do: "sysctl dev.tty.legacy_tiocsti=0"},
	{ID: "kernel-log", Class: kernel, Title: "kernel log and addresses", Via: ByKernel, Inside: "the kernel log is refused", Why: "addresses in it help exploits", Do: "sysctl kernel.dmesg_restrict=1 kernel.kptr_restrict=1"},
	{ID: "bpf", Class: kernel, Title: "bpf, perf and userfaultfd for all users", Via: ByKernel, Inside: "these calls are refused", Why: "each has had flaws that gave root", Do: "sysctl kernel.unprivileged_bpf_disabled=2 kernel.perf_event_paranoid=3 vm.unprivileged_userfaultfd=0"},
	{ID: "sticky", Class: kernel, Title: "links in shared directories", Via: ByKernel, Inside: "/tmp inside is a private one", Why: "a planted link leads a program of another account elsewhere", Do: "sysctl fs.protected_symlinks=1 fs.protected_hardlinks=1"},
	{ID: "hidepid", Class: neighbours, Title: "command lines of all processes", Via: ByKernel, Inside: ownProc, Why: "command lines sometimes contain passwords", Do: "mount /proc with hidepid=invisible"},
	{ID: "ci-token", Class: ci, Title: "token of the job", Via: ByVariable, Why: "it writes to the repository, its packages and its releases", Do: "permissions: {} for the job, and the least for each step"},
	{ID: "ci-oidc", Class: ci, Title: "identity of the job (OIDC)", Via: ByVariable, Why: "it is exchanged for credentials of your clouds", Do: "id-token: write only in the job that deploys, without an agent"},
	{ID: "ci-files", Class: ci, Title: "files that later steps obey", Via: ByWriting, Why: "what is written there sets variables and PATH of the next steps, which have secrets", Do: "run the agent in a job of its own"},
	{ID: "ci-secrets", Class: ci, Title: "secrets of the project in every job", Via: ByVariable, Why: "jobs get them as variables whether or not they need them", Do: "protected variables and environments; no secrets in jobs with agents"},
	{ID: "ci-worker", Class: ci, Title: "process of the runner", Via: ByKernel, Inside: ownProc, Why: "its memory holds all secrets of the job, even those that no step was given", Do: "a job of its own for the agent, without secrets"},
}

// Checks lists all checks in the order of a report. It returns a new slice each
// time.
func Checks() []Check {
	var out []Check
	for _, class := range Classes {
		if class == credentials {
			for _, s := range stores {
				out = append(out, Check{ID: s.id, Class: credentials, Title: s.title, Why: s.why, Do: s.do})
			}
		}
		for _, c := range others {
			if c.Class == class {
				out = append(out, c)
			}
		}
	}
	return out
}
