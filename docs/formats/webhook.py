"""A webhook of approvals: SECRET-FILE DIRECTORY PORT. See ../approvals.md."""

import hashlib, hmac, http.server, json, os, sys, time

secret = open(sys.argv[1], "rb").read().strip()
directory, port = sys.argv[2], int(sys.argv[3])


def sign(text):
    return "v1=" + hmac.new(secret, text, hashlib.sha256).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        stamp = self.headers["Holdfast-Timestamp"]
        right = hmac.compare_digest(sign(stamp.encode() + b"." + body), self.headers["Holdfast-Signature"])
        if not right or abs(time.time() - int(stamp)) > 300:
            return self.send_error(403)
        q = json.loads(body)
        for line in q["what"]:
            print(q["id"], line.get("name", ""), line["text"], flush=True)
        try:
            decision = open(os.path.join(directory, q["id"])).read().strip()
        except FileNotFoundError:
            self.send_response(202)
            self.send_header("Retry-After", "1")
            return self.end_headers()
        answer = json.dumps({"nonce": q["nonce"], "digest": q["digest"], "decision": decision, "by": "the directory"}).encode()
        self.send_response(200)
        self.send_header("Holdfast-Signature", sign(b"answer." + q["nonce"].encode() + b"." + answer))
        self.end_headers()
        self.wfile.write(answer)


http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
