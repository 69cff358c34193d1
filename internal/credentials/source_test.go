package credentials

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

func fetchFrom(t *testing.T, ctx context.Context, s policy.CredentialSource, sign string, c Config) (Secret, *result, error) {
	t.Helper()
	cred := envCredential("x", "UNUSED")
	cred.Source, cred.Sign = s, sign
	if c.Env == nil {
		c.Env = environment()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Environ == nil {
		c.Environ = []string{"PATH=/usr/bin:/bin"}
	}
	src, err := sourceOf(cred, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := src.fetch(ctx)
	if err != nil {
		return Secret{}, nil, err
	}
	return r.secret(), r, nil
}

func TestFileSource(t *testing.T) {
	t.Parallel()
	dir, tree := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, at("good"), theSecret+"\n", 0o600)
	writeFile(t, at("crlf"), theSecret+"\r\n", 0o600)
	writeFile(t, at("group"), theSecret, 0o620)
	writeFile(t, at("world"), theSecret, 0o602)
	writeFile(t, at("large"), strings.Repeat("a", 1<<20), 0o600)
	writeFile(t, filepath.Join(tree, "token"), theSecret, 0o600)
	for link, to := range map[string]string{"link": at("good"), "into": filepath.Join(tree, "token")} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"a file of the user", at("good"), ""},
		{"a line that ends as on Windows", at("crlf"), ""},
		{"a link to such a file", at("link"), ""},
		{"a file that the group can write", at("group"), "can be written by others"},
		{"a file that everybody can write", at("world"), "can be written by others"},
		{"a file that is too long", at("large"), "bytes"},
		{"a directory", dir, "not a regular file"},
		{"a pipe, which is not waited for", at("pipe"), "not a regular file"},
		{"a device", "/dev/zero", "not a regular file"},
		{"a file that is not there", at("absent"), "no such file"},
		{"a file that the command can change", filepath.Join(tree, "token"), "which the command inside can change"},
		{"a link to one", at("into"), "which the command inside can change"},
		{"a path that only looks like elsewhere", filepath.Join(dir, "..", filepath.Base(tree), "token"), "which the command inside can change"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _, err := fetchFrom(t, t.Context(), policy.CredentialSource{Kind: "file", Value: c.path}, "", Config{Writable: []string{tree}})
			switch {
			case c.want == "" && (err != nil || s.Value != theSecret):
				t.Errorf("%d bytes, %v", len(s.Value), err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			case err != nil && strings.Contains(err.Error(), theSecret):
				t.Error("the error holds the secret")
			}
		})
	}
}

func script(t *testing.T, body string) []string {
	t.Helper()
	return []string{writeFile(t, filepath.Join(t.TempDir(), "helper"), "#!/bin/sh\n"+body+"\n", 0o755)}
}

func TestCommandSource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body, value, want string }{
		{"prints a line", "echo " + theSecret, theSecret, ""},
		{"prints without a newline", "printf %s " + theSecret, theSecret, ""},
		{"one newline is cut, not two", "printf '" + theSecret + "\\n\\n'", theSecret + "\n", ""},
		{"its standard error is not the secret", "echo noise >&2; echo " + theSecret, theSecret, ""},
		{"has no input to wait for", "cat; echo " + theSecret, theSecret, ""},
		{"is in a directory that nobody can prepare", "pwd; exit 0", "/", ""},
		{"fails with the secret on standard error", "echo " + theSecret + " >&2; exit 7", "", "exit status 7"},
		{"fails after it printed the secret", "echo " + theSecret + "; exit 1", "", "exit status 1"},
		{"says why in words that are known", "echo 'error: not logged in as " + theSecret + "' >&2; exit 1", "", "it mentions: not logged in"},
		{"prints too much", "yes " + theSecret + " | head -c 70000", "", "more than 64 KiB"},
		{"prints without end", "yes " + theSecret, "", "more than 64 KiB"},
		{"kills itself", "kill -9 $$", "", "signal: killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _, err := fetchFrom(t, t.Context(), policy.CredentialSource{Kind: "command", Argv: script(t, c.body)}, "", Config{})
			switch {
			case c.want == "" && (err != nil || s.Value != c.value):
				t.Errorf("%q, %v", s.Value, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			case err != nil && strings.Contains(err.Error(), theSecret):
				t.Error("the error holds the secret")
			}
		})
	}
}

func TestACommandThatHangsIsEndedWithAllItStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	argv := script(t, "sleep 1000 & echo $! > '"+pids+".new'; echo $$ >> '"+pids+".new'; mv '"+pids+".new' '"+pids+"'; wait")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, _, err := fetchFrom(t, ctx, policy.CredentialSource{Kind: "command", Argv: argv}, "", Config{})
		done <- err
	}()
	started := await(t, func() []byte { data, _ := os.ReadFile(pids); return data })
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "was stopped") {
		t.Errorf("error %v", err)
	}
	for _, text := range strings.Fields(string(started)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		await(t, func() []byte {
			if syscall.Kill(pid, 0) == syscall.ESRCH || zombie(pid) {
				return []byte("gone")
			}
			return nil
		})
	}
}

func zombie(pid int) bool {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.HasPrefix(rest, "Z")
}

// await asks again until there is an answer.
func await(t *testing.T, ask func() []byte) []byte {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if got := ask(); len(got) > 0 {
			return got
		}
	}
	t.Fatal("it did not happen in 20 s")
	return nil
}

func TestACommandThatLeavesAProcessBehindDoesNotHoldUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	argv := script(t, "sleep 1000 & echo $! > '"+pid+"'; echo "+theSecret)
	_, _, err := fetchFrom(t, t.Context(), policy.CredentialSource{Kind: "command", Argv: argv}, "", Config{})
	if err == nil || !strings.Contains(err.Error(), "kept its output open") {
		t.Errorf("error %v", err)
	}
	data, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	await(t, func() []byte {
		if syscall.Kill(n, 0) == syscall.ESRCH || zombie(n) {
			return []byte("gone")
		}
		return nil
	})
}

func TestACommandIsFoundOnlyWhereTheInsideCannotPutIt(t *testing.T) {
	t.Parallel()
	tree, tools := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(tree, "gettoken"), "#!/bin/sh\necho from-the-workspace\n", 0o755)
	writeFile(t, filepath.Join(tools, "gettoken"), "#!/bin/sh\necho "+theSecret+"\n", 0o755)
	writeFile(t, filepath.Join(tools, "plain"), "no program\n", 0o644)
	if err := os.Symlink(filepath.Join(tree, "gettoken"), filepath.Join(tools, "linked")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(tree, "inner"), "#!/bin/sh\necho from-the-workspace\n", 0o755)
	writeFile(t, filepath.Join(tools, "interpreted"), "#!"+filepath.Join(tree, "inner")+"\n", 0o755)
	writeFile(t, filepath.Join(tools, "found"), "#!/usr/bin/env -S A=b inner\n", 0o755)
	writeFile(t, filepath.Join(tools, "searches"), "#!/bin/sh\ninner 2>/dev/null || echo "+theSecret+"\n", 0o755)
	for from, to := range map[string]string{filepath.Join(tree, "hop"): filepath.Join(tools, "gettoken"), filepath.Join(tools, "hop"): filepath.Join(tree, "hop")} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, program, path, want string }{
		{"in PATH", "gettoken", tools, ""},
		{"a relative entry of PATH is passed over", "gettoken", ".::bin:" + tools, ""},
		{"first in a writable tree", "gettoken", tree + ":" + tools, "which the command inside can change"},
		{"a link into a writable tree", "linked", tools, "which the command inside can change"},
		{"a link that leads back out of a writable tree", "hop", tools, "through the link"},
		{"a script whose interpreter is in a writable tree", "interpreted", tools, "which the command inside can change"},
		{"a script whose interpreter env finds in a writable tree", "found", tools + ":" + tree, "which the command inside can change"},
		{"a script that finds nothing in a writable tree", "searches", tools + ":" + tree + ":/bin:/usr/bin", ""},
		{"not executable", "plain", tools, "no executable program"},
		{"nowhere", "absent", tools, "no executable program"},
		{"no PATH at all", "gettoken", "", "no executable program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _, err := fetchFrom(t, t.Context(), policy.CredentialSource{Kind: "command", Argv: []string{c.program}}, "", Config{Environ: []string{"PATH=" + c.path}, Writable: []string{tree}})
			if c.want == "" && (err != nil || s.Value != theSecret) {
				t.Errorf("%q, %v", s.Value, err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestACommandReadsNothingThatTheInsideCanChange(t *testing.T) {
	t.Parallel()
	tree, tools := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(tree, "script"), "echo from-the-workspace\n", 0o644)
	writeFile(t, filepath.Join(tools, "script"), "echo "+theSecret+"\n", 0o644)
	if err := os.Symlink(tree, filepath.Join(tools, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		argv []string
		ok   bool
	}{
		{"a script elsewhere", []string{"/bin/sh", filepath.Join(tools, "script")}, true},
		{"a script in the workspace", []string{"/bin/sh", filepath.Join(tree, "script")}, false},
		{"by a link", []string{"/bin/sh", filepath.Join(tools, "link", "script")}, false},
		{"by a way around", []string{"/bin/sh", tools + "/../" + filepath.Base(tree) + "/script"}, false},
		{"in the value of a flag", []string{"/bin/sh", "--rcfile=" + filepath.Join(tree, "script")}, false},
		{"not there yet", []string{"/bin/sh", filepath.Join(tree, "later")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _, err := fetchFrom(t, t.Context(), policy.CredentialSource{Kind: "command", Argv: c.argv}, "", Config{Writable: []string{tree}})
			if c.ok != (err == nil && s.Value == theSecret) || !c.ok && !strings.Contains(fmt.Sprint(err), "which the command inside can change") {
				t.Errorf("%q, %v", s.Value, err)
			}
		})
	}
}

func TestACommandDoesNotSeeTheSecretsOfOtherSources(t *testing.T) {
	t.Parallel()
	command := envCredential("command", "UNUSED")
	command.Source = policy.CredentialSource{Kind: "command", Argv: []string{"/usr/bin/env"}}
	b := newBroker(t, Config{
		Credentials: []policy.Credential{envCredential("github", "TOKEN"), command},
		Env:         environment("TOKEN", theSecret), Environ: []string{"TOKEN=" + theSecret, "OTHER=stays"},
	})
	s := mustOpen(t, b, "command")
	if s.Value != "OTHER=stays" {
		t.Error("the command's environment is not what was left of it")
	}
}

func TestKeysOfAWS(t *testing.T) {
	t.Parallel()
	printed := func(fields map[string]any) string {
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	good := map[string]any{"Version": 1, "AccessKeyId": "AKIDEXAMPLE0123456", "SecretAccessKey": theSecret, "SessionToken": "session-" + theSecret, "Expiration": "2030-01-02T03:04:05Z"}
	change := func(key string, value any) string {
		other := map[string]any{}
		for k, v := range good {
			other[k] = v
		}
		other[key] = value
		return printed(other)
	}
	for _, c := range []struct{ name, text, want string }{
		{"what credential_process prints", printed(good), ""},
		{"another version", change("Version", 2), "version 2"},
		{"no key id", change("AccessKeyId", ""), "no access key id"},
		{"no secret", change("SecretAccessKey", ""), "gave nothing"},
		{"a time that is none", change("Expiration", "tomorrow"), "not RFC 3339"},
		{"a time that has passed", change("Expiration", "2001-01-02T03:04:05Z"), "expired already"},
		{"text that is no JSON", theSecret, "did not give the JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cred := envCredential("aws", "KEYS")
			cred.Sign, cred.Env = signAWS, nil
			b := newBroker(t, Config{Credentials: []policy.Credential{cred}, Env: environment("KEYS", c.text)})
			s, err := b.Open(t.Context(), "aws", toAPI)
			if c.want == "" {
				if err != nil || s.Fields[policy.KeyID] != "AKIDEXAMPLE0123456" || s.Fields[policy.SecretKey] != theSecret || s.Fields[policy.SessionToken] != "session-"+theSecret {
					t.Errorf("%v", err)
				}
				if len(b.Issued()) != 2 {
					t.Errorf("%d issued values, want the key and the token", len(b.Issued()))
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), theSecret) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestTheThreeVariablesOfAWS(t *testing.T) {
	t.Parallel()
	cred := envCredential("aws", "AWS_ACCESS_KEY_ID")
	cred.Sign, cred.Env = signAWS, nil
	b := newBroker(t, Config{Credentials: []policy.Credential{cred},
		Env: environment("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE0123456", "AWS_SECRET_ACCESS_KEY", theSecret)})
	s := mustOpen(t, b, "aws")
	if s.Fields[policy.KeyID] != "AKIDEXAMPLE0123456" || s.Fields[policy.SecretKey] != theSecret || len(s.Fields) != 2 {
		t.Error("not the variables")
	}
	var names []string
	for _, e := range b.Placeholders() {
		names = append(names, e.Name)
		if got := b.Detect([]byte("x" + e.Value + "y")); len(got) != 1 || got[0] != "aws" {
			t.Errorf("the placeholder in %s is not detected: %v", e.Name, got)
		}
	}
	if strings.Join(names, " ") != "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY" {
		t.Errorf("variables %v", names)
	}
}
