package credentials

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/policy"
)

// offer is a credential of a preset, as it is written there.
type offer struct {
	Name, When string
	Source     struct {
		Env, File, Key, Variable, Where, Ends, AWS, Login string
		Command                                           []string
	}
	Renew struct{ Refresh string }
	Line  int `yaml:"-"`
}

// TestSecretsOfPresets: a run of each built-in preset begins, and gets the secret,
// wherever the preset looks for it.
func TestSecretsOfPresets(t *testing.T) {
	files, err := filepath.Glob("../policy/presets/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		var preset struct{ Credentials []yaml.Node }
		if err == nil {
			err = yaml.Unmarshal(data, &preset)
		}
		if err != nil || len(preset.Credentials) == 0 {
			t.Fatalf("%s: %v", file, err)
		}
		for _, node := range preset.Credentials {
			o := offer{Line: node.Line}
			if err := node.Decode(&o); err != nil {
				t.Fatalf("%s:%d: %v", file, node.Line, err)
			}
			name := strings.TrimSuffix(filepath.Base(file), ".yaml")
			t.Run(fmt.Sprintf("%s line %d", name, o.Line), func(t *testing.T) { o.isUsed(t, name) })
		}
	}
}

const (
	offeredSecret  = "offered-secret-0123456789abcdef"
	offeredRefresh = "offered-refresh-0123456789abcdef"
)

// isUsed begins a run where this is the only credential that is there.
func (o offer) isUsed(t *testing.T, preset string) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := policy.Host{UID: 1000, GID: 1000, Name: "u", Home: home, Dir: home + "/ws", Config: home + "/config", State: home + "/state",
		Env: []string{"PATH=" + home + "/bin:/usr/bin:/bin", "HOME=" + home}}
	for name, text := range o.home() {
		at := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := programs.Write(at, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(h.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{o.Source.Env + "=" + offeredSecret, o.When + "=1"} {
		if v[0] != '=' {
			h.Env = append(h.Env, v)
		}
	}
	e, err := policy.Load(policy.Options{Host: h, Preset: preset})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(e, h)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Credentials) != 1 || p.Credentials[0].Origin.Line != o.Line {
		t.Fatalf("it is not the one that is used: %+v, %q", p.Credentials, p.Agent.Missing)
	}
	lookup := func(name string) (string, bool) {
		for _, v := range h.Env {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
	b := newBroker(t, Config{Credentials: p.Credentials, Env: lookup, Environ: h.Env, Writable: []string{h.Dir}})
	to := p.Credentials[0].Hosts[0]
	s, err := b.Open(t.Context(), o.Name, Use{Name: to.Host, Port: to.Port, Method: "GET", Path: "/"})
	if err != nil || s.Value != offeredSecret && s.Fields[policy.SecretKey] != offeredSecret {
		t.Errorf("got %d bytes, %v", len(s.Value), err)
	}
	if inside := fmt.Sprint(b.Placeholders(), b.Files()); strings.Contains(inside, offeredSecret) || strings.Contains(inside, offeredRefresh) {
		t.Errorf("inside is %s", inside)
	}
}

var inBraces = regexp.MustCompile(`\{[^}]*\}`)

// home are the files of a home in which the secret is, by their names.
func (o offer) home() map[string]string {
	s := o.Source
	switch {
	case s.AWS != "":
		return map[string]string{".aws/credentials": "[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = " + offeredSecret + "\n"}
	case len(s.Command) > 0:
		return map[string]string{"bin/" + s.Command[0]: "#!/bin/sh\necho " + offeredSecret + "\n", s.Login[2:]: "{}"}
	case s.Variable != "":
		return map[string]string{s.File[2:]: s.Variable + "=" + offeredSecret + "\n"}
	case s.File == "":
		return nil
	}
	content := map[string]any{}
	way, want, found := strings.Cut(s.Where, "=")
	if found {
		put(content, way, want)
	}
	var named []string // what the key takes from other places of the file
	key := inBraces.ReplaceAllStringFunc(s.Key, func(word string) string {
		word, value := strings.Trim(word, "{}"), "me"
		if word == way {
			value = want
		}
		put(content, word, value)
		named = append(named, value)
		return "{}"
	})
	parts := strings.Split(key, ".")
	for i := range parts {
		for strings.Contains(parts[i], "{}") {
			parts[i], named = strings.Replace(parts[i], "{}", named[0], 1), named[1:]
		}
	}
	putAt(content, parts, offeredSecret)
	if s.Ends != "" {
		put(content, s.Ends, time.Now().Add(time.Hour).UnixMilli())
	}
	if o.Renew.Refresh != "" {
		put(content, o.Renew.Refresh, offeredRefresh)
	}
	text, _ := json.Marshal(content) // of texts and a number
	return map[string]string{s.File[2:]: string(text)}
}
