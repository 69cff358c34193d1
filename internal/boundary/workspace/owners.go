//go:build linux

package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Owners are the user and the group of a command, and the further groups whose
// files it may change.
type Owners struct {
	UID, GID uint32
	Groups   []uint32
}

var errFound = errors.New("found")

// OtherOwner finds a file in the tree at root that the command may change and that
// does not belong to its user and its first group: "" for none. A layer over the
// tree cannot change such a file: the kernel copies it up with its owner, which has
// no number in a user namespace that has only those two (EOVERFLOW).
func OtherOwner(ctx context.Context, root string, o Owners) (Name, error) {
	l := &lister{ctx: ctx, buf: make([]byte, 64<<10)}
	l.each = func(st *unix.Statx_t) error {
		if o.isOther(st) {
			return errFound
		}
		return nil
	}
	fd, err := openState(root)
	if err == nil {
		defer unix.Close(fd)
		var st unix.Statx_t
		if err = statAt(fd, []byte(".\x00"), &st); err == nil && o.isOther(&st) {
			return ".", nil
		}
	}
	if err == nil {
		err = l.dir(fd, 0)
	}
	switch {
	case errors.Is(err, errFound):
		return Name(l.path), nil
	case err != nil:
		return "", fmt.Errorf("looking at the owners of files in %s: %w", root, err)
	}
	return "", nil
}

func (o Owners) isOther(st *unix.Statx_t) bool {
	mine := st.Uid == o.UID || st.Gid == o.GID || slices.Contains(o.Groups, st.Gid)
	return mine && (st.Uid != o.UID || st.Gid != o.GID)
}
