package network

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// TestReloadEndsRequests removes the rule of a long request: the connection stays
// permitted, for other requests.
func TestReloadEndsRequests(t *testing.T) {
	only := func(path string, credentials ...string) policy.HostRule {
		r := permits(apiName, 443, policy.TLS)
		r.Inspect, r.Paths, r.Credentials = true, []string{path}, credentials
		return r
	}
	rows := []struct {
		name  string
		lent  bool
		after policy.HostRule
		ends  bool
	}{
		{"a path that is no longer allowed", false, only("/other"), true},
		{"a path that still is", false, only("/*"), false},
		{"a credential that the rule no longer lends", true, only("/*"), true},
		{"a credential that it still lends", true, only("/*", "forge"), false},
	}
	for _, row := range rows {
		for _, old := range []bool{true, false} {
			t.Run(fmt.Sprint(row.name, old), func(t *testing.T) {
				more, ended := make(chan bool, 1), make(chan struct{})
				s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer close(ended)
					io.WriteString(w, "begun\n")
					w.(http.Flusher).Flush()
					select {
					case <-more:
						io.WriteString(w, "more\n")
					case <-r.Context().Done():
					}
				}), shopConfig{secure: true, old: old, rule: bindForge, credentials: newVault(nil)})
				r, err := http.NewRequest("GET", s.url("/long"), nil)
				if err != nil {
					t.Fatal(err)
				}
				if row.lent {
					r.Header.Set("Authorization", "Bearer "+testPlaceholder)
				}
				resp, err := s.client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				in := bufio.NewReader(resp.Body)
				if line, err := in.ReadString('\n'); line != "begun\n" {
					t.Fatal(line, err)
				}
				if err := s.Reload([]policy.HostRule{row.after}); err != nil {
					t.Fatal(err)
				}
				if row.ends {
					if got, err := io.ReadAll(in); err == nil {
						t.Errorf("it ended as if it were whole: %q", got)
					}
					eventually(t, "upstream learns of it", patience, ended)
					if r := s.refused(apiName); !strings.Contains(r.Reason, "under way") {
						t.Errorf("it is refused as %+v", r)
					}
					return
				}
				more <- true
				if got, err := io.ReadAll(in); err != nil || string(got) != "more\n" {
					t.Errorf("it went on with %q (%v)", got, err)
				}
			})
		}
	}
}

// TestReloadEndsSockets is the same for WebSocket.
func TestReloadEndsSockets(t *testing.T) {
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(c, c)
	}), shopConfig{rule: func(r *policy.HostRule) { r.Paths = []string{"/socket", "/other"} }})
	c := connect(t, s.at)
	send(t, c, "GET /socket HTTP/1.1\r\nHost: "+apiName+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(c)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 101 {
		t.Fatal(resp, err)
	}
	send(t, c, "hello")
	echoed := make([]byte, 5)
	if _, err := io.ReadFull(in, echoed); err != nil || string(echoed) != "hello" {
		t.Fatal(string(echoed), err)
	}
	rule := permits(apiName, 80, policy.HTTP)
	rule.Paths = []string{"/other"}
	if err := s.Reload([]policy.HostRule{rule}); err != nil {
		t.Fatal(err)
	}
	if _, err := in.ReadByte(); err == nil || errors.Is(err, io.ErrNoProgress) {
		t.Errorf("it goes on: %v", err)
	}
	until(t, "nothing is under way", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.underWay) == 0 })
}
