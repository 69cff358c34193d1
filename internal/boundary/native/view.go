//go:build linux

package native

import (
	"os"
	"path/filepath"

	"holdfast.dev/holdfast/internal/policy"
)

// viewEntry is one part of the host that every boundary shows, read-only. What
// is not listed here or in the policy does not exist inside.
type viewEntry struct {
	path   string
	reason string
}

// systemView is the fixed part of the view. A missing entry is passed over; an
// entry that is a link on the host is the same link inside.
var systemView = []viewEntry{
	{"/usr", "programs, libraries and headers"},
	{"/bin", "programs; a link into /usr on merged systems"},
	{"/sbin", "programs; a link into /usr on merged systems"},
	{"/lib", "libraries; a link into /usr on merged systems"},
	{"/lib32", "libraries; a link into /usr on merged systems"},
	{"/lib64", "the dynamic linker; a link into /usr on merged systems"},
	{"/libx32", "libraries; a link into /usr on merged systems"},
	{"/nix/store", "programs and libraries of NixOS"},
	{"/var/lib/gems", "libraries that root installed for Debian's Ruby"},
	{"/sys/devices/system/cpu", "processor topology, which runtimes and lscpu size themselves by"},
	{"/etc/alternatives", "targets of the links that name default programs"},
	{"/etc/ld.so.cache", "library look-up"},
	{"/etc/ld.so.conf", "library look-up"},
	{"/etc/ld.so.conf.d", "library look-up"},
	{"/etc/ssl/certs", "public certificates of authorities"},
	{"/etc/ssl/openssl.cnf", "defaults of OpenSSL"},
	{"/etc/ca-certificates", "public certificates of authorities"},
	{"/etc/ca-certificates.conf", "list of trusted authorities"},
	{"/etc/pki/tls/certs", "public certificates of authorities on Fedora and RHEL"},
	{"/etc/pki/tls/openssl.cnf", "defaults of OpenSSL on Fedora and RHEL"},
	{"/etc/pki/ca-trust/extracted", "public certificates of authorities on Fedora and RHEL"},
	{"/etc/crypto-policies", "algorithms allowed by the distribution"},
	{"/etc/localtime", "time zone"},
	{"/etc/timezone", "time zone"},
	{"/etc/os-release", "name and version of the distribution"},
	{"/etc/lsb-release", "name and version of the distribution"},
	{"/etc/debian_version", "name and version of the distribution"},
	{"/etc/redhat-release", "name and version of the distribution"},
	{"/etc/fonts", "fonts for browsers and renderers"},
	{"/etc/mime.types", "file types"},
	{"/etc/magic", "file types"},
	{"/etc/protocols", "names of protocols"},
	{"/etc/services", "names of ports"},
	{"/etc/host.conf", "order of name look-up"},
	{"/etc/gai.conf", "order of addresses"},
	{"/etc/terminfo", "terminals"},
	{"/etc/inputrc", "key bindings of readline"},
	{"/etc/bash.bashrc", "the system's defaults of bash"},
	{"/etc/profile", "the system's defaults of login shells"},
	{"/etc/profile.d", "the system's defaults of login shells"},
	{"/etc/shells", "list of login shells"},
	{"/etc/vim", "the system's defaults of vim"},
	{"/etc/nanorc", "the system's defaults of nano"},
	{"/etc/locale.alias", "locales"},
	{"/etc/locale.gen", "locales"},
	{"/etc/perl", "the system's defaults of Perl"},
	{"/etc/python3", "the system's defaults of Python"},
	{"/etc/java-11-openjdk", "configuration that the JDK links to"},
	{"/etc/java-17-openjdk", "configuration that the JDK links to"},
	{"/etc/java-21-openjdk", "configuration that the JDK links to"},
	{"/etc/maven", "the system's defaults of Maven"},
	{"/etc/chromium", "the system's defaults of Chromium"},
	{"/etc/chromium.d", "the system's defaults of Chromium"},
	{"/etc/ImageMagick-6", "the system's defaults of ImageMagick"},
}

// locate returns what an entry is on this host, and where: at its path or where a link
// there leads.
func (e viewEntry) locate() (real string, st os.FileInfo, ok bool) {
	st, err := os.Lstat(e.path)
	if err != nil || st.Mode()&os.ModeSymlink == 0 {
		return e.path, st, err == nil
	}
	if real, err = filepath.EvalSymlinks(e.path); err == nil {
		st, err = os.Stat(real)
	}
	return real, st, err == nil
}

// SystemView is what every boundary shows in addition to the policy's paths, for
// explanations. The files that are written for each boundary (/etc/passwd, /etc/group,
// /etc/hosts, /etc/nsswitch.conf, /etc/resolv.conf) and the private trees (/proc, /dev,
// /tmp, /run, the home) are not host paths and are not listed.
func SystemView() []policy.PathRule {
	var rules []policy.PathRule
	for _, e := range systemView {
		real, _, ok := e.locate()
		if !ok {
			continue
		}
		rules = append(rules, policy.PathRule{
			Path: real, At: e.path, Access: policy.Read,
			Origin: policy.Origin{File: "system view (" + e.reason + ")"},
		})
	}
	return rules
}

// part is one mount of the boundary: where it comes from and where it goes.
type part struct {
	source string // host path without links; "" for the ones made afresh
	at     string // absolute path inside
	access policy.Access
	dir    bool
	exec   bool // false adds noexec
	layers bool // a writable layer on the host's disk is laid over it
	fd     int  // inherited descriptor of a detached tree; 0 for none
}

// viewLink is a symbolic link of the view.
type viewLink struct{ at, target string }

// viewFile is a small file of the host that is copied: that costs a tenth of a
// mount.
type viewFile struct{ at, content string }

// copyMax is the size up to which a file is copied, in bytes.
const copyMax = 16 << 10

// system is the fixed view as it is on this host.
type system struct {
	parts []part
	links []viewLink
	files []viewFile
}

// systemParts looks up the fixed view on this host.
func systemParts() (s system) {
	for _, e := range systemView {
		target, err := os.Readlink(e.path)
		if err == nil && inView(e.path, target) {
			s.links = append(s.links, viewLink{e.path, target})
			continue
		}
		real, st, ok := e.locate()
		if !ok {
			continue
		}
		switch {
		case st.Mode().IsRegular() && st.Size() <= copyMax:
			if content, err := os.ReadFile(real); err == nil {
				s.files = append(s.files, viewFile{e.path, string(content)})
			}
		case st.IsDir(), st.Mode().IsRegular():
			s.parts = append(s.parts, part{source: real, at: e.path, access: policy.Read, dir: st.IsDir(), exec: true})
		}
	}
	return s
}

// inView reports whether the target of a link is below a directory that the view
// shows in any case, so that the link can stay a link.
func inView(path, target string) bool {
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	return below(target, "/usr")
}
