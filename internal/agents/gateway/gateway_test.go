package gateway

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/testenv"
)

func TestPassesOn(t *testing.T) {
	for _, one := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"a","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":"text","method":"of/later","params":{"deep":[[[{"a":1.50}]]],"big":123456789012345678901234567890}}`,
		`{"jsonrpc":"2.0","method":"notifications/of/later"}`,
		`{"jsonrpc":"2.0","id":0,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":-5,"method":"x","params":["a","<&>"]}`,
		`{"jsonrpc":"2.0","id":9007199254740991,"method":"x","params":{"s":"\ud83d\ude00\u2028"}}`,
	} {
		w := newWorld(t, nil)
		w.agent.say("", "  \r", one+"\r")
		w.server.hears(one)
		w.server.say(one)
		w.agent.hears(one)
	}
}

func TestAnswersPassOnce(t *testing.T) {
	w := newWorld(t, nil)
	for _, id := range []string{`1`, `"1"`} { // two different ids
		w.agent.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"x"}`)
		w.server.hears(`{"jsonrpc":"2.0","id":` + id + `,"method":"x"}`)
	}
	w.server.say(`{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":1,"result":2}`,
		`{"jsonrpc":"2.0","id":2,"result":{}}`, `{"jsonrpc":"2.0","id":"1","error":{"code":-1,"message":"no","data":[1]}}`)
	w.agent.hears(`{"jsonrpc":"2.0","id":1,"result":null}`)
	w.agent.hears(`{"jsonrpc":"2.0","id":"1","error":{"code":-1,"message":"no","data":[1]}}`)
	// The other direction has its own ids.
	w.server.say(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
	w.agent.hears(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
	w.agent.say(`{"jsonrpc":"2.0","id":7,"result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
	w.server.hears(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
	w.die()
	if r := w.ended(t); r.Dropped != 2 {
		t.Errorf("%+v", r)
	}
	want := []string{"tool.drop server text=1", "tool.drop server text=2", "tool.drop agent text=7"}
	if got := w.journal.said("text"); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestDropsWhatIsNoMessage(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	rows := []struct{ text, reason string }{
		{`Server listening on stdio`, "not JSON"},
		{`{"jsonrpc":"2.0","id":1,"method":"Tools/call","params":{"name":"x"}}`, "another spelling"},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call ","params":{"name":"x"}}`, "another spelling"},
		{`{"jsonrpc":"2.0","id":1,"method":"x"} trailing`, "not JSON"},
		{`{"jsonrpc":"2.0","id":1,"method":"x"`, "not JSON"},
		{`{"jsonrpc":"1.0","id":1,"method":"x"}`, "version tag"},
		{`{"id":1,"method":"x"}`, "version tag"},
		{`{"jsonrpc":"2.0","id":1.5,"method":"x"}`, "its id"},
		{`{"jsonrpc":"2.0","id":null,"method":"x"}`, "its id"},
		{`{"jsonrpc":"2.0","id":12345678901234567890,"method":"x"}`, "its id"},
		{`{"jsonrpc":"2.0","id":true,"method":"x"}`, "invalid ID"},
		{`{"jsonrpc":"2.0","id":{},"method":"x"}`, "invalid ID"},
		{`{"jsonrpc":"2.0","method":5}`, "not a message"},
		{`{"jsonrpc":"2.0","method":""}`, "no name"},
		{`{"jsonrpc":"2.0"}`, "not a message"},
		{`{"jsonrpc":"2.0","id":1}`, "either a result or an error"},
		{`{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}}`, "either a result or an error"},
		{`{"jsonrpc":"2.0","id":1,"method":"x","params":` + deep + `}`, "nested deeper"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "UTF-8"},
		{`[]`, "batch of no"},
		{`[` + strings.Repeat(`1,`, 200) + `1]`, "more than 100"},
		{`[{"jsonrpc":"2.0","method":"x"},1]`, "not a message"},
		{`null`, "not a message"}, {`5`, "not a message"}, {"\x00\x1b[2J", "not JSON"},
	}
	w := newWorld(t, nil)
	for _, row := range rows {
		w.server.say(row.text)
		w.agent.say(row.text)
		w.agent.hears(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"holdfast: this is not a JSON-RPC message"}}`)
	}
	w.server.say(`{"jsonrpc":"2.0","method":"still/here"}`)
	w.agent.hears(`{"jsonrpc":"2.0","method":"still/here"}`)
	w.agent.say(`{"jsonrpc":"2.0","method":"still/here"}`)
	w.server.hears(`{"jsonrpc":"2.0","method":"still/here"}`)
	w.die()
	if r := w.ended(t); r.Dropped != len(rows) || r.First != rows[0].text {
		t.Errorf("%+v", r)
	}
	got := w.journal.said("reason", "count")
	if len(got) != dropsMost+2 {
		t.Errorf("%d events: %q", len(got), got)
	}
	for i, row := range rows[:dropsMost/2] {
		if !strings.Contains(got[2*i], row.reason) || !strings.Contains(got[2*i+1], row.reason) {
			t.Errorf("%q: %q %q", row.text, got[2*i], got[2*i+1])
		}
	}
	if last := got[len(got)-1]; last != fmt.Sprintf("tool.drop server reason=more of the kind count=%d", len(rows)-dropsMost/2) {
		t.Errorf("the last event is %q", last)
	}
	for _, row := range rows {
		if _, err := parse([]byte(row.text), 128); err == nil || !strings.Contains(err.Error(), row.reason) {
			t.Errorf("%q: %v, want %q", row.text, err, row.reason)
		}
	}
}

func TestBatchesAreTakenApart(t *testing.T) {
	w := newWorld(t, nil)
	w.agent.say(`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","id":2,"method":"c"}]`)
	w.server.hears(`{"jsonrpc":"2.0","id":1,"method":"a"}`)
	w.server.hears(`{"jsonrpc":"2.0","method":"b"}`)
	w.server.hears(`{"jsonrpc":"2.0","id":2,"method":"c"}`)
	w.server.say(`[{"jsonrpc":"2.0","id":2,"result":1},{"jsonrpc":"2.0","id":1,"result":2}]`)
	w.agent.hears(`{"jsonrpc":"2.0","id":2,"result":1}`)
	w.agent.hears(`{"jsonrpc":"2.0","id":1,"result":2}`)
}

func TestTooLong(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Limits.Message = 200_000 })
	huge := strings.Repeat("x", 300_000)
	for i, answer := range []string{
		`{"jsonrpc":"2.0","id":%d,"result":"` + huge + `"}`,
		`{"result":{"id":99,"a":"\"id\":98,` + huge + `"},"jsonrpc":"2.0","id":%d}`,
		`{"result":["` + huge + `",{"id":97}], "id" : %d , "x":{}}`,
	} {
		w.agent.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"big"}}`, i))
		<-w.server.read
		w.server.say(fmt.Sprintf(answer, i))
		select {
		case got := <-w.agent.read:
			if !strings.Contains(got, fmt.Sprintf(`"id":%d,`, i)) || !strings.Contains(got, "is longer than 200000 bytes") {
				t.Errorf("%s", got)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("whoever waits for an answer that is too long is not told")
		}
	}
	w.server.say(`{"x":"`+huge, `not even a message `+huge+` "id":1`)                                  // no id to answer
	w.server.say(`{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":"` + huge + `"}`) // a request
	select {
	case got := <-w.server.read:
		if !strings.Contains(got, `"id":5,"error"`) {
			t.Errorf("%s", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("who asks too much is not told")
	}
	w.agent.say(`{"jsonrpc":"2.0","id":6,"method":"m","params":"` + huge + `"}`)
	if got := <-w.agent.read; !strings.Contains(got, `"id":6,"error"`) {
		t.Errorf("%s", got)
	}
	w.server.say(`{"jsonrpc":"2.0","method":"still/here"}`)
	w.agent.hears(`{"jsonrpc":"2.0","method":"still/here"}`)
	w.die()
	if r := w.ended(t); r.Dropped != 6 || len(r.First) > 2*excerpt {
		t.Errorf("%d, %d", r.Dropped, len(r.First))
	}
}

func TestOpenRequestsAreBounded(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Limits.Open = 2 })
	for i := range 2 {
		w.server.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage"}`, i))
		<-w.agent.read
	}
	w.server.say(`{"jsonrpc":"2.0","id":3,"method":"sampling/createMessage"}`)
	w.server.hears(`{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"holdfast: 2 requests are already waiting for an answer"}}`)
	w.server.say(`{"jsonrpc":"2.0","id":1,"method":"again"}`)
	w.server.hears(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"holdfast: a request with this id is already waiting for its answer"}}`)
	// A cancelled request makes room.
	w.server.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","id":4,"method":"x"}`)
	w.agent.hears(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	w.agent.hears(`{"jsonrpc":"2.0","id":4,"method":"x"}`)
}

func TestFloodIsSlowedDown(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Limits.Rate, c.Limits.Burst = 20, 5 }) // even a slow machine is faster
	const many = 20
	began := time.Now()
	go func() {
		for i := range many {
			w.server.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"m","params":{"i":%d}}`, i))
		}
	}()
	for i := range many {
		w.agent.hears(fmt.Sprintf(`{"jsonrpc":"2.0","method":"m","params":{"i":%d}}`, i))
	}
	if took := time.Since(began); took < 700*time.Millisecond { // 15 above the burst, at 20 a second
		t.Errorf("took %v", took)
	}
	if got := w.journal.said(); !slices.Equal(got, []string{"session.limit messages of the server"}) {
		t.Errorf("%q", got)
	}
}

func TestServerDies(t *testing.T) {
	w := newWorld(t, nil)
	w.agent.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f"}}`, `{"jsonrpc":"2.0","id":2,"method":"initialize"}`)
	<-w.server.read
	<-w.server.read
	w.die()
	var got []string
	for range 2 {
		got = append(got, <-w.agent.read)
	}
	slices.Sort(got)
	for i, id := range []int{1, 2} {
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"holdfast: the server ended before it answered"}}`, id)
		if got[i] != want {
			t.Errorf("%s", got[i])
		}
	}
	w.ended(t)
	if got, want := w.journal.said("outcome"), []string{"tool.call f", "tool.result f outcome=lost"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestAgentLeaves(t *testing.T) {
	for name, leave := range map[string]func(*world){
		"by closing what it writes": func(w *world) { w.agent.out.Close() },
		"by closing what it reads":  func(w *world) { w.agent.in.Close(); w.server.say(`{"jsonrpc":"2.0","method":"m"}`) },
		"by both, with a call under way": func(w *world) {
			w.agent.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f"}}`)
			<-w.server.read
			w.agent.in.Close()
			w.agent.out.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoGoroutines(t)
			w := newWorld(t, nil)
			leave(w)
			for range w.server.read { // until its input ends
			}
			go io.Copy(w.server.out, strings.NewReader(strings.Repeat("{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n", 20_000))) // a flood
			soon(t, "asking the server to end", w.asked)
			soon(t, "killing the server", w.killed)
			w.ended(t)
			w.agent.out.Close()
		})
	}
}

func TestAgentLeavesWithAnUnreadMessage(t *testing.T) {
	gone := make(chan struct{})
	w := begin(t, func(c *Config) {
		c.Hungup = func() bool {
			select {
			case <-gone:
				return true
			default:
				return false
			}
		}
	}, false) // the server does not read
	w.agent.say(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	select {
	case <-w.asked:
		t.Error("a server that is slow is asked to end")
	case <-time.After(100 * time.Millisecond):
	}
	close(gone)
	soon(t, "asking the server to end", w.asked)
	soon(t, "killing the server", w.killed)
	w.ended(t)
}

func TestServerThatEndsByItselfIsNotKilled(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Limits.Leave = 10 * time.Second }) // so that the server ends first
	w.agent.out.Close()
	for range w.server.read {
	}
	w.die()
	w.ended(t)
	select {
	case <-w.asked:
		t.Error("it was asked to end")
	case <-time.After(200 * time.Millisecond):
	}
}

func TestNothingIsRecordedAfterwards(t *testing.T) {
	w := newWorld(t, nil)
	w.die()
	w.ended(t)
	before := len(w.journal.said())
	w.agent.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f"}}`, `garbage`)
	w.agent.out.Close()
	time.Sleep(50 * time.Millisecond)
	if got := w.journal.said(); len(got) != before {
		t.Errorf("%q", got)
	}
}

func TestWhatCannotBeRecordedDoesNotHappen(t *testing.T) {
	w := newWorld(t, nil)
	w.journal.mu.Lock()
	w.journal.refuse = errors.New("the disk is full")
	w.journal.mu.Unlock()
	w.agent.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f"}}`, `{"jsonrpc":"2.0","method":"last"}`)
	if got := <-w.agent.read; !strings.Contains(got, `"id":1,"error"`) || !strings.Contains(got, "cannot be recorded") {
		t.Errorf("%s", got)
	}
	w.server.hears(`{"jsonrpc":"2.0","method":"last"}`)
}
