package consent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/canonical"
	"holdfast.dev/holdfast/internal/floor/event"
)

// bytesText is a text that survives JSON even where it is not UTF-8: a backslash
// is doubled, and each byte that is no part of a character is written \xNN.
type bytesText string

// MarshalText implements encoding.TextMarshaler.
func (t bytesText) MarshalText() ([]byte, error) {
	s := string(t)
	if utf8.ValidString(s) && !strings.Contains(s, `\`) {
		return []byte(s), nil
	}
	var out []byte
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\x%02x`, s[0])
		case r == '\\':
			out = append(out, `\\`...)
		default:
			out = append(out, s[:size]...)
		}
		s = s[size:]
	}
	return out, nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *bytesText) UnmarshalText(b []byte) error {
	var out []byte
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] != '\\':
			out = append(out, b[i])
		case i+1 < len(b) && b[i+1] == '\\':
			out = append(out, '\\')
			i++
		case i+3 < len(b) && b[i+1] == 'x':
			v, err := strconv.ParseUint(string(b[i+2:i+4]), 16, 8)
			if err != nil {
				return fmt.Errorf("the text %q has an escape that is none", b)
			}
			out = append(out, byte(v))
			i += 3
		default:
			return fmt.Errorf("the text %q has an escape that is none", b)
		}
	}
	*t = bytesText(out)
	return nil
}

func toTexts(list []string) []bytesText {
	if list == nil {
		return nil
	}
	out := make([]bytesText, len(list))
	for i, s := range list {
		out[i] = bytesText(s)
	}
	return out
}

func fromTexts(list []bytesText) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// strict reads one JSON value and nothing else: a member that this version does
// not know may be what narrows an answer.
func strict(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("there is more after it")
	}
	return nil
}

type jsonProcess struct {
	PID        int         `json:"pid,omitempty"`
	Exec       uint64      `json:"exec,omitempty"`
	Parent     int         `json:"parent,omitempty"`
	ParentExec uint64      `json:"parent_exec,omitempty"`
	Executable bytesText   `json:"executable,omitempty"`
	SHA256     string      `json:"sha256,omitempty"`
	Cwd        bytesText   `json:"cwd,omitempty"`
	Argv       []bytesText `json:"argv,omitempty"`
}

type jsonAttempt struct {
	Kind             event.Kind  `json:"kind"`
	Process          jsonProcess `json:"process"`
	ParentExecutable bytesText   `json:"parent_executable,omitempty"`
	Path             bytesText   `json:"path,omitempty"`
	Script           bytesText   `json:"script,omitempty"`
	ScriptSHA256     string      `json:"script_sha256,omitempty"`
	Interpreted      []bytesText `json:"interpreted,omitempty"`
	Between          []bytesText `json:"between,omitempty"`
	Command          bool        `json:"command,omitempty"`
	Environment      []bytesText `json:"environment,omitempty"`
	EnvUnknown       bool        `json:"environment_unknown,omitempty"`
	Operation        string      `json:"operation,omitempty"`
	To               bytesText   `json:"to,omitempty"`
	Host             bytesText   `json:"host,omitempty"`
	Port             int         `json:"port,omitempty"`
	Protocol         string      `json:"protocol,omitempty"`
	Method           bytesText   `json:"method,omitempty"`
	URLPath          bytesText   `json:"url_path,omitempty"`
	Known            bool        `json:"known,omitempty"`
	Name             bytesText   `json:"name,omitempty"`
	Agent            bytesText   `json:"agent,omitempty"`
	Tool             bytesText   `json:"tool,omitempty"`
	Server           bytesText   `json:"server,omitempty"`
	Arguments        bytesText   `json:"arguments,omitempty"`
	Cut              bool        `json:"cut,omitempty"`
}

func attemptToJSON(a event.Attempt) jsonAttempt {
	p := a.Process
	return jsonAttempt{
		Kind: a.Kind, Process: jsonProcess{
			PID: p.PID, Exec: p.Exec, Parent: p.Parent, ParentExec: p.ParentExec,
			Executable: bytesText(p.Executable), SHA256: p.SHA256, Cwd: bytesText(p.Cwd), Argv: toTexts(p.Argv),
		},
		ParentExecutable: bytesText(a.ParentExecutable), Path: bytesText(a.Path), Script: bytesText(a.Script), ScriptSHA256: a.ScriptSHA256, Interpreted: toTexts(a.Interpreted),
		Between: toTexts(a.Between), Command: a.Command, Environment: toTexts(a.Environment), EnvUnknown: a.EnvironmentUnknown,
		Operation: a.Operation, To: bytesText(a.To), Host: bytesText(a.Host), Port: a.Port, Protocol: a.Protocol,
		Method: bytesText(a.Method), URLPath: bytesText(a.URLPath), Known: a.Known, Name: bytesText(a.Name),
		Agent: bytesText(a.Agent), Tool: bytesText(a.Tool), Server: bytesText(a.Server), Arguments: bytesText(a.Arguments), Cut: a.Cut,
	}
}

func (j jsonAttempt) attempt() event.Attempt {
	p := j.Process
	return event.Attempt{
		Kind: j.Kind, Process: event.Process{
			PID: p.PID, Exec: p.Exec, Parent: p.Parent, ParentExec: p.ParentExec,
			Executable: string(p.Executable), SHA256: p.SHA256, Cwd: string(p.Cwd), Argv: fromTexts(p.Argv),
		},
		ParentExecutable: string(j.ParentExecutable), Path: string(j.Path), Script: string(j.Script), ScriptSHA256: j.ScriptSHA256, Interpreted: fromTexts(j.Interpreted),
		Between: fromTexts(j.Between), Command: j.Command, Environment: fromTexts(j.Environment), EnvironmentUnknown: j.EnvUnknown,
		Operation: j.Operation, To: string(j.To), Host: string(j.Host), Port: j.Port, Protocol: j.Protocol,
		Method: string(j.Method), URLPath: string(j.URLPath), Known: j.Known, Name: string(j.Name),
		Agent: string(j.Agent), Tool: string(j.Tool), Server: string(j.Server), Arguments: string(j.Arguments), Cut: j.Cut,
	}
}

type jsonAsker struct {
	PID        int         `json:"pid,omitempty"`
	Executable bytesText   `json:"executable,omitempty"`
	Argv       []bytesText `json:"argv,omitempty"`
}

type jsonRequest struct {
	ID       string      `json:"id"`
	Nonce    string      `json:"nonce"`
	Session  string      `json:"session"`
	Asked    time.Time   `json:"asked"`
	Expires  time.Time   `json:"expires"`
	Attempt  jsonAttempt `json:"attempt"`
	Chain    []jsonAsker `json:"chain,omitempty"`
	Rule     bytesText   `json:"rule,omitempty"`
	Reason   bytesText   `json:"reason,omitempty"`
	Digest   string      `json:"digest"`
	Count    int         `json:"count"`
	Writable bool        `json:"writable,omitempty"`
	Limited  string      `json:"limited,omitempty"`
	What     []Line      `json:"what,omitempty"`
}

// MarshalJSON writes r as docs/formats/approval.md says, with what Describe
// makes of it.
func (r Request) MarshalJSON() ([]byte, error) {
	j := jsonRequest{
		ID: r.ID, Nonce: r.Nonce, Session: r.Session, Asked: r.Asked, Expires: r.Expires, Attempt: attemptToJSON(r.Attempt),
		Rule: bytesText(r.Rule), Reason: bytesText(r.Reason), Digest: r.Digest, Count: r.Count, Writable: r.Writable,
		Limited: r.Limited(), What: Describe(r),
	}
	for _, a := range r.Chain {
		j.Chain = append(j.Chain, jsonAsker{a.PID, bytesText(a.Executable), toTexts(a.Argv)})
	}
	return canonical.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes; what was described there is
// described anew.
func (r *Request) UnmarshalJSON(b []byte) error {
	var j jsonRequest
	if err := strict(b, &j); err != nil {
		return fmt.Errorf("reading a request for approval: %w", err)
	}
	*r = Request{
		ID: j.ID, Nonce: j.Nonce, Session: j.Session, Asked: j.Asked, Expires: j.Expires, Attempt: j.Attempt.attempt(),
		Rule: string(j.Rule), Reason: string(j.Reason), Digest: j.Digest, Count: j.Count, Writable: j.Writable,
	}
	for _, a := range j.Chain {
		r.Chain = append(r.Chain, Asker{a.PID, string(a.Executable), fromTexts(a.Argv)})
	}
	return nil
}
