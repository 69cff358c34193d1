package realtest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/prove/model"
	"holdfast.dev/holdfast/internal/testenv"
)

// The keys of the stand-in for AWS.
const (
	awsID     = "AKIAIOSFODNN7EXAMPLE"
	awsSecret = "not-a-real-secret-key/0123456789abcdefghij"
	awsToken  = "not-a-real-session-token-0123456789abcdefghijklmnop"
	awsBearer = "not-a-real-bedrock-key-0123456789abcdefghijklmnop"
)

// bedrockLogins are the places where Claude Code finds what it needs for Bedrock. The
// region of all is eu-central-1.
var bedrockLogins = []struct {
	name string
	env  []string
	home map[string]string // files; {root} is the directory above the home
	lack string            // what is said instead; "" if it works
}{
	{
		name: "keys in variables",
		env:  []string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=" + awsID, "AWS_SECRET_ACCESS_KEY=" + awsSecret, "AWS_SESSION_TOKEN=" + awsToken},
	},
	{
		name: "a bearer key in a variable",
		env:  []string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=eu-central-1", "AWS_BEARER_TOKEN_BEDROCK=" + awsBearer},
	},
	{
		name: "a profile with keys, chosen in the settings",
		home: map[string]string{
			".claude/settings.json": `{"env": {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_PROFILE": "work"}}`,
			".aws/credentials":      "[default]\naws_access_key_id = AKIAWRONG\n\n[work]\naws_access_key_id = " + awsID + "\naws_secret_access_key = " + awsSecret + "\naws_session_token = " + awsToken + "\n",
			".aws/config":           "[profile work]\nregion = eu-central-1\n",
		},
	},
	{
		name: "keys in the settings",
		home: map[string]string{".claude/settings.json": `{"env": {"CLAUDE_CODE_USE_BEDROCK": "true", "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "` + awsID + `", "AWS_SECRET_ACCESS_KEY": "` + awsSecret + `", "AWS_SESSION_TOKEN": "` + awsToken + `"}}`},
	},
	{
		name: "a profile with a program that prints keys",
		env:  []string{"CLAUDE_CODE_USE_BEDROCK=1"},
		home: map[string]string{
			".aws/config": "[default]\nregion = eu-central-1\ncredential_process = {root}/bin/keys\n",
			"../bin/keys": "#!/bin/sh\necho '" + `{"Version": 1, "AccessKeyId": "` + awsID + `", "SecretAccessKey": "` + awsSecret + `", "SessionToken": "` + awsToken + `"}` + "'\n",
		},
	},
	{
		name: "a profile that only the program of AWS can use",
		env:  []string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_PROFILE=sso"},
		home: map[string]string{".aws/config": "[profile sso]\nregion = eu-central-1\nsso_session = work\nsso_account_id = 1\nsso_role_name = dev\n"},
		lack: "Claude Code has no credential: the AWS profile sso needs the program aws",
	},
}

// TestClaudeOnBedrock lets Claude Code work with a model of Bedrock, without a flag,
// where the login lies in each of its places.
func TestClaudeOnBedrock(t *testing.T) {
	const runtime, control = "bedrock-runtime.eu-central-1.amazonaws.com", "bedrock.eu-central-1.amazonaws.com"
	withModels(t, testenv.Agents, []string{runtime, control}, func(t *testing.T, w *world, p *provider) {
		b := &bedrock{model: model.New(model.Options{Lookup: p.lookup, Turn: p.turn})}
		w.serveModels(b, runtime, control)
		dirs := worker{name: "claude"}.dirs(t)
		for i, login := range bedrockLogins {
			t.Run(login.name, func(t *testing.T) {
				f := newFixture(t, w.root)
				a := worker{name: "claude", env: login.env, home: map[string]string{}, key: "UNUSED"}
				for name, text := range login.home {
					a.home[name] = strings.ReplaceAll(text, "{root}", filepath.Dir(f.ws))
				}
				a.settle(f, dirs)
				name := fmt.Sprint("bedrock-", i)
				p.add(name, f.ws, []model.Step{{Op: model.Write, Path: "{ws}/done", Content: "by " + name}})
				if login.lack != "" {
					contains(t, a.start(f, dirs, "--version"), login.lack)
					return
				}
				said := a.start(f, dirs, "-p", "go "+model.Marker(name), "--dangerously-skip-permissions")
				if f.bare("cat done || true") != "by "+name {
					t.Errorf("not done; refused: %q\n%s", b.taken(), said)
				}
				for _, secret := range []string{awsSecret, awsToken, awsBearer} {
					if strings.Contains(said, secret) {
						t.Errorf("%s is printed:\n%s", secret, said)
					}
				}
			})
		}
	})
}

// TestClaudeOnVertex lets Claude Code work with a model of Vertex AI: its token is what
// gcloud prints.
func TestClaudeOnVertex(t *testing.T) {
	const host, token = "europe-west1-aiplatform.googleapis.com", "ya29." + "not-a-real-token-0123456789abcdefgh"
	withModels(t, testenv.Agents, []string{host}, func(t *testing.T, w *world, p *provider) {
		models := model.New(model.Options{Lookup: p.lookup, Turn: p.turn})
		w.serveModels(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var message map[string]any
			switch {
			case r.Header.Get("Authorization") != "Bearer "+token:
				http.Error(w, `{"error": {"code": 401, "status": "UNAUTHENTICATED"}}`, http.StatusUnauthorized)
				return
			case !strings.HasPrefix(r.URL.Path, "/v1/projects/project-1/locations/europe-west1/publishers/anthropic/models/") || json.NewDecoder(r.Body).Decode(&message) != nil:
				http.Error(w, `{"error": {"code": 404, "status": "NOT_FOUND"}}`, http.StatusNotFound)
				return
			}
			message["model"] = "claude"
			delete(message, "anthropic_version")
			text, _ := json.Marshal(message) // it was JSON
			inner := r.Clone(r.Context())
			inner.URL.Path, inner.Body, inner.ContentLength = "/v1/messages", io.NopCloser(bytes.NewReader(text)), int64(len(text))
			models.ServeHTTP(w, inner)
		}), host)
		dirs := worker{name: "claude"}.dirs(t)
		variables := []string{"CLAUDE_CODE_USE_VERTEX=1", "CLOUD_ML_REGION=europe-west1", "ANTHROPIC_VERTEX_PROJECT_ID=project-1"}
		t.Run("login", func(t *testing.T) {
			f := newFixture(t, w.root)
			a := worker{name: "claude", key: "UNUSED", env: variables, home: map[string]string{
				"../bin/gcloud": "#!/bin/sh\necho " + token + "\n",
				".config/gcloud/application_default_credentials.json": `{"type": "authorized_user", "refresh_token": "1//0-not-a-real-one"}`,
			}}
			a.settle(f, append([]string{f.ws + "/../bin"}, dirs...))
			p.add("vertex", f.ws, []model.Step{{Op: model.Write, Path: "{ws}/done", Content: "by Vertex"}})
			said := a.start(f, dirs, "-p", "go "+model.Marker("vertex"), "--dangerously-skip-permissions")
			if f.bare("cat done || true") != "by Vertex" || strings.Contains(said, token) {
				t.Errorf("not done, or the token is printed:\n%s", said)
			}
		})
		t.Run("the key of a service account", func(t *testing.T) {
			f := newFixture(t, w.root)
			file := filepath.Join(filepath.Dir(f.ws), "key.json")
			a := worker{name: "claude", key: "UNUSED", env: append(slices.Clip(variables), "GOOGLE_APPLICATION_CREDENTIALS="+file), home: map[string]string{
				"../bin/gcloud": "#!/bin/sh\ngrep -q service_account \"$GOOGLE_APPLICATION_CREDENTIALS\" && echo " + token + "\n",
				"../key.json":   `{"type": "service_account", "private_key": "not-a-real-one"}`,
			}}
			a.settle(f, append([]string{f.ws + "/../bin"}, dirs...))
			p.add("account", f.ws, []model.Step{{Op: model.Write, Path: "{ws}/done", Content: "by Vertex"}})
			said := a.start(f, dirs, "-p", "go "+model.Marker("account"), "--dangerously-skip-permissions")
			if f.bare("cat done || true") != "by Vertex" || strings.Contains(said, token) {
				t.Errorf("not done, or the token is printed:\n%s", said)
			}
		})
		t.Run("no login", func(t *testing.T) {
			f := newFixture(t, w.root)
			a := worker{name: "claude", key: "UNUSED", env: variables}
			a.settle(f, dirs)
			contains(t, a.start(f, dirs, "--version"), "Claude Code has no credential: install gcloud, and type: gcloud auth application-default login")
		})
	})
}

// start starts the agent inside as its user does, without a flag, and returns all its
// output.
func (a worker) start(p *fixture, dirs []string, argv ...string) string {
	p.t.Helper()
	args := append([]string{"run"}, visible(dirs)...)
	out, complaint := p.both(testenv.Binary(p.t), append(append(args, "--", a.name), argv...)...)
	if strings.Contains(complaint, "holdfast: refused: ") || strings.Contains(complaint, "holdfast: alert") {
		p.t.Errorf("at honest work: %s", complaint)
	}
	return out + complaint
}

// bedrock is a stand-in for Amazon Bedrock in front of the scripted model: it verifies
// signatures of version 4, and answers as an event stream.
type bedrock struct {
	model http.Handler

	mu      sync.Mutex
	refused []string
}

// taken returns what was refused since the last time.
func (b *bedrock) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.refused
	b.refused = nil
	return all
}

func (b *bedrock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Authorization") != "Bearer "+awsBearer {
		err = verifyV4(r, body)
	}
	if err != nil {
		b.mu.Lock()
		b.refused = append(b.refused, r.Method+" "+r.RequestURI+": "+err.Error())
		b.mu.Unlock()
		w.Header().Set("X-Amzn-Errortype", "InvalidSignatureException")
		http.Error(w, `{"message": "The request signature we calculated does not match"}`, http.StatusForbidden)
		return
	}
	stream := strings.HasSuffix(r.URL.Path, "/invoke-with-response-stream")
	if !stream && !strings.HasSuffix(r.URL.Path, "/invoke") {
		http.Error(w, `{"message": "there is none"}`, http.StatusNotFound)
		return
	}
	var message map[string]any
	if err := json.Unmarshal(body, &message); err != nil {
		http.Error(w, `{"message": "not JSON"}`, http.StatusBadRequest)
		return
	}
	message["model"], message["stream"] = "claude", stream
	delete(message, "anthropic_version")
	text, _ := json.Marshal(message) // it was JSON
	inner := httptest.NewRequestWithContext(r.Context(), http.MethodPost, "https://api.anthropic.com/v1/messages", bytes.NewReader(text))
	answer := httptest.NewRecorder()
	b.model.ServeHTTP(answer, inner)
	if !stream || answer.Code != http.StatusOK {
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes())
		return
	}
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	for line := range strings.Lines(answer.Body.String()) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			chunk, _ := json.Marshal(map[string]string{"bytes": base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(data)))})
			w.Write(eventFrame("chunk", chunk))
			w.(http.Flusher).Flush()
		}
	}
}

// eventFrame is one event of an event stream (application/vnd.amazon.eventstream).
func eventFrame(kind string, payload []byte) []byte {
	var headers []byte
	for _, h := range [][2]string{{":event-type", kind}, {":content-type", "application/json"}, {":message-type", "event"}} {
		const text = 7
		headers = append(headers, byte(len(h[0])))
		headers = append(append(headers, h[0]...), text)
		headers = append(binary.BigEndian.AppendUint16(headers, uint16(len(h[1]))), h[1]...)
	}
	const around = 16
	frame := binary.BigEndian.AppendUint32(nil, uint32(around+len(headers)+len(payload)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(headers)))
	frame = binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
	frame = append(append(frame, headers...), payload...)
	return binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
}

var v4Header = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$`)

// verifyV4 verifies the signature of a request with the keys of the stand-in.
func verifyV4(r *http.Request, body []byte) error {
	got := v4Header.FindStringSubmatch(r.Header.Get("Authorization"))
	if got == nil || got[1] != awsID {
		return fmt.Errorf("not signed by %s: %q", awsID, r.Header.Get("Authorization"))
	}
	if token := r.Header.Get("X-Amz-Security-Token"); token != awsToken {
		return fmt.Errorf("the session token is %q", token)
	}
	sum := sha256.Sum256(body)
	path := ""
	for _, c := range []byte(r.URL.EscapedPath()) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			path += string(c)
		} else {
			path += fmt.Sprintf("%%%02X", c)
		}
	}
	signed := strings.Split(got[5], ";")
	if !slices.Contains(signed, "x-amz-security-token") || !slices.IsSorted(signed) {
		return fmt.Errorf("signed headers are %q", signed)
	}
	text := r.Method + "\n" + path + "\n" + r.URL.RawQuery + "\n"
	for _, name := range signed {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		text += name + ":" + strings.Join(strings.Fields(value), " ") + "\n"
	}
	text += "\n" + got[5] + "\n" + hex.EncodeToString(sum[:])
	sum = sha256.Sum256([]byte(text))
	scope := strings.Join(append(slices.Clone(got[2:5]), "aws4_request"), "/")
	key := []byte("AWS4" + awsSecret)
	for _, part := range append(slices.Clone(got[2:5]), "aws4_request", "AWS4-HMAC-SHA256\n"+r.Header.Get("X-Amz-Date")+"\n"+scope+"\n"+hex.EncodeToString(sum[:])) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	if hex.EncodeToString(key) != got[6] {
		return fmt.Errorf("the signature does not match; signed:\n%s", text)
	}
	return nil
}
