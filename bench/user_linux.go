package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that runs everything measured.
type account struct {
	name     string
	uid, gid int
}

// ordinaryUser is the user who started this or, if that is root, the user nobody:
// as root, Holdfast and bubblewrap work differently than for their usual users.
func ordinaryUser() (account, error) {
	if os.Geteuid() != 0 {
		u, err := user.Current()
		if err != nil {
			return account{}, fmt.Errorf("finding out who runs this: %w", err)
		}
		return account{name: u.Username, uid: os.Getuid(), gid: os.Getgid()}, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return account{}, fmt.Errorf("looking for an ordinary user to run as: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil || uid == 0 {
		return account{}, fmt.Errorf("the user nobody has the id %q, which is not an ordinary user's", u.Uid)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil || gid == 0 {
		return account{}, fmt.Errorf("the user nobody has the group %q, which is not an ordinary user's", u.Gid)
	}
	return account{name: u.Username, uid: uid, gid: gid}, nil
}

// attr makes a child process run as the account.
func (a account) attr() *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}}
}

// chownTree gives a tree of files that we made to the account.
func (a account) chownTree(root string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	err := filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, a.uid, a.gid)
	})
	if err != nil {
		return fmt.Errorf("changing the owner of files to %s: %w", a.name, err)
	}
	return nil
}
