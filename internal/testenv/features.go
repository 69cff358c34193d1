package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The features that this package can check itself.
const (
	Root         Feature = "root"         // this process has uid 0
	Unprivileged Feature = "unprivileged" // an ordinary user: this process, or one that it may become
	UserNS       Feature = "userns"       // this user may make a user namespace and be root in it
	Landlock     Feature = "landlock"     // the kernel answers landlock_create_ruleset(2)
	Seccomp      Feature = "seccomp"      // the kernel knows SECCOMP_RET_KILL_PROCESS and USER_NOTIF
	TTY          Feature = "tty"          // /dev/ptmx opens
	FUSE         Feature = "fuse"         // /dev/fuse opens: lookups outside the view are recorded
	SecondFS     Feature = "second-fs"    // /dev/shm is writable and not the file system of the temporary directory
	Git          Feature = "git"
	Go           Feature = "go"
	Node         Feature = "node"
	NPM          Feature = "npm"
	Python       Feature = "python" // with venv and ensurepip
	GCC          Feature = "gcc"    // and a libc to compile against
	Make         Feature = "make"
	Tar          Feature = "tar"
	RG           Feature = "rg"
	Vim          Feature = "vim"
	Less         Feature = "less"
	Bash         Feature = "bash"
	Tmux         Feature = "tmux"
	Bwrap        Feature = "bwrap"
	Chromium     Feature = "chromium"
	Curl         Feature = "curl"
	Wget         Feature = "wget"
	Pip          Feature = "pip"
	PyProjects   Feature = "py-projects" // poetry and pipenv
	Vite         Feature = "vite"        // in [ViteDir]
	Cargo        Feature = "cargo"
	JDK          Feature = "jdk"
	Maven        Feature = "maven" // and what Debian has of its plugins
	Gradle       Feature = "gradle"
	Ruby         Feature = "ruby" // with bundler, minitest and rbenv
	Direnv       Feature = "direnv"
	Apt          Feature = "apt"
	OpenSSH      Feature = "openssh"    // client and server
	FreshRoot    Feature = "fresh-root" // a small system in [FreshRootDir] where packages can be installed
	JSTools      Feature = "js-tools"   // yarn, pnpm and playwright-core, in [JSToolsDir]
	Agents       Feature = "agents"     // Claude Code and Codex in [AgentsDir], and what their own sandboxes need
	Accounts     Feature = "accounts"   // Gemini CLI, Copilot CLI and opencode in [AccountsDir]
)

// Shm is the directory that [SecondFS] promises.
const Shm = "/dev/shm"

// FreshRootDir is the directory that [FreshRoot] promises; tools/needs makes it.
const FreshRootDir = "/var/lib/holdfast-test/root"

// JSToolsDir is the directory that [JSTools] promises; tools/needs makes it.
const JSToolsDir = "/var/lib/holdfast-test/js"

// SSHServer is a program of [OpenSSH]; it must be called by its path.
const SSHServer = "/usr/sbin/sshd"

// ViteDir is where tools/needs installs vite with npm.
const ViteDir = "/var/lib/holdfast-test/vite"

var known = map[Feature]func() error{
	Root:         isRoot,
	Unprivileged: hasUser,
	UserNS:       userNS,
	Landlock:     landlock,
	Seccomp:      seccomp,
	TTY:          opens("/dev/ptmx"),
	FUSE:         opens("/dev/fuse"),
	SecondFS:     secondFS,
	Git:          runs("git", "--version"),
	Go:           runs("go", "version"),
	Node:         runs("node", "--version"),
	NPM:          runs("npm", "--version"),
	Python:       runs("python3", "-c", "import venv, ensurepip"),
	GCC:          gcc,
	Make:         runs("make", "--version"),
	Tar:          runs("tar", "--version"),
	RG:           runs("rg", "--version"),
	Vim:          runs("vim", "--version"),
	Less:         runs("less", "--version"),
	Bash:         runs("bash", "--version"),
	Tmux:         runs("tmux", "-V"),
	Bwrap:        runs("bwrap", "--version"),
	Chromium:     runs("chromium", "--version"),
	Curl:         runs("curl", "--version"),
	Wget:         runs("wget", "--version"),
	Vite:         runs(ViteDir+"/node_modules/.bin/vite", "--version"),
	Pip:          runs("/usr/bin/python3", "-m", "pip", "--version"),
	Cargo:        runs("/usr/bin/cargo", "--version"),
	JDK:          runs("javac", "-version"),
	Maven:        runs("sh", "-c", "mvn --version && test -d /usr/share/maven-repo/org/apache/maven/plugins/maven-surefire-plugin"),
	Gradle:       runs("gradle", "--version"),
	Ruby:         runs("sh", "-c", "bundle --version && ruby -e 'require \"minitest\"' && rbenv --version"),
	Direnv:       runs("direnv", "version"),
	PyProjects:   runs("sh", "-c", "poetry --version && pipenv --version"),
	JSTools:      runs("sh", "-c", "cd "+JSToolsDir+"/node_modules && ls -d @yarnpkg/cli-dist pnpm playwright-core"),
	Apt:          runs("apt-get", "--version"),
	OpenSSH:      runs("sh", "-c", "ssh -V && test -x "+SSHServer),
	FreshRoot:    runs("sh", "-c", "test -x "+FreshRootDir+"/usr/bin/rpm && unshare --version"),
	Agents:       installed(AgentsDir, "claude", "codex"),
	Accounts:     installed(AccountsDir, "gemini", "copilot", "opencode"),
}

// runs checks a program by running it: one that is found but does not start (a
// version manager's shim, a wrong architecture) counts as absent.
func runs(name string, args ...string) func() error {
	return func() error {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("running %s: %w: %s", name, err, bytes.TrimSpace(out))
		}
		return nil
	}
}

func isRoot() error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("this process runs as uid %d", uid)
	}
	return nil
}

func hasUser() error {
	if os.Geteuid() != 0 {
		return nil
	}
	_, err := lookupUser()
	return err
}

func opens(device string) func() error {
	return func() error {
		f, err := os.OpenFile(device, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return f.Close()
	}
}

func gcc() error {
	dir, err := os.MkdirTemp("", "testenv-gcc-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	src := filepath.Join(dir, "a.c")
	if err := os.WriteFile(src, []byte("#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n"), 0o600); err != nil {
		return err
	}
	return runs("gcc", "-o", filepath.Join(dir, "a"), src)()
}

func secondFS() error {
	f, err := os.CreateTemp(Shm, "testenv-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	same, err := sameDevice(Shm, os.TempDir())
	if err == nil && same {
		err = errors.New(Shm + " and the temporary directory are one file system")
	}
	return err
}
