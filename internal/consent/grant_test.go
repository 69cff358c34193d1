package consent

import (
	"reflect"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

func changed(a event.Attempt, change func(*event.Attempt)) event.Attempt {
	a.Process.Argv = append([]string(nil), a.Process.Argv...)
	change(&a)
	return a
}

func write() event.Attempt {
	return event.Attempt{
		Kind: event.KindFile, Path: "/home/you/other/src/a.go", Operation: "create",
		Process: event.Process{PID: 7, Executable: "/usr/bin/git", SHA256: "ab", Argv: []string{"git", "commit"}, Cwd: "/home/you/other"},
	}
}

// TestAGrantDoesNotStretch allows one thing for the session, and then tries
// another.
func TestAGrantDoesNotStretch(t *testing.T) {
	request := event.Attempt{Kind: event.KindRequest, Host: "api.example.org", Port: 443, Protocol: "tls", Method: "GET", URLPath: "/a", Process: event.Process{Executable: "/usr/bin/curl", SHA256: "cd"}}
	credential := event.Attempt{Kind: event.KindCredential, Name: "deploy", Host: "api.example.org", Port: 443, Method: "GET", URLPath: "/a"}
	tool := event.Attempt{Kind: event.KindTool, Agent: "claude", Server: "db", Tool: "query", Arguments: `{"sql":"select 1"}`}
	for _, tt := range []struct {
		name    string
		allowed event.Attempt
		change  func(*event.Attempt)
	}{
		{"more force", push(), func(a *event.Attempt) { a.Process.Argv = []string{"git", "push", "--force", "origin", "main"} }},
		{"another remote", push(), func(a *event.Attempt) { a.Process.Argv[2] = "elsewhere" }},
		{"another argument", push(), func(a *event.Attempt) { a.Process.Argv = append(a.Process.Argv, "") }},
		{"fewer arguments", push(), func(a *event.Attempt) { a.Process.Argv = a.Process.Argv[:3] }},
		{"arguments joined", push(), func(a *event.Attempt) { a.Process.Argv = []string{"git", "push", "origin main"} }},
		{"another order", push(), func(a *event.Attempt) { a.Process.Argv = []string{"git", "push", "main", "origin"} }},
		{"another argv[0]", push(), func(a *event.Attempt) { a.Process.Argv[0] = "/usr/bin/git" }},
		{"another directory", push(), func(a *event.Attempt) { a.Process.Cwd = "/home/you/project/sub" }},
		{"another program", push(), func(a *event.Attempt) { a.Process.Executable = "/home/you/project/git" }},
		{"another content", push(), func(a *event.Attempt) { a.Process.SHA256 = "cd" }},
		{"a content that is not known", push(), func(a *event.Attempt) { a.Process.SHA256 = "" }},
		{"another spelling", push(), func(a *event.Attempt) { a.Path = "./git" }},
		{"another parent", push(), func(a *event.Attempt) { a.ParentExecutable = "/usr/bin/npm" }},
		{"a script", push(), func(a *event.Attempt) { a.Script, a.ScriptSHA256 = "/home/you/x", "ef" }},
		{"another first line of the script", push(), func(a *event.Attempt) { a.Interpreted = []string{"-c"} }},
		{"a variable", push(), func(a *event.Attempt) { a.Environment = []string{"GIT_SSH_COMMAND=./x"} }},
		{"another variable", changed(push(), func(a *event.Attempt) { a.Environment = []string{"A=1"} }), func(a *event.Attempt) { a.Environment = []string{"A=2"} }},
		{"a variable less", changed(push(), func(a *event.Attempt) { a.Environment = []string{"A=1", "B"} }), func(a *event.Attempt) { a.Environment = []string{"A=1"} }},
		{"variables that are not known", push(), func(a *event.Attempt) { a.EnvironmentUnknown = true }},
		{"a cut command line", push(), func(a *event.Attempt) { a.Cut = true }},
		{"another kind", push(), func(a *event.Attempt) { a.Kind = event.KindFile }},
		{"another path", write(), func(a *event.Attempt) { a.Path = "/home/you/other/src/b.go" }},
		{"another operation", write(), func(a *event.Attempt) { a.Operation = "unlink" }},
		{"by another program", write(), func(a *event.Attempt) { a.Process.Executable = "/usr/bin/cp" }},
		{"by a program that is not known", write(), func(a *event.Attempt) { a.Process = event.Process{} }},
		{"to another name", write(), func(a *event.Attempt) { a.To = "/home/you/other/x" }},
		{"another host", request, func(a *event.Attempt) { a.Host = "b.example.org" }},
		{"another port", request, func(a *event.Attempt) { a.Port = 8443 }},
		{"another protocol", request, func(a *event.Attempt) { a.Protocol = "http" }},
		{"another method", request, func(a *event.Attempt) { a.Method = "POST" }},
		{"another path of a request", request, func(a *event.Attempt) { a.URLPath = "/a/b" }},
		{"a connection", request, func(a *event.Attempt) { a.Kind = event.KindConnect }},
		{"another credential", credential, func(a *event.Attempt) { a.Name = "admin" }},
		{"a credential for another host", credential, func(a *event.Attempt) { a.Host = "b.example.org" }},
		{"a credential for another method", credential, func(a *event.Attempt) { a.Method = "DELETE" }},
		{"another tool", tool, func(a *event.Attempt) { a.Tool = "execute" }},
		{"another server", tool, func(a *event.Attempt) { a.Server = "db2" }},
		{"another agent", tool, func(a *event.Attempt) { a.Agent = "other" }},
		{"other arguments", tool, func(a *event.Attempt) { a.Arguments = `{"sql":"drop table a"}` }},
		{"cut arguments", tool, func(a *event.Attempt) { a.Cut = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTestQueue(t, nil)
			o.ask(tt.allowed)
			if err := o.Answer(o.reply(o.waits(), true, func(a *Answer) { a.Scope = Session })); err != nil {
				t.Fatal(err)
			}
			again := changed(tt.allowed, func(a *event.Attempt) { a.Process.PID, a.Process.Exec, a.Process.Parent = 99, 98, 97 })
			if r, _ := o.ask(again); r.Verdict != event.Allowed {
				t.Fatalf("the same of another process is %v", r.Verdict)
			}
			if r, _ := o.ask(changed(tt.allowed, tt.change)); r.Verdict != event.Unknown {
				t.Errorf("it is %v", r.Verdict)
			}
		})
	}
}

// TestADirectoryIsThatDirectory allows a directory and tries what is near it.
func TestADirectoryIsThatDirectory(t *testing.T) {
	o := newTestQueue(t, nil)
	o.ask(write())
	if err := o.Answer(o.reply(o.waits(), true, func(a *Answer) { a.Scope, a.Directory = Session, true })); err != nil {
		t.Fatal(err)
	}
	if g := o.Grants()[0]; g.Covers.Path != "/home/you/other/src" || !g.Covers.Directory {
		t.Errorf("it covers %+v", g.Covers)
	}
	for _, tt := range []struct {
		name   string
		want   event.Verdict
		change func(*event.Attempt)
	}{
		{"another file of it", event.Allowed, func(a *event.Attempt) { a.Path = "/home/you/other/src/b.go" }},
		{"deeper", event.Allowed, func(a *event.Attempt) { a.Path, a.Operation = "/home/you/other/src/x/y", "mkdir" }},
		{"a rename within", event.Allowed, func(a *event.Attempt) { a.Operation, a.To = "rename", "/home/you/other/src/c.go" }},
		{"a rename out of it", event.Unknown, func(a *event.Attempt) { a.Operation, a.To = "rename", "/home/you/other/c.go" }},
		{"a rename into it", event.Unknown, func(a *event.Attempt) {
			a.Path, a.Operation, a.To = "/home/you/b", "rename", "/home/you/other/src/b"
		}},
		{"a hard link from elsewhere", event.Unknown, func(a *event.Attempt) { a.Operation, a.To = "link", "/etc/passwd" }},
		{"a symbolic link", event.Unknown, func(a *event.Attempt) { a.Operation, a.To = "symlink", "b" }},
		{"an owner", event.Unknown, func(a *event.Attempt) { a.Operation = "chown" }},
		{"a mode", event.Unknown, func(a *event.Attempt) { a.Operation = "chmod" }},
		{"a device", event.Unknown, func(a *event.Attempt) { a.Operation = "mknod" }},
		{"the directory itself", event.Unknown, func(a *event.Attempt) { a.Path, a.Operation = "/home/you/other/src", "unlink" }},
		{"its twin", event.Unknown, func(a *event.Attempt) { a.Path = "/home/you/other/src2/a.go" }},
		{"above", event.Unknown, func(a *event.Attempt) { a.Path = "/home/you/other/a.go" }},
		{"dots", event.Unknown, func(a *event.Attempt) { a.Path = "/home/you/other/src/../a.go" }},
		{"two slashes", event.Unknown, func(a *event.Attempt) { a.Path = "/home/you/other/src//a.go" }},
		{"by another program", event.Unknown, func(a *event.Attempt) { a.Process.Executable = "/usr/bin/cp" }},
		{"by another content", event.Unknown, func(a *event.Attempt) { a.Process.SHA256 = "cd" }},
	} {
		if r, _ := o.ask(changed(write(), tt.change)); r.Verdict != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, r.Verdict, tt.want)
		}
	}
}

// TestASignatureCoversEverything changes each field of a grant and of an answer,
// also those that are added later.
func TestASignatureCoversEverything(t *testing.T) {
	o := newTestQueue(t, nil)
	o.ask(push())
	r := o.waits()
	full := o.reply(r, true, func(a *Answer) { a.Scope, a.For, a.Uses = For, 60e9, 2 })
	if err := o.Answer(full); err != nil {
		t.Fatal(err)
	}
	g := o.Grants()[0]
	for _, path := range leaves(reflect.TypeFor[Grant](), nil) {
		if name := reflect.TypeFor[Grant]().FieldByIndex(path[:1]).Name; name == "Used" || name == "Signature" {
			continue
		}
		bad := g
		alter(t, reflect.ValueOf(&bad).Elem().FieldByIndex(path))
		if bad.Verify(o.GrantKey()) {
			t.Errorf("a grant with another %v is as good", reflect.TypeFor[Grant]().FieldByIndex(path).Name)
		}
	}
	for _, path := range leaves(reflect.TypeFor[Answer](), nil) {
		bad := full
		alter(t, reflect.ValueOf(&bad.Answer).Elem().FieldByIndex(path))
		if o.verify(bad) != ErrForged {
			t.Errorf("an answer with another %v is as good", reflect.TypeFor[Answer]().FieldByIndex(path).Name)
		}
	}
}

// TestTheDigestIsOfEverything changes each field of an attempt, also those that
// are added later: what is shown and what is answered are the same thing.
func TestTheDigestIsOfEverything(t *testing.T) {
	o := newTestQueue(t, nil)
	of := reflect.TypeFor[event.Attempt]()
	for _, path := range leaves(of, nil) {
		a := push()
		alter(t, reflect.ValueOf(&a).Elem().FieldByIndex(path))
		name := of.FieldByIndex(path).Name
		which := len(path) == 2 && (name == "PID" || name == "Exec" || name == "Parent" || name == "ParentExec")
		if same := o.digest(a) == o.digest(push()); same != which {
			t.Errorf("with another %s the digest is the same: %t", name, same)
		}
	}
}

// leaves are the fields of a struct and of those in it.
func leaves(of reflect.Type, at []int) [][]int {
	var list [][]int
	for i := range of.NumField() {
		path := append(append([]int(nil), at...), i)
		if f := of.Field(i).Type; f.Kind() == reflect.Struct && f.String() != "time.Time" {
			list = append(list, leaves(f, path)...)
			continue
		}
		list = append(list, path)
	}
	return list
}

// alter makes v another value.
func alter(t *testing.T, v reflect.Value) {
	t.Helper()
	switch {
	case v.Type().String() == "time.Time":
		v.Set(reflect.ValueOf(v.Interface().(time.Time).Add(time.Second)))
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "x")
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.CanInt():
		v.SetInt(v.Int() + 1e9)
	case v.CanUint():
		v.SetUint(v.Uint() + 1)
	case v.Type() == reflect.TypeFor[[]string]():
		v.Set(reflect.ValueOf(append([]string{"x"}, v.Interface().([]string)...)))
	default:
		t.Fatalf("a field of type %v", v.Type())
	}
}
