package network

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
)

// How many names have an address. Names that rules give in full have places of their
// own, so that a program that asks for one name after another below a wildcard cannot
// take them.
const (
	mapNames    = 4096
	mapReserved = 4096
	mapAsked    = 1024 // that no rule names, and that a human can be asked about
	mapRefused  = 1024 // that are refused when they are connected to
)

// nameClass says why a name has an address.
type nameClass int

const (
	wildName    nameClass = iota // a wildcard is above it, or it is learned
	fullName                     // a rule gives it in full
	askedName                    // a human can be asked about it
	refusedName                  // a connection to it is refused, in words
	nameClasses                  // how many there are
)

// errMapFull is returned when no more names can have an address.
var errMapFull = errors.New("too many different names were queried in this run")

// NameMap gives each name an address of its own out of 198.18.0.0/15, for as
// long as the run lasts. The addresses begin at a place drawn at random, so that
// one which a program kept from an earlier run leads to no name rather than to
// another. It may be used by several goroutines.
type NameMap struct {
	start uint32

	mu        sync.RWMutex
	addresses map[string]netip.Addr
	names     map[netip.Addr]string
	next      uint32 // how far from start
	count     [nameClasses]int
}

// NewNameMap makes an empty map.
func NewNameMap() *NameMap {
	var b [4]byte
	rand.Read(b[:]) // never fails: it ends the program instead
	return &NameMap{
		start:     binary.BigEndian.Uint32(b[:]),
		addresses: map[string]netip.Addr{},
		names:     map[netip.Addr]string{},
	}
}

// Address returns the address of a name in normal form, giving it one the first time.
// It returns an error if there are too many names of its class.
func (m *NameMap) Address(name string, as nameClass) (netip.Addr, error) {
	m.mu.RLock()
	a, ok := m.addresses[name]
	m.mu.RUnlock()
	if ok {
		return a, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, ok := m.addresses[name]; ok {
		return a, nil
	}
	if m.full(as) {
		return netip.Addr{}, errMapFull
	}
	m.count[as]++
	a = m.draw()
	m.addresses[name], m.names[a] = a, name
	return a, nil
}

func (m *NameMap) full(as nameClass) bool {
	switch as {
	case askedName:
		return m.count[as] >= mapAsked
	case refusedName:
		return m.count[as] >= mapRefused
	case wildName:
		if m.count[as] >= mapNames {
			return true
		}
	}
	return m.count[wildName]+m.count[fullName] >= mapNames+mapReserved
}

// draw takes the next address. Those that end in 0 or 255 are left out: some
// programs take them for a network or for a broadcast.
func (m *NameMap) draw() netip.Addr {
	base := synthetic.Addr().As4()
	for {
		offset := (m.start + m.next) % (1 << (32 - 15))
		m.next++
		a := binary.BigEndian.Uint32(base[:]) + offset
		if last := byte(a); last != 0 && last != 255 {
			return netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), last})
		}
	}
}

// Name returns the name whose address a is.
func (m *NameMap) Name(a netip.Addr) (string, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	name, ok := m.names[a.Unmap()]
	return name, ok
}
