//go:build linux

package probe

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/prove/inside"
	"holdfast.dev/holdfast/internal/testenv"
)

// pretender is a target with a hostile payload: it knows the nonce, speaks the
// protocol and reports what it likes.
type pretender func(w *World, nonce string) Observation

func (pretender) Name() string { return "pretender" }

func (p pretender) Run(_ context.Context, w *World, _ Command, argv []string) Observation {
	return p(w, argv[1])
}

// lines writes the reports of a run that looks good, with more in the middle,
// signed as the prober does.
func lines(w *World, nonce string, more ...inside.Report) []byte {
	key, err := os.ReadFile(filepath.Join(filepath.Dir(w.prober), nonce))
	must(err)
	return sealed(key, nonce, more...)
}

// sealed is lines with a key, or without one.
func sealed(key []byte, nonce string, more ...inside.Report) []byte {
	reports := []inside.Report{{Phase: inside.Begin}}
	reports = append(reports, more...)
	reports = append(reports, inside.Report{Attempt: "write W/ok.txt", Control: true, Done: true}, inside.Report{Phase: inside.End})
	var b strings.Builder
	for i, r := range reports {
		r.Nonce, r.Seq = nonce, i+1
		line, err := inside.Seal(r, key)
		must(err)
		b.Write(line)
	}
	return []byte(b.String())
}

var denied = inside.Report{Attempt: "the deed", Errno: "EACCES"}

// polite writes W/ok.txt as an honest prober does, and reports that everything
// was denied.
func polite(w *World, nonce string) Observation {
	if err := os.WriteFile(w.Path("W/ok.txt"), []byte(nonce), 0o644); err != nil {
		panic(err)
	}
	return Observation{Stdout: lines(w, nonce, denied)}
}

// must is for what a pretender does outside.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// verdict is a row, what a hostile payload makes of it, and the required verdict.
type verdict struct {
	name string
	row  Row
	play pretender
	want Verdict
}

var plain = Row{ID: "TST-001", Kind: Sandbox, Action: "nothing"}

func with(f func(*Row)) Row { r := plain; f(&r); return r }

// lies are runs in which the inside reports one thing and does another.
func lies() []verdict {
	return []verdict{
		{"all denied, and the outside agrees", plain, polite, Held},
		{"a denial is a lie: the file outside has changed", plain, func(w *World, n string) Observation {
			must(os.WriteFile(w.Path("O/canary"), []byte("x"), 0o644))
			return polite(w, n)
		}, Escaped},
		{"a denial is a lie: only the mode has changed", plain, func(w *World, n string) Observation {
			must(os.Chmod(w.Path("H/.netrc"), 0o600))
			return polite(w, n)
		}, Escaped},
		{"a denial is a lie: a second name was made", plain, func(w *World, n string) Observation {
			must(os.Link(w.Path("O/canary"), w.Path("B/second")))
			return polite(w, n)
		}, Escaped},
		{"a denial is a lie: a new file outside", plain, func(w *World, n string) Observation {
			must(outside(w.Path("H/new")))
			return polite(w, n)
		}, Escaped},
		{"a denial is a lie: a new directory outside", plain, func(w *World, n string) Observation {
			must(os.Mkdir(w.Path("O/new"), 0o755))
			return polite(w, n)
		}, Escaped},
		{"a denial is a lie: the token is on standard error", plain, func(w *World, n string) Observation {
			o := polite(w, n)
			o.Stderr = []byte("… " + w.Token("O/canary") + " …")
			return o
		}, Escaped},
		{"a denial is a lie: the token is in a file of the workspace", plain, func(w *World, n string) Observation {
			must(w.File("W/a/b/.hidden", "x"+w.Token("H/.netrc")+"x"))
			return polite(w, n)
		}, Escaped},
		{"a denial is a lie: the token was printed and then the run was cut short", plain, func(w *World, n string) Observation {
			return Observation{Stdout: []byte(w.Token("O/canary")), TimedOut: true}
		}, Escaped},
		{"an absent name was made", with(func(r *Row) { r.Absent = []string{"W/x"} }), func(w *World, n string) Observation {
			must(w.File("W/x", ""))
			return polite(w, n)
		}, Escaped},
		{"a success is admitted", plain, func(w *World, n string) Observation {
			polite(w, n)
			return Observation{Stdout: lines(w, n, inside.Report{Attempt: "the deed", Done: true})}
		}, Escaped},
		{"a success is admitted, and the row says why it harms nobody", with(func(r *Row) { r.Harmless = "a private copy" }),
			func(w *World, n string) Observation {
				polite(w, n)
				return Observation{Stdout: lines(w, n, inside.Report{Attempt: "the deed", Done: true})}
			}, Held},
		{"a harmless success that the outside has noticed", with(func(r *Row) { r.Harmless = "a private copy" }),
			func(w *World, n string) Observation {
				must(outside(w.Path("O/new")))
				return polite(w, n)
			}, Escaped},
		{"an escape that the row documents of another target", with(func(r *Row) { r.Residual = "known" }), func(w *World, n string) Observation {
			must(outside(w.Path("O/new")))
			return polite(w, n)
		}, Escaped},
	}
}

// shortcomings are runs that prove nothing, or less than they seem to.
func shortcomings() []verdict {
	return []verdict{
		{"the reports carry a nonce that was guessed", plain, func(w *World, n string) Observation {
			polite(w, n)
			return Observation{Stdout: sealed([]byte("0123456789"), "0123456789", denied)}
		}, Inconclusive},
		{"somebody without the key prints what a good run prints", plain, func(w *World, n string) Observation {
			polite(w, n)
			return Observation{Stdout: sealed(nil, n, denied)}
		}, Inconclusive},
		{"somebody with a key of his own does", plain, func(w *World, n string) Observation {
			polite(w, n)
			return Observation{Stdout: sealed([]byte(strings.Repeat("k", inside.KeySize)), n, denied)}
		}, Inconclusive},
		{"the prober died, and somebody else says the end", plain, func(w *World, n string) Observation {
			o := polite(w, n)
			own := bytes.SplitAfter(o.Stdout, []byte("\n"))
			end := bytes.SplitAfter(sealed(nil, n, denied), []byte("\n"))[3]
			return Observation{Stdout: append(bytes.Join(own[:2], nil), end...)}
		}, Inconclusive},
		{"a report was taken out of the pipe", plain, func(w *World, n string) Observation {
			polite(w, n)
			own := bytes.SplitAfter(lines(w, n, inside.Report{Attempt: "the deed", Done: true}, denied), []byte("\n"))
			return Observation{Stdout: bytes.Join(append(own[:1], own[2:]...), nil)}
		}, Inconclusive},
		{"a report was printed again", plain, func(w *World, n string) Observation {
			o := polite(w, n)
			own := bytes.SplitAfter(o.Stdout, []byte("\n"))
			return Observation{Stdout: bytes.Join(append(own[:2:2], own[1:]...), nil)}
		}, Inconclusive},
		{"somebody without the key admits a success", plain, func(w *World, n string) Observation {
			o := polite(w, n)
			return Observation{Stdout: append(o.Stdout, sealed(nil, n, inside.Report{Attempt: "the deed", Done: true})...)}
		}, Escaped},
		{"somebody without the key says that the control worked", plain, func(w *World, n string) Observation {
			polite(w, n)
			failed := lines(w, n, denied, inside.Report{Attempt: "c", Control: true, Errno: "EACCES"})
			return Observation{Stdout: append(failed, sealed(nil, n, inside.Report{Attempt: "c", Control: true, Done: true})...)}
		}, Inconclusive},
		{"there are no reports: the program was not found", plain, func(w *World, n string) Observation {
			return Observation{Exit: 127, Stderr: []byte("not found")}
		}, Inconclusive},
		{"it never came to the end", plain, func(w *World, n string) Observation {
			o := polite(w, n)
			o.Stdout = o.Stdout[:len(o.Stdout)/2]
			return o
		}, Inconclusive},
		{"nothing was attempted", plain, func(w *World, n string) Observation {
			polite(w, n)
			return Observation{Stdout: lines(w, n)}
		}, Inconclusive},
		{"it failed for a reason that is no denial", plain, func(w *World, n string) Observation {
			polite(w, n)
			return Observation{Stdout: lines(w, n, inside.Report{Attempt: "the deed", Errno: "EIO"})}
		}, Inconclusive},
		{"the control says that it worked, and the outside does not see it", plain, func(w *World, n string) Observation {
			return Observation{Stdout: lines(w, n, denied)}
		}, Inconclusive},
		{"a control failed", plain, func(w *World, n string) Observation {
			polite(w, n)
			return Observation{Stdout: lines(w, n, denied, inside.Report{Attempt: "c", Control: true, Errno: "EACCES"})}
		}, Inconclusive},
		{"more was printed than is kept", plain, func(w *World, n string) Observation {
			o := polite(w, n)
			o.Flooded = true
			return o
		}, Inconclusive},
		{"the target cannot do it", plain, func(*World, string) Observation { return Observation{Err: ErrUnsupported} }, Inconclusive},
		{"a refusal, where it is no defence", plain, func(*World, string) Observation { return Observation{Refused: true} }, Inconclusive},
		{"a refusal, where it is one", with(func(r *Row) { r.RefusalHolds = true }),
			func(*World, string) Observation { return Observation{Refused: true} }, Held},
		{"a control row that is denied is over-blocking, and no pass", with(func(r *Row) { r.Kind = Control }), polite, Inconclusive},
		{"an unknown precondition", with(func(r *Row) { r.Needs = []string{"a unicorn"} }), polite, Inconclusive},
		{"fifos, devices and links in the workspace do not stop the search", plain, func(w *World, n string) Observation {
			must(unix.Mkfifo(w.Path("W/fifo"), 0o644))
			must(os.Symlink("/dev/zero", w.Path("W/zero")))
			must(os.Symlink(w.Path("O/canary"), w.Path("W/link")))
			return polite(w, n)
		}, Held},
	}
}

// outside makes a file as the inside does, without the world knowing of it.
func outside(path string) error { return os.WriteFile(path, nil, 0o644) }

func TestVerdicts(t *testing.T) {
	for _, c := range slices.Concat(lies(), shortcomings(), brokenOff()) {
		t.Run(c.name, func(t *testing.T) {
			r := Runner{Prober: os.Args[0], Dir: t.TempDir()}
			res := r.Play(t.Context(), c.play, c.row)
			if res.Verdict != c.want {
				t.Errorf("%v (%s), want %v", res.Verdict, res.Reason, c.want)
			}
			if left, err := filepath.Glob(filepath.Join(r.Dir, "*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %q %v", left, err)
			}
		})
	}
}

// silent is a pretender for our own target, called so that it keeps no record.
type silent struct{ pretender }

func (silent) KeepsRecord() bool             { return false }
func (silent) Logs(*World) []string          { return nil }
func (silent) Record(*World) (Record, error) { return Record{}, nil }
func (silent) Reader() string                { return "" }
func (silent) Story(*World) ([]byte, error)  { return nil, nil }
func (k silent) Recording(string) Target     { return k }

// TestResidualIsOurs excuses a documented residual for our own boundary: for no
// other target, and not without a documented reason.
func TestResidualIsOurs(t *testing.T) {
	through := pretender(func(w *World, n string) Observation { must(outside(w.Path("O/new"))); return polite(w, n) })
	says := pretender(func(w *World, n string) Observation {
		polite(w, n)
		return Observation{Stdout: lines(w, n, inside.Report{Attempt: "the deed", Done: true})}
	})
	for _, play := range []pretender{through, says} {
		for _, c := range []struct {
			target   Target
			residual string
			want     Verdict
		}{{silent{play}, "known", Residual}, {silent{play}, "", Escaped}, {play, "known", Escaped}, {play, "", Escaped}} {
			r := Runner{Prober: os.Args[0], Dir: t.TempDir()}
			if res := r.Play(t.Context(), c.target, with(func(r *Row) { r.Residual = c.residual })); res.Verdict != c.want || res.Reason == "" {
				t.Errorf("%T, documented %q: %v (%s), want %v", c.target, c.residual, res.Verdict, res.Reason, c.want)
			}
		}
	}
}

// TestRefusalNeedsASmokeTest: a launcher that refuses everything defends nothing.
func TestRefusalNeedsASmokeTest(t *testing.T) {
	never := pretender(func(*World, string) Observation { return Observation{Refused: true, Stderr: []byte("no")} })
	r := Runner{Prober: os.Args[0], Dir: t.TempDir()}
	res := r.Run(t.Context(), never, []Row{{ID: "TST-002", Kind: Host, Action: "nothing", RefusalHolds: true}})
	if got := res[1].Verdict; got != Inconclusive {
		t.Errorf("%v, want inconclusive", got)
	}
}

func TestZeroVerdictProvesNothing(t *testing.T) {
	if (Result{}).Verdict != Inconclusive {
		t.Error("a forgotten verdict must not read as a pass")
	}
}

// TestListenersAndVictimTell checks that listeners and the victim outside notice
// what reaches them.
func TestListenersAndVictimTell(t *testing.T) {
	aim := func(f func(w *World)) pretender {
		return func(w *World, n string) Observation { f(w); return polite(w, n) }
	}
	var l *Listener
	var v *Victim
	listen := func(network, addr string) func(*World) error {
		return func(w *World) (err error) { l, err = w.Listen(network, addr); return err }
	}
	run := Runner{Prober: testenv.Prober(t), Dir: t.TempDir()}
	for _, c := range []struct {
		name string
		row  Row
		play pretender
		want Verdict
	}{
		{"a stream socket was reached", Row{Setup: listen("unix", "O/s")}, aim(func(*World) { dial("unix", l.Addr) }), Escaped},
		{"an abstract socket was reached", Row{Setup: listen("unix", "@probe-"+hexes(4))}, aim(func(*World) { dial("unix", l.Addr) }), Escaped},
		{"a port was reached", Row{Setup: listen("tcp", "127.0.0.1:0")}, aim(func(*World) { dial("tcp", l.Addr) }), Escaped},
		{"a port was connected to, and nothing said or read", Row{Setup: listen("tcp", "127.0.0.1:0")}, aim(func(*World) { touch("tcp", l.Addr, "", false) }), Held},
		{"a socket was connected to, and nothing said or read", Row{Setup: listen("unix", "O/s")}, aim(func(*World) { touch("unix", l.Addr, "", false) }), Held},
		{"a port took a word, whose answer nobody waited for", Row{Setup: listen("tcp", "127.0.0.1:0")}, aim(func(*World) { touch("tcp", l.Addr, "x", false) }), Escaped},
		{"a datagram was sent, whose answer nobody waited for", Row{Setup: listen("udp", "127.0.0.1:0")}, aim(func(*World) { touch("udp", l.Addr, "x", false) }), Escaped},
		{"a port's token was read, and nothing said", Row{Setup: listen("tcp", "127.0.0.1:0")}, aim(func(*World) { touch("tcp", l.Addr, "", true) }), Escaped},
		{"a socket's token was read, and nothing said", Row{Setup: listen("unix", "O/s")}, aim(func(*World) { touch("unix", l.Addr, "", true) }), Escaped},
		{"a datagram arrived", Row{Setup: listen("udp", "127.0.0.1:0")}, aim(func(*World) { dial("udp", l.Addr) }), Escaped},
		{"nobody came", Row{Setup: listen("tcp", "127.0.0.1:0")}, polite, Held},
		{"a signal arrived", Row{Setup: func(w *World) (err error) { v, err = w.Victim(); return err }},
			aim(func(*World) { must(unix.Kill(v.PID, unix.SIGWINCH)) }), Escaped},
		{"the process outside was ended", Row{Setup: func(w *World) (err error) { v, err = w.Victim(); return err }},
			aim(func(*World) { must(unix.Kill(v.PID, unix.SIGKILL)) }), Escaped},
		{"nobody signalled", Row{Setup: func(w *World) (err error) { v, err = w.Victim(); return err }}, polite, Held},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.row.ID, c.row.Kind, c.row.Action = "TST-003", Sandbox, "nothing"
			if res := run.Play(t.Context(), c.play, c.row); res.Verdict != c.want {
				t.Errorf("%v (%s), want %v", res.Verdict, res.Reason, c.want)
			}
		})
	}
}

// touch connects, sends say, optionally reads, and closes the connection.
func touch(network, addr, say string, read bool) {
	c, err := net.Dial(network, addr)
	must(err)
	defer c.Close()
	if say != "" {
		_, err = c.Write([]byte(say))
		must(err)
	}
	if read {
		_, err = c.Read(make([]byte, 64))
		must(err)
	}
}

// dial sends something to a listener and waits until it was counted.
func dial(network, addr string) {
	c, err := net.Dial(network, addr)
	must(err)
	defer c.Close()
	_, err = c.Write([]byte("x"))
	must(err)
	_, err = c.Read(make([]byte, 64)) // the token: it has counted us
	must(err)
}
