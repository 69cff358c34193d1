package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// account is the ordinary user of the second pass; tools/needs creates it.
const account = "holdfast-test"

// userIndependent are the packages whose tests start no boundary and do not depend on the
// user: another user cannot change their results.
var userIndependent = regexp.MustCompile(`/(internal/(agents/(gateway|hooks|reports)|arch|boundary|cli/(logs|screen|words)|consent(/(gate|rules))?|credentials|detect(/(alert|honey))?|` +
	`floor/(canonical|command|expr|paths|redact|syslog|sys|text)|network|prove/(model|netlab|replay)|record/(audit|bus|export|story))|tools/(agents|attacks|mutate)|bench)$`)

// ordinaryPass prepares the pass of an ordinary user: a copy of the tree that the
// user owns, and a module cache that the user can read, filled from root's.
func (s *suite) ordinaryPass() (pass, error) {
	u, err := user.Lookup(account)
	if err != nil {
		return pass{}, fmt.Errorf("%w (tools/needs creates it)", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return pass{}, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return pass{}, err
	}
	groups, err := groupsOf(u)
	if err != nil {
		return pass{}, err
	}
	tree := filepath.Join(s.work, "tree")
	if err := copyTree(s.root, tree, uid, gid); err != nil {
		return pass{}, fmt.Errorf("copying the tree for %s: %w", account, err)
	}
	modules := filepath.Join(s.work, "modules")
	if err := shareModules(tree, modules); err != nil {
		return pass{}, err
	}
	p := pass{title: "as " + account, root: tree, skip: "^TestRoot", once: true, enter: func(lane int) error { return privateFUSE(filepath.Join(s.work, fmt.Sprintf("dev%d", lane))) }, env: []string{
		"HOME=" + u.HomeDir, "USER=" + account, "LOGNAME=" + account, "SHELL=/bin/bash",
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb",
		"GOMODCACHE=" + modules, "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOTOOLCHAIN=local",
	}}
	for _, name := range []string{"WANT_FEATURES", "HOLDFAST_TEST_AGENTS"} {
		if v, ok := os.LookupEnv(name); ok {
			p.env = append(p.env, name+"="+v)
		}
	}
	p.as = func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: groups}}
	}
	return p, nil
}

// groupsOf are the IDs of all groups of u.
func groupsOf(u *user.User) ([]uint32, error) {
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("reading the groups of %s: %w", u.Username, err)
	}
	groups := make([]uint32, len(ids))
	for i, id := range ids {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("reading the groups of %s: %w", u.Username, err)
		}
		groups[i] = uint32(n)
	}
	return groups, nil
}

// copyTree copies the module without its repository and gives it to the user.
func copyTree(from, to string, uid, gid int) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case rel == ".git" || rel == "bin":
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil // the .git file of a worktree
		case e.IsDir():
			err = os.Mkdir(target, 0o755)
		case e.Type() == fs.ModeSymlink:
			var name string
			if name, err = os.Readlink(path); err == nil {
				err = os.Symlink(name, target)
			}
		case e.Type().IsRegular():
			err = copyFile(path, target)
		default:
			return fmt.Errorf("%s is not a file, directory or symbolic link", path)
		}
		if err != nil {
			return err
		}
		return os.Lchown(target, uid, gid)
	})
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return programs.Write(to, data, info.Mode().Perm()|0o444)
}

// shareModules fills a module cache with what the tree needs, from files that
// root's cache downloaded earlier, without a network.
func shareModules(tree, modules string) error {
	cache, err := output(tree, nil, "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	downloads := filepath.Join(strings.TrimSpace(cache), "cache", "download")
	// If only some of the packages were built, root's cache may lack modules of
	// the others.
	if _, err := output(tree, []string{"GOFLAGS=-mod=readonly -buildvcs=false"}, "list", "-deps", "-test", "./..."); err != nil {
		return err
	}
	// The checksums in go.sum are still checked. Write permission lets us remove
	// it again.
	_, err = output(tree, []string{
		"GOMODCACHE=" + modules, "GOPROXY=file://" + downloads, "GONOSUMDB=*",
		"GOFLAGS=-mod=readonly -modcacherw -buildvcs=false",
	}, "list", "-deps", "-test", "./...")
	return err
}
