#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""An object that is gone is gone from the view, however it went and whoever was looking."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import rolltest as rt
from rolltest import tap


def served(view):
    """Owner, type and text of every record but the apex's own."""
    out = set()
    for line in view.rollcall("dump").out.splitlines():
        if line.startswith(";") or not line.strip():
            continue
        owner, _, _, rtype, rdata = line.split(None, 4)
        if rtype not in ("SOA", "NS"):
            out.add((owner.rstrip("."), rtype, rdata))
    return out


def base(m):
    m.put("class.json", rt.zone_class())
    m.put("zone.json", rt.zone("z", "example.com"))
    m.put("zone2.json", rt.zone("z2", "example.net"))
    m.put("keep.json", rt.a_set("keep", "z", "keep", "192.0.2.1"))
    m.put("www.json", rt.a_set("www", "z", "www", "192.0.2.2"))


KEEP = ("keep.example.com", "A", "192.0.2.1")
WWW = ("www.example.com", "A", "192.0.2.2")


def delete(m):
    m.delete("www.json")


def rename_file(m):
    os.rename(m.path("www.json"), m.path("other.json"))


def move_to_subfolder(m):
    os.mkdir(m.path("sub"))
    os.rename(m.path("www.json"), m.path("sub/www.json"))


def rename_object(m):
    m.put("www.json", rt.a_set("www-2", "z", "www", "192.0.2.2"))


def rename_owner(m):
    m.put("www.json", rt.a_set("www", "z", "web", "192.0.2.2"))


def retype(m):
    m.put("www.json", rt.record_set("www", "z", "TXT", [{"name": "www", "txt": {"content": "t"}}]))


def retarget(m):
    m.put("www.json", rt.a_set("www", "z2", "www", "192.0.2.2"))


def change_address(m):
    m.put("www.json", rt.a_set("www", "z", "www", "192.0.2.3"))


def terminate(m):
    o = rt.a_set("www", "z", "www", "192.0.2.2", deletionTimestamp="2026-01-02T00:00:00Z")
    m.put("www.json", o)


def zone_gone(m):
    m.delete("zone.json")


def zone_to_other_domain(m):
    m.put("zone.json", rt.zone("z", "example.org"))


def copied_then_first_gone(m):
    m.put("zz-copy.json", rt.a_set("www", "z", "www", "192.0.2.2"))
    m.delete("www.json")


def into_unreadable_text(m):
    m.put_text("www.json", "{")


def emptied(m):
    m.put_text("www.json", "")


def only_comments(m):
    m.put_text("www.yaml", "# nothing here any more\n")
    m.delete("www.json")


def hidden(m):
    os.rename(m.path("www.json"), m.path(".www.json"))


def linked_away(m):
    elsewhere = os.path.join(rt.tempdir("elsewhere"), "target")
    os.rename(m.path("www.json"), elsewhere)
    os.symlink(elsewhere, m.path("www.json"))


def in_place(m):
    with open(m.path("www.json"), "w") as f:
        f.write(json.dumps(rt.a_set("www", "z", "www", "192.0.2.9")))


CASES = [
    ("file deleted", delete, {KEEP}),
    ("file renamed", rename_file, {KEEP, WWW}),
    ("file moved to a new subfolder", move_to_subfolder, {KEEP, WWW}),
    ("object renamed", rename_object, {KEEP, WWW}),
    ("owner renamed", rename_owner, {KEEP, ("web.example.com", "A", "192.0.2.2")}),
    ("type changed", retype, {KEEP, ("www.example.com", "TXT", '"t"')}),
    ("zone reference changed", retarget, {KEEP, ("www.example.net", "A", "192.0.2.2")}),
    ("address changed", change_address, {KEEP, ("www.example.com", "A", "192.0.2.3")}),
    ("object terminating", terminate, {KEEP}),
    ("zone deleted", zone_gone, set()),
    ("zone moved to another domain", zone_to_other_domain,
     {("keep.example.org", "A", "192.0.2.1"), ("www.example.org", "A", "192.0.2.2")}),
    ("copy takes over", copied_then_first_gone, {KEEP, WWW}),
    ("broken text keeps the last good", into_unreadable_text, {KEEP, WWW}),
    ("empty file keeps the last good", emptied, {KEEP, WWW}),
    ("only comments are left", only_comments, {KEEP}),
    ("file hidden", hidden, {KEEP}),
    ("file is a link now", linked_away, {KEEP, WWW}),
    ("file written in place", in_place, {KEEP, ("www.example.com", "A", "192.0.2.9")}),
]


def first(view, proc, want):
    try:
        rt.wait_for("first view", lambda: served(view) == want)
    except AssertionError:
        tap.note(proc.log() + view.rollcall("status").out)
        raise


def verify(view, name):
    done = view.rollcall("verify")
    tap.ok(done.returncode == 0, name + ": verify", done.out + done.err)


def watched(name, change, want):
    m, view = rt.Manifests(), rt.View()
    base(m)
    proc = view.sync(m)
    first(view, proc, {KEEP, WWW})
    change(m)
    # Something that is told in any case, and after the change.
    m.put("last.json", rt.a_set("last", "z2", "last", "192.0.2.99"))
    last = ("last.example.net", "A", "192.0.2.99")
    try:
        rt.wait_for("the change", lambda: served(view) == want | {last}, 10)
        tap.ok(True, "watched: " + name)
    except AssertionError:
        tap.ok(False, "watched: " + name, "%r\n%s" % (sorted(served(view)), proc.log()))
    tap.equal(proc.stop(), 0, "watched: %s: ends with 0" % name)
    verify(view, "watched: " + name)


def restarted(name, change, want):
    m, view = rt.Manifests(), rt.View()
    base(m)
    view.sync_once(m, 0)
    change(m)
    done = view.sync_once(m, None)
    tap.ok(done.returncode in (0, 1) and served(view) == want, "restarted: " + name,
           "%d %r\n%s" % (done.returncode, sorted(served(view)), done.err))
    verify(view, "restarted: " + name)


def config_map():
    """The way Kubernetes mounts a ConfigMap: links to ..data, which is swapped as a whole."""
    m, view = rt.Manifests(), rt.View()

    def fill(version, address):
        folder = m.path("..%d" % version)
        os.mkdir(folder)
        with open(os.path.join(folder, "all.json"), "w") as f:
            json.dump({"apiVersion": "v1", "kind": "List", "items": [
                rt.zone_class(), rt.zone("z", "example.com"),
                rt.a_set("www", "z", "www", address)]}, f)
        os.symlink("..%d" % version, m.path("..data_tmp"))
        os.rename(m.path("..data_tmp"), m.path("..data"))

    fill(1, "192.0.2.1")
    os.symlink("..data/all.json", m.path("all.json"))
    proc = view.sync(m)
    rt.wait_for("first", lambda: served(view) == {("www.example.com", "A", "192.0.2.1")})
    fill(2, "192.0.2.2")
    rt.wait_for("swapped", lambda: served(view) == {("www.example.com", "A", "192.0.2.2")})
    tap.ok(True, "ConfigMap: the swap of ..data is one change")
    proc.stop()


def folder_gone():
    m, view = rt.Manifests(), rt.View()
    base(m)
    proc = view.sync(m)
    rt.wait_for("first", lambda: served(view) == {KEEP, WWW})
    away = m.dir + "-away"
    os.rename(m.dir, away)
    rt.wait_for("noticed", lambda: "source-unreachable" in proc.log())
    tap.equal(served(view), {KEEP, WWW}, "folder moved away: nothing is absent")
    os.unlink(os.path.join(away, "www.json"))
    os.rename(away, m.dir)
    rt.wait_for("back", lambda: served(view) == {KEEP})
    tap.ok(True, "folder back: what is gone from it is gone")
    proc.stop()


def unreadable_subfolder():
    if os.geteuid() == 0:
        tap.skip("a subfolder that cannot be read keeps its content", "root reads everything")
        return
    m, view = rt.Manifests(), rt.View()
    base(m)
    move_to_subfolder(m)
    view.sync_once(m, 0)
    os.chmod(m.path("sub"), 0)
    view.sync_once(m, 1)
    tap.equal(served(view), {KEEP, WWW}, "a subfolder that cannot be read keeps its content")
    os.chmod(m.path("sub"), 0o755)


def mass_removal():
    """An empty folder must be seen twice before it counts."""
    m, view = rt.Manifests(), rt.View()
    base(m)
    view.sync_once(m, 0)
    for name in os.listdir(m.dir):
        os.unlink(m.path(name))
    done = view.sync_once(m, 0)
    tap.ok("list-held" in done.err, "the first look at an empty folder is held", done.err)
    tap.equal(served(view), set(), "the second look counts")
    base(m)
    view.sync_once(m, 0)
    m.delete("www.json")
    m.delete("keep.json")
    done = view.sync_once(m, 3, "--brake", "10")
    tap.equal(served(view), {KEEP, WWW}, "the brake holds")
    with open(os.path.join(view.dir, "approve"), "w"):
        pass
    view.sync_once(m, 0, "--brake", "10")
    tap.equal(served(view), set(), "approval lets it pass")


def subfolders():
    m, view = rt.Manifests(), rt.View()
    base(m)
    proc = view.sync(m)
    rt.wait_for("first", lambda: served(view) == {KEEP, WWW})
    aside = rt.tempdir("aside")
    os.makedirs(os.path.join(aside, "a", "b"))
    deep = ("deep.example.com", "A", "192.0.2.5")
    with open(os.path.join(aside, "a", "b", "deep.json"), "w") as f:
        json.dump(rt.a_set("deep", "z", "deep", "192.0.2.5"), f)
    os.rename(os.path.join(aside, "a"), m.path("a"))
    rt.wait_for("moved in", lambda: deep in served(view))
    tap.ok(True, "a folder that is moved in is read")
    os.rename(m.path("a"), m.path("c"))
    with open(m.path("c/b/more.json"), "w") as f:
        json.dump(rt.a_set("more", "z", "more", "192.0.2.6"), f)
    rt.wait_for("renamed", lambda: ("more.example.com", "A", "192.0.2.6") in served(view))
    tap.ok(deep in served(view), "a folder that is renamed is still watched")
    os.rename(m.path("c"), os.path.join(aside, "c"))
    rt.wait_for("moved out", lambda: served(view) == {KEEP, WWW})
    tap.ok(True, "a folder that is moved out is gone")
    os.mkdir(m.path("new"))
    with open(m.path("new/deep.json"), "w") as f:
        json.dump(rt.a_set("deep", "z", "deep", "192.0.2.5"), f)
    rt.wait_for("made", lambda: deep in served(view))
    tap.ok(True, "a folder that is made is watched")
    proc.stop()
    verify(view, "subfolders")


def evidence():
    m, view = rt.Manifests(), rt.View()
    base(m)
    view.sync_once(m, 0)
    delete(m)
    view.sync_once(m, 0)
    done = view.rollcall("why-gone", "www.example.com")
    tap.ok("www.json" in done.out and "gone" in done.out, "why-gone names the manifest",
           done.out + done.err)


for case in CASES:
    watched(*case)
    restarted(*case)
config_map()
folder_gone()
unreadable_subfolder()
subfolders()
mass_removal()
evidence()
tap.done()
