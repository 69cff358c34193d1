package hooks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"holdfast.dev/holdfast/internal/floor/canonical"
	"holdfast.dev/holdfast/internal/floor/text"
)

// Socket is where a run accepts reports from inside. The answer is one line,
// which says whether the policy denies the call. While a human is asked, another
// line before it says so. The socket gives no other information.
const Socket = "/run/holdfast/tools"

// Marker is a read-only file in the view that shows that this is inside a run
// which accepts reports. The socket alone could be removed, and a hook would then
// assume that it is outside.
const Marker = "/etc/holdfast-run"

// InsideRun reports whether this process is inside a run that accepts reports.
func InsideRun() bool {
	_, err := os.Lstat(Marker)
	return err == nil
}

// Limits of the channel.
const (
	maxLine        = 2 << 20 // bytes of a report: twice maxArguments, because JSON escapes some characters
	maxAnswer      = 16 << 10
	channelTimeout = 2 * time.Second // for each side

	retryTime  = 3 * time.Second // after which no further connection is tried
	retryPause = 10 * time.Millisecond
)

// Send sends a report to the run that this process is inside of, and retries for
// a while if the run is too busy to accept it. While a human is asked it waits:
// held is called with the maximum time, in which nothing is received. A call
// without an answer is denied, because its rules were not checked.
func Send(socket string, r Report, held func(time.Duration)) (Answer, error) {
	var a Answer
	var err error
	for begun, pause := time.Now(), retryPause; ; pause *= 2 {
		if a, err = sendOnce(socket, r, held); err == nil || time.Since(begun)+pause > retryTime {
			break
		}
		time.Sleep(pause)
	}
	if err != nil && r.Kind == Call {
		a = Unanswered()
	}
	return a, err
}

// Unanswered is the answer to a call if the run gave none.
func Unanswered() Answer {
	return Answer{Deny: "holdfast run did not answer the hook, so the rules about this call could not be checked; try again, and see ALERTS in holdfast log show if it happens again"}
}

// sendOnce makes one connection.
func sendOnce(socket string, r Report, held func(time.Duration)) (Answer, error) {
	c, err := net.DialTimeout("unix", socket, channelTimeout)
	if err != nil {
		return Answer{}, fmt.Errorf("reporting a tool call: %w", err)
	}
	defer c.Close()
	if InsideRun() {
		if err := servedOutside(c); err != nil {
			return Answer{}, fmt.Errorf("reporting a tool call: %w", err)
		}
	}
	c.SetDeadline(time.Now().Add(channelTimeout))
	var line bytes.Buffer
	out := json.NewEncoder(&line)
	out.SetEscapeHTML(false) // it would make a report up to six times as long
	if err = out.Encode(r); err == nil {
		_, err = c.Write(line.Bytes())
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
	wait := min(time.Duration(a.Wait)*time.Millisecond, r.AnswerTime()) + channelTimeout
	held(wait)
	c.SetDeadline(time.Now().Add(wait))
	a = Answer{}
	if err := in.Decode(&a); err != nil || a.Wait != 0 {
		return Answer{Deny: "a human is to be asked about this call, and there was no answer"}, nil
	}
	return a, nil
}

// errForm means that the received data is no report.
var errForm = errors.New("it is not a report")

// Receive reads a report. Its sender is inside: every length is limited, and
// nothing in it is trusted.
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
	if len(r.Arguments) > 0 {
		if r.Arguments, err = canonical.JSON(r.Arguments); err != nil {
			return Report{}, fmt.Errorf("receiving a report: its arguments: %w", err)
		}
	}
	r.bound()
	return r, nil
}

// bound shortens what our hooks would not have written at that length.
func (r *Report) bound() {
	for _, s := range []*string{&r.Agent, &r.Tool, &r.ID, &r.Subagent, &r.Server, &r.Conversation, &r.Mode, &r.Outcome} {
		*s = text.Cut(*s, maxName)
	}
	for _, s := range []*string{&r.Cwd, &r.Transcript, &r.Response, &r.Bad} {
		*s = text.Cut(*s, maxString)
	}
	r.Millis = min(max(r.Millis, 0), 1e12)
	r.Waits = min(max(r.Waits, 0), callTime)
}

// Reply answers a report.
func Reply(to io.Writer, a Answer) error {
	a.Deny = text.Cut(a.Deny, maxString)
	line, err := json.Marshal(a)
	if err == nil {
		_, err = to.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("answering a report: %w", err)
	}
	return nil
}
