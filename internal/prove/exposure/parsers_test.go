//go:build linux

package exposure

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/testenv"
)

// Keys in the format of OpenSSH.
func TestKeysOfOpenSSH(t *testing.T) {
	testenv.Need(t, testenv.OpenSSH, nil)
	for _, row := range []struct {
		kind, format, passphrase string
		level                    Level
	}{
		{"ed25519", "RFC4716", "", High}, {"ed25519", "RFC4716", "longer words", Low},
		{"rsa", "PEM", "", High}, {"rsa", "PEM", "longer words", Low},
		{"ecdsa", "PKCS8", "", High}, {"ecdsa", "PKCS8", "longer words", Low},
	} {
		file := filepath.Join(t.TempDir(), "key")
		out, err := exec.Command("ssh-keygen", "-q", "-t", row.kind, "-m", row.format, "-N", row.passphrase, "-f", file).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := sshKey(content); !got.secret || got.level != row.level {
			t.Errorf("%+v: %+v", row, got)
		}
	}
}

func TestAgentKeys(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer []byte
		keys   int
		fails  bool
	}{
		{"two keys", append([]byte{0, 0, 0, 40, 12, 0, 0, 0, 2}, make([]byte, 35)...), 2, false},
		{"none", []byte{0, 0, 0, 5, 12, 0, 0, 0, 0}, 0, false},
		{"more keys than there is room for", []byte{0, 0, 0, 5, 12, 255, 255, 255, 255}, 0, true},
		{"another message", []byte{0, 0, 0, 5, 5, 0, 0, 0, 0}, 0, true},
		{"silence", nil, 0, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "a")
			l, err := net.Listen("unix", at)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				if c, err := l.Accept(); err == nil {
					c.Read(make([]byte, 5))
					c.Write(row.answer)
					if row.answer != nil {
						c.Close()
					}
				}
			}()
			if n, err := AgentKeys(context.Background(), at); n != row.keys || (err != nil) != row.fails {
				t.Errorf("%d, %v", n, err)
			}
		})
	}
}

func TestSudoRules(t *testing.T) {
	text := `Matching Defaults entries for u on h:
    env_reset, secure_path=/usr/bin

User u may run the following commands on h:
    (ALL : ALL) NOPASSWD: ALL
    (root) /usr/bin/less
`
	want := []sudoRule{{false, "ALL"}, {true, "/usr/bin/less"}}
	if got := sudoRules(text); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestTablesOfTheKernel(t *testing.T) {
	tcp := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000   999        0 1 1
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   2: 0100007F:1F90 0100007F:0050 01 00000000:00000000 00:00000000 00000000     0        0 1 1
   3: 0200A8C0:0051 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   4: 00000000000000000000000001000000:18EB 00000000000000000000000000000000:0000 0A 0:0 00:0 0 7 0 1
   5: broken
`
	want := []listener{{5432, true, 999}, {22, false, 0}, {6379, true, 7}}
	if got := listeners(tcp); !slices.Equal(got, want) {
		t.Errorf("listeners: %+v", got)
	}
	unix := "Num RefCount Protocol Flags Type St Inode Path\n0: 00000002 00000000 00010000 0001 01 1 @/tmp/.X11-unix/X0\n0: 00000002 00000000 00000000 0001 01 1 @other\n0: 2 0 00010000 0001 01 1 /run/x\n"
	if got := abstractNames(unix); !slices.Equal(got, []string{"@/tmp/.X11-unix/X0"}) {
		t.Errorf("abstract names: %q", got)
	}
	if got := capabilities("CapInh:\t0\nCapEff:\t0000000000200001\n"); !slices.Equal(got, []string{"chown", "sys_admin"}) {
		t.Errorf("capabilities: %q", got)
	}
	if got := uidOf("Name:\tx\nUid:\t1\t2\t3\t4\n"); got != 2 {
		t.Errorf("uid: %d", got)
	}
}

func TestVariables(t *testing.T) {
	for _, row := range []struct {
		name, value string
		level       Level
	}{
		{"LANG", "C", ""}, {"EMPTY_TOKEN", "", ""}, {"DEPLOY_TOKEN", "abcdefghij1234567890", High}, {"X", token, High},
		{"AWS_REGION", "eu-west-1", Info}, {"SSH_AUTH_SOCK", "/tmp/a", ""}, {"GITHUB_REPOSITORY", "a/b", Info}, {"KUBECONFIG", "/home/u/k", Info},
		{"DATABASE_URL", "postgres://u:verysecret@h/d", High}, {"MYSQL_PWD", "correcthorse", High}, {"USE_TOKEN", "false", Info},
	} {
		if level, _ := variable(row.name, row.value); level != row.level {
			t.Errorf("%s=%s: %q, want %q", row.name, row.value, level, row.level)
		}
	}
}

func TestLoginEnv(t *testing.T) {
	w := made(t, map[string]string{"etc/login.defs": "# x\nENV_PATH\tPATH=/bin:/usr/bin\n", "etc/environment": "PATH=\"/opt/bin:/bin\"\nexport A='b'\nno line\n"})
	got := LoginEnv(w.Root, "u", "/home/u", "/bin/zsh")
	want := []string{"HOME=/home/u", "USER=u", "LOGNAME=u", "SHELL=/bin/zsh", "PATH=/opt/bin:/bin", "A=b"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if s := ShellOf("r:x:0:0::/:/bin/ash\nu:x:1:1::/home/u:/bin/zsh\n", "u"); s != "/bin/zsh" {
		t.Error(s)
	}
}

func FuzzContents(f *testing.F) {
	f.Add([]byte("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQ==\n-----END"))
	f.Add([]byte(`{"auths":{"a":{"auth":"b"}}}`))
	f.Add([]byte("[a \"b\"] k = v\\\n w\n[credential]\nhelper=!x"))
	f.Add([]byte("[redacted:x:….….…:deadbeef]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, inspect := range []func([]byte) inspection{sshKey, gpgKey, dockerConfig, history, lines("x")} {
			for _, d := range inspect(content).detail {
				if len(d) > 200 || text.Line(d) != d {
					t.Errorf("detail %q", d)
				}
			}
		}
		for _, s := range gitSettings(string(content)) {
			if n := helperName(s.value); len(n) > 80 {
				t.Errorf("helper %q", n)
			}
		}
		for _, k := range tokens(string(content)) {
			if len(k) > 80 || strings.ContainsAny(k, "\n\x1b") {
				t.Errorf("token %q", k)
			}
		}
		sudoRules(string(content))
		listeners(string(content))
		abstractNames(string(content))
		capabilities(string(content))
		uidOf(string(content))
		agentAnswer(bytes.NewReader(content))
		if p := text.Line(string(content)); strings.ContainsAny(p, "\n\x1b\x7f\u202e") {
			t.Errorf("shown as %q", p)
		}
	})
}
