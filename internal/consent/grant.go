package consent

import (
	"crypto/ed25519"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Covers is what an answer is about: an attempt that differs in anything is
// another one. Fields that do not belong to its kind are empty.
type Covers struct {
	Kind event.Kind

	// What is executed, or the program that asks. If it is not known, both are
	// empty, and cover only another that is not known.
	Executable string
	SHA256     string

	Argv         []string // of an exec, with the six below
	Cwd          string
	Parent       string // executable that asks
	Script       string
	ScriptSHA256 string
	Interpreted  []string
	Environment  []string

	Path      string // of an exec as requested; of a file as found; with Directory that of the directory
	Directory bool
	Operation string
	To        string

	Host     string // of a connection, a request and a credential
	Port     int
	Protocol string
	Method   string
	URLPath  string
	Name     string // of the credential

	Agent, Server, Tool string
	Arguments           string // their HMAC-SHA-256 in hex
}

// changes are the operations that a directory covers together: those needed to
// write a tree of files and directories. Links to elsewhere, owners, modes,
// devices and attributes are not among them.
var changes = []string{"write", "create", "mkdir", "truncate", "rename", "unlink", "link"}

// coverOf is what an answer to a covers.
func (q *Queue) coverOf(a event.Attempt, directory bool) Covers {
	c := Covers{Kind: a.Kind, Executable: a.Process.Executable, SHA256: a.Process.SHA256}
	switch a.Kind {
	case event.KindExec:
		c.Argv, c.Cwd, c.Parent, c.Path = slices.Clone(a.Process.Argv), a.Process.Cwd, a.ParentExecutable, a.Path
		c.Script, c.ScriptSHA256, c.Interpreted = a.Script, a.ScriptSHA256, slices.Clone(a.Interpreted)
		c.Environment = slices.Clone(a.Environment)
	case event.KindFile:
		c.Path, c.Operation, c.To = a.Path, a.Operation, a.To
		if directory {
			c.Path, c.To, c.Directory = path.Dir(a.Path), "", true
		}
	case event.KindConnect, event.KindRequest, event.KindCredential:
		c.Host, c.Port, c.Protocol, c.Method, c.URLPath, c.Name = a.Host, a.Port, a.Protocol, a.Method, a.URLPath, a.Name
	case event.KindTool:
		c.Agent, c.Server, c.Tool, c.Arguments = a.Agent, a.Server, a.Tool, q.sum("arguments", a.Arguments)
	}
	return c
}

// cover reports whether c is about exactly a.
func (q *Queue) cover(c *Covers, a event.Attempt) bool {
	if c.Kind != a.Kind || onceReason(a) != "" {
		return false
	}
	if !c.Directory {
		return c.text() == q.coverOf(a, false).text()
	}
	if c.Executable != a.Process.Executable || c.SHA256 != a.Process.SHA256 || !below(a.Path, c.Path) {
		return false
	}
	if a.Operation == c.Operation && a.Operation == "symlink" {
		return true // To is its text
	}
	return (a.Operation == c.Operation || slices.Contains(changes, a.Operation)) && (a.To == "" || below(a.To, c.Path))
}

// below reports whether p, a path as found, is in the directory dir at any depth.
func below(p, dir string) bool {
	return path.IsAbs(p) && path.Clean(p) == p && strings.HasPrefix(p, dir+"/")
}

// onceReason returns why an attempt can be allowed only once.
func onceReason(a event.Attempt) string {
	switch exec := a.Kind == event.KindExec; {
	case a.Cut:
		return "not all of its arguments are known"
	case exec && a.Process.SHA256 == "":
		return "the content of the program is not known"
	case exec && a.Script != "" && a.ScriptSHA256 == "":
		return "the content of the script is not known"
	case exec && len(a.Process.Argv) == 0:
		return "its arguments are not known"
	case exec && a.EnvironmentUnknown:
		return "not all of its environment is known"
	case tooLong(a):
		return "it is too long to be shown in full"
	}
	return ""
}

// grant is a live Grant. Its fields are guarded by the lock of the queue.
type grant struct {
	Grant
	ends  moment // if it has a time
	timer *time.Timer
	over  chan struct{} // closed when it ends before the run does; nil for once
	end   func()        // closes over; may be called again
}

// live reports whether g can be used at that time.
func (g *grant) live(now moment) bool {
	return (g.Uses == 0 || g.Used < g.Uses) && (g.Expires.IsZero() || !g.ends.reached(now))
}

func (g *grant) stop() {
	if g.timer != nil {
		g.timer.Stop()
	}
}

// Verify reports whether g is as the queue with that key signed it.
func (g Grant) Verify(key ed25519.PublicKey) bool {
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, g.signedText(), g.Signature)
}

// usesLeft is how many uses are left, in words.
func (g Grant) usesLeft() string { return amount(g.Uses, g.Uses-g.Used) }

// For is how long g holds; 0 for as long as the run.
func (g Grant) For() time.Duration {
	if g.Expires.IsZero() {
		return 0
	}
	return g.Expires.Sub(g.Begun)
}

// grant makes the grant by an answer to p, signed and not live yet.
func (q *Queue) grant(p *pending, a Answer) *grant {
	now := q.clock.moment()
	g := &grant{Grant: Grant{
		Session: q.config.Session, Covers: q.coverOf(p.Attempt, a.Directory), Rule: p.Rule, Request: p.ID,
		Scope: a.Scope, Begun: now.wall, Uses: a.Uses, By: a.By, Via: a.Via, Reason: a.Reason,
	}}
	if a.Scope == Once {
		g.Uses = 1
	}
	if a.Scope == For {
		g.ends = now.add(a.For)
		g.Expires = g.ends.wall
	}
	if a.Scope != Once {
		g.over = make(chan struct{})
		g.end = sync.OnceFunc(func() { close(g.over) })
	}
	q.mu.Lock()
	g.ID = q.newID()
	q.mu.Unlock()
	g.Signature = ed25519.Sign(q.config.Grant, g.signedText())
	return g
}

// lapse ends what depends on g, whose time is over, and records that.
func (q *Queue) lapse(g *grant) {
	defer g.end()
	if !q.enter() {
		return
	}
	defer q.ops.Done()
	q.mu.Lock()
	i := slices.Index(q.grants, g)
	if i >= 0 {
		q.grants = slices.Delete(q.grants, i, i+1)
		q.wake()
	}
	q.mu.Unlock()
	if i >= 0 {
		q.recordExpire(g.Grant) // nothing depends on the record: g covers nothing any more
	}
}

// dropUsed forgets g if it is used up. Its time goes on for what depends on it.
// The lock is held.
func (q *Queue) dropUsed(g *grant) {
	if g.Uses > 0 && g.Used >= g.Uses {
		q.grants = slices.DeleteFunc(q.grants, func(o *grant) bool { return o == g })
	}
}
