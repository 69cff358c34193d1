package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// call is an unanswered request.
type call struct {
	method    string
	tool      string // of tools/call
	first     bool   // of tools/list: it requests the first page
	began     time.Time
	cancelled bool
	held      context.CancelCauseFunc // ends the wait for a human; nil when there is none
}

func newCall(m *jsonrpc.Request) *call {
	c := &call{method: m.Method, began: time.Now()}
	switch m.Method {
	case "tools/call":
		if t, err := parseCall(m.Params); err == nil {
			c.tool = t.name
		}
	case "tools/list":
		c.first = textOf(m.Params, "cursor") == ""
	}
	return c
}

// calls are the unanswered requests of one side.
type calls struct {
	mu   sync.Mutex // guards of
	of   map[jsonrpc.ID]*call
	most int
}

func newCalls(most int) calls { return calls{of: map[jsonrpc.ID]*call{}, most: most} }

func (c *calls) addCall(id jsonrpc.ID, one *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[id] != nil {
		return errors.New("a request with this id is already waiting for its answer")
	}
	if len(c.of) >= c.most {
		c.forget()
	}
	if len(c.of) >= c.most {
		return fmt.Errorf("%d requests are already waiting for an answer", c.most)
	}
	c.of[id] = one
	return nil
}

// forget makes room: cancelled requests need no answer.
func (c *calls) forget() {
	maps.DeleteFunc(c.of, func(_ jsonrpc.ID, one *call) bool { return one.cancelled })
}

// removeCall removes and returns the request that an answer is for; nil for none.
func (c *calls) removeCall(id jsonrpc.ID) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.of[id]
	delete(c.of, id)
	return one
}

// markWaiting marks a request that waits for a human.
func (c *calls) markWaiting(id jsonrpc.ID, cancel context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.of[id]; one != nil {
		one.held = cancel
	}
}

// release reports whether a request that waited may go on. A cancelled one may
// not, and is forgotten.
func (c *calls) release(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.of[id]
	if one == nil || !one.cancelled {
		if one != nil {
			one.held = nil
		}
		return one != nil
	}
	delete(c.of, id)
	return false
}

// cancel marks a request as cancelled; nil if there is none or it is already
// marked.
func (c *calls) cancel(id jsonrpc.ID) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.of[id]
	if one == nil || one.cancelled {
		return nil
	}
	one.cancelled = true
	return one
}

// removeAll removes and returns all requests.
func (c *calls) removeAll() map[jsonrpc.ID]*call {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.of
	c.of = map[jsonrpc.ID]*call{}
	return all
}

// pace slows down a side that writes more than its rate: it waits, as with a full
// pipe, and nothing is lost. Only one goroutine uses it.
type pace struct {
	rate, burst float64 // messages a second, and at once
	left        float64
	at          time.Time
}

// unit is the number of bytes that count as one message.
const unit = 16 << 10

func newPace(l Limits) *pace {
	return &pace{rate: float64(l.Rate), burst: float64(l.Burst), left: float64(l.Burst), at: time.Now()}
}

// wait returns when a message of that size may pass, and reports whether it had
// to wait.
func (p *pace) wait(size int) bool {
	now := time.Now()
	p.left = min(p.burst, p.left+now.Sub(p.at).Seconds()*p.rate)
	p.at = now
	p.left -= 1 + float64(size/unit)
	if p.left >= 0 {
		return false
	}
	time.Sleep(time.Duration(-p.left / p.rate * float64(time.Second)))
	return true
}
