package exposure

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"
)

// agentWait is how long an ssh agent may take; agentMost limits its answer, in
// bytes.
const (
	agentWait = time.Second
	agentMost = 1 << 20
)

// AgentKeys asks the ssh agent at a socket how many keys it has, and nothing else
// (draft-ietf-sshm-ssh-agent, section 3.5).
func AgentKeys(ctx context.Context, socket string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, agentWait)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return 0, fmt.Errorf("asking the agent: %w", err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(agentWait))
	const requestIdentities = 11
	if _, err := c.Write([]byte{0, 0, 0, 1, requestIdentities}); err != nil {
		return 0, fmt.Errorf("asking the agent: %w", err)
	}
	return agentAnswer(c)
}

// agentAnswer reads the number of keys from an agent's answer.
func agentAnswer(r io.Reader) (int, error) {
	const identitiesAnswer = 12
	var head [9]byte // length, type, number
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, fmt.Errorf("reading the agent's answer: %w", err)
	}
	length, keys := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint32(head[5:])
	if length < 5 || length > agentMost || head[4] != identitiesAnswer || keys > length/8 {
		return 0, errors.New("reading the agent's answer: it is not a list of keys")
	}
	return int(keys), nil
}

// realPath is a path with links resolved, as far as possible.
func realPath(name string) string {
	if full, err := filepath.EvalSymlinks(name); err == nil {
		return full
	}
	return name
}
