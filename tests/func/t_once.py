#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""rollcall-sync --once: exit codes, what is said about findings, and input of every bad kind: said
clearly, in bounded memory, and nothing else is lost."""
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import rolltest as rt
from rolltest import tap

MEMORY_KB = 64 << 10


def good(m):
    m.put("class.json", rt.zone_class())
    m.put("zone.json", rt.zone("z", "example.com"))
    m.put("www.json", rt.a_set("www", "z", "www", "192.0.2.1"))


def has_www(view):
    return "www.example.com.\t" in view.rollcall("dump").out


def once(view, m, *options):
    """Run it, watching how much memory it has beside the map."""
    argv = ["rollcall-sync", "--manifests", m.dir, "--view", view.dir, "--once", *options]
    proc = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    rt._live.append(proc)
    peak = 0
    out = []

    def look():
        nonlocal peak
        try:
            with open("/proc/%d/status" % proc.pid) as f:
                for line in f:
                    if line.startswith("RssAnon:"):
                        peak = max(peak, int(line.split()[1]))
        except (OSError, IndexError):
            pass
        try:
            out.append(proc.communicate(timeout=0.005))
            return True
        except subprocess.TimeoutExpired:
            return False

    rt.wait_for("the end", look, 300)
    return proc.returncode, out[0][1].decode("utf-8", "replace"), peak


def is_sanitized():
    return b"__asan_init" in open(shutil.which("rollcall-sync"), "rb").read()


# --- exit codes ---

def exit_codes():
    m, view = rt.Manifests(), rt.View()
    good(m)
    tap.equal(view.sync_once(m, None).returncode, 0, "all good: 0")
    tap.ok(has_www(view), "and it is served")
    m.put("bad.json", rt.a_set("bad", "z", "bad", "192.0.2.300", "192.0.2.3"))
    done = view.sync_once(m, None)
    tap.equal(done.returncode, 1, "a finding: 1")
    want = "DNSRecordSet/default/bad spec.records[0].a.content: Invalid: "
    tap.ok(any(line.startswith(want) for line in done.err.splitlines()),
           "the finding as OBJECT FIELD: REASON: text", done.err)
    tap.equal(done.stdout, b"", "nothing on stdout")
    tap.ok("bad.example.com." in view.rollcall("dump").out, "the good entry beside it is served")
    m.delete("bad.json")
    tap.equal(view.sync_once(m, None).returncode, 0, "without it again: 0")
    for argv, says in ((["--view", "v"], "the source is missing"),
                       (["--manifests", "m"], "--view=DIR is missing"),
                       (["--manifests", "m", "--in-cluster", "--view", "v"],
                        "more than one source"),
                       (["--manifests", "m", "--view", "v", "--brake", "101"], "brake"),
                       (["--manifests", "m", "--view", "v", "--sideways"], "sideways"),
                       (["--manifests", "m", "--view", "v", "rest"], "takes options only")):
        done = rt.run("rollcall-sync", *argv)
        tap.ok(done.returncode == 2 and says in done.err, "usage: 2: " + says, done.err)
    before = view.rollcall("dump").out
    done = rt.run("rollcall-sync", "--manifests", m.dir + "-absent", "--view", view.dir, "--once")
    tap.ok(done.returncode == 3 and "No such file" in done.err, "no such folder: 3", done.err)
    tap.equal(view.rollcall("dump").out, before, "and the view is untouched")
    fresh = rt.View()
    rt.run("rollcall-sync", "--manifests", m.dir + "-absent", "--view", fresh.dir, "--once")
    tap.ok(not os.path.exists(fresh.dir), "nor is a new one begun")
    done = rt.run("rollcall-sync", "--manifests", m.path("zone.json"), "--view", view.dir, "--once")
    tap.ok(done.returncode == 3 and "Not a directory" in done.err, "no folder but a file: 3",
           done.err)
    proc = view.sync(m)
    rt.wait_for("it runs", lambda: "view-opened" in proc.log())
    done = view.sync_once(m, None)
    tap.ok(done.returncode == 3 and str(proc.pid) in done.err, "a second writer is refused: 3",
           done.err)
    proc.stop()


def zone_findings():
    m, view = rt.Manifests(), rt.View()
    m.put("zone.json", rt.zone("z", "example.com", cls="missing"))
    done = view.sync_once(m, None)
    tap.ok(done.returncode == 1 and "DNSZone/default/z spec: NotServed: example.com" in done.err,
           "a zone without its class is told", done.err)
    m.put("class.json", rt.zone_class("missing"))
    m.put("zone2.json", rt.zone("z2", "example.com", created="2026-02-01T00:00:00Z"))
    done = view.sync_once(m, None)
    tap.ok(done.returncode == 1 and "DNSZone/default/z2 spec: DNSZoneInUse: " in done.err,
           "a domain that is in use is told", done.err)
    # Who looks at the domains alone finds all of them served.
    tap.equal([view.rollcall(*words).returncode for words in
               (("status",), ("zones",), ("zones", "--json"))], [1, 1, 1],
              "status and zones: so is not every DNSZone served")
    tap.ok("1 served, 1 not served" in view.rollcall("status").out, "... as status counts them")


def duplicates():
    m, view = rt.Manifests(), rt.View()
    good(m)
    m.put("a.json", rt.a_set("x", "z", "x", "192.0.2.1"))
    m.put("b.json", rt.a_set("x", "z", "x", "192.0.2.2"))
    for turn in ("new view", "again"):
        done = view.sync_once(m, None)
        tap.ok(done.returncode == 1 and "DuplicateObject" in done.err and "b.json" in done.err,
               turn + ": the second manifest is named", done.err)
        tap.ok("192.0.2.1" in view.rollcall("dump").out and
               "192.0.2.2" not in view.rollcall("dump").out, turn + ": the first by path counts")
    m.delete("a.json")
    done = view.sync_once(m, None)
    tap.ok(done.returncode == 0 and "192.0.2.2" in view.rollcall("dump").out,
           "the second takes over", done.err)
    m.put("a.json", rt.a_set("x", "z", "x", "192.0.2.1"))
    view.sync_once(m, 1)
    m.delete("b.json")
    done = view.sync_once(m, None)
    tap.equal(done.returncode, 0, "without the second the finding is gone")


# --- bad input ---

def record_set_text(name, entry, count, more=""):
    """One object as JSON text, its records repeated."""
    return ('{"apiVersion":"%s","kind":"DNSRecordSet","metadata":{"name":"%s","namespace":'
            '"default"},"spec":{"dnsZoneRef":{"name":"z"},"recordType":"A","records":[%s]%s}}' %
            (rt.GROUP, name, ",".join([entry] * count), more))


ENTRY = '{"name":"x","a":{"content":"192.0.2.7"}}'
YAML = "apiVersion: %s\nkind: DNSRecordSet\nmetadata: {name: y}\n" % rt.GROUP
BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    "a%d: &a%d [%s]\n" % (i, i, ",".join(["*a%d" % (i - 1)] * 10)) for i in range(1, 12))
LIST = '{"apiVersion":"v1","kind":"List","items":['

BAD = [
    # name of the file, text, what is said
    ("cut.json", record_set_text("x", ENTRY, 3)[:-40], "ends early"),
    ("cut-list.json", LIST + record_set_text("x", ENTRY, 1) + ",", "ends early"),
    ("cut.yaml", YAML + "spec: {dnsZoneRef: {name: z", "cut.yaml"),
    ("empty.json", "", "is empty"),
    ("empty.yaml", " \n\n", "is empty"),
    ("text.json", "hello", "expected an object"),
    ("deep.json", "{\"a\":" * 5000 + "1" + "}" * 5000, "deep.json"),
    ("deep.yaml", "[" * 5000 + "]" * 5000, "deep.yaml"),
    ("latin.json", record_set_text("x", ENTRY, 1).replace("192.0.2.7", "\xe9").encode("latin-1"),
     "decode byte"),
    ("latin.yaml", (YAML + "spec: \xe9\n").encode("latin-1"), "latin.yaml"),
    ("twice.json", record_set_text("x", ENTRY, 1, ',"recordType":"AAAA"'), "uplicate"),
    ("twice.yaml", YAML + "kind: DNSZone\n", "uplicate"),
    ("million.json", record_set_text("x", ENTRY, 1000000), "too large"),
    ("million-item.json", LIST + record_set_text("x", ENTRY, 1000000) + "]}", "too large"),
    ("large.json", record_set_text("x", ENTRY, 70000), "too large"),
    ("long.json", record_set_text("x", ENTRY.replace("192", "1" * 3000), 1000), "2 MiB"),
    ("million.yaml", YAML + "spec:\n  records:\n" + "  - {name: x}\n" * 1000000, "million.yaml"),
    ("big.yaml", YAML + "#" + "x" * (17 << 20) + "\n", "larger than 16 MiB"),
    ("bomb.yaml", BOMB, "bomb.yaml"),
    ("nul.json", b"\0" * 100000, "expected an object"),
    ("nul.yaml", b"\0" * 100000, "nul.yaml"),
    ("nameless.json", json.dumps({"apiVersion": rt.GROUP, "kind": "DNSZone", "metadata": {}}),
     "metadata.name: Invalid: is missing"),
    ("kindless.yaml", "a: 1\n", "kind: Invalid: is missing"),
    ("version.yaml", "apiVersion: dns.networking.miloapis.com/v9\nkind: DNSZone\n"
     "metadata: {name: q}\n", "apiVersion: Invalid: "),
    ("scalar.yaml", "just words\n", "scalar.yaml"),
    ("after.json", record_set_text("x", ENTRY, 1) + "{}", "more text"),
]


def bad_input():
    limit = MEMORY_KB * (8 if is_sanitized() else 1)
    m, view = rt.Manifests(), rt.View()
    good(m)
    view.sync_once(m, 0)
    for name, text, says in BAD:
        m.put_text(name, text)
        code, err, peak = once(view, m)
        tap.ok(code == 1 and says in err and name.split(".")[0] in err, name + ": is told",
               "exit %d\n%s" % (code, err[:3000]))
        tap.ok(peak < limit, name + ": memory is bounded", "%d KB" % peak)
        m.delete(name)
    tap.ok(has_www(view), "nothing else was lost")
    for name, text, _ in BAD:
        m.put_text(name, text)
    fresh = rt.View()
    code, err, peak = once(fresh, m)
    tap.ok(code == 1 and all(n.split(".")[0] in err for n, _, _ in BAD),
           "all of it at once, and a new view", err[:6000])
    tap.ok(has_www(fresh), "what is good is served")
    tap.ok(peak < limit, "memory is bounded", "%d KB" % peak)
    proc = fresh.sync(m)
    rt.wait_for("it watches", lambda: "view-opened" in proc.log())
    m.put("late.json", rt.a_set("late", "z", "late", "192.0.2.8"))
    rt.wait_for("a change beside it", lambda: "late.example.com" in fresh.rollcall("dump").out)
    tap.ok(True, "changes beside all of it are taken")
    proc.stop()
    tap.equal(fresh.rollcall("verify").returncode, 0, "verify agrees")


def large_and_broken():
    """A file that is told while it is read, and turns out to be broken at its end."""
    m, view = rt.Manifests(), rt.View()
    good(m)
    items = [rt.a_set("n%d" % i, "z", "n%d" % i, "192.0.2.9") for i in range(6000)]
    m.put("many.json", *items)
    for name, v in (("new view", rt.View()), ("view that has it", view)):
        if v is view:
            v.sync_once(m, 0)
        with open(m.path("many.json")) as f:
            text = f.read()
        m.put_text("many.json", text[:-30])
        done = v.sync_once(m, None)
        dump = v.rollcall("dump").out
        tap.ok(done.returncode == 1 and "many.json" in done.err, name + ": broken at its end")
        tap.equal(dump.count("n5000.example.com."), 1 if v is view else 0,
                  name + ": all of it or nothing")
        tap.ok(has_www(v), name + ": the rest is served")
        tap.equal(v.rollcall("verify").returncode, 0, name + ": verify agrees")
        m.put_text("many.json", text)


# --- interrupted and full ---

def interrupted():
    m, view = rt.Manifests(), rt.View()
    good(m)
    view.sync_once(m, 0)
    before = view.rollcall("dump").out
    m.put("many.json", *[rt.a_set("n%d" % i, "z", "n%d" % i, "192.0.2.9") for i in range(30000)])
    for number in (signal.SIGINT, signal.SIGTERM):
        # The signal may come late; then all of it is there.
        proc = rt.Process(["rollcall-sync", "--manifests", m.dir, "--view", view.dir, "--once"])
        rt.wait_for("it works", lambda: "view-opened" in proc.log() or not proc.is_running())
        proc.signal(number)
        code = proc.proc.wait(60)
        tap.ok(code in (0, 3) and "Sanitizer" not in proc.log(),
               "%s: ends by itself" % number.name, "%d\n%s" % (code, proc.log()))
        tap.ok(code == 0 or view.rollcall("dump").out == before,
               "%s: the old view is as it was" % number.name)
    view.sync_once(m, 0)
    tap.equal(view.rollcall("verify").returncode, 0, "and goes on from there")


def disk_full():
    if os.geteuid() != 0:
        tap.skip("a full disk leaves the view as it is", "needs root to mount a small tmpfs")
        return
    folder = rt.tempdir("small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder],
                      stderr=subprocess.DEVNULL).returncode:
        tap.skip("a full disk leaves the view as it is", "no tmpfs to be had")
        return
    try:
        m, view = rt.Manifests(), rt.View(os.path.join(folder, "view"))
        good(m)
        view.sync_once(m, 0)
        m.put("many.json", *[rt.a_set("n%d" % i, "z", "n%d" % i, "192.0.2.9")
                             for i in range(20000)])
        done = view.sync_once(m, None)
        tap.ok(done.returncode == 3 and "commit-failed" in done.err,
               "a full disk is told: 3", "%d\n%s" % (done.returncode, done.err))
        tap.ok(has_www(view), "a full disk leaves the view as it is")
        m.delete("many.json")
        m.put("www.json", rt.a_set("www", "z", "www", "192.0.2.2"))
        subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
        done = view.sync_once(m, None)
        tap.ok(done.returncode == 0 and "192.0.2.2" in view.rollcall("dump").out,
               "with room it goes on", done.err)
        tap.equal(view.rollcall("verify").returncode, 0, "verify agrees")
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


exit_codes()
zone_findings()
duplicates()
bad_input()
large_and_broken()
interrupted()
disk_full()
tap.done()
