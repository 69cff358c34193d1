package main

import (
	"slices"
	"strings"
	"testing"
)

const mountTable = `1 0 0:41 / / ro,nosuid - tmpfs none rw
2 1 254:0 /usr /usr ro,nosuid,nodev - ext4 /dev/vda rw
3 1 0:40 / /proc rw - proc none rw
4 3 0:40 /sys /proc/sys ro - proc none rw
5 1 0:6 /null /dev/null rw - devtmpfs devtmpfs rw
6 1 0:42 / /tmp rw - tmpfs none rw
7 6 254:0 /srv/a\040b /tmp/a\040b rw,nosuid shared:1 - ext4 /dev/vda rw
8 1 0:50 / /home/u/.npm rw - overlay none rw
9 1 0:60 /x /data ro - tmpfs tmpfs rw
10 1 0:70 /run /run rw - fuse holdfast rw
11 1 0:71 / /var/tmp rw - overlay none rw
a line of another kind
`

func TestParseMounts(t *testing.T) {
	all := parseMounts(mountTable + "12 1 254:0 /other /usr rw - ext4 /dev/vda rw\n")
	if len(all) != 11 {
		t.Fatalf("found %d mounts, want 11: %v", len(all), all)
	}
	if want := (mount{device: "254:0", point: "/tmp/a b", fstype: "ext4", part: true}); !slices.Contains(all, want) {
		t.Errorf("a name with a space is lost: %v", all)
	}
	if last := all[len(all)-1]; last.point != "/usr" || last.readonly {
		t.Errorf("a mount over another one does not cover it: %v", last)
	}
}

func TestBwrapArgs(t *testing.T) {
	v := view{
		mounts:  parseMounts(mountTable),
		links:   map[string]string{"/bin": "usr/bin", "/dev/fd": "/proc/self/fd"},
		texts:   []text{{path: "/etc/hosts"}, {path: "/etc/passwd"}},
		setting: []string{"A=b=c"},
	}
	devices := map[string]string{"/tmp": "254:0", "/data": "0:60"}
	got := strings.Join(v.bwrapArgs("/tmp/a b", 4, func(p string) string { return devices[p] }), " ") + " "
	for _, tt := range []struct{ name, want string }{
		{"a read-only mount is bound read-only", "--ro-bind /usr /usr "},
		{"a temporary file system of the inside is a new one", "--tmpfs /tmp "},
		{"so is one that Holdfast serves", "--tmpfs /run "},
		{"and one for discarded temporary files", "--tmpfs /var/tmp "},
		{"one of the outside is bound", "--ro-bind /data /data "},
		{"a writable mount is bound, below what was mounted before", "--tmpfs /tmp --bind /tmp/a b /tmp/a b "},
		{"an overlay is bound", "--bind /home/u/.npm /home/u/.npm "},
		{"a link of the root is made", "--symlink usr/bin /bin "},
		{"files made for the root come from descriptors", "--file 4 /etc/hosts --file 5 /etc/passwd "},
		{"a variable keeps its value whole", "--clearenv --setenv A b=c "},
	} {
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: no %q in %s", tt.name, tt.want, got)
		}
	}
	for _, not := range []string{"/proc/sys", "/dev/null", "/dev/fd", "bind / /"} {
		if strings.Contains(got, not+" ") {
			t.Errorf("bubblewrap makes %s by itself, but is told to: %s", not, got)
		}
	}
}

func TestParseRoot(t *testing.T) {
	v := view{mounts: parseMounts(mountTable), links: map[string]string{}}
	v.parseRoot("l\t/bin\t7\tusr/bin\nf\t/etc/hosts\t12\t\nf\t/run/decoy\t5\t\nf\t/proc\t0\t\na line of another kind\n")
	if len(v.texts) != 1 || v.texts[0] != (text{"/etc/hosts", 12}) {
		t.Errorf("files of the root: %v", v.texts)
	}
	if len(v.links) != 1 || v.links["/bin"] != "usr/bin" {
		t.Errorf("links of the root: %v", v.links)
	}
}
