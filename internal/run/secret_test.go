//go:build linux

package run

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestSecretIsNowhere lends a secret to a command and then looks for it: in the
// memory, environment and arguments of every process inside and of those that
// watch it, in every file that the command can see, in what it printed, in events
// and in errors. The server must have got it.
func TestSecretIsNowhere(t *testing.T) {
	testenv.WithNetwork(t, hosts, func(t *testing.T, n *testenv.Network) {
		secret := "ghp_" + rand.Text() + "0123456789" // not a constant, which would be in this program's file
		t.Setenv("LENT_TOKEN", secret)
		got := make(chan http.Header, 16)
		serveTLS(t, n, "93.184.215.14:443", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got <- r.Header.Clone()
			fmt.Fprintf(w, "you sent %s and %s\n", r.Header.Get("Authorization"), secret)
		}))
		task, out := browse(t, `echo "inside it is $GH_TOKEN"
			curl -sS --max-time 10 -H "Authorization: Bearer $GH_TOKEN" https://allowed.test/echo | tee answer
			curl -sS --max-time 10 "https://allowed.test/leak?q=$GH_TOKEN"
			env > environment; touch done; sleep 60`)
		task.Plan.Allow = allow(policy.HostRule{Host: "allowed.test", Ports: []int{443}, Kind: policy.TLS, Inspect: true, Credentials: []string{"github"}})
		task.Plan.Credentials = []policy.Credential{{
			Name: "github", Source: policy.CredentialSource{Kind: "env", Value: "LENT_TOKEN"}, Hosts: []policy.HostPort{{Host: "allowed.test", Port: 443}},
			Header: "Authorization", Format: "Bearer {}", Env: []string{"GH_TOKEN"}, Shape: "ghp_", TTL: time.Minute,
		}}
		task.Unset = os.Unsetenv
		task.Log = filepath.Join(t.TempDir(), "log")
		task.Plan.Record.Level = policy.RecordFull
		searched, unread := map[string]bool{}, map[string]bool{} // by name
		var searching sync.WaitGroup
		searching.Go(func() {
			sleeps := func(pid int) bool { return strings.Contains(read(pid, "comm"), "sleep") } // after all that it did
			var all []int                                                                        // the kernel's list may miss some: this one has the last, and so what is above it
			for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
				if all = descendants(os.Getpid()); slices.ContainsFunc(all, sleeps) {
					break
				}
			}
			own, _ := os.Readlink("/proc/self/exe")
			for _, pid := range all {
				if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); exe == own {
					continue // the other side of the network
				}
				name := strings.TrimSpace(read(pid, "comm"))
				if searchProcess(t, pid, secret) {
					searched[name] = true
				} else {
					unread[name] = true
				}
			}
			for _, pid := range all {
				if p, err := os.FindProcess(pid); err == nil && strings.Contains(read(pid, "cmdline"), "sleep") {
					p.Kill()
				}
			}
		})
		r, err := task.Run(t.Context())
		searching.Wait()
		if err != nil {
			t.Fatal(err)
		}
		this := strings.TrimSpace(read(os.Getpid(), "comm")) // so is the other side of the network called
		for name := range unread {                           // what is Holdfast's own lets no process of the user read its memory
			if os.Geteuid() == 0 || name != this && !strings.HasPrefix(name, "holdfast-") {
				t.Errorf("the memory of %s was not read", name)
			}
		}
		if len(searched)+len(unread) < 3 || !searched["sh"] || !searched["sleep"] {
			t.Errorf("the memory of %v was read", searched)
		}
		if h := <-got; h.Get("Authorization") != "Bearer "+secret {
			t.Errorf("the server got %q", h.Get("Authorization"))
		}
		answer, _ := os.ReadFile(filepath.Join(task.Plan.Workspace, "answer"))
		if !strings.Contains(string(answer), "you sent Bearer ****") {
			t.Errorf("the answer was %q", answer)
		}
		if !strings.Contains(out(), "inside it is ghp_") || len(r.Refused) != 1 || !r.Refused[0].High {
			t.Errorf("printed %q, refused %+v", out(), r.Refused)
		}
		info, err := audit.Find(task.Log, "")
		if err != nil {
			t.Fatal(err)
		}
		record, err := os.ReadFile(info.Path)
		if err != nil {
			t.Fatal(err)
		}
		events := string(record)
		for what, text := range map[string]string{"output": out(), "events": events, "refusals": fmt.Sprintf("%+v", r.Refused), "warnings": fmt.Sprint(r.Warnings)} {
			if strings.Contains(text, secret) {
				t.Errorf("the secret is in the %s", what)
			}
		}
		if !strings.Contains(events, "credential.use") {
			t.Errorf("no use was recorded: %s", events)
		}
		if _, left := os.LookupEnv("LENT_TOKEN"); left {
			t.Error("programs that this process starts would inherit the secret")
		}
	})
}

func serveTLS(t *testing.T, n *testenv.Network, address string, h http.Handler) {
	t.Helper()
	l, err := n.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, TLSConfig: &tls.Config{Certificates: []tls.Certificate{n.Certificate(t, "allowed.test")}}}
	go server.ServeTLS(l, "", "")
	t.Cleanup(func() { server.Close() })
}

// descendants are the processes below pid.
func descendants(pid int) []int {
	var out []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		raw, _ := os.ReadFile(list)
		for f := range strings.FieldsSeq(string(raw)) {
			if child, err := strconv.Atoi(f); err == nil {
				out = append(append(out, child), descendants(child)...)
			}
		}
	}
	return out
}

func read(pid int, name string) string {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	return string(raw)
}

// searchProcess looks for the secret in everything of a process, and returns 1 when
// its memory could be read: that of the first process inside is closed to
// ordinary users.
func searchProcess(t *testing.T, pid int, secret string) (memory bool) {
	for _, name := range []string{"environ", "cmdline", "comm", "status", "maps", "mountinfo"} {
		if strings.Contains(read(pid, name), secret) {
			t.Errorf("the secret is in %s of process %d", name, pid)
		}
	}
	root, dirs := fmt.Sprintf("/proc/%d/root", pid), []string{"/tmp", "/run", "/var/tmp", "/dev/shm", "/etc", "/home"}
	if its, err := os.Stat(root + "/"); err == nil {
		if ours, err := os.Stat("/"); err == nil && os.SameFile(its, ours) {
			dirs = []string{t.TempDir() + "/..", "/run"} // it watches from outside: whatever lies about on this machine is no business of the command's
		}
	}
	for _, dir := range dirs {
		filepath.WalkDir(root+dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(secret)) {
					t.Errorf("the secret is in %s", path)
				}
			}
			return nil
		})
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return false
	}
	defer mem.Close()
	for line := range strings.Lines(read(pid, "maps")) {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n != 3 || mode[0] != 'r' || to-from > 64<<20 {
			continue
		}
		buf := make([]byte, to-from)
		k, _ := io.ReadFull(io.NewSectionReader(mem, from, to-from), buf)
		memory = memory || k > 0
		if bytes.Contains(buf[:k], []byte(secret)) {
			t.Errorf("the secret is in the memory of process %d (%s)", pid, strings.TrimSpace(read(pid, "comm")))
		}
	}
	return memory
}
