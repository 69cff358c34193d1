//go:build linux

package inside

import (
	"bufio"
	"encoding/json"
	"os"
)

// mcpHeard is a server of tools that writes the calls it gets to W/heard, and does
// nothing else.
func mcpHeard(p *Probe) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	var heard *os.File
	p.Control("make the list of calls", func() (err error) { heard, err = os.Create(p.In("W", "heard")); return err })
	p.Try("take calls", func() error {
		defer heard.Close()
		for in.Scan() {
			var m message
			if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
				continue
			}
			if _, err := heard.Write(append(in.Bytes(), '\n')); err != nil {
				return err
			}
			if err := out.Encode(message{JSONRPC: "2.0", ID: m.ID, Result: json.RawMessage(`{"content":[]}`)}); err != nil {
				return err
			}
		}
		return in.Err()
	})
}
