package boundary

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// whole is the posture that the rows change.
func whole() Posture {
	return Posture{
		UID: 1000, GID: 1000, Groups: []int{},
		Capabilities: map[string]string{"CapEff": "0000000000000000", "CapBnd": "0000000000000000"},
		NoNewPrivs:   true, Seccomp: 2,
		Namespaces: map[string]bool{"net": true, "user": true},
		Mounts: []Mount{
			{Point: "/", FSType: "tmpfs", ReadOnly: true, NoSuid: true, NoDev: true},
			{Point: "/proc", FSType: "proc", NoSuid: true, NoDev: true, NoExec: true},
			{Point: "/usr", ReadOnly: true, NoSuid: true, NoDev: true},
			{Point: "/w", NoSuid: true, NoDev: true},
		},
		Descriptors: map[int]string{0: "pipe", 1: "pipe", 2: "terminal"},
		Limits:      map[string]string{"Max core file size": "0"},
	}
}

func TestDiff(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Posture) // of what was collected
		want   string         // part of the one difference; "" for none
	}{
		{"what is as planned does not differ", func(*Posture) {}, ""},
		{"another user", func(p *Posture) { p.UID = 0 }, "runs as 0:1000"},
		{"another group", func(p *Posture) { p.GID = 0 }, "runs as 1000:0"},
		{"a supplementary group", func(p *Posture) { p.Groups = []int{27} }, "groups [27]"},
		{"a capability", func(p *Posture) { p.Capabilities["CapEff"] = "0000000000200000" }, "CapEff is 0000000000200000"},
		{"a capability set that was not read", func(p *Posture) { delete(p.Capabilities, "CapBnd") }, "CapBnd is "},
		{"a set that no plan names is not looked at", func(p *Posture) { p.Capabilities["CapNew"] = "ff" }, ""},
		{"new privileges", func(p *Posture) { p.NoNewPrivs = false }, "no_new_privs"},
		{"no filter", func(p *Posture) { p.Seccomp = 0 }, "seccomp mode is 0"},
		{"strict mode is not a filter", func(p *Posture) { p.Seccomp = 1 }, "seccomp mode is 1"},
		{"a namespace of the host", func(p *Posture) { p.Namespaces["net"] = false }, "the net namespace is shared"},
		{"a namespace that was not read", func(p *Posture) { delete(p.Namespaces, "net") }, "the net namespace is shared"},
		{"a mount that is not planned", func(p *Posture) { p.Mounts = append(p.Mounts, Mount{Point: "/etc"}) }, "/etc is mounted"},
		{"a mount that is missing", func(p *Posture) { p.Mounts = p.Mounts[:3] }, "/w is not mounted"},
		{"a mount that became writable", func(p *Posture) { p.Mounts[2].ReadOnly = false }, "/usr is mounted rw"},
		{"a mount with set-user-ID programs", func(p *Posture) { p.Mounts[3].NoSuid = false }, "/w is mounted rw,nodev"},
		{"a mount with devices", func(p *Posture) { p.Mounts[3].NoDev = false }, "/w is mounted rw,nosuid"},
		{"a mount with programs where none may be", func(p *Posture) { p.Mounts[1].NoExec = false }, "/proc is mounted"},
		{"a mount that the host made narrower", func(p *Posture) { p.Mounts[3].NoExec, p.Mounts[3].ReadOnly = true, true }, ""},
		{"another file system", func(p *Posture) { p.Mounts[0].FSType = "ext4" }, "/ is a ext4, not a tmpfs"},
		{"a mount of the host below a tree that is bound", func(p *Posture) {
			p.Mounts = append(p.Mounts, Mount{Point: "/usr/local", FSType: "nfs", ReadOnly: true, NoSuid: true, NoDev: true})
		}, ""},
		{"such a mount that is wider than the tree", func(p *Posture) {
			p.Mounts = append(p.Mounts, Mount{Point: "/usr/local", FSType: "nfs", NoSuid: true, NoDev: true})
		}, "/usr/local is mounted rw"},
		{"a mount below a file system of the boundary's own", func(p *Posture) {
			p.Mounts = append(p.Mounts, Mount{Point: "/proc/x", FSType: "tmpfs", ReadOnly: true, NoSuid: true, NoDev: true, NoExec: true})
		}, "/proc/x is mounted but not in the plan"},
		{"a mount whose name only begins like a tree", func(p *Posture) {
			p.Mounts = append(p.Mounts, Mount{Point: "/usr2", ReadOnly: true, NoSuid: true, NoDev: true})
		}, "/usr2 is mounted"},
		{"a descriptor too many", func(p *Posture) { p.Descriptors[7] = "socket" }, "descriptor 7 (socket) is open"},
		{"a descriptor too few", func(p *Posture) { delete(p.Descriptors, 2) }, "descriptor 2 (terminal) is closed"},
		{"a descriptor of another kind", func(p *Posture) { p.Descriptors[1] = "/etc/passwd" }, "descriptor 1 is a /etc/passwd"},
		{"another limit", func(p *Posture) { p.Limits["Max core file size"] = "unlimited" }, "Max core file size is unlimited"},
		{"a limit that was not read", func(p *Posture) { clear(p.Limits) }, "Max core file size is "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := whole()
			got.Mounts = slices.Clone(got.Mounts)
			got.Descriptors = maps.Clone(got.Descriptors)
			tt.change(&got)
			diff := whole().Diff(got)
			if tt.want == "" && len(diff) > 0 || tt.want != "" && (len(diff) != 1 || !strings.Contains(diff[0], tt.want)) {
				t.Errorf("got %q, want %q", diff, tt.want)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		exit Exit
		want int
	}{
		{Exit{}, 0}, {Exit{Code: 3}, 3}, {Exit{Code: 255}, 255},
		{Exit{Signal: 9}, 137}, {Exit{Code: 7, Signal: 15}, 143}, {Exit{Signal: 9, Reason: "a limit"}, 137},
	} {
		if got := tt.exit.Status(); got != tt.want {
			t.Errorf("%+v is status %d, want %d", tt.exit, got, tt.want)
		}
	}
}
