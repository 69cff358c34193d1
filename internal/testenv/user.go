package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"testing"
)

// UserName is the account that `make test` creates for the unprivileged pass, and
// that root switches to in tests which need an ordinary user. HOLDFAST_TEST_USER
// names another.
const UserName = "holdfast-test"

// AsUser makes cmd run as an ordinary user: as [UserName] if this process is
// root, and unchanged if it is already an ordinary user. It needs [Unprivileged].
// If the environment of cmd is not set, it becomes that of the user; the user
// must be able to enter its working directory.
func AsUser(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	u, uid, gid := ordinary(t)
	setCredential(cmd, uid, gid)
	if cmd.Env == nil {
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "USER=" + u.Username}, HomeEnv(u.HomeDir)...)
	}
}

// ordinary looks up the user of [AsUser].
func ordinary(t testing.TB) (u *user.User, uid, gid uint32) {
	t.Helper()
	Need(t, Unprivileged, nil)
	u, err := lookupUser()
	if err != nil {
		t.Fatal(err)
	}
	if uid, gid, err = ids(u); err != nil {
		t.Fatal(err)
	}
	return u, uid, gid
}

// Own gives path to the user of [AsUser]; it does nothing if this process is an
// ordinary user.
func Own(t testing.TB, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	_, uid, gid := ordinary(t)
	if err := os.Lchown(path, int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
}

func lookupUser() (*user.User, error) {
	name := os.Getenv("HOLDFAST_TEST_USER")
	if name == "" {
		name = UserName
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("looking up the test user: %w (make test creates it)", err)
	}
	if u.Uid == "0" {
		return nil, fmt.Errorf("the test user %s is root", name)
	}
	return u, nil
}

func ids(u *user.User) (uid, gid uint32, err error) {
	n, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("uid of %s: %w", u.Username, err)
	}
	m, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("gid of %s: %w", u.Username, err)
	}
	return uint32(n), uint32(m), nil
}
