package realtest

import "strings"

// oddRequests sends unusual but valid requests. The answers say what the server
// saw.
func oddRequests(scheme, versions string) string {
	return strings.NewReplacer("{scheme}", scheme, "{versions}", versions).Replace(`
		for version in {versions}; do
			set --
			for target in '/target/a%2Fb' '/target/a%20b' '/target/a+b' '/target/semi;colon=1' '/target/(x)[y]{z}' '/target/a|b^c' '/target/ü' \
				'/target/q?a=b&c=d%26e' '/target/q?x[]=1&y={2}' '/target/q?a|b"<>' '/target/q?' '/target/~a-b_c.d!*' "/target/'" \
				'/target/q?url=https://other.example.org/x' '/target/@user:pw'; do
				set -- "$@" "{scheme}://files.example.org$target"
			done
			curl -g --path-as-is -sS --http$version "$@"
			set --
			for method in OPTIONS DELETE PATCH PROPFIND REPORT QUERY GET; do
				set -- "$@" -sS --http$version -X $method -d body {scheme}://files.example.org/target/with-body --next
			done
			curl "$@" -sS --http$version -X POST -H Content-Length:0 {scheme}://files.example.org/target/empty \
				--next -sS --http$version -H "X-Long: $(head -c 20000 /dev/zero | tr '\0' x)" {scheme}://files.example.org/target/long \
				--next -sS --http$version -H 'X-Empty;' -H 'X-Utf8: ü' -H 'Accept;' -H 'Cookie: a=b; c="d e"' -H 'TE: trailers' \
				-H 'Range: bytes=0-' -A '' {scheme}://files.example.org/target/headers
		done
		curl -sS --http1.1 {scheme}://files.example.org/old-server`)
}
