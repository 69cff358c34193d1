//go:build linux

package probe

import "slices"

// proxyH2 are requests that only HTTP/2 can say, to a server that takes
// HTTP/1.1, where they would be written out as other ones.
func proxyH2() []Row {
	line := func(fields ...string) string { return say("direct allowed.test:443", fields...) }
	with := func(more ...string) string {
		return line(slices.Concat([]string{":method=GET", ":scheme=https", ":authority=allowed.test", ":path=/open"}, more)...)
	}
	shapes := []string{
		with("host=denied.test"), with("host=allowed.test", "host=denied.test"), with(":authority=denied.test"), with("x=a\r\nhost: denied.test"), with("x\r\nhost=denied.test"), with("x=a\nhost: denied.test"),
		with("x: y\r\nhost=denied.test"), with("transfer-encoding=chunked", "=DATA 0\r\n\r\nGET /admin HTTP/1.1\r\nHost: allowed.test\r\n\r\n"), with("content-length=0", "=DATA GET /admin HTTP/1.1\r\nHost: allowed.test\r\n\r\n"),
		with("content-length=3", "content-length=0", "=DATA abc"), with("connection=upgrade", "upgrade=h2c"), with("Host=denied.test"), with("x-forwarded-host=denied.test"), with("x-original-url=/admin"), with("te=chunked"),
		with("=DATA a", "=TRAILER host=denied.test"), with("=DATA a", "=TRAILER x-forwarded-host=denied.test"), with("=DATA a", "=TRAILER transfer-encoding=chunked"),
		line(":method=GET", ":scheme=https", ":path=/open", "host=denied.test"), line(":method=GET", ":scheme=https", ":path=/open"), line(":method=GET", ":scheme=https", ":authority=", ":path=/open", "host=denied.test"),
		line(":method=GET", ":scheme=https", ":authority=allowed.test\r\nx: y", ":path=/open"), line(":method=GET", ":scheme=https", ":authority=denied.test", ":path=/open", "host=allowed.test"),
		line(":method=GET", ":scheme=https", ":authority=allowed.test#@denied.test", ":path=/open"), line(":method=GET", ":scheme=https", ":authority=user@allowed.test", ":path=/open"), line(":method=GET", ":scheme=http", ":authority=allowed.test:80", ":path=/open"),
		line(":method=GET", ":scheme=https", ":authority=allowed.test", ":path=/admin"), line(":method=GET", ":scheme=https", ":authority=allowed.test", ":path=http://denied.test/open"), line(":method=GET", ":scheme=https", ":authority=allowed.test", ":path=//denied.test/open"),
		line(":method=GET", ":scheme=https", ":authority=allowed.test", ":path=/open HTTP/1.1\r\nHost: denied.test\r\nX: y"), line(":method=GET", ":scheme=https", ":authority=allowed.test", ":path=/open\r\n\r\nGET /admin HTTP/1.1"),
		line(":method=GET", ":scheme=https", ":authority=allowed.test", ":path=open"), line(":method=GET", ":scheme=https", ":authority=allowed.test", ":path=*"), line(":method=GET", ":scheme=https", ":authority=allowed.test", ":path="),
		line(":method=GET /admin HTTP/1.1\r\nX:", ":scheme=https", ":authority=allowed.test", ":path=/open"), line(":method=GET", ":method=DELETE", ":scheme=https", ":authority=allowed.test", ":path=/open"),
		line(":method=GET", ":scheme=https", ":authority=allowed.test", ":path=/open", ":path=/admin"), line("x=y", ":method=DELETE", ":scheme=https", ":authority=allowed.test", ":path=/admin"),
		line(":method=CONNECT", ":authority=denied.test:80"), line(":method=CONNECT", ":authority=allowed.test:22"), line(":method=CONNECT", ":protocol=websocket", ":scheme=https", ":authority=allowed.test", ":path=/admin"),
		line(":method=delete", ":scheme=https", ":authority=allowed.test", ":path=/open"), line(":method=GET", ":scheme=https", ":authority=allowed.test", ":path=/open/../admin"), line(":method=GET", ":scheme=https", ":authority=allowed.test", ":path=/open/%2e%2e/admin"),
	}
	never := func(protocols ...string) func(*internet) {
		return func(n *internet) {
			n.never, n.protocols = []string{"x-forwarded", "x-original", "denied.test"}, protocols
		}
	}
	good := "ok=" + with()
	return []Row{
		{ID: "PXY-010b", Title: "a request of HTTP/2 becomes another one on the way to a server of HTTP/1.1",
			Refs: []string{"RFC 9113, 8.2.1", "RFC 9113, 8.3.1", "HTTP/2: The Sequel is Always Worse, Black Hat 2021"}, Options: Options{Reach: openReach}, Action: "net-h2",
			Bare: "a server of HTTP/1.1 takes no HTTP/2 by itself", Setup: network(never("http/1.1")), Args: []string{good, "say=" + rowsOf(shapes...)}},
		{ID: "PXY-010c", Title: "a request of HTTP/2 is for another host or path than it seems",
			Refs: []string{"RFC 9113, 8.3.1"}, Options: Options{Reach: openReach}, Action: "net-h2",
			Setup: network(never("h2", "http/1.1")), Args: []string{good, "say=" + rowsOf(shapes...)}},
		bodiesUnreadH2(line),
	}
}

// bodiesUnreadH2 is bodiesUnread for clients of HTTP/2, whose requests share the
// connections of the proxy.
func bodiesUnreadH2(line func(...string) string) Row {
	const hidden = "GET /admin HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
	with := func(method string, more ...string) string {
		return line(append([]string{":method=" + method, ":scheme=https", ":authority=allowed.test", ":path=/open"}, more...)...)
	}
	length := "content-length=" + decimal(len(hidden))
	return Row{
		ID: "PXY-221", Title: "a request hides in the body of another that comes by HTTP/2, for a server of HTTP/1.1 that reads no body",
		Refs: []string{"RFC 9112, 11.2", "CL.0 2022"}, Action: "net-h2", Options: Options{Reach: openReach},
		Bare:  "a server of HTTP/1.1 takes no HTTP/2 by itself",
		Setup: network(func(n *internet) { n.protocols, n.unread = []string{"http/1.1"}, true }),
		Args: []string{"ok=" + with("GET"), "say=" + rowsOf(
			with("GET", length, "=DATA "+hidden), with("POST", length, "=DATA "+hidden), with("GET", "=DATA "+hidden), with("POST", "=DATA "+hidden),
			with("POST", "expect=100-continue", length, "=DATA "+hidden), with("GET", "=DATA "+hidden, "=TRAILER x=y"))},
	}
}
