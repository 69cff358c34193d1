#!/usr/bin/env python3
"""Verify a Holdfast log by docs/formats/audit-log.md, with nothing but Python 3.

usage: verify_log.py LOG [--session ID] [--key PUBLIC_KEY_OR_FILE]... [--head NOTE_FILE]...

The log has to be of the session that its name says, where it stands in a directory
"log" or has the name of a session (20261123T091500-2e40519a7fa6.jsonl), or else of
the one that --session says. Prints COMPLETE, GAPS, TAMPERED, UNVERIFIABLE or PARTIAL and why; the exit status
is 0, 1, 2, 3 or 4. It shares no code with Holdfast, on purpose.
"""
import base64
import hashlib
import json
import os
import re
import sys
from datetime import datetime

TOP = "seq prev time session sensor n action verdict object resolved layer rule error process detail raw".split()
PROCESS = "pid exec parent parent_exec executable sha256 cwd argv".split()
TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{0,8}[1-9])?Z", re.A)
NUMBERS = {"seq", "n", "pid", "exec", "parent", "parent_exec"}
ORIGIN, KEY_NAME = "holdfast.dev/log/v1", "holdfast.dev/log"

# Ed25519, RFC 8032, section 5.1.7 and appendix A.
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def add(a, b):
    x1, y1, z1, t1 = a
    x2, y2, z2, t2 = b
    e, f = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    g, h = 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    a, b, c, d = f - e, h - g, h + g, f + e
    return a * b % P, c * d % P, b * c % P, a * d % P


def mul(n, point):
    out = (0, 1, 1, 0)
    while n:
        if n & 1:
            out = add(out, point)
        point = add(point, point)
        n >>= 1
    return out


def decompress(b):
    y = int.from_bytes(b, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= P:
        return None
    xx = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P:
        x = x * ROOT % P
    if (x * x - xx) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = decompress((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def signed(public, message, signature):
    a, r = decompress(public), decompress(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    left, right = mul(s, BASE), add(r, mul(h, a))
    return not ((left[0] * right[2] - right[0] * left[2]) % P or (left[1] * right[2] - right[1] * left[2]) % P)


class Bad(Exception):
    """Something is not as the format has it."""


def need(condition, what):
    if not condition:
        raise Bad(what)


def canonical(line):
    """Decode a line, and refuse every spelling of it but one."""
    def pairs(items):
        need(len({k for k, _ in items}) == len(items), "a key stands twice")
        return dict(items)

    try:
        text = line.decode("utf-8")
        r = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as e:
        raise Bad(f"not JSON: {e}")
    need(isinstance(r, dict) and json.dumps(r, ensure_ascii=False, separators=(",", ":")) == text, "not canonical")
    if "checkpoint" in r:
        need(list(r) == ["seq", "prev", "checkpoint"] and isinstance(r["checkpoint"], str), "not a checkpoint")
    else:
        ordered(r, TOP)
        need(list(r)[:3] == ["seq", "prev", "time"], "a member is missing")
        moment(r["time"])
        need(r.get("verdict", "denied") in ("allowed", "denied"), "no verdict")
        if "process" in r:
            ordered(r["process"], PROCESS)
        for m in ("detail", "raw"):
            strings(r.get(m, {"x": ""}))
        raw(r)
    integer(r["seq"])
    need(isinstance(r["prev"], str) and re.fullmatch("[0-9a-f]{64}", r["prev"]), "prev is no hash")
    return r


def ordered(r, names):
    need(isinstance(r, dict) and r and list(r) == [n for n in names if n in r], "members are unknown or out of order")
    for name, v in r.items():
        if name in NUMBERS:
            integer(v)
        elif name == "argv":
            need(isinstance(v, list) and v and all(isinstance(a, str) for a in v), "argv is no list of strings")
        elif name not in ("process", "detail", "raw"):
            need(isinstance(v, str) and v, f"{name} is no string or an empty one")


def integer(v):
    need(type(v) is int and 0 < v < 2**63, "not an integer from 1")


def moment(t):
    m = TIME.fullmatch(t)
    try:
        need(m and datetime.strptime(m[1].replace("0000-", "2000-", 1), "%Y-%m-%dT%H:%M:%S").second < 60, "not a time")
    except ValueError:
        raise Bad("not a time")


def strings(d):
    need(isinstance(d, dict) and d and list(d) == sorted(d), "keys are out of order")
    for k, v in d.items():
        need(re.fullmatch(r"[!-~]{1,128}", k) and '"' not in k and "\\" not in k and isinstance(v, str), "not a key and a string")


def raw(r):
    p = r.get("process", {})
    shown = {k: v for k, v in [*r.items(), *p.items()] if isinstance(v, str)}
    for hidden in ("time", "prev", "verdict"):
        shown.pop(hidden, None)
    shown |= {f"argv.{i}": a for i, a in enumerate(p.get("argv", []))}
    shown |= {f"detail.{k}": v for k, v in r.get("detail", {}).items()}
    for k, v in r.get("raw", {}).items():
        try:
            exact = base64.b64decode(v, validate=True)
        except ValueError:
            raise Bad("raw is not base64")
        need(base64.b64encode(exact).decode() == v and shown.get(k) == replaced(exact), "raw does not fit")


def replaced(exact):
    """Each byte that is not part of valid UTF-8 becomes U+FFFD; None when there is none."""
    text = exact.decode("utf-8", "surrogateescape")
    out = re.sub("[\udc80-\udcff]", "\ufffd", text)
    return None if out == text else out


def checkpoint(note, keys):
    """Return session, lines, head, end and whether the key is known."""
    text, _, signature = note.partition("\n\n")
    lines = text.split("\n")
    need(len(lines) == 6 and lines[0] == ORIGIN and lines[5] in ("open", "end"), "not a checkpoint")
    need(re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]{0,63}", lines[1]), "no session")
    need(re.fullmatch("0|[1-9][0-9]{0,18}", lines[2]) and re.fullmatch("[0-9a-f]{64}", lines[3]), "no place")
    moment(lines[4])
    m = re.fullmatch("\u2014 " + re.escape(KEY_NAME) + " ([A-Za-z0-9+/]{91}=)\n", signature)
    need(m, "not one signature")
    sig = base64.b64decode(m[1])
    need(base64.b64encode(sig).decode() == m[1], "signature is not canonical")
    key = keys.get(sig[:4])
    need(key is None or signed(key, (text + "\n").encode(), sig[4:]), "the signature is wrong")
    return lines[1], int(lines[2]), lines[3], lines[5] == "end", key is not None


def load_key(text):
    name, digest, encoded = text.strip().split("+", 2)
    key = base64.b64decode(encoded, validate=True)
    need(name == KEY_NAME and len(key) == 33 and key[0] == 1, "not a key for logs")
    hashed = hashlib.sha256(f"{name}\n".encode() + key).digest()[:4]
    need(hashed.hex() == digest, "the hash of the key is wrong")
    return hashed, key[1:]


class Verifier:
    def __init__(self, keys, session=None):
        self.keys, self.problems = keys, {"TAMPERED": [], "UNVERIFIABLE": [], "GAPS": [], "PARTIAL": []}
        self.seq, self.head, self.session = 0, "0" * 64, session
        self.stops, self.seen, self.lost, self.counts = {}, {}, {}, None
        self.ended = self.session_ended = False
        self.level, self.starts, self.blind = "", [], set()

    def say(self, verdict, what):
        self.problems[verdict].append(what)

    def line(self, number, line):
        try:
            need(not self.ended, "something follows the end")
            r = canonical(line)
            need(r["seq"] == self.seq + 1, f"record {self.seq + 1} should stand here")
            need(r["prev"] == self.head, "the line before is not the one that it names")
            if "checkpoint" in r:
                self.checkpoint(r)
            else:
                self.of(r.get("session"))
                self.event(r)
        except Bad as e:
            self.say("TAMPERED", f"line {number}: {e}")
        self.seq, self.head = self.seq + 1, hashlib.sha256(line).hexdigest()

    def of(self, session):
        need(self.session in (None, session), "it is of another session")
        self.session = session

    def checkpoint(self, r):
        session, lines, head, self.ended, known = checkpoint(r["checkpoint"], self.keys)
        need(lines == r["seq"] - 1 and head == r["prev"], "the checkpoint is of another place")
        self.of(session)
        self.stops[lines] = r["checkpoint"]
        if not known:
            self.say("UNVERIFIABLE", f"record {r['seq']}: signed by an unknown key")

    def event(self, r):
        sensor, detail = r.get("sensor", ""), r.get("detail", {})
        if self.session_ended and sensor != "record":
            self.say("GAPS", f"record {r['seq']}: after the end of the session")
        if "n" not in r or r["n"] in self.seen.setdefault(sensor, set()):
            self.say("GAPS", f"record {r['seq']}: its number is missing or stands twice")
        self.seen.setdefault(sensor, set()).add(r.get("n"))
        if r.get("action") in ("record.cut", "record.drop"):
            ranges = detail.get("ranges") or "{from}-{to}".format_map({"from": 0, "to": 0} | detail)
            self.say("GAPS", f"record {r['seq']}: {r['action']} of {detail.get('of')}: {ranges}")
            self.lost.setdefault(detail.get("of"), []).extend(
                (int(a), int(b or a)) for a, b in re.findall(r"(\d+)(?:-(\d+))?", ranges))
        elif r.get("action") == "record.begin":
            self.level = self.level or detail.get("level", "")
        elif r.get("action") == "session.start":
            self.starts.append(r)
        elif r.get("action") == "record.blind":
            self.unseen(r, r.get("object", "something"), detail.get("reason"))
        elif r.get("action") == "session.end":
            if self.session_ended:
                self.say("GAPS", f"record {r['seq']}: the session ends a second time")
            self.session_ended = True
            self.counts = {k[6:]: int(v) for k, v in detail.items() if k.startswith("count.")}

    def unseen(self, r, what, why):
        self.blind.add(what)
        self.say("PARTIAL", f"record {r['seq']}: {what} not seen since {r['time']}: {why}")

    def watched(self):
        """Every run inside a boundary has these sensors, or the record says what was not seen."""
        for r in self.starts:
            detail = r.get("detail", {})
            if not (detail.get("level") or self.level):
                continue
            named = detail.get("sensors", "").split(",")
            for sensor, what in ("syscall", "calls"), ("tripwire", "lookups"), ("egress", "network"):
                covered = what in self.blind or sensor == "tripwire" and "calls" in self.blind
                if sensor not in named and not covered:
                    self.unseen(r, what, f"the session does not name the sensor {sensor}")

    def outside(self, note):
        try:
            session, lines, _, _, known = checkpoint(note, self.keys)
            need(self.session in (None, session), "it is of another session")
            need(lines < self.seq, f"it has {lines + 1} records, the log {self.seq}")
            need(self.stops.get(lines) == note, f"record {lines} is another here")
            if not known:
                self.say("UNVERIFIABLE", "the head is signed by an unknown key")
        except Bad as e:
            self.say("TAMPERED", f"head: {e}")

    def finish(self, rest):
        if rest:
            self.say("TAMPERED" if self.ended else "GAPS", f"{len(rest)} bytes at the end are no line")
        if not self.ended:
            self.say("GAPS", f"no end after record {self.seq}")
        counts = self.counts
        if counts is None:
            counts = {}
            if set(self.seen) - {"record"}:
                self.say("GAPS", "the session has no end")
        for sensor in sorted(set(self.seen) | set(counts)):
            numbers = self.seen.get(sensor, set()) - {None}
            total = counts.get(sensor, max(numbers, default=0))
            if sensor not in counts and sensor != "record" and self.counts is not None:
                self.say("GAPS", f"{sensor}: how many there were is not known")
            if max(numbers, default=0) > total:
                self.say("GAPS", f"{sensor}: more events than it had")
            here = sorted([(n, n) for n in numbers] + self.lost.get(sensor, []))
            last = 0
            for a, b in [*here, (total + 1, total + 1)]:
                if a > last + 1:
                    self.say("GAPS", f"{sensor}: events {last + 1}-{a - 1} are missing")
                last = max(last, b)
        self.watched()
        found = [verdict for verdict, what in self.problems.items() if what]
        return (found or ["COMPLETE"])[0], [w for verdict in found for w in self.problems[verdict]]


def placed(log):
    """Return the session that a log must be of by its name and place; None for any."""
    directory, name = os.path.split(os.path.abspath(log))
    stem = name.removesuffix(".jsonl")
    if stem != name and (os.path.basename(directory) == "log" or re.fullmatch(r"\d{8}T\d{6}-[0-9a-f]{12}", stem)):
        return stem
    return None


def main(argv):
    log, session, keys, heads = None, None, {}, []
    while argv:
        arg = argv.pop(0)
        if arg == "--key":
            text = argv.pop(0)
            hashed, key = load_key(text if "+" in text else open(text).read())
            keys[hashed] = key
        elif arg == "--session":
            session = argv.pop(0)
        elif arg == "--head":
            heads.append(open(argv.pop(0), encoding="utf-8", newline="").read())
        else:
            log = arg
    v = Verifier(keys, session or placed(log))
    rest = b""
    with open(log, "rb") as f:
        for number, line in enumerate(f, 1):
            if not line.endswith(b"\n"):
                rest = line
                break
            v.line(number, line[:-1])
    for note in heads:
        v.outside(note)
    verdict, what = v.finish(rest)
    print(verdict)
    for w in what:
        print("  " + w)
    return ["COMPLETE", "GAPS", "TAMPERED", "UNVERIFIABLE", "PARTIAL"].index(verdict)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
