package network

import (
	"net/http"
	"slices"
	"strings"
)

// droppedField is a request header that is dropped. A name that ends in * matches all
// names with that prefix. Names are compared as canonicalField returns them.
type droppedField struct{ name, why string }

// droppedFields tell servers that trust a proxy who the client is, or which host, path
// or method it asked for. There is no proxy inside, so they could only contradict what
// was decided on.
var droppedFields = []droppedField{
	{"forwarded", "RFC 7239: client, host and scheme of the original request"},
	{"x-forwarded*", "the same before RFC 7239; also -server, -prefix and -path"},
	{"x-real-*", "the client's address, to nginx"},
	{"x-original-*", "path, method or host instead of those of the request, to IIS and proxies"},
	{"x-rewrite-*", "path instead of that of the request, to IIS and Zend"},
	{"x-override-*", "path instead of that of the request"},
	{"x-host", "host instead of Host"},
	{"x-http-host*", "host instead of Host"},
	{"x-http-path-override", "path instead of that of the request"},
	{"x-http-method*", "method instead of that of the request, to most frameworks"},
	{"x-method-override", "method instead of that of the request"},
	{"x-http-destinationurl", "path instead of that of the request"},
	{"x-envoy-*", "routing and retries, to Envoy"},
	{"x-remote-*", "the client's address or name, to servers behind a proxy"},
	{"x-client-ip", "the client's address"},
	{"x-cluster-client-ip", "the client's address, to Rackspace and Riverbed"},
	{"x-originating-*", "the client's address"},
	{"x-proxyuser-ip", "the client's address, to Google's services"},
	{"x-azure-*", "the client and its path, to services behind Azure's front door"},
	{"x-arr-*", "what IIS tells the servers behind it"},
	{"x-appengine-*", "what App Engine tells its applications"},
	{"client-ip", "the client's address"},
	{"true-client-ip", "the client's address, to Akamai and Cloudflare"},
	{"cf-connecting-*", "the client's address, to Cloudflare's customers"},
	{"cf-ray", "that Cloudflare passed the request on"},
	{"fastly-client-ip", "the client's address, to Fastly's customers"},
	{"fly-client-ip", "the client's address, to Fly's customers"},
	{"cdn-loop", "RFC 8586: which networks passed the request on"},
	{"via", "RFC 9110, 7.6.3: which proxies passed the request on"},
	{"max-forwards", "RFC 9110, 7.6.2: how many more proxies may"},
	{"alt-used", "RFC 7838: the host of an alternative service"},
	{"early-data", "RFC 8470: that a proxy had the request before the handshake ended"},
	{"front-end-https", "scheme of the original request, to Exchange"},
	{"x-forward-*", "a misspelling that some servers take for X-Forwarded"},
	{"cluster-client-ip", "the client's address, to Rackspace and Riverbed"},
	{"x-custom-ip-authorization", "the client's address"},
	{"x-matched-path", "path instead of that of the request, to Next.js"},
	{"x-invoke-*", "path and query instead of those of the request, to Next.js"},
	{"x-middleware-*", "that a proxy has already decided, to Next.js (CVE-2025-29927)"},
	{"base-url", "scheme, host and path of the original request"},
	{"proxy", "becomes HTTP_PROXY to CGI programs (CVE-2016-5385)"},
	{"proxy-*", "what a client tells its proxy, with its credentials"},
	{"http2-settings", "RFC 7540, 3.2.1: HTTP/2 in the clear, which is not passed on"},
}

// dropped reports whether a header does not pass; name is canonical.
func dropped(name string) bool {
	return slices.ContainsFunc(droppedFields, func(f droppedField) bool {
		prefix, all := strings.CutSuffix(f.name, "*")
		return name == f.name || all && strings.HasPrefix(name, prefix)
	})
}

// otherPathFields name a second path: where something is copied or moved to, or from
// where its content is taken. No rule about paths decides on it.
var otherPathFields = []string{
	"destination", "x-amz-copy-source", "x-amz-rename-source", "x-ms-copy-source", "x-ms-rename-source", "x-goog-copy-source", "x-copy-from",
}

// otherPath is the header of a request that names another path; "" for none.
func otherPath(r *http.Request) string {
	for name := range r.Header {
		if c := canonicalField(name); slices.Contains(otherPathFields, c) {
			return c
		}
	}
	return ""
}

// connectionTokens are what Connection may list: what ends at the next hop
// anyway. Listing anything else would take it out of the request, and with it
// what it says to the server.
var connectionTokens = []string{
	"close", "keep-alive", "upgrade", "te", "trailer", "http2-settings", "proxy-connection", "transfer-encoding",
}

// framingFields say where a request goes and where it ends.
var framingFields = []string{"host", "content-length", "transfer-encoding"}

// prepare takes out of the request what must not pass, or says why it may not.
func (x *exchange) prepare(r *http.Request) *denial {
	for _, list := range r.Header["Connection"] {
		for token := range strings.SplitSeq(list, ",") {
			token = strings.ToLower(strings.Trim(token, " \t"))
			if token != "" && !slices.Contains(connectionTokens, token) {
				return deny(http.StatusBadRequest, "request smuggling: Connection lists what is not of the connection", highSeverity)
			}
		}
	}
	if lengths := r.Header["Content-Length"]; len(lengths) > 1 {
		return deny(http.StatusBadRequest, "request smuggling: there are two Content-Length headers", highSeverity)
	} else if n, ok := parseLength(strings.Join(lengths, "")); len(lengths) == 1 && (!ok || n != max(r.ContentLength, 0)) {
		return deny(http.StatusBadRequest, "request smuggling: the Content-Length is not that of the body", highSeverity)
	}
	for name := range r.Trailer {
		if c := canonicalField(name); slices.Contains(notTrailers, c) || dropped(c) {
			return deny(http.StatusBadRequest, "request smuggling: Trailer lists "+printable(name), highSeverity)
		}
	}
	for name := range r.Header {
		c := canonicalField(name)
		if strings.Contains(name, "_") && slices.Contains(framingFields, c) { // the guard knows of HTTP/1 alone
			return deny(http.StatusBadRequest, "request smuggling: there is a second spelling of "+c, highSeverity)
		}
		if dropped(c) {
			delete(r.Header, name)
		}
	}
	x.upgrade = isUpgrade(r)
	if !x.upgrade {
		// A server continues in HTTP/1.1 if it does not know the protocol (RFC 9110,
		// 7.8): so does this one with all but WebSocket.
		r.Header.Del("Upgrade")
	}
	if x.body = newRequestBody(x, r); x.body != nil {
		r.Body = x.body
	}
	return nil
}

// isUpgrade reports whether the request asks for WebSocket (RFC 6455, 4.1).
func isUpgrade(r *http.Request) bool {
	return r.Method == http.MethodGet && r.ProtoMajor == 1 && r.ProtoMinor == 1 &&
		len(r.Header["Upgrade"]) == 1 && strings.EqualFold(r.Header["Upgrade"][0], "websocket") &&
		r.ContentLength == 0
}
