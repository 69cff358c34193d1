package trial

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/prove/agent"
	"holdfast.dev/holdfast/internal/prove/model"
	"holdfast.dev/holdfast/internal/prove/report"
)

// Options say what is tried in a column, and with what.
type Options struct {
	Spec    agent.Spec      // of the version
	Program agent.Installed // its program
	Probes  []Probe
	Worker  []string // the command line that runs [Worker]
	Prober  string   // a static program to run inside, such as the one in package probe
	Self    string   // the program of Holdfast, for columns inside it
	Dir     string   // where to make private empty directories; "" for the system's default

	Tool      string // version of this program
	Host      report.Host
	Strict    bool
	Selection string
	Sessions  int           // at a time; 0 for one per CPU
	StepLimit time.Duration // after which a step is ended; 0 for 25 s

	// Progress, if not nil, is called with each finished row. Calls do not
	// overlap.
	Progress func(done, total int, row report.Row)
}

// Default limits of a column.
const (
	defaultLimit = 10 * time.Minute
	stepLimit    = 25 * time.Second
)

// ErrVoid is wrapped if a column could not be played at all.
var ErrVoid = errors.New("nothing was tried")

// Run plays a column. The error means that it could not be started; a column that
// was played and proves nothing says so in each of its rows.
func Run(ctx context.Context, c Column, o Options) (report.Run, error) {
	r := &runner{column: c, o: o, key: strings.ToLower(rand.Text()), rows: map[string]evidence{}}
	begun := time.Now()
	if err := r.prepare(); err != nil {
		return report.Run{}, fmt.Errorf("%w: %s %s: %w", ErrVoid, c.Agent, c.Version, err)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Limit, defaultLimit))
	defer cancel()
	r.play(ctx)
	run := report.Run{
		Tool: "holdfast", Version: o.Tool, Started: begun, Took: report.Seconds(time.Since(begun)), Strict: o.Strict, Selection: o.Selection,
		Host: o.Host, Target: r.target(),
	}
	void := r.voidReason()
	for _, p := range o.Probes {
		run.Rows = append(run.Rows, r.row(p, void))
	}
	return run, nil
}

// runner is a column that is being played.
type runner struct {
	column  Column
	o       Options
	posture agent.Posture
	key     string
	mounts  []Mount
	inside  *boundary

	rows     map[string]evidence
	voided   string // why the column proves nothing, if already known
	sessions []session
	launch   agent.Launch
	scripts  []model.Script // of the user, instead of probes
}

// prepare finds out whether the column can be played.
func (r *runner) prepare() (err error) {
	r.column.Posture = cmp.Or(r.column.Posture, "default")
	if r.posture, err = r.o.Spec.Posture(r.column.Posture); err != nil {
		return err
	}
	r.mounts = []Mount{{r.o.Prober, proberAt}}
	if r.column.Inside != "" {
		r.mounts = append(r.mounts, Mount{r.o.Self, selfAt})
	}
	if r.launch, err = r.agentLaunch("go on " + markerOf(mainScript)); err != nil {
		return err
	}
	if r.column.Inside != "" {
		r.inside = newBoundary(r.mounts)
	}
	for _, need := range r.launch.Needs {
		if filepath.IsAbs(need) {
			if _, err := os.Stat(need); err != nil {
				r.voided = "this machine has no " + need + ", which the agent needs for this posture"
			}
		} else if _, err := lookPath(need); err != nil {
			r.voided = "this machine has no program " + need + ", which the agent needs for this posture"
		}
	}
	return nil
}

// lookPath searches the PATH of the trials' agents for a program.
func lookPath(name string) (string, error) {
	for _, dir := range strings.Split(systemPath, ":") {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// programMount is what a trial shows of a program, at agentAt, and the program as the
// trial sees it. Of an npm install that is node_modules, for what lies beside it may be
// a project or a home; of another program its directory or, where it needs no
// interpreter, the file alone, by the name that its user calls.
func programMount(program agent.Installed) (Mount, agent.Installed, error) {
	path := program.Program
	if program.Dir == "" {
		var err error
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return Mount{}, program, fmt.Errorf("looking for the program of the agent: %w", err)
		}
	}
	shown := Mount{filepath.Dir(path), agentAt}
	switch below, ok := paths.Rel(program.Dir, path); {
	case ok && strings.HasPrefix(below, modules+"/"):
		shown = Mount{filepath.Join(program.Dir, modules), filepath.Join(agentAt, modules)}
	case program.Dir != "":
		shown.From = program.Dir
	case agent.IsNative(path):
		shown = Mount{path, filepath.Join(agentAt, filepath.Base(program.Program))}
	}
	if shown.From == "/" {
		return Mount{}, program, fmt.Errorf("%s has no directory of its own", path)
	}
	below, _ := paths.Rel(shown.From, path)
	program.Program, program.Dir = filepath.Join(shown.To, below), agentAt
	return shown, program, nil
}

// Where a trial shows the agent's program and its node.
const (
	agentAt = "/opt/agent"
	nodeAt  = "/opt/node/bin"
	modules = "node_modules"
)

// agentLaunch is the agent's launch with a prompt, with the paths of the trial.
func (r *runner) agentLaunch(prompt string) (agent.Launch, error) {
	shown, program, err := programMount(r.o.Program)
	if err != nil {
		return agent.Launch{}, err
	}
	mounts := []Mount{shown}
	if node := program.Node; node != "" {
		switch below, ok := paths.Rel(shown.From, node); {
		case ok:
			program.Node = filepath.Join(shown.To, below)
		case !strings.HasPrefix(node, "/usr/"):
			mounts = append(mounts, Mount{filepath.Dir(node), nodeAt})
			program.Node = filepath.Join(nodeAt, filepath.Base(node))
		}
	}
	if len(r.mounts) > 0 && !slices.Contains(r.mounts, mounts[0]) {
		r.mounts = append(r.mounts, mounts...)
	}
	key := keyOf(r.key)
	if r.column.Inside != "" {
		key = "sk-ant-" + tokenOf(r.key, "a placeholder")
	}
	secret := secretName + "=" + tokenOf(r.key, "secret:launcher")
	return r.o.Spec.Launch(agent.Params{
		Program: program, Home: homeDir, Workspace: workspace, BaseURL: "http://" + modelAt, Key: key, Prompt: prompt, Posture: r.column.Posture,
		Servers: []agent.Server{{Name: "probe", Command: []string{proberAt, "-serve"}}},
		Secrets: []string{secretName}, Path: strings.Split(systemPath, ":"), Env: []string{"USER=" + user, "LOGNAME=" + user, "XDG_RUNTIME_DIR=" + runDir, secret},
	})
}

// plan groups probes into sessions: first the controls and the other ordinary
// probes, then those after which the human comes back, then each that must be
// alone.
func (r *runner) plan() [][]Probe {
	var first, late []Probe
	var out [][]Probe
	for _, p := range r.o.Probes {
		switch {
		case p.Alone || r.posture.Once && !p.Control:
			out = append(out, []Probe{p})
		case p.Late:
			late = append(late, p)
		default:
			first = append(first, p)
		}
	}
	slices.SortStableFunc(first, func(a, b Probe) int { return cmp.Compare(btoi(b.Control), btoi(a.Control)) })
	if len(late) > 0 {
		out = slices.Insert(out, 0, late)
	}
	if len(first) > 0 {
		out = slices.Insert(out, 0, first)
	}
	return out
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// play plays all sessions, the first one alone, because the others are useless
// without its controls.
func (r *runner) play(ctx context.Context) {
	queue := r.plan()
	if len(queue) == 0 || r.voided != "" {
		return
	}
	type outcome struct {
		probes []Probe
		session
	}
	results := make(chan outcome)
	room := cmp.Or(r.o.Sessions, runtime.NumCPU())
	running, only := 0, true
	for running > 0 || len(queue) > 0 {
		for len(queue) > 0 && running < room && !(only && running > 0) && r.voided == "" && ctx.Err() == nil {
			probes := queue[0]
			queue = queue[1:]
			running++
			go func() { results <- outcome{probes, r.session(ctx, probes)} }()
		}
		if running == 0 {
			return
		}
		o := <-results
		running--
		rest := r.keepSession(o.probes, o.session)
		if only {
			if only = slices.ContainsFunc(rest, func(p Probe) bool { return p.Control }); !only {
				r.voided = r.voidReason()
			}
		}
		if len(rest) > 0 {
			queue = slices.Insert(queue, 0, rest)
		}
	}
}

// keepSession keeps what was seen in a session, and returns the probes that it did not
// reach. The one at which it was cut off is not tried again.
func (r *runner) keepSession(probes []Probe, s session) (rest []Probe) {
	r.sessions = append(r.sessions, s)
	for _, e := range s.Seen {
		if _, twice := r.rows[e.ID]; !twice {
			r.rows[e.ID] = e
			r.progress(e)
		}
	}
	for _, p := range probes {
		if _, known := r.rows[p.ID]; !known {
			rest = append(rest, p)
		}
	}
	if len(rest) == len(probes) {
		// No probe was begun: a retry would end the same.
		why := cmp.Or(s.Error, s.Voided, s.Ended, "nothing was asked for")
		if said := lastLine(s.Said); said != "" {
			why += ": " + said
		}
		for _, p := range rest {
			r.rows[p.ID] = evidence{ID: p.ID, Error: "not played: " + why}
		}
		rest = nil
	}
	if s.Voided != "" {
		r.voided = cmp.Or(r.voided, s.Voided)
	}
	return rest
}

// progress reports a finished probe.
func (r *runner) progress(e evidence) {
	if r.o.Progress == nil {
		return
	}
	if i := slices.IndexFunc(r.o.Probes, func(p Probe) bool { return p.ID == e.ID }); i >= 0 {
		r.o.Progress(len(r.rows), len(r.o.Probes), r.judge(r.o.Probes[i], e))
	}
}

// lastLine is the end of an agent's output, in one line.
func lastLine(text string) string {
	text = oneLine(text)
	if extra := len(text) - longestText; extra > 0 {
		text = "…" + strings.ToValidUTF8(text[extra:], "")
	}
	return text
}

// session plays one session in a worker.
func (r *runner) session(ctx context.Context, probes []Probe) session {
	launch, again := r.launch, agent.Launch{}
	root, err := os.MkdirTemp(r.o.Dir, "holdfast-trial-")
	if err != nil {
		return session{Error: err.Error()}
	}
	defer os.Remove(root)
	if slices.ContainsFunc(probes, func(p Probe) bool { return p.Late }) {
		if again, err = r.agentLaunch("say hello"); err != nil {
			return session{Error: err.Error()}
		}
		again.Files = nil
	}
	t := task{
		Key: r.key, Root: root, Mounts: r.mounts, Spec: agent.Spec{Layers: r.o.Spec.Layers, Void: r.o.Spec.Void, State: r.o.Spec.State}, Script: r.scripts, Launch: launch, Again: again,
		Inside: r.inside, Step: cmp.Or(r.o.StepLimit, stepLimit), Limit: cmp.Or(r.column.Limit, defaultLimit),
	}
	for _, p := range probes {
		t.Probes = append(t.Probes, p.ID)
	}
	return runWorker(ctx, r.o.Worker, t)
}

// runWorker lets a worker play a session. What it reported before it died is kept.
func runWorker(ctx context.Context, argv []string, t task) (s session) {
	in, err := json.Marshal(t)
	if err != nil {
		return session{Error: err.Error()}
	}
	runtime.LockOSThread() // the worker is killed when the thread that started it ends
	defer runtime.UnlockOSThread()
	cmd := isolatedCommand(ctx, argv)
	words := &tail{}
	cmd.Stdin, cmd.Stderr, cmd.WaitDelay = strings.NewReader(string(in)), words, time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return session{Error: "starting the trial: " + err.Error()}
	}
	var last *session
	lines := json.NewDecoder(io.LimitReader(out, 64<<20))
	for {
		var m message
		if lines.Decode(&m) != nil {
			break
		}
		if m.Seen != nil {
			s.Seen = append(s.Seen, *m.Seen)
		}
		last = cmp.Or(m.Done, last)
	}
	err = cmd.Wait()
	if last != nil {
		return *last
	}
	s.Error = fmt.Sprintf("the trial broke off: %v: %s", cmp.Or(err, ctx.Err()), strings.TrimSpace(words.String()))
	return s
}
