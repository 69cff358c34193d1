//go:build linux

package exposure

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/text"
)

// rootGroups are groups whose members are root, or read what only root should.
var rootGroups = map[string]struct {
	level Level
	why   string
}{
	"root": {Medium, "files of root with a group's mode"}, "docker": {High, "containers with a mount of /"}, "podman": {High, "containers with a mount of /"},
	"lxd": {High, "machines with any disk"}, "incus": {High, "machines with any disk"}, "incus-admin": {High, "machines with any disk"}, "libvirt": {High, "machines with any disk"},
	"libvirt-qemu": {High, "disks of all machines"}, "microk8s": {High, "a cluster's administrator"}, "disk": {High, "raw disks"}, "sudo": {Medium, "root, with the password"},
	"wheel": {Medium, "root, with the password"}, "admin": {Medium, "root, with the password"}, "shadow": {High, "hashes of passwords"}, "kmem": {High, "memory of the kernel"},
	"adm": {Low, "logs of the system"}, "systemd-journal": {Low, "logs of the system"}, "kvm": {Low, "the hypervisor's device"}, "vboxusers": {Medium, "machines with raw disks"},
	"input": {High, "every key that is pressed"}, "tty": {Medium, "terminals of others"}, "video": {Low, "the screen and the camera"}, "wireshark": {Medium, "the network's traffic"},
	"staff": {Medium, "/usr/local, which is before /usr in PATH"}, "lp": {Info, "printers"}, "plugdev": {Low, "disks that are plugged in"}, "dialout": {Info, "serial lines"},
}

// rights checks the account itself: root, groups, capabilities.
func (t *taker) rights() {
	if t.UID == 0 {
		t.add(Finding{Check: "root", Level: High, What: "the account is root", Object: t.User})
	}
	for _, g := range t.Groups {
		if known, ok := rootGroups[g.Name]; ok && !(t.UID == 0 && g.ID == 0) {
			t.add(Finding{Check: "group", Level: known.level, What: "a group that is root, or nearly", Object: g.Name, Detail: []string{known.why}})
		}
	}
	if t.Effective && t.UID != 0 {
		if caps := capabilities(t.text("/proc/self/status")); len(caps) > 0 {
			t.add(Finding{Check: "capability", Level: High, What: "capabilities of the kernel", Object: strings.Join(caps, " ")})
		}
	}
}

// notableCapabilities are the capabilities that are worth naming (capabilities(7)), by number.
var notableCapabilities = map[int]string{
	0: "chown", 1: "dac_override", 2: "dac_read_search", 3: "fowner", 5: "kill", 6: "setgid", 7: "setuid", 8: "setpcap", 12: "net_admin", 13: "net_raw",
	16: "sys_module", 17: "sys_rawio", 18: "sys_chroot", 19: "sys_ptrace", 21: "sys_admin", 22: "sys_boot", 27: "mknod", 31: "setfcap", 34: "syslog", 38: "perfmon", 39: "bpf", 40: "checkpoint_restore",
}

// capabilities reads the effective ones from a status file (proc_pid_status(5)).
func capabilities(status string) []string {
	for line := range strings.Lines(status) {
		hex, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
		if err != nil {
			return nil
		}
		var out []string
		for i := range 64 {
			if set&(1<<i) == 0 {
				continue
			}
			name := notableCapabilities[i]
			if name == "" {
				name = strconv.Itoa(i)
			}
			out = append(out, name)
		}
		return out
	}
	return nil
}

// sudo looks for commands that sudo runs without a password.
func (t *taker) sudo() {
	if t.Sudo == nil || t.UID == 0 {
		return
	}
	out, err := t.Sudo(t.ctx)
	if err != nil {
		return // sudo asks for a password, or is missing
	}
	for _, rule := range sudoRules(out) {
		level := High
		if rule.password {
			continue
		}
		t.add(Finding{Check: "sudo", Level: level, What: "sudo without a password", Object: rule.commands})
	}
}

// sudoRule is one line of the list of sudo -l.
type sudoRule struct {
	password bool   // it requires one
	commands string // as sudo writes them, shortened
}

// sudoRules parses the output of sudo -n -l (sudo(8)): after a line that ends
// with a colon, one indented rule per line.
func sudoRules(list string) []sudoRule {
	var out []sudoRule
	rules := false
	for line := range strings.Lines(list) {
		line = strings.TrimRight(line, "\r\n")
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		line = strings.TrimSpace(line)
		switch {
		case !indented:
			rules = strings.Contains(line, "may run the following commands")
		case rules && strings.HasPrefix(line, "("):
			_, rest, _ := strings.Cut(line, ")")
			rest = strings.TrimSpace(rest)
			rest = text.Cut(rest, 120)
			out = append(out, sudoRule{!strings.Contains(rest, "NOPASSWD:"), strings.TrimSpace(strings.ReplaceAll(rest, "NOPASSWD:", ""))})
		}
		if len(out) == 64 {
			break
		}
	}
	return out
}

// AskSudo runs sudo -n -l, which does not prompt for a password. It returns
// sudo's output, or an error if sudo requires a password, is missing, or takes
// longer than two seconds.
func AskSudo(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for _, program := range []string{"/run/wrappers/bin/sudo", "/usr/bin/sudo", "/bin/sudo", "/usr/local/bin/sudo"} {
		cmd := exec.CommandContext(ctx, program, "-n", "-l")
		cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}
		cmd.WaitDelay = time.Second
		var out bytes.Buffer
		cmd.Stdout = &limited{b: &out, left: 64 << 10}
		err := cmd.Run()
		if cmd.Process == nil {
			continue // not installed
		}
		if err != nil {
			return "", fmt.Errorf("asking sudo: %w", err)
		}
		return out.String(), nil
	}
	return "", fmt.Errorf("asking sudo: %w", exec.ErrNotFound)
}

// limited keeps the beginning of what is written to it.
type limited struct {
	b    *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.b.Write(p[:n])
	return len(p), nil
}

// variables checks the environment.
func (t *taker) variables() {
	var plain, done []string
	inCI := Service(t.Env) != "" // a separate check covers the job's own credentials
	for _, kv := range t.Env {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains(done, name) || inCI && slices.ContainsFunc(jobTokens, func(j jobToken) bool { return j.name == name }) {
			continue
		}
		done = append(done, name)
		switch level, detail := variable(name, value); level {
		case "":
		case Info:
			plain = append(plain, name)
		default:
			t.add(Finding{Check: "variable", Level: level, What: "a variable with a secret", Object: name, Detail: detail})
		}
	}
	for _, name := range plain {
		t.add(Finding{Check: "service-variable", Level: Info, What: "a variable of a service, without a known secret", Object: name})
	}
}
