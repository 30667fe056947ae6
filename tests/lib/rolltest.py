# SPDX-License-Identifier: Apache-2.0
"""What the functional tests share: TAP lines, processes that are always stopped, PowerDNS in
several versions, and questions over UDP and TCP.

The programs under test are found in PATH (the build puts its own in front). ROLL_PDNS_DIR may
name a folder of further PowerDNS installations (SUITE/bin/pdns_server) beside the installed one.
"""
import atexit
import glob
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.rrset

from ports import free_port  # noqa: F401 (for tests)

SRCDIR = os.environ.get("ROLL_SRCDIR") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
DEADLINE_S = 30 if not os.environ.get("ROLL_SLOW") else 120
GROUP = "dns.networking.miloapis.com/v1alpha1"

_live = []
_tmp = tempfile.mkdtemp(prefix="roll-test-")


def _stop_all():
    for proc in reversed(_live):
        if proc.poll() is None:
            proc.send_signal(signal.SIGCONT)
            proc.kill()
            proc.wait()
    shutil.rmtree(_tmp, ignore_errors=True)


atexit.register(_stop_all)
for _sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(_sig, lambda *_: sys.exit(1))


class Tap:
    """Test Anything Protocol; the plan comes last."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, good, name, detail=None):
        self.count += 1
        if not good:
            self.failed += 1
        print("%s %d - %s" % ("ok" if good else "not ok", self.count, name.replace("#", "")))
        if not good and detail is not None:
            for line in str(detail).splitlines()[:60]:
                print("# " + line)
        sys.stdout.flush()
        return good

    def equal(self, got, want, name):
        return self.ok(got == want, name, "got  %r\nwant %r" % (got, want))

    def skip(self, name, why):
        self.count += 1
        print("ok %d - %s # SKIP %s" % (self.count, name, why))

    def note(self, text):
        for line in str(text).splitlines():
            print("# " + line)
        sys.stdout.flush()

    def done(self):
        print("1..%d" % self.count)
        sys.exit(1 if self.failed else 0)


tap = Tap()


def _died(*exception):
    """Into the test's own log: what is on stderr gets lost there."""
    tap.note("".join(traceback.format_exception(*exception)))


sys.excepthook = _died


def skip_all(why):
    print("1..0 # SKIP " + why)
    sys.exit(0)


def wait_for(what, condition, deadline_s=DEADLINE_S):
    """The first true value of condition(); AssertionError once the deadline is over."""
    end = time.monotonic() + deadline_s
    pause = 0.0005
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > end:
            raise AssertionError("not within %g s: %s" % (deadline_s, what))
        time.sleep(pause)  # polling interval of this wait, not a delay that a test relies on
        pause = min(pause * 1.5, 0.02)


def tempdir(name):
    return tempfile.mkdtemp(prefix=name + "-", dir=_tmp)


def memory_dir(name):
    """As tempdir, but in memory where there is such a place: no disk flush in what is timed."""
    if not os.access("/dev/shm", os.W_OK):
        return tempdir(name)
    out = tempfile.mkdtemp(prefix="roll-test-" + name + "-", dir="/dev/shm")
    atexit.register(shutil.rmtree, out, ignore_errors=True)
    return out


class Process:
    """A program with its output in a file; always gone when the test ends."""

    def __init__(self, argv, name=None, env=None, cwd=None):
        self.name = name or os.path.basename(argv[0])
        self.log_path = os.path.join(tempdir("log"), self.name + ".log")
        with open(self.log_path, "wb") as log:
            self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                         env=env, cwd=cwd)
        self.pid = self.proc.pid
        _live.append(self.proc)

    def log(self):
        with open(self.log_path, "rb") as log:
            return log.read().decode("utf-8", "replace")

    def is_running(self):
        return self.proc.poll() is None

    def signal(self, number):
        self.proc.send_signal(number)

    def kill(self):
        self.proc.kill()
        return self.proc.wait()

    def stop(self, deadline_s=DEADLINE_S):
        if self.is_running():
            self.proc.terminate()
        try:
            return self.proc.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            raise AssertionError("%s did not stop:\n%s" % (self.name, self.log()))


def run(*argv, check=None, stdin=None, timeout_s=300, env=None):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          input=stdin, timeout=timeout_s, env=env)
    done.out = done.stdout.decode("utf-8", "replace")
    done.err = done.stderr.decode("utf-8", "replace")
    if check is not None and done.returncode != check:
        raise AssertionError("%s: exit %d, expected %d\n%s%s" % (
            " ".join(argv), done.returncode, check, done.out[-4000:], done.err[-4000:]))
    return done


# --- objects and manifests ---------------------------------------------------------------------

def meta(name, created="2026-01-01T00:00:00Z", ns="default", **more):
    out = {"name": name, "creationTimestamp": created}
    if ns:
        out["namespace"] = ns
    out.update(more)
    return out


def zone_class(name="public", controller="powerdns", servers=("ns1.example.net", "ns2.example.net"),
               ttl=None, **more):
    spec = {"controllerName": controller}
    if servers is not None:
        spec["nameServerPolicy"] = {"mode": "Static", "static": {"servers": list(servers)}}
    if ttl is not None:
        spec["defaults"] = {"defaultTTL": ttl}
    return {"apiVersion": GROUP, "kind": "DNSZoneClass", "metadata": meta(name, ns=None, **more),
            "spec": spec}


def zone(name, domain, cls="public", **more):
    return {"apiVersion": GROUP, "kind": "DNSZone", "metadata": meta(name, **more),
            "spec": {"domainName": domain, "dnsZoneClassName": cls}}


def record_set(name, zone_name, rtype, records, **more):
    return {"apiVersion": GROUP, "kind": "DNSRecordSet", "metadata": meta(name, **more),
            "spec": {"dnsZoneRef": {"name": zone_name}, "recordType": rtype, "records": records}}


def a_set(name, zone_name, owner, *addresses, ttl=None, **more):
    return record_set(name, zone_name, "A",
                      [dict({"name": owner, "a": {"content": a}}, **({"ttl": ttl} if ttl is not None
                                                                     else {}))
                       for a in addresses], **more)


class Manifests:
    """A folder of manifests, changed by whole files as tools do: written aside, renamed in."""

    def __init__(self):
        self.dir = tempdir("manifests")

    def path(self, name):
        return os.path.join(self.dir, name)

    def put(self, name, *objects):
        text = "\n".join(json.dumps(o) for o in objects) if len(objects) == 1 else \
            json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.put_text(name, text)

    def put_text(self, name, text):
        aside = os.path.join(self.dir, ".new")
        with open(aside, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        os.rename(aside, self.path(name))

    def delete(self, name):
        os.unlink(self.path(name))


# --- the programs under test -------------------------------------------------------------------

class View:
    def __init__(self, path=None):
        self.dir = path or os.path.join(tempdir("view"), "view")

    def sync_once(self, source, check=0, *options):
        return run("rollcall-sync", "--manifests", source.dir, "--view", self.dir, "--once",
                   *options, check=check)

    def sync(self, source, *options):
        return Process(["rollcall-sync", "--manifests", source.dir, "--view", self.dir, *options])

    def rollcall(self, *args, check=None):
        return run("rollcall", "--view", self.dir, *args, check=check)

    def status(self):
        done = self.rollcall("status", "--json")
        return json.loads(done.out) if done.returncode == 0 else {}


def connects(socket_path):
    """That the socket is there is not enough: a server makes it before it listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        try:
            s.connect(socket_path)
            return True
        except OSError:
            return False


class Server(Process):
    """rollcalld on a socket of its own."""

    def __init__(self, view, *options, socket_path=None, wait=True):
        self.socket_path = socket_path or os.path.join(tempdir("sock"), "remote.sock")
        super().__init__(["rollcalld", "--view", view.dir, "--listen", self.socket_path, *options])
        if wait:
            wait_for("rollcalld listens", self.listens)

    def listens(self):
        if not self.is_running():
            raise AssertionError("rollcalld ended:\n" + self.log())
        return connects(self.socket_path)


class Backend:
    """One connection as PowerDNS makes it."""

    def __init__(self, path, timeout_s=10, initialize=True):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout_s)
        self.sock.connect(path)
        self.rest = b""
        if initialize:
            self.first = self.call("initialize", path=path)

    def raw(self, line):
        self.sock.sendall(line)
        while b"\n" not in self.rest:
            got = self.sock.recv(1 << 16)
            if not got:
                raise ConnectionError("closed")
            self.rest += got
        reply, self.rest = self.rest.split(b"\n", 1)
        return json.loads(reply)

    def call(self, method, **parameters):
        parameters = {k.replace("_", "-") if k == "zone_id" else k: v
                      for k, v in parameters.items()}
        return self.raw(json.dumps({"method": method, "parameters": parameters}).encode() + b"\n")

    def lookup(self, name, qtype="ANY", zone_id=-1):
        return self.call("lookup", qname=name, qtype=qtype, zone_id=zone_id, remote="127.0.0.1",
                         local="127.0.0.1", **{"real-remote": "127.0.0.1/32"}).get("result")

    def close(self):
        self.sock.close()


# --- PowerDNS ----------------------------------------------------------------------------------

class PdnsVersion:
    def __init__(self, bindir):
        self.bindir = bindir
        out = run(self.tool("pdns_server"), "--version")
        text = out.out + out.err
        self.text = re.search(r"Server ([0-9][^ ]*)", text).group(1)
        self.number = tuple(int(x) for x in re.findall(r"\d+", self.text)[:2])

    def settings(self):
        """Where an unpacked version has its backends."""
        if not self.bindir:
            return []
        modules = glob.glob(os.path.join(os.path.dirname(self.bindir), "root/usr/lib/*/pdns"))
        return ["module-dir=" + m for m in modules]

    def tool(self, name):
        if self.bindir:
            return os.path.join(self.bindir, name)
        return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")


def pdns_versions():
    """The installed PowerDNS first, then those below ROLL_PDNS_DIR, oldest first."""
    out = []
    if shutil.which("pdns_server", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"):
        out.append(PdnsVersion(None))
    more = os.environ.get("ROLL_PDNS_DIR")
    found = glob.glob(os.path.join(more, "*", "bin", "pdns_server")) if more else []
    return out + sorted((PdnsVersion(os.path.dirname(f)) for f in found), key=lambda v: v.number)


def shipped_conf(name):
    """Settings of pdns-conf/<name> as a list of key=value, without what a test must replace."""
    own = ("launch", "remote-connection-string", "local-address", "local-port", "socket-dir",
           "resolver", "setuid", "setgid", "include-dir", "config-dir", "daemon", "guardian")
    out = []
    with open(os.path.join(SRCDIR, "pdns-conf", name)) as f:
        for line in f:
            line = line.split("#", 1)[0].strip()
            if line and line.split("=", 1)[0].rstrip("+").strip() not in own:
                out.append(line)
    return out


class Pdns(Process):
    def __init__(self, version, settings, wait=True):
        self.version = version
        self.port = free_port()
        self.dir = tempdir("pdns")
        with open(os.path.join(self.dir, "pdns.conf"), "w") as f:
            f.write("\n".join(["local-address=127.0.0.1", "local-port=%d" % self.port,
                               "socket-dir=" + self.dir, "daemon=no", "guardian=no",
                               "disable-syslog=yes", "log-timestamp=no", "write-pid=no",
                               "version-string=anonymous", "security-poll-suffix="] +
                              version.settings() + list(settings)) + "\n")
        super().__init__([version.tool("pdns_server"), "--config-dir=" + self.dir])
        if wait:
            wait_for("pdns_server answers", self.answers)

    @classmethod
    def remote(cls, version, server, conf="strict.conf", extra=(), wait=True, timeout_ms=2000):
        path = server if isinstance(server, str) else server.socket_path
        return cls(version, shipped_conf(conf) + [
            "launch=remote",
            "remote-connection-string=unix:path=%s,timeout=%d" % (path, timeout_ms)] + list(extra),
            wait=wait)

    def answers(self):
        if not self.is_running():
            raise AssertionError("pdns_server ended:\n" + self.log())
        try:
            self.ask("version.bind", "TXT", timeout_s=0.3)
            return True
        except (dns.exception.Timeout, OSError):
            return False

    def ask(self, name, rtype="A", tcp=False, timeout_s=10):
        query = dns.message.make_query(name, rtype)
        query.flags &= ~dns.flags.RD
        if tcp:
            return dns.query.tcp(query, "127.0.0.1", timeout=timeout_s, port=self.port)
        return dns.query.udp(query, "127.0.0.1", timeout=timeout_s, port=self.port,
                             ignore_unexpected=True)

    def rcode(self, name, rtype="A"):
        return dns.rcode.to_text(self.ask(name, rtype).rcode())

    def records(self, name, rtype="A", tcp=False):
        """Answer section as sorted "owner TTL TYPE rdata" lines, or the rcode if not NOERROR."""
        reply = self.ask(name, rtype, tcp=tcp)
        if reply.rcode() != dns.rcode.NOERROR:
            return dns.rcode.to_text(reply.rcode())
        return sorted("%s %d %s %s" % (s.name, s.ttl, dns.rdatatype.to_text(s.rdtype), r.to_text())
                      for s in reply.answer for r in s)

    def control(self, *words, timeout_s=10):
        """One command over the control socket; its answer."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(timeout_s)
            s.connect(os.path.join(self.dir, "pdns.controlsocket"))
            s.sendall((" ".join(words) + "\n").encode())
            out = b""
            while True:
                got = s.recv(65536)
                if not got:
                    return out.decode()
                out += got

    def util(self, *args, check=None):
        return run(self.version.tool("pdnsutil"), "--config-dir=" + self.dir, *args, check=check)


# --- raw questions: many, fast, compared as bytes first ------------------------------------------

class Asker:
    """Asks one server over one UDP socket, with retries over TCP when truncated."""

    def __init__(self, port):
        self.port = port
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.settimeout(5)
        self.sock.connect(("127.0.0.1", port))
        self.id = 0

    def ask(self, wire):
        """wire: a question whose id is replaced; the whole reply with id 0."""
        for _ in range(3):
            self.id = (self.id + 1) & 0xffff
            self.sock.send(struct.pack("!H", self.id) + wire[2:])
            try:
                while True:
                    reply = self.sock.recv(65535)
                    if len(reply) >= 12 and reply[:2] == struct.pack("!H", self.id):
                        break
            except socket.timeout:
                continue
            if reply[2] & 0x02:
                return self.ask_tcp(wire)
            return b"\0\0" + reply[2:]
        raise AssertionError("no reply from port %d" % self.port)

    def ask_tcp(self, wire):
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as s:
            s.sendall(struct.pack("!H", len(wire)) + wire)
            data = b""
            while len(data) < 2 or len(data) < 2 + struct.unpack("!H", data[:2])[0]:
                got = s.recv(65535)
                if not got:
                    raise AssertionError("TCP closed by port %d" % self.port)
                data += got
            return b"\0\0" + data[4:]


class Resolver(threading.Thread):
    """What `resolver=` points at: answers A and AAAA from a table, everything else empty."""

    def __init__(self, table, address="127.0.0.1", port=None):
        super().__init__(daemon=True)
        self.table = {k.rstrip(".").lower(): v for k, v in table.items()}
        self.address, self.port = address, port or free_port()
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((self.address, self.port))
        self.start()

    def run(self):
        while True:
            try:
                wire, peer = self.sock.recvfrom(4096)
                query = dns.message.from_wire(wire)
            except OSError:
                return
            except dns.exception.DNSException:
                continue
            reply = dns.message.make_response(query, recursion_available=True)
            question = query.question[0]
            for address in self.table.get(question.name.to_text(True).lower(), []):
                rtype = "AAAA" if ":" in address else "A"
                if dns.rdatatype.from_text(rtype) == question.rdtype:
                    reply.answer.append(dns.rrset.from_text(question.name, 60, "IN", rtype,
                                                            address))
            self.sock.sendto(reply.to_wire(), peer)
