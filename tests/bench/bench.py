# SPDX-License-Identifier: Apache-2.0
"""The benchmark behind `make bench`: bench.py BUILDDIR.

Everything that is compared runs in the same minutes on the same machine, in alternating order, and
what is printed is the median of the ratios of neighbours: absolute figures of a busy machine mean
little. Beside queries per second stands the processor time that pdns_server and its backend took for a
query, which others on the machine disturb less. All loads end by themselves; all programs that were started are stopped.
"""
import atexit
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gen  # noqa: E402
from ports import free_port  # noqa: E402

SIZES = [int(n) for n in os.environ.get("ROLL_BENCH_SIZES", "1000 1000000").split()]
SECONDS = int(os.environ.get("ROLL_BENCH_SECONDS", "2"))
PAIRS = int(os.environ.get("ROLL_BENCH_PAIRS", "9"))
CHANGES = 50
CONNECTIONS = 8
HERE = os.path.dirname(os.path.abspath(__file__))
CONF = os.path.join(HERE, "..", "..", "pdns-conf", "strict.conf")

live = []
top = tempfile.mkdtemp(prefix="roll-bench-")


def stop(proc):
    if proc.poll() is None:
        proc.terminate()
        try:
            proc.wait(10)
        except subprocess.TimeoutExpired:
            proc.kill()
            proc.wait()


def stop_all():
    for proc in reversed(live):
        stop(proc)
    live.clear()


def clean_up():
    stop_all()
    shutil.rmtree(top, ignore_errors=True)


atexit.register(clean_up)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda *_: sys.exit(1))


def start(name, *argv, place=None):
    log = open(os.path.join(top, name + ".log"), "w")
    proc = subprocess.Popen(argv, stdout=log, stderr=log, preexec_fn=place)
    live.append(proc)
    return proc


# PowerDNS and its backend share one processor, the load comes from another. A wake-up across
# processors takes longer than a call where processors are virtual, and whether there is one is
# chance.
CPUS = sorted(os.sched_getaffinity(0))


def on_first_cpu():
    os.sched_setaffinity(0, {CPUS[0]})


def on_last_cpu():
    os.sched_setaffinity(0, {CPUS[-1]})


def wait_for(what, condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            sys.exit("bench: no %s after %d s; see %s" % (what, seconds, keep_logs()))
        time.sleep(0.01)


def keep_logs():
    kept = tempfile.mkdtemp(prefix="roll-bench-logs-")
    for name in os.listdir(top):
        if name.endswith(".log"):
            shutil.copy(os.path.join(top, name), kept)
    return kept


class Remote:
    """The remote backend's side of a connection, as PowerDNS would have it."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(path)
        if not self.ask("initialize"):
            raise OSError("initialize was refused")

    def ask(self, method, **parameters):
        line = json.dumps({"method": method, "parameters": parameters}) + "\n"
        self.sock.sendall(line.encode())
        got = b""
        while not got.endswith(b"\n"):
            piece = self.sock.recv(1 << 20)
            if not piece:
                raise OSError("closed")
            got += piece
        return json.loads(got)["result"]


def is_served(path):
    try:
        Remote(path)
        return True
    except (OSError, KeyError):
        return False


class Pdns:
    """A pdns_server with the strict settings, in front of whatever `lines` launch."""

    def __init__(self, name, lines, backend=None):
        self.name, self.port, self.backend = name, free_port(), backend
        self.folder = os.path.join(top, "pdns-" + name)
        os.mkdir(self.folder)
        with open(CONF) as conf:
            text = "".join(line for line in conf
                           if not re.match(r"(launch|remote-|expand-alias|resolver)", line))
        text += "\n".join(["local-address=127.0.0.1", "local-port=%d" % self.port,
                           "socket-dir=" + self.folder, "guardian=no", "daemon=no",
                           "disable-syslog=yes", "loglevel=3", "security-poll-suffix=",
                           "version-string=anonymous"] + lines) + "\n"
        with open(os.path.join(self.folder, "pdns.conf"), "w") as conf:
            conf.write(text)

    def start(self):
        self.proc = start("pdns-" + self.name, "pdns_server", "--config-dir=" + self.folder,
                          place=on_first_cpu)
        wait_for("pdns_server (%s)" % self.name, self.answers)

    def answers(self):
        query = b"\x00\x01\x01\x00\x00\x01" + bytes(6) + b"\x01x\x00\x00\x01\x00\x01"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(0.2)
            try:
                s.sendto(query, ("127.0.0.1", self.port))
                return bool(s.recv(512))
            except OSError:
                return False

    def load(self, questions, rcode):
        """Queries per second, and microseconds of processor time for each. Every answer must have
        come, with that rcode."""
        began = self.cpu_seconds()
        out = subprocess.run(["dnsperf", "-s", "127.0.0.1", "-p", str(self.port), "-d", questions,
                              "-l", str(SECONDS), "-c", "6", "-T", "1", "-q", "30", "-t", "5"],
                             capture_output=True, text=True, check=True,
                             preexec_fn=on_last_cpu).stdout
        codes = re.search(r"Response codes:\s+(.*)", out).group(1)
        lost = int(re.search(r"Queries lost:\s+(\d+)", out).group(1))
        if lost or not re.fullmatch(r"%s \d+ \(100.00%%\)" % rcode, codes):
            sys.exit("bench: %s: %d lost, answers: %s; see %s" %
                     (self.name, lost, codes, keep_logs()))
        count = int(re.search(r"Queries completed:\s+(\d+)", out).group(1))
        return (float(re.search(r"Queries per second:\s+([\d.]+)", out).group(1)),
                (self.cpu_seconds() - began) * 1e6 / count)

    def cpu_seconds(self):
        return sum(cpu_seconds(proc) for proc in (self.proc, self.backend) if proc)


def cpu_seconds(proc):
    with open("/proc/%d/stat" % proc.pid) as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def lmdb(data):
    """PowerDNS's own LMDB backend with the same zones; None if it is not installed."""
    pdns = Pdns("lmdb", ["launch=lmdb", "lmdb-filename=" + os.path.join(top, "own.lmdb"),
                         "lmdb-shards=1", "lmdb-sync-mode=nosync"])
    zones = os.path.join(data, "zones")
    began = time.monotonic()
    for zone in sorted(os.listdir(zones)):
        done = subprocess.run(["pdnsutil", "--config-dir=" + pdns.folder, "load-zone", zone,
                               os.path.join(zones, zone)], capture_output=True, text=True)
        if done.returncode:
            print("# lmdb backend: %s" % done.stderr.strip().splitlines()[-1])
            return None
    print("lmdb backend: zones loaded in %.1f s" % (time.monotonic() - began))
    return pdns


def compare(data, servers):
    """Alternating loads; figures[name][kind] lists queries per second and processor time."""
    figures = {pdns.name: {"hits": [], "misses": []} for pdns in servers}
    for kind, rcode in (("hits", "NOERROR"), ("misses", "NXDOMAIN")):
        for pdns in servers:
            # Pages of a map count as read when they are touched for the first time.
            pdns.load(os.path.join(data, kind), rcode)
        for turn in range(PAIRS):
            order = servers if turn % 2 == 0 else servers[::-1]
            for pdns in order:
                figures[pdns.name][kind].append(pdns.load(os.path.join(data, kind), rcode))
    return figures


def ratio(figures, name, kind):
    """Of queries per second to the null backend's."""
    pairs = zip(figures[name][kind], figures["null"][kind])
    return statistics.median(mine[0] / null[0] for mine, null in pairs)


def cpu_ratio(figures, name, kind):
    """Of processor time: the null backend's to this one's, so that less than 1 is worse as well."""
    pairs = zip(figures[name][kind], figures["null"][kind])
    return statistics.median(null[1] / mine[1] for mine, null in pairs)


def middle(figures, name, kind, which):
    return statistics.median(figure[which] for figure in figures[name][kind])


def private_bytes(proc):
    """Memory that is the process's own: heap and stacks, not the map of the view."""
    with open("/proc/%d/status" % proc.pid) as status:
        return int(re.search(r"RssAnon:\s+(\d+) kB", status.read()).group(1)) * 1024


def socket_load(build, path, names, letter):
    out = subprocess.run([os.path.join(build, "tests/bench/socket_bench"), path, str(names),
                          str(SECONDS), str(CONNECTIONS), letter],
                         capture_output=True, text=True, check=True,
                         preexec_fn=on_last_cpu).stdout
    return [float(word) for word in out.split()]


def changes(names, manifests, path, view, build):
    """One object's change: from the rename of its file to the first answer that has it, in ms."""
    rand = random.Random(2)
    zone = gen.zone_name(names - 1)
    remote = Remote(path)
    zone_id = next(row["id"] for row in remote.ask("getAllDomains") if row["zone"] == zone)
    name = "changing." + zone + "."
    times = []
    for turn in range(CHANGES + 1):
        address = "192.0.2.%d" % (turn % 250 + 1)
        draft = os.path.join(top, "draft")
        with open(draft, "w") as out:
            json.dump(gen.item("DNSRecordSet", "changing", {
                "dnsZoneRef": {"name": zone.split(".")[0]}, "recordType": "A",
                "records": [{"name": "changing", "a": {"content": address}}]}), out)
        began = time.monotonic()
        os.rename(draft, os.path.join(manifests, "changing.json"))
        while True:
            rows = remote.ask("lookup", qname=name, qtype="ANY", **{"zone-id": zone_id})
            if any(row["content"] == address for row in rows):
                break
            if time.monotonic() - began > 60:
                sys.exit("bench: a change was not seen; see %s" % keep_logs())
        if turn:
            times.append((time.monotonic() - began) * 1000)
        time.sleep(rand.uniform(0.01, 0.03))
    return statistics.median(times), max(times)


def build_view(build, manifests, view, names):
    began, before = time.monotonic(), os.times()
    done = subprocess.run([os.path.join(build, "src/rollcall-sync"), "--manifests", manifests,
                           "--view", view, "--once"], capture_output=True, text=True)
    took, after = time.monotonic() - began, os.times()
    busy = (after.children_user + after.children_system -
            before.children_user - before.children_system)
    if done.returncode:
        sys.exit("bench: rollcall-sync --once: exit %d: %s" % (done.returncode,
                                                               done.stderr[-2000:]))
    print("view build: %d record sets from one List file in %.2f s, %.2f s of them on a processor: "
          "%d a second" % (names, took, busy, names / took))


def measure(build, names):
    print("\n== %d names ==" % names)
    data = os.path.join(top, str(names))
    gen.generate(names, data)
    manifests, view = os.path.join(data, "manifests"), os.path.join(data, "view")
    mine, null = os.path.join(data, "rollcalld.sock"), os.path.join(data, "null.sock")
    build_view(build, manifests, view, names)

    server = start("rollcalld", os.path.join(build, "src/rollcalld"), "--view", view, "--listen",
                   mine, place=on_first_cpu)
    null_server = start("null", os.path.join(build, "tests/bench/null_backend"), null,
                        str(-(-names // gen.PER_ZONE)), place=on_first_cpu)
    wait_for("rollcalld", lambda: is_served(mine))
    wait_for("null backend", lambda: is_served(null))
    servers = [Pdns(name, ["launch=remote", "remote-connection-string=unix:path=" + path,
                           "remote-dnssec=no"], backend)
               for name, path, backend in (("rollcall", mine, server), ("null", null, null_server))]
    servers.append(lmdb(data))
    servers = [pdns for pdns in servers if pdns]
    for pdns in servers:
        pdns.start()

    figures = compare(data, servers)
    print("%-10s %-8s %10s %10s %14s %10s" %
          ("backend", "answers", "queries/s", "of null", "CPU us/query", "of null"))
    for kind in ("hits", "misses"):
        for pdns in servers:
            print("%-10s %-8s %10.0f %10.3f %14.1f %10.3f" % (
                pdns.name, kind, middle(figures, pdns.name, kind, 0),
                ratio(figures, pdns.name, kind), middle(figures, pdns.name, kind, 1),
                cpu_ratio(figures, pdns.name, kind)))

    print("%-10s %12s %12s %12s  (%d connections)" % ("socket", "calls/s", "p50 us", "p99 us",
                                                     CONNECTIONS))
    for name, path in (("rollcall", mine), ("null", null)):
        for kind, letter in (("hit", "h"), ("miss", "m")):
            print("%-10s %12.0f %12.1f %12.1f" % (
                (name + " " + kind,) + tuple(socket_load(build, path, names, letter))))

    sync = start("sync", os.path.join(build, "src/rollcall-sync"), "--manifests", manifests,
                 "--view", view)
    usual, worst = changes(names, manifests, mine, view, build)
    print("one object's change at %d objects: %.2f ms median, %.2f ms worst of %d" %
          (names, usual, worst, CHANGES))
    print("own memory: rollcalld %.1f MB, rollcall-sync %.1f MB" %
          (private_bytes(server) / 1e6, private_bytes(sync) / 1e6))
    stop_all()
    shutil.rmtree(data)
    for name in os.listdir(top):
        if name.startswith(("pdns-", "own.lmdb")) and not name.endswith(".log"):
            path = os.path.join(top, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    return figures, usual


def main():
    build = os.path.abspath(sys.argv[1])
    results = [measure(build, names) for names in SIZES]
    if len(results) > 1:
        print("\n== %d names against %d ==" % (SIZES[-1], SIZES[0]))
        for kind in ("hits", "misses"):
            small, large = results[0][0], results[-1][0]
            print("rollcall %s: ratio to null %.3f and %.3f, CPU us/query %.1f and %.1f" % (
                kind, ratio(small, "rollcall", kind), ratio(large, "rollcall", kind),
                middle(small, "rollcall", kind, 1), middle(large, "rollcall", kind, 1)))
        print("one object's change: %.2f ms and %.2f ms" % (results[0][1], results[-1][1]))


if __name__ == "__main__":
    main()
