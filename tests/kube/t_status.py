# SPDX-License-Identifier: Apache-2.0
"""What owners of objects are told, against a real kube-apiserver: every reason from a real object,
hand-overs with a stopwatch, writes counted by the server. Who of several writes: t_lease.py.
ROLL_STATUS_OBJECTS says how many objects change at once."""
import difflib
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import kube  # noqa: E402
import rolltest as rt  # noqa: E402
from kube_status import (Replica, conditions, expect, patches, record, says, settle,  # noqa: E402
                         took, versions)

tap = rt.tap
MANY = int(os.environ.get("ROLL_STATUS_OBJECTS", "500"))


def reasons(cluster):
    cluster.create(rt.zone_class())
    cluster.create(rt.zone_class("theirs", controller="other"))
    cluster.create(rt.zone_class("bare", servers=None))
    zone = rt.zone("example-com", "example.com")
    www = rt.a_set("www", "example-com", "www", "192.0.2.1")
    cluster.create(www)
    expect(cluster, "no zone: Accepted=False Pending", www, "Accepted", "False", "Pending",
           'waiting for DNSZone "example-com"')
    cluster.create(zone)
    got = expect(cluster, "zone served: Accepted", zone, "Accepted", "True", "Accepted",
                 "Nameservers retrieved from downstream")
    tap.equal(got["status"].get("nameservers"), ["ns1.example.net", "ns2.example.net"],
              "nameservers, sorted")
    expect(cluster, "zone served: Programmed", zone, "Programmed", "True", "Programmed",
           "Default records ensured")
    expect(cluster, "record set: Accepted", www, "Accepted", "True", "Accepted",
           "DNSRecordSet accepted for PowerDNS zone")
    got = expect(cluster, "record set: Programmed", www, "Programmed", "True", "Programmed",
                 "All records programmed")
    tap.equal(record(got, "www")["message"], "Record successfully applied to PDNS",
              "the name: its message")

    expect(cluster, "zone: recordCount", zone, "Programmed", "True", "Programmed")
    rt.wait_for("recordCount 1", lambda: cluster.get(zone)["status"].get("recordCount") == 1)

    second = rt.a_set("www-2", "example-com", "www", "192.0.2.2")
    cluster.create(second)
    expect(cluster, "loser: NotOwner, names the winner", second, "Programmed", "False", "NotOwner",
           "DNSRecordSet default/www, since 20")
    cname = rt.record_set("www-3", "example-com", "CNAME",
                          [{"name": "www", "cname": {"content": "x.example.net"}}])
    cluster.create(cname)
    expect(cluster, "CNAME beside A: Conflict, names the winner", cname, "Programmed", "False",
           "Conflict", "A of DNSRecordSet default/www, since 20")
    apex = rt.record_set("apex", "example-com", "CNAME",
                         [{"name": "@", "cname": {"content": "x.example.net"}}])
    cluster.create(apex)
    expect(cluster, "CNAME at the apex: Conflict with the zone", apex, "Programmed", "False",
           "Conflict", "SOA and NS of the zone itself")
    out = rt.a_set("out", "example-com", "www.example.org.", "192.0.2.3")
    cluster.create(out)
    got = expect(cluster, "outside the zone: OutOfZone", out, "Programmed", "False", "OutOfZone",
                 "spec.records[0].name")
    tap.ok(record(got, "www.example.org.")["reason"] == "OutOfZone", "... and at the name")
    half = rt.record_set("half", "example-com", "MX", [
        {"name": "good", "mx": {"preference": 10, "exchange": "mail.example.net"}},
        {"name": "bad", "mx": {"preference": 10, "exchange": "no host"}}])
    cluster.create(half)
    got = expect(cluster, "one bad entry: InvalidDNSRecordSet with its index", half, "Programmed",
                 "False", "InvalidDNSRecordSet", "spec.records[1].mx.exchange")
    tap.equal([(r["name"], r["conditions"][0]["status"]) for r in got["status"]["recordSets"]],
              [("bad", "False"), ("good", "True")], "... the good one is served; sorted by name")
    cluster.patch(half, {"spec": {"records": [half["spec"]["records"][0]]}})
    got = expect(cluster, "repaired: Programmed", half, "Programmed", "True", "Programmed")
    tap.equal([r["name"] for r in got["status"]["recordSets"]], ["good"], "... and pruned")

    rival = rt.zone("rival", "example.com")
    inside = rt.a_set("inside", "rival", "inside", "192.0.2.4")
    cluster.create(inside)
    cluster.create(rival)
    expect(cluster, "second zone: Accepted=False DNSZoneInUse, names the first", rival, "Accepted",
           "False", "DNSZoneInUse", "DNSZone default/example-com, since 20")
    expect(cluster, "... Programmed as well", rival, "Programmed", "False", "DNSZoneInUse")
    expect(cluster, "... and its record sets", inside, "Accepted", "False", "DNSZoneInUse",
           "DNSZone default/example-com")
    for name, cls, text in (("no-class", "", "DNSZoneClassName not set"),
                            ("lost-class", "absent", 'DNSZoneClass "absent" not found'),
                            ("their-class", "theirs",
                             'DNSZoneClass controller "other" is not "powerdns"'),
                            ("bare-class", "bare", "Waiting for downstream nameservers")):
        obj = rt.zone(name, name + ".test", cls=cls)
        cluster.create(obj)
        expect(cluster, "zone, " + text, obj, "Accepted", "False", "Pending", text)
    lost = rt.a_set("lost", "lost-class", "x", "192.0.2.5")
    cluster.create(lost)
    expect(cluster, "record set of a zone whose class is missing", lost, "Accepted", "False",
           "Pending", 'DNSZoneClass "absent" not found')
    cluster.create(rt.zone_class("absent"))
    expect(cluster, "the class comes: its zones are served", rt.zone("lost-class", "x"), "Accepted",
           "True", "Accepted")
    expect(cluster, "... and their record sets", lost, "Programmed", "True", "Programmed")

    return www, second


def set_status(cluster, obj, status):
    cluster.must("PATCH", kube.path_of(obj) + "/status", {"status": status},
                 content_type="application/merge-patch+json")


def others(cluster, www):
    """What somebody else writes stays, and nothing moves without need."""
    before = cluster.get(www)
    set_status(cluster, www, {"conditions": before["status"]["conditions"] + [
        {"type": "Seen", "status": "True", "reason": "Test", "message": "",
         "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    cluster.patch(www, {"spec": {"records": [{"name": "www", "a": {"content": "192.0.2.9"}}]}})
    after = rt.wait_for("observed", lambda: (lambda o: o if conditions(o)["Programmed"][
        "observedGeneration"] == 2 else None)(cluster.get(www)))
    tap.ok("Seen" in conditions(after), "a condition of somebody else stays")
    tap.equal(conditions(after)["Programmed"]["lastTransitionTime"],
              conditions(before)["Programmed"]["lastTransitionTime"],
              "lastTransitionTime stays while the status does")
    set_status(cluster, www, {"conditions": [
        {"type": "Programmed", "status": "False", "reason": "Lie", "message": "x",
         "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    expect(cluster, "a foreign hand on our condition is put right", www, "Programmed", "True",
           "Programmed")


def no_commits(cluster, replica, www):
    """What is written to a status changes no answer, so there is nothing to commit."""
    settle(cluster)
    before = (replica.generation(), replica.value("rollcall_sync_commits_total"))
    for i in range(10):
        set_status(cluster, www, {"conditions": [
            {"type": "Programmed", "status": "False", "reason": "Lie%d" % i, "message": "x",
             "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    says(cluster, www, "Programmed", "True", "Programmed")
    settle(cluster)
    after = (replica.generation(), replica.value("rollcall_sync_commits_total"))
    # One by one the time of confirmation is stored; ten and our own would be more.
    tap.ok(after[0] - before[0] <= 2 and after[1] - before[1] <= 2,
           "status that changes, by our hand or another's, causes no commit", (before, after))


def served_when_told(cluster, backend):
    """Programmed=True is the truth in the moment that it can be read."""
    early = []
    for i in range(20):
        name = "told%d" % i
        obj = rt.a_set(name, "example-com", name, "192.0.2.1")
        cluster.create(obj)
        says(cluster, obj, "Programmed", "True", "Programmed")
        if not backend.lookup(name + ".example.com."):
            early.append(name)
    tap.equal(early, [], "what is told to be programmed answers")


def events(cluster):
    """Each with the DNSZone that it is related to."""
    found = cluster.must("GET", "/apis/events.k8s.io/v1/namespaces/default/events?limit=500")["items"]
    return {(e["regarding"]["name"], e["reason"], e.get("related", {}).get("name")) for e in found}


def told_events(cluster):
    for want in (("example-com", "ZoneProgrammed", None),
                 ("www", "RecordSetProgrammed", "example-com"),
                 ("www-2", "Conflict", "example-com"),
                 ("half", "RecordSetProgrammingFailed", "example-com"),
                 ("rival", "DNSZoneInUse", None)):
        try:
            rt.wait_for("event", lambda w=want: w in events(cluster), 20)
            tap.ok(True, "event %s of %s" % (want[1], want[0]))
        except AssertionError:
            tap.ok(False, "event %s of %s" % (want[1], want[0]), sorted(events(cluster), key=str))


def reborn(cluster):
    """A name that goes and comes back is another object: what was meant for the first is not it."""
    obj = rt.a_set("reborn", "example-com", "reborn", "192.0.2.1")
    for _ in range(20):
        cluster.create(obj)
        cluster.delete(obj)
    uid = cluster.create(obj)["metadata"]["uid"]
    found = says(cluster, obj, "Programmed", "True", "Programmed")
    tap.equal(found["metadata"]["uid"], uid, "the last of many objects of one name is told")


def worst(times):
    return "p50 %.1f ms, worst %.1f ms" % (sorted(times)[len(times) // 2] * 1000, max(times) * 1000)


def hand_over(cluster, www, second):
    lost, won = [], []
    for i in range(20):
        winner = rt.a_set("first%d" % i, "example-com", "shared%d" % i, "192.0.2.1")
        loser = rt.a_set("later%d" % i, "example-com", "shared%d" % i, "192.0.2.2")
        cluster.create(winner)
        says(cluster, winner, "Programmed", "True", "Programmed")
        began = time.monotonic()
        cluster.create(loser)
        says(cluster, loser, "Programmed", "False", "NotOwner", "default/first%d" % i)
        lost.append(took(began))
        began = time.monotonic()
        cluster.delete(winner)
        says(cluster, loser, "Programmed", "True", "Programmed")
        won.append(took(began))
    tap.note("a name is taken: the loser is told after " + worst(lost))
    tap.ok(max(lost) < 1, "a name is taken: the loser is told within the second", lost)
    tap.note("winner deleted: the next is Programmed after " + worst(won))
    tap.ok(max(won) < 1, "winner deleted: the next is Programmed within the second", won)

    cluster.delete(www)
    says(cluster, second, "Programmed", "True", "Programmed")
    zone, rival = rt.zone("example-com", "example.com"), rt.zone("rival", "example.com")
    inside = rt.a_set("inside", "rival", "inside", "192.0.2.4")
    began = time.monotonic()
    cluster.delete(zone)
    says(cluster, rival, "Programmed", "True", "Programmed")
    says(cluster, inside, "Programmed", "True", "Programmed")
    tap.note("zone deleted: the next, and its record sets, are Programmed after %.0f ms" % (
        took(began) * 1000))
    tap.ok(took(began) < 1, "zone deleted: the next takes over, and says so", took(began))
    says(cluster, second, "Accepted", "False", "Pending", "waiting for DNSZone")
    tap.ok(True, "record sets of the deleted zone wait for it")


def restarts(cluster, replica):
    seen, count = settle(cluster), patches(cluster)
    for i in range(4):
        replica.sync.stop()
        replica.start()
        rt.wait_for("a look at all", replica.has_looked_at_all, 60)
    tap.equal(patches(cluster) - count, 0, "four restarts: not one write")
    tap.equal(versions(cluster), seen, "... and all objects are as they were")
    replica.sync.stop()
    # Missed while nobody looked: told after the start.
    missed = rt.a_set("missed", "rival", "missed", "192.0.2.6")
    cluster.create(missed)
    replica.start()
    says(cluster, missed, "Programmed", "True", "Programmed")
    now = settle(cluster)
    changed = {key for key in now if now[key] != seen.get(key)}
    tap.equal(changed, {("DNSZone", "rival"), ("DNSRecordSet", "missed")},
              "what was missed is told after the start, and nothing else")


def new_views(cluster, first):
    """A pod whose view is in memory begins with nothing at each start."""
    gone = rt.a_set("gone", "rival", "gone", "192.0.2.8")
    first.sync.stop()

    def begin():
        replica = Replica(cluster)
        rt.wait_for("a look at all", replica.has_looked_at_all, 60)
        settle(cluster)
        return replica

    def serial():
        return cluster.get(rt.zone("rival", ""))["status"]["serial"]

    replica = begin()
    cluster.create(gone)
    says(cluster, gone, "Programmed", "True", "Programmed")
    settle(cluster)
    before, dump, count = serial(), replica.dump(), patches(cluster)
    replica.sync.stop()
    replica = begin()
    now = replica.dump()
    tap.ok((serial(), now, patches(cluster) - count) == (before, dump, 0),
           "a new view of what is known already: the same serials, and not one write",
           "%d writes\n%s" % (patches(cluster) - count,
                              "\n".join(difflib.unified_diff(dump.split("\n"), now.split("\n"),
                                                             lineterm="", n=0))))
    replica.sync.stop()
    cluster.delete(gone)
    replica = begin()
    tap.ok(serial() > before and " %d " % serial() in replica.dump(),
           "a new view without what went while nobody looked: a later serial",
           "%d, before %d\n%s" % (serial(), before, replica.dump()))
    replica.sync.stop()
    first.start()
    rt.wait_for("the first leads", first.has_looked_at_all, 60)


def create_all(cluster, objects):
    def create(part):
        other = cluster.another()
        for obj in part:
            other.create(obj)

    threads = [threading.Thread(target=create, args=(objects[k::4],)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def many(cluster, replica, backend):
    """A zone with many record sets begins to be served: nothing urgent is held up meanwhile."""
    cluster.create(rt.zone("busy", "busy.test"))
    gone = [rt.a_set("gone%d" % i, "busy", "gone%d" % i, "192.0.2.1") for i in range(20)]
    losers = [rt.a_set("loser%d" % i, "busy", "gone%d" % i, "192.0.2.2") for i in range(10, 20)]
    crowd = [rt.a_set("m%05d" % i, "many", "m%05d" % i, "192.0.2.1") for i in range(MANY)]
    create_all(cluster, gone)
    create_all(cluster, losers + crowd)
    for obj in losers:
        says(cluster, obj, "Programmed", "False", "NotOwner")
    rt.wait_for("all are told to wait", lambda: replica.value("rollcall_sync_status_queue") == 0,
                MANY / 20 + 30)
    cluster.create(rt.zone("many", "many.test"))
    rt.wait_for("they are served", lambda: backend.lookup(crowd[-1]["metadata"]["name"] +
                                                          ".many.test."))
    queue = rt.wait_for("all of them in the queue", lambda: (
        lambda n: n if n > MANY / 2 else 0)(replica.value("rollcall_sync_status_queue")))
    off, over = [], []
    for obj in gone[:10]:
        name = obj["metadata"]["name"] + ".busy.test."
        cluster.delete(obj)
        began = time.monotonic()
        while backend.lookup(name):
            pass
        off.append(took(began))
    for obj, loser in zip(gone[10:], losers):
        began = time.monotonic()
        cluster.delete(obj)
        says(cluster, loser, "Programmed", "True", "Programmed")
        over.append(took(began))
    rest = replica.value("rollcall_sync_status_queue")
    tap.note("%d statuses wait, %d in the end" % (queue, rest))
    tap.note("meanwhile: deleted and gone after " + worst(off))
    tap.ok(max(off) < 0.5, "many status changes at once do not delay a deletion", off)
    tap.note("meanwhile: deleted and handed over after " + worst(over))
    tap.ok(max(over) < 1 and rest > 0, "... nor a hand-over", (over, rest))
    says(cluster, crowd[-1], "Programmed", "True", "Programmed", deadline_s=MANY / 20 + 30)
    rt.wait_for("recordCount", lambda: cluster.get(rt.zone("many", "x"))["status"].get(
        "recordCount") == MANY, 60)
    tap.ok(True, "all of them are told in the end, and counted")


def pruned(cluster, replica):
    """Another's CRD, which drops status.serial: to write it again and again would be a storm."""
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/dnszones." + kube.API.split("/")[2]
    spec = cluster.must("GET", crd)["spec"]
    del spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["serial"]
    cluster.must("PATCH", crd, {"spec": {"versions": spec["versions"]}},
                 content_type="application/merge-patch+json")
    rival = rt.zone("rival", "example.com")
    rt.wait_for("the CRD to count", lambda: "serial" not in cluster.get(rival)["status"])
    for i in range(3):
        obj = rt.a_set("pruned%d" % i, "rival", "pruned%d" % i, "192.0.2.8")
        cluster.create(obj)
        says(cluster, obj, "Programmed", "True", "Programmed")
        rt.wait_for("the zone is told of it",
                    lambda: replica.value("rollcall_sync_status_queue") == 0)
    rt.wait_for("it is noticed", lambda: "event=status-has-no-serial" in replica.sync.log())
    settle(cluster)
    count = patches(cluster)
    cluster.create(rt.a_set("last", "rival", "last", "192.0.2.8"))
    says(cluster, rt.a_set("last", "rival", "last", "192.0.2.8"), "Programmed", "True",
         "Programmed")
    settle(cluster)
    tap.equal((patches(cluster) - count, replica.sync.log().count("event=status-has-no-serial")),
              (2, 1), "a CRD without status.serial: told once, and no more writes than there is news")


def main():
    cluster = kube.Cluster()
    replica = Replica(cluster)
    server = rt.Server(replica.view)
    backend = rt.Backend(server.socket_path)
    try:
        www, second = reasons(cluster)
        others(cluster, www)
        no_commits(cluster, replica, www)
        served_when_told(cluster, backend)
        reborn(cluster)
        told_events(cluster)
        hand_over(cluster, www, second)
        restarts(cluster, replica)
        many(cluster, replica, backend)
        new_views(cluster, replica)
        pruned(cluster, replica)
    except AssertionError as e:
        tap.ok(False, "ran to its end", str(e) + "\n" + replica.sync.log()[-3000:])
        tap.done()
    tap.equal(replica.sync.stop(), 0, "rollcall-sync ends well on SIGTERM")
    server.stop()
    cluster.stop()
    tap.done()


main()
