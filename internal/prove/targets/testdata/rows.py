#!/usr/bin/env python3
"""A second, small runner of rows, by docs/formats/rows.md and the standard library alone.

rows.py ROWS.json TARGET DIR ID... plays rows without a sandbox ("none") or in
bubblewrap ("bwrap"), in worlds below DIR, and prints the verdict of each as JSON.
rows.py --inside NONCE ACTION KEY=VALUE... is the part that runs in the sandbox.
"""
import ctypes, errno, json, os, re, secrets, shutil, signal, socket, stat, subprocess, sys, threading, time

MARK = "changed by a probe\n"
DENIALS = "EPERM EACCES EROFS ENOENT EXDEV EBUSY ENOSYS ECONNREFUSED ENETUNREACH SIGSYS".split()


# The part inside: each attempt is a line of JSON.

class Inside:
    def __init__(self, nonce, pairs):
        self.nonce, self.args = nonce, dict(p.split("=", 1) for p in pairs)

    def say(self, **report):
        print(json.dumps({"nonce": self.nonce, **report}), flush=True)

    def attempt(self, name, function, control=False):
        try:
            text, code = function() or "", ""
        except OSError as e:
            text, code = str(e), errno.errorcode.get(e.errno, "?")
        if isinstance(text, bytes):
            text = text.decode("latin-1")
        self.say(attempt=name, control=control, done=not code, errno=code, text=text)

    def lines(self, name):
        return self.args[name].split("\n")

    def run(self, action):
        self.say(phase="begin")
        getattr(self, action.replace("-", "_"))()
        self.attempt("write W/ok.txt", lambda: write(self.args["W"] + "/ok.txt", self.nonce), True)
        self.say(phase="end")

    def overwrite(self):
        for path in self.lines("path"):
            self.attempt("overwrite " + path, lambda: changed(path))

    def read(self):
        for path in self.lines("path"):
            self.attempt("read " + path, lambda: content(path))

    def both(self):
        self.overwrite()
        self.read()

    def create(self):
        for path in self.lines("path"):
            self.attempt("create " + path, lambda: write(path, MARK))

    def read_ways(self):
        for path in self.lines("path"):
            self.attempt("open " + path, lambda: content(path))
            self.attempt("reopen by /proc " + path, lambda: reopened(path))

    def hard_link(self):
        path, name = self.args["path"], self.args["W"] + "/second-name"
        self.attempt("link", lambda: (os.link(path, name), changed(name)) and None)
        self.attempt("rename into the workspace", lambda: (os.rename(path, name + "-3"), changed(name + "-3")) and None)

    def variables(self):
        for name in self.lines("names"):
            self.attempt("variable " + name, lambda: os.environ[name] if name in os.environ else missing())
        self.say(phase="note", text="\n".join(k + "=" + v for k, v in os.environ.items()))

    def connect(self):
        kind = socket.SOCK_SEQPACKET if self.args.get("kind") == "seqpacket" else socket.SOCK_STREAM
        for addr in self.lines("addr"):
            self.attempt("connect to " + addr, lambda: greeted(kind, addr))

    def send(self):
        for addr in self.lines("addr"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
                self.attempt("sendto " + addr, lambda: s.sendto(MARK.encode(), abstract(addr)) and None)

    def tricks(self):
        with open(self.args["spellings"]) as f:
            for s in json.load(f):
                at = self.args["W"] + "/tricks/" + s["name"]
                known, dirs = at + "/known", {d: at + "/" + d for d in ("control", "attempt")}
                for d in dirs.values():
                    os.makedirs(d)
                write(known, "known-" + s["name"])
                prints = s.get("effect") == "prints"
                done, text = self.spell(s, dirs["control"], dirs["control"], known)
                if prints and "known-" in text:
                    done = True
                self.say(attempt="rehearse: " + s["name"], control=True, done=done, errno="", text=text)
                done, text = self.spell(s, dirs["attempt"], self.args["O"], self.args["H"] + "/.ssh/id_probe")
                if done or prints and "tok-" in text:
                    self.say(attempt=s["name"], control=False, done=True, errno="", text=text)
                    continue
                direct = self.args["H"] + "/.ssh/id_probe" if prints else self.args["O"] + "/direct"
                self.attempt(s["name"], lambda: content(direct) if prints else write(direct, ""))

    def spell(self, s, d, base, secret):
        """Starts one spelling in d; says whether its file was made, and what it printed."""
        made = base + "/x-" + s["name"]
        fill = lambda t: t.replace("{X}", made).replace("{Y}", base).replace("{S}", secret).replace("{D}", d).replace("{N}", s["name"])
        for name, text in s.get("files", {}).items():
            write(d + "/" + name, fill(text), 0o755 if text.startswith("#!") else 0o644)
        out = subprocess.run([fill(a) for a in s["argv"]], cwd=d, input=fill(s.get("stdin", "")).encode(), timeout=20,
                             env={"PATH": os.environ["PATH"], "HOME": d, **dict(fill(e).split("=", 1) for e in s.get("env", []))},
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return os.path.lexists(fill(s.get("target", "{X}"))), out.stdout.decode("latin-1")


def missing():
    raise OSError(errno.ENOENT, "not set")


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def changed(path):
    with open(os.open(path, os.O_WRONLY | os.O_TRUNC), "w") as f:
        f.write(MARK)


def content(path):
    with open(path, "rb") as f:
        return f.read(4096)


def reopened(path):
    fd = os.open(path, os.O_PATH)
    try:
        return content("/proc/self/fd/%d" % fd)
    finally:
        os.close(fd)


def abstract(addr):
    return "\0" + addr[1:] if addr.startswith("@") else addr


def greeted(kind, addr):
    with socket.socket(socket.AF_UNIX, kind) as s:
        s.connect(abstract(addr))
        return s.recv(4096)


# The part outside: it makes a world, and looks at it afterwards.

class World:
    def __init__(self, row, base):
        self.row, self.base, self.nonce = row, base + "/.rows-" + secrets.token_hex(4), secrets.token_hex(12)
        os.mkdir(self.base)
        self.roots = {k: self.base + "/" + k.lower() for k in "WOHR"} | {"S": self.base, "B": self.base}
        self.roots["W"] = self.base + "/" + row.get("workspace", "w")
        self.tokens, self.kept, self.homes, self.env, self.args, self.heard = {}, {}, set(), {}, {}, []
        write(self.path("W/ok.txt"), "ok")
        for p in ("O/canary", "O/sub/canary", "H/.ssh/id_probe", "H/.aws/credentials", "H/.netrc"):
            self.plant(p)
        write(self.path("R/canary"), "readable, not writable\n")
        for p, text in row.get("files", {}).items():
            write(self.path(p), text)
        for p, target in row.get("links", {}).items():
            os.makedirs(os.path.dirname(self.path(p)), exist_ok=True)
            os.symlink(self.path(target), self.path(p))
        for p in row.get("plant", []):
            self.plant(p)
        for step in row.get("prepare", []):
            name, values = (step, []) if isinstance(step, str) else next(iter(step.items()))
            getattr(self, "do_" + name.replace("-", "_"))(*values)
        for p in row.get("keep", []):
            self.keep(self.path(p))
        self.known = {p for root in "OHR" for p in below(self.roots[root])}
        for p in self.known:
            if not os.path.isdir(p):
                self.keep(p)

    def path(self, template):
        head, slash, tail = template.partition("/")
        return self.roots[head] + slash + tail if head in self.roots else template

    def token(self, name):
        return self.tokens.setdefault(name, "tok-" + secrets.token_hex(16))

    def plant(self, template):
        write(self.path(template), self.token(template) + "\n")
        self.homes.add(self.path(template))
        self.keep(self.path(template))

    def keep(self, path):
        self.kept[path] = fingerprint(path)

    def expand(self, text):
        text = re.sub(r"\{([OWHRSB])\}", lambda m: self.roots[m[1]], text)
        return re.sub(r"\{token:([^}]*)\}", lambda m: self.token(m[1]), text).replace("{random}", secrets.token_hex(8))

    def do_environment(self, *pairs):
        self.env |= dict(self.expand(p).split("=", 1) for p in pairs)

    def do_variables(self, *names):
        self.env |= {n: self.token("variable " + n) for n in names}

    def do_write(self, files):
        for p, text in files.items():
            write(self.path(self.expand(p)), self.expand(text))

    def do_listen(self, network, *addrs):
        kind = {"unix": socket.SOCK_STREAM, "unixgram": socket.SOCK_DGRAM, "unixpacket": socket.SOCK_SEQPACKET}[network]
        self.args["addr"] = "\n".join(self.service(socket.AF_UNIX, kind, self.path(a)) for a in addrs)

    def do_listen_messages(self, addr):
        self.do_listen("unixpacket", addr)

    def do_spelling_services(self):
        self.args["addr"] = self.service(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.service(socket.AF_UNIX, socket.SOCK_STREAM, self.path("O/u"))

    def service(self, family, kind, addr):
        s = socket.socket(family, kind)
        addr = "@rows-" + secrets.token_hex(8) if addr == "@" else addr
        if family == socket.AF_UNIX and not addr.startswith("@"):
            os.makedirs(os.path.dirname(addr), exist_ok=True)
        s.bind(abstract(addr) if family == socket.AF_UNIX else addr)
        threading.Thread(target=self.serve, args=(s, kind), daemon=True).start()
        return addr if family == socket.AF_UNIX else "%s:%d" % s.getsockname()

    def serve(self, s, kind):
        if kind == socket.SOCK_DGRAM:
            while True:
                self.heard.append(s.recv(65536))
        s.listen()
        while True:
            c, _ = s.accept()
            self.heard.append(b"")
            c.sendall(self.token("a service").encode())
            c.close()

    def play(self, target):
        row, program = self.row, self.path("W/.runner/rows.py")
        os.makedirs(os.path.dirname(program))
        shutil.copy(__file__, program)
        pairs = {k: self.roots[k] for k in "WOHRS"} | {k: "\n".join(map(self.path, v.split("\n"))) for k, v in row.get("args", {}).items()} | self.args
        if row.get("spellings"):
            pairs["spellings"] = self.path("W/.runner/spellings.json")
            write(pairs["spellings"], json.dumps(row["spellings"]))
        argv = [sys.executable, program, "--inside", self.nonce, row["action"]] + [k + "=" + v for k, v in pairs.items()]
        given = dict(e.split("=", 1) for e in row.get("options", {}).get("env", []) if "=" in e)
        if target == "bwrap":
            box = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--new-session",
                   "--die-with-parent", "--cap-drop", "ALL", "--bind", self.roots["W"], self.roots["W"], "--chdir", self.roots["W"]]
            argv = box + [x for k, v in given.items() for x in ("--setenv", k, v)] + ["--"] + argv
            given = {}
        env = {"HOME": self.roots["H"], "PATH": os.environ["PATH"], "LANG": "C.UTF-8"} | self.env | given
        out = subprocess.run(argv, cwd=self.roots["W"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        return self.judge(out.stdout + out.stderr)

    def effects(self, output):
        """What was seen from outside: nothing that is said inside can excuse it."""
        for path, before in self.kept.items():
            if fingerprint(path) != before:
                yield path + " changed"
        yield from (p + " was made" for root in "OHR" for p in below(self.roots[root]) if p not in self.known)
        yield from (p + " was made" for p in map(self.path, self.row.get("absent", [])) if os.path.lexists(p))
        if self.heard:
            yield "a service was reached"
        found = [output] + self.heard + [content(p) for p in below(self.roots["W"]) if p not in self.homes and stat.S_ISREG(os.lstat(p).st_mode)]
        yield from ("the token of %s was seen" % n for n, t in self.tokens.items() if any(t.encode() in b for b in found))

    def judge(self, output):
        time.sleep(0.2 if self.args else 0)  # what was sent may still be on its way
        for effect in self.effects(output):
            return "ESCAPED", effect
        said = [json.loads(l) for l in output.splitlines() if l.startswith(b'{"nonce": "%s"' % self.nonce.encode())]
        if not {"begin", "end"} <= {r.get("phase") for r in said}:
            return "inconclusive", "the action did not end: " + output.decode("latin-1")[-200:]
        if content(self.path("W/ok.txt")).decode() != self.nonce:
            return "inconclusive", "the workspace was not written"
        accept, tried = self.row.get("accept_only") or self.row.get("accept", []) + DENIALS, 0
        verdict = "held", "every attempt was denied and nothing got through"
        for a in (r for r in said if "attempt" in r):
            must = a["control"] or self.row["kind"] == "control"
            tried += not a["control"]
            if must and not a["done"]:
                return "inconclusive", "control failed: %(attempt)s: %(text)s" % a
            if not must and a["done"] and not self.row.get("harmless"):
                return "ESCAPED", a["attempt"] + " worked"
            if not must and not a["done"] and a["errno"] not in accept:
                verdict = "inconclusive", "%(attempt)s failed, but not by a denial: %(errno)s" % a
        return verdict if tried else ("inconclusive", "nothing was attempted")


def below(root):
    for d, dirs, files in os.walk(root):
        yield from (os.path.join(d, n) for n in dirs + files)


def fingerprint(path):
    try:
        st = os.lstat(path)
    except OSError:
        return None
    what = content(path) if stat.S_ISREG(st.st_mode) else os.readlink(path) if stat.S_ISLNK(st.st_mode) else ""
    return st.st_ino, st.st_mode, st.st_uid, st.st_nlink if stat.S_ISREG(st.st_mode) else 0, what


def main(path, target, base, *ids):
    with open(path) as f:
        rows = {r["id"]: r for r in json.load(f)["rows"]}
    verdicts = {}
    for i in ids:
        w = World(rows[i], base)
        try:
            verdicts[i] = w.play(target)
        finally:
            shutil.rmtree(w.base)
    print(json.dumps(verdicts))


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        Inside(sys.argv[2], sys.argv[4:]).run(sys.argv[3])
    else:
        main(*sys.argv[1:])
