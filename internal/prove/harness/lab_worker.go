//go:build linux

package harness

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"holdfast.dev/holdfast/internal/prove/netlab"
	"holdfast.dev/holdfast/internal/prove/probe"
)

// WorkerCommand is the hidden command that runs this program as a worker of a
// [Pool]. It takes no arguments, and communicates with the pool over its standard
// input and output.
const WorkerCommand = "prove-worker"

// lastWords is how long an ending worker gives the row that it plays to remove
// what it has made.
const lastWords = 5 * time.Second

// Worker is that command: it makes its network and plays the rows that it is
// sent, until in or ctx ends. A row in progress is then interrupted. When the
// process of the pool dies, in ends and this process gets SIGTERM, which should
// end ctx; the row then removes what it has made.
func Worker(ctx context.Context, in io.Reader, out io.Writer) error {
	lab, err := netlab.Part()
	if errors.Is(err, netlab.ErrEnded) {
		return nil
	}
	enc := json.NewEncoder(out)
	if err == nil && lab == nil {
		err = errors.New("this process was not started in a private network")
	}
	if err != nil {
		return errors.Join(err, enc.Encode(greeting{Error: err.Error()}))
	}
	if err := enc.Encode(greeting{Ready: true}); err != nil {
		return fmt.Errorf("greeting the pool: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests := make(chan request)
	go func() {
		defer cancel()
		read := json.NewDecoder(bufio.NewReader(in))
		for {
			var r request
			if read.Decode(&r) != nil {
				return // the pool has ended, or sends nonsense
			}
			select {
			case requests <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	w := worker{outside: outsideOf(lab), rows: map[string]probe.Row{}}
	for _, r := range probe.All() {
		w.rows[r.ID] = r
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-requests:
			if err := w.answer(ctx, r, enc); err != nil {
				return err
			}
		}
	}
}

// worker is the state of a worker process.
type worker struct {
	outside *probe.Outside
	rows    map[string]probe.Row
}

// outsideOf returns a network as rows see it. If a certificate cannot be made,
// every handshake with it fails and its row proves nothing.
func outsideOf(lab *netlab.Network) *probe.Outside {
	return &probe.Outside{Listen: lab.Listen, ListenPacket: lab.ListenPacket, Certificate: func(names ...string) tls.Certificate {
		cert, err := lab.Certificate(names...)
		if err != nil {
			return tls.Certificate{}
		}
		return cert
	}}
}

// answer plays the row of r. It does not wait long once ctx has ended.
func (w worker) answer(ctx context.Context, r request, enc *json.Encoder) error {
	answered := make(chan reply, 1)
	go func() { answered <- w.play(ctx, r) }()
	select {
	case a := <-answered:
		return w.send(enc, a)
	case <-ctx.Done():
	}
	select {
	case a := <-answered:
		return w.send(enc, a)
	case <-time.After(lastWords):
		return fmt.Errorf("row %s did not end when it was told to", r.Row)
	}
}

func (worker) send(enc *json.Encoder, a reply) error {
	if err := enc.Encode(a); err != nil {
		return fmt.Errorf("answering for row %s: %w", a.Row, err)
	}
	return nil
}

func (w worker) play(ctx context.Context, r request) reply {
	a := reply{Row: r.Row}
	row, known := w.rows[r.Row]
	target, err := r.Target.target()
	switch {
	case !known:
		a.Error = fmt.Sprintf("no row is called %q", r.Row)
		return a
	case err != nil:
		a.Error = err.Error()
		return a
	}
	worlds, err := WorldsNamed(cmp.Or(r.World, DefaultWorld))
	if err != nil {
		a.Error = err.Error()
		return a
	}
	runner := worlds[0].runner(&Place{Prober: r.Prober, Dir: r.Dir})
	runner.Outside = w.outside
	row.RefusalHolds, row.Timeout = row.RefusalHolds && r.RefusalHolds, r.Timeout
	a.Result = outcomeOf(runner.Play(ctx, target, row))
	return a
}
