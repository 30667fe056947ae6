#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Manifests of people who mean no good, or use odd tools: nothing is lost silently, and nothing but
what is broken is lost at all."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import rolltest as rt
from rolltest import tap


def a(name, address="192.0.2.9"):
    return rt.a_set(name, "z", name, address)


def good():
    m = rt.Manifests()
    m.put("00.json", rt.zone_class(), rt.zone("z", "example.com"), a("www"))
    return m


def a_list(*items, **more):
    return dict({"apiVersion": "v1", "kind": "List", "items": list(items)}, **more)


def served(view):
    return sorted(line.split(".")[0] for line in view.rollcall("dump").out.splitlines()
                  if "\tIN\tA\t" in line)


def names_of_files():
    """A file's name is bytes; those that are not UTF-8 cost nothing."""
    m, view = good(), rt.View()
    odd = os.path.join(m.dir.encode(), b"\xff\xfe\x1b[31m\n.yaml")
    with open(odd, "w") as f:
        f.write(json.dumps(a("odd")) + "\n---\n5\n")
    done = view.sync_once(m, None)
    tap.equal(done.returncode, 1, "a file with an odd name is read")
    tap.equal(served(view), ["odd", "www"], "and what is in it is served")
    tap.ok("\\xff\\xfe\\x1b[31m\\x0a.yaml" in done.err and "\x1b" not in done.err,
           "its name is shown in a form that does no harm", done.err)
    tap.equal(view.rollcall("verify").returncode, 0, "verify agrees")


def byte_order_marks():
    m, view = good(), rt.View()
    mark = b"\xef\xbb\xbf"
    m.put_text("y.yaml", mark + b"apiVersion: " + rt.GROUP.encode() + b"\nkind: DNSRecordSet\n"
               b"metadata: {name: yam, namespace: default}\nspec:\n  dnsZoneRef: {name: z}\n"
               b"  recordType: A\n  records:\n  - name: yam\n    a: {content: 192.0.2.9}\n")
    m.put_text("j.json", mark + json.dumps(a("j")).encode())
    m.put_text("l.json", mark + json.dumps(a_list(a("l"))).encode())
    done = view.sync_once(m, None)
    tap.equal(served(view), ["j", "l", "www", "yam"], "a byte order mark is no part of the text")
    m.put_text("l.json", mark)
    m.put_text("y.yaml", mark)
    done = view.sync_once(m, None)
    tap.equal(done.err.count(": StaleFile: is empty"), 2, "a mark alone is an empty file")
    tap.equal(served(view), ["j", "l", "www", "yam"], "and the last good content is kept")


def lists():
    m, view = good(), rt.View()
    m.put("nested.json", a_list(a_list(a("n1"), a_list(a("n2"))), a("n3")))
    m.put_text("nested.yaml", json.dumps(a_list(a_list(a("n4")), a_list())))
    m.put_text("null.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": None}))
    done = view.sync_once(m, None)
    tap.equal(done.returncode, 0, "Lists in Lists are read")
    tap.equal(served(view), ["n1", "n2", "n3", "n4", "www"], "all of what they hold")
    for name, what, says in (
            ("set.json", dict(a("s"), items=[]), "only a List has these"),
            ("set2.json", dict(a("s"), items=[a("t")]), "only a List has these"),
            ("map.json", {"kind": "List", "items": {}}, "the items of a List are no list"),
            ("map.yaml", {"kind": "List", "items": {}}, "the items of a List are no list"),
            ("word.yaml", a_list({"kind": "List", "items": "x"}), "the items of a List are")):
        m.put_text(name, json.dumps(what))
        done = view.sync_once(m, None)
        m.delete(name)
        tap.ok(done.returncode == 1 and name + ": StaleFile: " in done.err and says in done.err,
               "%s: said, not passed over" % name, done.err)
        tap.equal(served(view), ["n1", "n2", "n3", "n4", "www"], "and nothing else is lost")
    tap.equal(view.rollcall("verify").returncode, 0, "verify agrees")


def held():
    """--once with a list that --brake holds says what to do; approved, it passes."""
    m, view = good(), rt.View()
    m.put("more.json", *[a("n%d" % i) for i in range(9)])
    view.sync_once(m)
    m.delete("more.json")
    done = view.sync_once(m, None, "--brake=50")
    approve = os.path.join(view.dir, "approve")
    tap.ok(done.returncode == 3 and "touch " + approve in done.err and
           "is held, as said before; nothing was changed" in done.err, "held: 3, and how to go on",
           done.err)
    tap.equal(len(served(view)), 10, "nothing was changed")
    with open(approve, "w"):
        pass
    tap.equal(view.sync_once(m, None, "--brake=50").returncode, 0, "approved: it passes")
    tap.equal(served(view), ["www"], "what is gone is gone")
    tap.ok(not os.path.exists(approve), "the approval is used up")


def mistakes():
    m, view = good(), rt.View()
    done = rt.run("rollcall-sync", "--manifests", m.dir, "--view", view.dir, "--http", "80")
    tap.ok(done.returncode == 2 and not os.path.exists(view.dir),
           "an address that is none is a usage error, and nothing is made", done.err)
    nowhere = os.path.join(m.dir, "nowhere")
    done = rt.run("rollcall-sync", "--manifests", nowhere, "--view", view.dir, "--once")
    tap.ok(done.returncode == 3 and nowhere in done.err, "a folder that is not there is named",
           done.err)
    began = time.monotonic()
    done = view.sync_once(m, None, "--pdns-control=" + os.path.join(m.dir, "no.socket"))
    tap.equal(done.returncode, 0, "--once without a pdns_server at the control socket")
    tap.ok(time.monotonic() - began < 5, "does not wait for it")


def damage():
    """Pages inside of the view overwritten: two more runs at most, and all is right again."""
    for what in (b"\0", b"\xa5"):
        m, view = good(), rt.View()
        m.put("more.json", *[a("n%d" % i) for i in range(300)])
        view.sync_once(m)
        current = os.path.join(view.dir, "current")
        before = os.readlink(current)
        with open(os.path.join(current, "data.mdb"), "r+b") as f:
            f.seek(32 << 10)
            f.write(what * (120 << 10))
        codes = [view.sync_once(m, None).returncode for _ in range(3)]
        tap.equal(codes[-1], 0, "a view damaged within is made anew %s" % codes)
        tap.equal(len(served(view)), 301, "and serves all")
        tap.equal(view.rollcall("verify").returncode, 0, "verify agrees")
        tap.ok(os.readlink(current) != before and not os.path.exists(os.path.join(view.dir, before)),
               "in a new folder, the old one is gone")


def damage_while_running():
    """A daemon that finds its view damaged ends, so that whoever watches over it starts it anew."""
    m, view = good(), rt.View()
    m.put("more.json", *[a("n%d" % i) for i in range(300)])
    view.sync_once(m)
    sync = view.sync(m)
    rt.wait_for("watching", lambda: "event=view-opened" in sync.log())
    with open(os.path.join(view.dir, "current", "data.mdb"), "r+b") as f:
        f.seek(32 << 10)
        f.write(b"\0" * (120 << 10))
    m.put("new.json", a("new"))
    rt.wait_for("it ends", lambda: not sync.is_running())
    tap.ok(sync.proc.wait() == 3 and "view-damaged" in sync.log(),
           "a damaged view ends a running sync with exit 3", sync.log())
    codes = [view.sync_once(m, None).returncode for _ in range(2)]
    tap.equal((codes[-1], len(served(view))), (0, 302), "started again, it makes a new view")


names_of_files()
damage()
damage_while_running()
held()
mistakes()
byte_order_marks()
lists()
tap.done()
