//go:build !linux

package netstack

import (
	"errors"
	"fmt"
	"os"
)

type device struct{}

func openDevice(*os.File) (*device, error) {
	return nil, fmt.Errorf("TUN device: %w", errors.ErrUnsupported)
}

func (*device) read([]byte, []byte) (int, error) { return 0, errors.ErrUnsupported }
func (*device) write([][]byte) error             { return errors.ErrUnsupported }
func (*device) close()                           {}
