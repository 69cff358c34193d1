package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Verdict answers one question about one object.
type Verdict struct {
	Allowed bool   `json:"allowed"`
	Private bool   `json:"private,omitempty"` // what is written goes to a layer that is dropped
	Why     string `json:"why"`               // a clause, for humans
	Rule    string `json:"rule,omitempty"`    // file:line or the name of a built-in part; "" where no rule allows it
	Add     string `json:"add,omitempty"`     // what would allow it; "" where nothing can or need be
}

// Answer is what Explain found.
type Answer struct {
	Query    string   `json:"query"`
	Kind     string   `json:"kind"`               // path, command or host
	Resolved string   `json:"resolved,omitempty"` // the path that the kernel found for it
	Read     *Verdict `json:"read,omitempty"`
	Write    *Verdict `json:"write,omitempty"`
	Execute  *Verdict `json:"execute,omitempty"`
	Connect  *Verdict `json:"connect,omitempty"`
}

// Allowed reports whether anything at all is.
func (a Answer) Allowed() bool {
	return slices.ContainsFunc([]*Verdict{a.Read, a.Write, a.Execute, a.Connect}, func(v *Verdict) bool {
		return v != nil && v.Allowed
	})
}

// Explain says what a command under p could do with query: a path, the name of
// a command, or a host. A text that could be several is a path when it exists
// or has a slash, then a command when PATH inside has it, then a host. The
// permissions of the files themselves come on top.
// names are those that are looked after when they appear in the workspace.
func Explain(p Plan, h Host, names []Reserved, query string) (Answer, error) {
	x := explainer{p, h, names}
	if err := askable(query); err != nil {
		return Answer{}, err
	}
	a, err := x.explain(query)
	if err != nil {
		return a, err
	}
	return a, x.consent(&a)
}

func (x explainer) explain(query string) (Answer, error) {
	if strings.Contains(query, "/") && !strings.Contains(query, "://") || query == "~" || query == "." || query == ".." {
		return x.file(query)
	}
	if _, err := os.Lstat(filepath.Join(x.host.Dir, query)); err == nil {
		return x.file(query)
	}
	if found := x.search(query); found != "" {
		a, err := x.file(found)
		a.Query, a.Kind = query, "command"
		return a, err
	}
	if looksLikeHost(query) {
		return x.destination(query)
	}
	if path := x.searchOutside(query); path != "" {
		a, err := x.file(path)
		a.Query, a.Kind = query, "command"
		return a, err
	}
	return Answer{Query: query, Kind: "command", Execute: &Verdict{Why: "no directory of PATH inside has it, and none of yours"}}, nil
}

// ExplainPath is Explain for a text that is a path, whatever it looks like.
func ExplainPath(p Plan, h Host, names []Reserved, query string) (Answer, error) {
	if err := askable(query); err != nil {
		return Answer{}, err
	}
	x := explainer{p, h, names}
	a, err := x.file(query)
	if err != nil {
		return a, err
	}
	return a, x.consent(&a)
}

func askable(query string) error {
	if query == "" || strings.ContainsAny(query, "\x00\n\r") {
		return fault(Origin{}, "", "cannot explain %q: empty, or with a NUL or a line break", printable(query))
	}
	return nil
}

type explainer struct {
	plan  Plan
	host  Host
	names []Reserved
}

func (x explainer) file(query string) (Answer, error) {
	// Not joined where it is relative: what .. leads to is the kernel's to say.
	given := query
	switch {
	case query == "~" || strings.HasPrefix(query, "~/"):
		given = expand(query, x.host.Dir, x.host.Home)
	case !filepath.IsAbs(query):
		given = x.host.Dir + "/" + query
	}
	a := Answer{Query: query, Kind: "path"}
	at, err := locate(given)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a.Resolved = nearestReal(filepath.Clean(given))
	case err == nil:
		a.Resolved = at.path
	case errors.Is(err, fs.ErrPermission):
		a.Resolved = filepath.Clean(given) // decided by name; it is unreadable for the user already
	default:
		return Answer{}, &Error{Msg: "looking at " + printable(query) + ": " + reason(err), cause: err}
	}
	rule := x.rule(a.Resolved)
	read, write := x.readWrite(a.Resolved, rule)
	a.Read, a.Write = &read, &write
	execute := x.execute(read, at, err == nil)
	a.Execute = &execute
	return a, nil
}

// rule is the one that decides about a resolved path.
func (x explainer) rule(path string) PathRule {
	best := PathRule{}
	for _, r := range slices.Concat(x.plan.Paths, x.plan.own(), x.host.System) {
		if within(path, r.Path) && len(r.Path) > len(best.Path) {
			best = r
		}
	}
	return best
}

func (x explainer) readWrite(path string, rule PathRule) (read, write Verdict) {
	name := rule.Origin.String()
	if rule.Path == "" || rule.Access == Hidden {
		return x.absent(path, rule)
	}
	if p, ok := x.among(path, x.plan.Hidden); ok {
		secret := Verdict{Why: "hidden as a secret: " + p.Reason, Rule: "secret " + p.Rule}
		read = secret
		read.Add = "--show " + quote(filepath.Base(path)) + ", or under workspace.show: " + filepath.Base(path)
		return read, secret
	}
	read = Verdict{Allowed: true, Why: "in view", Rule: name}
	switch rule.Access {
	case Copy:
		return read, Verdict{Allowed: true, Private: true, Why: "to a private layer that is dropped at the end; the host's file stays as it is", Rule: name}
	case Read:
		write = Verdict{Why: "in view read-only", Rule: name}
		err := x.host.writable(path)
		if err == nil {
			write.Add = "--rw " + quote(path) + ", or under filesystem.write: " + path
		} else {
			write.Why += "; cannot be allowed: " + err.Error()
		}
		return read, write
	}
	if p, ok := x.protected(path); ok {
		write = Verdict{Why: "protected: " + p.Reason, Rule: "protected path " + p.Rule}
		if p.Root == "" {
			write.Add = "under workspace.unprotect: " + p.Path + " (then the host may execute what was written)"
		}
		return read, write
	}
	write = Verdict{Allowed: true, Why: x.plan.fate(path, rule), Rule: name}
	if r, ok := x.reserved(path); ok {
		write.Why, write.Rule = r.Fate+": "+r.Reason, "protected name "+r.Pattern
	}
	return read, write
}

// absent explains a path that no rule shows.
func (x explainer) absent(path string, rule PathRule) (read, write Verdict) {
	why := "not in view: inside it does not exist"
	if rule.Path != "" {
		why = "hidden: it can hold credentials"
	}
	for _, private := range []string{x.host.Home, "/tmp", "/var/tmp", "/run", "/dev", "/proc", "/sys"} {
		if rule.Path == "" && within(path, private) {
			why = "not in view: " + private + " is a private one inside, the host's is not there"
			break
		}
	}
	read, write = Verdict{Why: why, Rule: rule.Origin.File}, Verdict{Why: why, Rule: rule.Origin.File}
	at, err := locate(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			read.Why, write.Why = why+"; nor does it exist on the host", why+"; nor does it exist on the host"
		}
		return read, write
	}
	if err := x.showable(at, Read); err != nil {
		read.Why += "; cannot be allowed: " + err.Error()
	} else {
		read.Add = "--ro " + quote(path) + ", or under filesystem.read: " + path
	}
	if err := x.showable(at, Write); err != nil {
		write.Why += "; cannot be allowed: " + err.Error()
	} else {
		write.Add = "--rw " + quote(path) + ", or under filesystem.write: " + path
	}
	return read, write
}

// showable says why a path that is not in view cannot come into it.
func (x explainer) showable(at located, access Access) error {
	if err := x.host.showable(at, access); err != nil {
		return err
	}
	for _, file := range x.plan.used() {
		if file.readable && access != Write {
			continue
		}
		if within(file.path, at.path) || file.tree && within(at.path, file.path) {
			return fmt.Errorf("%s (%s) uses %s", file.key, file.origin, file.path)
		}
	}
	return nil
}

func (x explainer) protected(path string) (Protected, bool) {
	return x.among(path, slices.Concat(x.plan.Protect, x.plan.HardLinks))
}

// among finds the row that path is or lies below.
func (x explainer) among(path string, rows []Protected) (Protected, bool) {
	for _, p := range rows {
		if within(path, x.plan.Within(p)) {
			return p, true
		}
	}
	return Protected{}, false
}

// aDirectory is why a directory may be executed.
const aDirectory = "a directory: may be entered"

func (x explainer) execute(read Verdict, at located, exists bool) Verdict {
	const anyExecute = 0o111
	switch {
	case !read.Allowed:
		return Verdict{Why: read.Why, Add: read.Add}
	case !exists:
		return Verdict{Why: "does not exist", Rule: read.Rule}
	case at.dir:
		return Verdict{Allowed: true, Why: aDirectory, Rule: read.Rule}
	case at.mode&anyExecute == 0:
		return Verdict{Why: "in view, but its mode lets nobody execute it", Rule: read.Rule, Add: "chmod +x " + quote(at.path)}
	}
	return Verdict{Allowed: true, Why: "in view and executable", Rule: read.Rule}
}

// search finds a command as the boundary does, in PATH inside.
func (x explainer) search(name string) string { return lookIn(variableIn(x.plan.Env, "PATH"), name) }

func (x explainer) searchOutside(name string) string { return lookIn(x.host.lookup("PATH"), name) }

func lookIn(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		full := filepath.Join(dir, name)
		if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return full
		}
	}
	return ""
}

func looksLikeHost(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	_, _, err := destination(text)
	return loopbackQuery(text) || err == nil && strings.ContainsAny(text, ".:")
}

// loopbackQuery reports whether text asks for the loopback inside.
func loopbackQuery(text string) bool {
	host, _, _, err := splitPort(text)
	if err == nil {
		host, err = hostName(host)
	}
	return err == nil && loopbackName(host)
}

// destination answers for a host: for one port of it where query names one.
func (x explainer) destination(query string) (Answer, error) {
	a := Answer{Query: query, Kind: "host"}
	if loopbackQuery(query) {
		a.Connect = &Verdict{Allowed: true, Why: "loopback inside, which is private: services of the host are not there" + x.hostPorts(), Rule: "network"}
		return a, nil
	}
	asked, hint, err := destination(query)
	if err != nil {
		return Answer{}, &Error{Msg: err.Error(), hint: hint}
	}
	var why, rules []string
	for _, r := range x.plan.Allow {
		if !covers(r.Host, asked.Host) || len(asked.Ports) > 0 && !slices.Contains(r.Ports, asked.Ports[0]) || asked.Kind != "" && r.Kind != asked.Kind {
			continue
		}
		why = append(why, r.String()+x.brokered(r.Credentials))
		if o := r.Origin.String(); !slices.Contains(rules, o) {
			rules = append(rules, o)
		}
	}
	if len(why) > 0 {
		a.Connect = &Verdict{Allowed: true, Why: strings.Join(why, "; "), Rule: strings.Join(rules, ", ")}
		return a, nil
	}
	a.Connect = &Verdict{Why: "no rule allows it", Rule: "network", Add: "--allow " + query + ", or under network.allow: " + query}
	if address, err := netip.ParseAddr(asked.Host); err == nil && (!address.IsGlobalUnicast() || address.IsPrivate()) {
		a.Connect.Add = "under network.allow: {host: " + scalar(asked.Host) + ", internal: true}"
	}
	if len(x.plan.Allow) == 0 {
		a.Connect.Why = "no destination is allowed: there is no network inside but loopback"
	}
	return a, nil
}

// brokered says where the secrets of credentials come from.
func (x explainer) brokered(names []string) string {
	text := ""
	for _, c := range x.plan.Credentials {
		if slices.Contains(names, c.Name) {
			text += ", " + c.Name + " from " + c.Source.Kind
		}
	}
	return text
}

// hostPorts names the exceptions to a private loopback.
func (x explainer) hostPorts() string {
	if len(x.plan.HostPorts) == 0 {
		return ""
	}
	var ports []string
	for _, p := range x.plan.HostPorts {
		ports = append(ports, strconv.Itoa(p.Inside))
	}
	return " but for " + strings.Join(ports, ", ")
}
