package hooks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Socket is where a run takes reports from inside. What is written there is
// answered with one line, which says whether the policy denies the call, and before
// it with one that says so while a human is asked; nothing else can be had from it.
const Socket = "/run/holdfast/tools"

// What stands on the channel at most.
const (
	maxLine   = 1 << 20 // bytes of a report
	maxAnswer = 16 << 10
	patience  = 2 * time.Second // of either side
)

// Send brings a report to the run that this process is inside of. While a human is
// asked it waits: held is told for how long, at most, and nothing is heard for that
// time. Whatever goes wrong then denies the call, for a rule asks about it.
func Send(socket string, r Report, held func(time.Duration)) (Answer, error) {
	c, err := net.DialTimeout("unix", socket, patience)
	if err != nil {
		return Answer{}, fmt.Errorf("reporting a tool call: %w", err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	line, err := json.Marshal(r)
	if err == nil {
		_, err = c.Write(append(line, '\n'))
	}
	var a Answer
	in := json.NewDecoder(io.LimitReader(c, maxAnswer))
	if err == nil {
		err = in.Decode(&a)
	}
	if err != nil {
		return Answer{}, fmt.Errorf("reporting a tool call: %w", err)
	}
	if a.Wait <= 0 {
		return a, nil
	}
	wait := min(time.Duration(a.Wait)*time.Millisecond, r.Patience()) + patience
	held(wait)
	c.SetDeadline(time.Now().Add(wait))
	a = Answer{}
	if err := in.Decode(&a); err != nil || a.Wait != 0 {
		return Answer{Deny: "a human is to be asked about this call, and there was no answer"}, nil
	}
	return a, nil
}

// errForm says that what came over the channel is no report.
var errForm = errors.New("it is no report")

// Receive reads a report. Whoever wrote it is inside: every length is bounded,
// and nothing of it is believed.
func Receive(from io.Reader) (Report, error) {
	line, err := bufio.NewReaderSize(io.LimitReader(from, maxLine), 4<<10).ReadBytes('\n')
	if err != nil {
		return Report{}, fmt.Errorf("receiving a report: %w", err)
	}
	var r Report
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Report{}, fmt.Errorf("receiving a report: %w", err)
	}
	if r.Bad == "" && (r.Tool == "" && r.Kind != End || r.Kind != Call && r.Kind != Result && r.Kind != End) {
		return Report{}, fmt.Errorf("receiving a report: %w", errForm)
	}
	r.bound()
	return r, nil
}

// bound cuts what no hook of ours would have written as long.
func (r *Report) bound() {
	for _, s := range []*string{&r.Agent, &r.Tool, &r.ID, &r.Subagent, &r.Server, &r.Conversation, &r.Mode, &r.Outcome} {
		*s = cut(*s, maxName)
	}
	for _, s := range []*string{&r.Cwd, &r.Transcript, &r.Response, &r.Bad} {
		*s = cut(*s, maxString)
	}
	r.Millis = min(max(r.Millis, 0), 1e12)
	r.Waits = min(max(r.Waits, 0), callTime)
}

// Reply answers a report.
func Reply(to io.Writer, a Answer) error {
	a.Deny = cut(a.Deny, maxString)
	line, err := json.Marshal(a)
	if err == nil {
		_, err = to.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("answering a report: %w", err)
	}
	return nil
}
