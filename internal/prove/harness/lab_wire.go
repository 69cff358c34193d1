//go:build linux

package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"holdfast.dev/holdfast/internal/prove/inside"
	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/targets"
)

// greeting is the first line that a worker writes.
type greeting struct {
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"` // why there is no network
}

// request is a line to a worker: a row to play.
type request struct {
	Row          string        `json:"row"`
	RefusalHolds bool          `json:"refusal_holds"`
	Timeout      time.Duration `json:"timeout"`
	Target       namedTarget   `json:"target"`
	World        string        `json:"world"`
	Dir          string        `json:"dir"`
	Prober       string        `json:"prober"`
}

// reply is the line that answers a request.
type reply struct {
	Row    string  `json:"row"`
	Error  string  `json:"error,omitempty"` // the request was invalid
	Result outcome `json:"result"`
}

// outcome is a [probe.Result] without its row, which has functions.
type outcome struct {
	Target   string
	Verdict  probe.Verdict
	Reason   string
	Missing  bool
	Effects  []string
	Said     []inside.Report
	Denials  []string
	Coverage map[string]probe.Coverage
	Took     time.Duration
}

func outcomeOf(r probe.Result) outcome {
	return outcome{Target: r.Target, Verdict: r.Verdict, Reason: r.Reason, Missing: r.Missing, Effects: r.Effects, Said: r.Said, Denials: r.Denials, Coverage: r.Coverage, Took: r.Took}
}

func (o outcome) result(r probe.Row) probe.Result {
	return probe.Result{Row: r, Target: o.Target, Verdict: o.Verdict, Reason: o.Reason, Missing: o.Missing, Effects: o.Effects, Said: o.Said, Denials: o.Denials, Coverage: o.Coverage, Took: o.Took}
}

// namedTarget is a target in a form that another process can decode.
type namedTarget struct {
	Kind   string          `json:"kind"`
	Fields json.RawMessage `json:"fields"`
}

// targetKinds are the targets that can be sent to a worker, which gets their
// exported fields only.
var targetKinds = func() map[string]reflect.Type {
	kinds := map[string]reflect.Type{}
	for _, t := range []probe.Target{probe.None{}, targets.Holdfast{}, targets.Peer{}, targets.Template{}} {
		kinds[fmt.Sprintf("%T", t)] = reflect.TypeOf(t)
	}
	return kinds
}()

// nameTarget encodes t.
func nameTarget(t probe.Target) (namedTarget, error) {
	kind := fmt.Sprintf("%T", t)
	if targetKinds[kind] == nil {
		return namedTarget{}, fmt.Errorf("a target of kind %s cannot be passed to another process", kind)
	}
	fields, err := json.Marshal(t)
	if err != nil {
		return namedTarget{}, fmt.Errorf("encoding the target: %w", err)
	}
	return namedTarget{kind, fields}, nil
}

// target decodes what nameTarget encoded.
func (n namedTarget) target() (probe.Target, error) {
	kind := targetKinds[n.Kind]
	if kind == nil {
		return nil, fmt.Errorf("unknown kind of target %q", n.Kind)
	}
	made := reflect.New(kind)
	if err := json.Unmarshal(n.Fields, made.Interface()); err != nil {
		return nil, fmt.Errorf("decoding the target: %w", err)
	}
	t, ok := made.Elem().Interface().(probe.Target)
	if !ok {
		return nil, errors.New("decoding the target: it is not a target")
	}
	return t, nil
}
