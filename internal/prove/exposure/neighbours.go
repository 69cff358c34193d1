//go:build linux

package exposure

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// processes looks for processes whose environment this account may read; opening
// it asks the kernel (proc_pid_environ(5)).
func (t *taker) processes() {
	if !t.Effective || t.UID < 0 {
		return
	}
	n := 0
	for _, pid := range t.names("/proc") {
		if strings.Trim(pid, "0123456789") != "" || pid == strconv.Itoa(os.Getpid()) || t.ctx.Err() != nil {
			continue
		}
		if n++; n > procsMost {
			t.note("/proc: more than %d processes; the others were left out", procsMost)
			return
		}
		if uidOf(t.text("/proc/"+pid+"/status")) == t.UID {
			t.neighbour(pid)
		}
	}
}

// uidOf reads the effective user from a status file; -1 if there is none.
func uidOf(status string) int {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, "Uid:"); ok {
			if f := strings.Fields(rest); len(f) == 4 {
				if uid, err := strconv.Atoi(f[1]); err == nil {
					return uid
				}
			}
			return -1
		}
	}
	return -1
}

func (t *taker) neighbour(pid string) {
	f, err := os.Open(t.real("/proc/" + pid + "/environ"))
	if err != nil {
		return
	}
	defer f.Close()
	environ, err := io.ReadAll(io.LimitReader(f, 256<<10))
	if err != nil || len(environ) == 0 {
		return
	}
	found := Finding{Check: "environ", Level: Low, What: "a process whose environment can be read", Object: "pid " + pid + " " + t.text("/proc/"+pid+"/comm")}
	for kv := range strings.SplitSeq(string(environ), "\x00") {
		name, value, _ := strings.Cut(kv, "=")
		if level, _ := variable(name, value); level == High && len(found.Detail) < 16 {
			found.Level = High
			found.Detail = append(found.Detail, name)
		}
	}
	if found.Level == High {
		found.What = "a process with secrets in its environment"
	}
	t.add(found)
}

// knownServices are services by port, with the level of what they give without a
// password.
var knownServices = map[int]struct {
	name  string
	level Level
}{
	22: {"ssh", Info}, 25: {"mail", Info}, 53: {"names", Info}, 111: {"rpcbind", Info}, 631: {"printing", Info},
	2375: {"Docker", High}, 2376: {"Docker over TLS", Medium}, 2379: {"etcd", High}, 10250: {"kubelet", High}, 6443: {"Kubernetes", Medium}, 8001: {"kubectl proxy", High},
	3306: {"MySQL", Medium}, 5432: {"PostgreSQL", Medium}, 6379: {"Redis", High}, 11211: {"memcached", Medium}, 27017: {"MongoDB", Medium}, 9200: {"Elasticsearch", Medium},
	5984: {"CouchDB", Medium}, 8500: {"Consul", Medium}, 8200: {"Vault", Medium}, 9000: {"MinIO or a debugger", Low}, 5672: {"RabbitMQ", Low},
	9222: {"debugging of Chrome", High}, 9229: {"debugging of Node", High}, 5005: {"debugging of Java", High}, 5678: {"debugging of Python", High}, 5037: {"adb", Medium},
	8888: {"Jupyter", Medium}, 11434: {"Ollama", Low}, 3128: {"a proxy", Low}, 5900: {"VNC", Medium}, 5901: {"VNC", Medium}, 6000: {"X11", High}, 6010: {"X11, forwarded", High},
}

// listener is one line of a socket table.
type listener struct {
	port     int
	loopback bool // bound to loopback only
	uid      int
}

// listeners reads /proc/net/tcp or tcp6 (proc_pid_net(5)): what listens on
// loopback or on all addresses.
func listeners(table string) []listener {
	var out []listener
	n := 0
	for line := range strings.Lines(table) {
		if n++; n > linesMost {
			break
		}
		f := strings.Fields(line)
		if len(f) < 8 || f[3] != "0A" {
			continue
		}
		address, port, ok := strings.Cut(f[1], ":")
		number, err := strconv.ParseUint(port, 16, 16)
		uid, bad := strconv.Atoi(f[7])
		if !ok || err != nil || bad != nil {
			continue
		}
		l := listener{port: int(number), uid: uid}
		switch {
		case len(address) == 8 && strings.HasSuffix(address, "7F"), address == "00000000000000000000000001000000",
			len(address) == 32 && strings.HasPrefix(address, "0000000000000000FFFF0000") && strings.HasSuffix(address, "7F"):
			l.loopback = true
		case strings.Trim(address, "0") == "":
		default:
			continue
		}
		out = append(out, l)
	}
	return out
}

// ports lists the listening services of this machine. It does not connect to
// them.
func (t *taker) ports() {
	var done []int
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, l := range listeners(t.text(table)) {
			if slices.Contains(done, l.port) {
				continue
			}
			done = append(done, l.port)
			f := Finding{Check: "port", Level: Low, What: "a service", Object: strconv.Itoa(l.port), Detail: []string{"of user " + strconv.Itoa(l.uid)}}
			if k, ok := knownServices[l.port]; ok {
				f.Level, f.What = k.level, "a service, by its port "+k.name
			}
			if l.loopback {
				f.Detail = append(f.Detail, "on the loopback alone")
			}
			t.add(f)
		}
	}
}

// abstractNames reads the names of listening abstract sockets from
// /proc/net/unix.
func abstractNames(table string) []string {
	const listening = 0x10000 // __SO_ACCEPTCON
	var out []string
	n := 0
	for line := range strings.Lines(table) {
		if n++; n > linesMost {
			break
		}
		f := strings.Fields(line)
		if len(f) < 8 || !strings.HasPrefix(f[7], "@") {
			continue
		}
		if flags, err := strconv.ParseUint(f[3], 16, 32); err == nil && flags&listening != 0 && !slices.Contains(out, f[7]) && len(out) < matchesMost {
			out = append(out, f[7])
		}
	}
	return out
}

// abstract lists abstract sockets.
func (t *taker) abstract() {
	for _, name := range abstractNames(t.text("/proc/net/unix")) {
		f := Finding{Check: "abstract", Level: Low, What: "an abstract socket", Object: name}
		switch {
		case strings.Contains(name, ".X11-unix"):
			f.Check, f.Level, f.What = "display", High, "X11"
		case strings.Contains(name, "/dbus-"):
			f.Check, f.Level, f.What = "session-bus", High, "D-Bus"
		}
		t.add(f)
	}
}

// clouds are recognised by the firmware's identification (DMI).
var clouds = []struct{ file, part, name string }{
	{"sys_vendor", "Amazon EC2", "Amazon"}, {"bios_vendor", "Amazon EC2", "Amazon"}, {"product_name", "Google Compute Engine", "Google"},
	{"chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77", "Azure"}, {"sys_vendor", "DigitalOcean", "DigitalOcean"}, {"sys_vendor", "Hetzner", "Hetzner"},
	{"chassis_asset_tag", "OracleCloud.com", "Oracle"}, {"sys_vendor", "Alibaba Cloud", "Alibaba"}, {"product_name", "OpenStack", "OpenStack"}, {"sys_vendor", "Scaleway", "Scaleway"},
}

// metadata looks for signs of a cloud.
func (t *taker) metadata() {
	for _, c := range clouds {
		if strings.Contains(t.text("/sys/class/dmi/id/"+c.file), c.part) {
			t.add(Finding{Check: "metadata", Level: Medium, What: "a machine of " + c.name, Object: metadataAddress, Detail: []string{"its metadata service was not asked"}})
			break
		}
	}
	for _, name := range []string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "IDENTITY_ENDPOINT", "MSI_ENDPOINT"} {
		if t.env(name) != "" {
			t.add(Finding{Check: "metadata", Level: High, What: "credentials of a container, named by " + name, Object: metadataAddress})
		}
	}
}

// setting is a kernel setting that controls what programs may do to each other.
type setting struct {
	check string
	level Level
	file  string // below /proc/sys
	weak  func(n int) bool
	what  string
}

func equals(value int) func(int) bool { return func(n int) bool { return n == value } }

var settings = []setting{
	{"ptrace", Medium, "kernel/yama/ptrace_scope", equals(0), "every process of the account can be traced"},
	{"userns", Info, "user/max_user_namespaces", func(n int) bool { return n > 0 }, "user namespaces are there"},
	{"tiocsti", Medium, "dev/tty/legacy_tiocsti", equals(1), "programs type into their terminal"},
	{"kernel-log", Low, "kernel/dmesg_restrict", equals(0), "all users can read the kernel log"},
	{"kernel-log", Low, "kernel/kptr_restrict", equals(0), "addresses of the kernel are shown"},
	{"bpf", Medium, "kernel/unprivileged_bpf_disabled", equals(0), "all users can load BPF programs"},
	{"bpf", Low, "kernel/perf_event_paranoid", func(n int) bool { return n < 2 }, "all users can measure the kernel"},
	{"bpf", Low, "vm/unprivileged_userfaultfd", equals(1), "userfaultfd for all users"},
	{"sticky", Medium, "fs/protected_symlinks", equals(0), "links in shared directories are followed"},
	{"sticky", Medium, "fs/protected_hardlinks", equals(0), "hard links to files of others"},
}

// kernel checks settings that apply to all accounts.
func (t *taker) kernel() {
	for _, s := range settings {
		text := t.text("/proc/sys/" + s.file)
		n, err := strconv.Atoi(text)
		if text == "" && s.check == "ptrace" {
			n, err = 0, nil // no Yama is the same as 0
		}
		if err != nil || !s.weak(n) {
			continue
		}
		// Other kernel settings can also forbid user namespaces.
		if s.check == "userns" && (t.text("/proc/sys/kernel/unprivileged_userns_clone") == "0" || t.text("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1") {
			continue
		}
		f := Finding{Check: s.check, Level: s.level, What: s.what, Object: strings.ReplaceAll(s.file, "/", "."), Detail: []string{fmt.Sprint("it is ", text)}}
		if text == "" {
			f.Detail = []string{"Yama is not in this kernel"}
		}
		t.add(f)
	}
	for line := range strings.Lines(t.text("/proc/self/mounts")) {
		f := strings.Fields(line)
		if len(f) >= 4 && f[1] == "/proc" && !strings.Contains(f[3], "hidepid=") {
			t.add(Finding{Check: "hidepid", Level: Info, What: "command lines of all accounts are in view", Object: "/proc"})
			break
		}
	}
}
