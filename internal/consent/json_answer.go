package consent

import (
	"fmt"
	"time"

	"holdfast.dev/holdfast/internal/floor/canonical"
	"holdfast.dev/holdfast/internal/floor/event"
)

// seconds is a time span in JSON, as in 15m0s.
type seconds time.Duration

// MarshalText implements encoding.TextMarshaler.
func (s seconds) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *seconds) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	*s = seconds(d)
	return err
}

type jsonAnswer struct {
	Session   string    `json:"session"`
	Request   string    `json:"request,omitempty"`
	Nonce     string    `json:"nonce,omitempty"`
	Digest    string    `json:"digest,omitempty"`
	Grant     string    `json:"grant,omitempty"`
	Allow     bool      `json:"allow"`
	Scope     Scope     `json:"scope,omitempty"`
	For       seconds   `json:"for,omitzero"`
	Directory bool      `json:"directory,omitempty"`
	Uses      int       `json:"uses,omitempty"`
	Reason    bytesText `json:"reason,omitempty"`
	By        bytesText `json:"by"`
	Via       bytesText `json:"via,omitempty"`
	At        time.Time `json:"at,omitzero"`
}

// MarshalJSON writes a as docs/formats/approval.md says.
func (a Answer) MarshalJSON() ([]byte, error) {
	return canonical.Marshal(jsonAnswer{
		Session: a.Session, Request: a.Request, Nonce: a.Nonce, Digest: a.Digest, Grant: a.Grant, Allow: a.Allow, Scope: a.Scope,
		For: seconds(a.For), Directory: a.Directory, Uses: a.Uses, Reason: bytesText(a.Reason), By: bytesText(a.By), Via: bytesText(a.Via), At: a.At,
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *Answer) UnmarshalJSON(b []byte) error {
	var j jsonAnswer
	if err := strict(b, &j); err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	*a = Answer{
		Session: j.Session, Request: j.Request, Nonce: j.Nonce, Digest: j.Digest, Grant: j.Grant, Allow: j.Allow, Scope: j.Scope,
		For: time.Duration(j.For), Directory: j.Directory, Uses: j.Uses, Reason: string(j.Reason), By: string(j.By), Via: string(j.Via), At: j.At,
	}
	return nil
}

type jsonSigned struct {
	Answer    Answer `json:"answer"`
	Key       []byte `json:"key"`
	Signature []byte `json:"signature"`
}

// MarshalJSON writes s as docs/formats/approval.md says.
func (s Signed) MarshalJSON() ([]byte, error) { return canonical.Marshal(jsonSigned(s)) }

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Signed) UnmarshalJSON(b []byte) error {
	var j jsonSigned
	if err := strict(b, &j); err != nil {
		return fmt.Errorf("reading a signed answer: %w", err)
	}
	*s = Signed(j)
	return nil
}

type jsonCovers struct {
	Kind         event.Kind  `json:"kind"`
	Executable   bytesText   `json:"executable,omitempty"`
	SHA256       string      `json:"sha256,omitempty"`
	Argv         []bytesText `json:"argv,omitempty"`
	Cwd          bytesText   `json:"cwd,omitempty"`
	Parent       bytesText   `json:"parent,omitempty"`
	Script       bytesText   `json:"script,omitempty"`
	ScriptSHA256 string      `json:"script_sha256,omitempty"`
	Interpreted  []bytesText `json:"interpreted,omitempty"`
	Environment  []bytesText `json:"environment,omitempty"`
	Path         bytesText   `json:"path,omitempty"`
	Directory    bool        `json:"directory,omitempty"`
	Operation    string      `json:"operation,omitempty"`
	To           bytesText   `json:"to,omitempty"`
	Host         bytesText   `json:"host,omitempty"`
	Port         int         `json:"port,omitempty"`
	Protocol     string      `json:"protocol,omitempty"`
	Method       bytesText   `json:"method,omitempty"`
	URLPath      bytesText   `json:"url_path,omitempty"`
	Name         bytesText   `json:"name,omitempty"`
	Agent        bytesText   `json:"agent,omitempty"`
	Server       bytesText   `json:"server,omitempty"`
	Tool         bytesText   `json:"tool,omitempty"`
	Arguments    string      `json:"arguments,omitempty"`
}

type jsonGrant struct {
	ID        string     `json:"id"`
	Session   string     `json:"session"`
	Covers    jsonCovers `json:"covers"`
	Words     string     `json:"words"`
	Rule      bytesText  `json:"rule,omitempty"`
	Request   string     `json:"request"`
	Scope     Scope      `json:"scope"`
	Begun     time.Time  `json:"begun"`
	Expires   time.Time  `json:"expires,omitzero"`
	Uses      int        `json:"uses"`
	Used      int        `json:"used"`
	By        bytesText  `json:"by"`
	Via       bytesText  `json:"via,omitempty"`
	Reason    bytesText  `json:"reason,omitempty"`
	Signature []byte     `json:"signature"`
}

// MarshalJSON writes g as docs/formats/approval.md says.
func (g Grant) MarshalJSON() ([]byte, error) {
	c := g.Covers
	return canonical.Marshal(jsonGrant{
		ID: g.ID, Session: g.Session, Words: g.Covers.Words(), Covers: jsonCovers{
			Kind: c.Kind, Executable: bytesText(c.Executable), SHA256: c.SHA256, Argv: toTexts(c.Argv), Cwd: bytesText(c.Cwd), Parent: bytesText(c.Parent),
			Script: bytesText(c.Script), ScriptSHA256: c.ScriptSHA256, Interpreted: toTexts(c.Interpreted), Environment: toTexts(c.Environment), Path: bytesText(c.Path), Directory: c.Directory, Operation: c.Operation, To: bytesText(c.To),
			Host: bytesText(c.Host), Port: c.Port, Protocol: c.Protocol, Method: bytesText(c.Method), URLPath: bytesText(c.URLPath), Name: bytesText(c.Name),
			Agent: bytesText(c.Agent), Server: bytesText(c.Server), Tool: bytesText(c.Tool), Arguments: c.Arguments,
		},
		Rule: bytesText(g.Rule), Request: g.Request, Scope: g.Scope, Begun: g.Begun, Expires: g.Expires, Uses: g.Uses, Used: g.Used,
		By: bytesText(g.By), Via: bytesText(g.Via), Reason: bytesText(g.Reason), Signature: g.Signature,
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (g *Grant) UnmarshalJSON(b []byte) error {
	var j jsonGrant
	if err := strict(b, &j); err != nil {
		return fmt.Errorf("reading an approval: %w", err)
	}
	c := j.Covers
	*g = Grant{
		ID: j.ID, Session: j.Session, Covers: Covers{
			Kind: c.Kind, Executable: string(c.Executable), SHA256: c.SHA256, Argv: fromTexts(c.Argv), Cwd: string(c.Cwd), Parent: string(c.Parent),
			Script: string(c.Script), ScriptSHA256: c.ScriptSHA256, Interpreted: fromTexts(c.Interpreted), Environment: fromTexts(c.Environment), Path: string(c.Path), Directory: c.Directory, Operation: c.Operation, To: string(c.To),
			Host: string(c.Host), Port: c.Port, Protocol: c.Protocol, Method: string(c.Method), URLPath: string(c.URLPath), Name: string(c.Name),
			Agent: string(c.Agent), Server: string(c.Server), Tool: string(c.Tool), Arguments: c.Arguments,
		},
		Rule: string(j.Rule), Request: j.Request, Scope: j.Scope, Begun: j.Begun, Expires: j.Expires, Uses: j.Uses, Used: j.Used,
		By: string(j.By), Via: string(j.Via), Reason: string(j.Reason), Signature: j.Signature,
	}
	return nil
}
