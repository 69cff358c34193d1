//go:build linux

package inside

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// turnActions are actions that take turns with the outside: they begin something,
// wait until W/over exists, and continue.
func turnActions() map[string]Action {
	return map[string]Action{
		"net-turns": netTurns,
		"wait-turn": func(p *Probe) {
			p.Control("say that it runs", func() error { return create(p.In("W", "used")) })
			p.Control("wait for the outside", func() error { return p.await("over") })
			p.Try("a name that does not exist", func() error { return openWith("/no-such-name", 0) })
		},
		"say-long": sayLong,
	}
}

// sayLong executes a program with a long argument several times.
func sayLong(p *Probe) {
	times, _ := strconv.Atoi(p.Arg("times"))
	size, _ := strconv.Atoi(p.Arg("size"))
	text := strings.Repeat(p.Arg("unit"), size/len(p.Arg("unit")))
	p.Try("execute with a long argument", func() error {
		for range times {
			_ = exec.Command(os.Args[0], text).Run() // it fails, because these are not valid arguments
		}
		return nil
	})
}

// netTurns uses HTTP/2. Its first request is a line like those of netH2. After
// the outside has had its turn, the same connection carries nothing, more
// requests, or more of the body of the first.
func netTurns(p *Probe) {
	fill, how := filler(os.Getenv(p.Arg("env"))), p.Arg("how")
	var c net.Conn
	p.Control("begin", func() (err error) {
		c, err = h2Begin(fill, p.Arg("first"), how)
		return err
	})
	if c == nil {
		return
	}
	defer c.Close()
	p.Control("wait for the outside", func() error { return p.await("over") })
	p.Read("go on", func() ([]byte, error) {
		switch how {
		case "body":
			return nil, lateWrites(func(b []byte) error {
				_, err := c.Write(frame(frameData, 0, 1, bytes.Repeat(b, 256)))
				return err
			})
		case "requests":
			if err := h2Many(fill, c, p.Arg("more")); err != nil {
				return nil, err
			}
			time.Sleep(time.Second)
		}
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
		return judgeReply(h2Answer(c))
	})
}

// bodyFrame is the end of a request with this body.
var bodyFrame = frame(frameData, flagEndStream, 1, []byte("early"))

// h2Begin opens a connection and makes the first request: all of it, or all except
// the end of its body. If others follow, it is answered first.
func h2Begin(fill *strings.Replacer, line, how string) (net.Conn, error) {
	c, rest, err := h2Dial(line)
	if err != nil {
		return nil, err
	}
	flight, err := h2Request(fill, rest)
	if err == nil && how == "body" {
		flight = append(flight[:len(flight)-len(bodyFrame)], frame(frameData, 0, 1, []byte("early"))...)
	}
	if err == nil {
		_, err = c.Write(flight)
	}
	if err == nil && how == "requests" {
		var body []byte
		body, err = h2Answer(c)
		err = judgeControl(body, err)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// h2Many makes a hundred requests at once.
func h2Many(fill *strings.Replacer, c net.Conn, line string) error {
	one, err := h2Fields(fill, line)
	if err != nil {
		return err
	}
	request := func(i int) []byte { return frame(frameHeaders, flagEndStream|flagEndHeaders, uint32(2*i+3), one.head) }
	var flight []byte
	for i := range 100 {
		flight = append(flight, request(i)...)
	}
	_, err = c.Write(flight)
	return err
}
