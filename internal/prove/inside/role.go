//go:build linux

package inside

import (
	"bytes"
	"errors"
)

// role is part of the data of every program with this package. A copy with the
// last byte changed is a prober, whatever its name and arguments: it may be
// started as /proc/self/fd/3.
var role = [...]byte{'h', 'o', 'l', 'd', 'f', 'a', 's', 't', ' ', 'r', 'o', 'l', 'e', ':', ' ', 0x9c, 0x1f, 0xe7, 0x42, 0xb8, 0x05, 0xd3, 0x6a, asItself}

const asItself, asProber = 'i', 'p'

// IsProber reports whether this program is such a copy.
func IsProber() bool { return role[len(role)-1] == asProber }

// AsProber turns the content of a program with this package into a prober.
func AsProber(program []byte) ([]byte, error) {
	before := bytes.Clone(role[:])
	before[len(before)-1] = asItself
	i := bytes.Index(program, before)
	if i < 0 || bytes.Contains(program[i+1:], before) {
		return nil, errors.New("the program has no role marker, or more than one")
	}
	out := bytes.Clone(program)
	out[i+len(before)-1] = asProber
	return out, nil
}
