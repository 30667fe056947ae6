# SPDX-License-Identifier: Apache-2.0
"""What owners of objects are told, against a real kube-apiserver: every reason from a real object,
hand-overs with a stopwatch, writes counted by the server, replicas of which one is killed."""
import os
import re
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import kube  # noqa: E402
import rolltest as rt  # noqa: E402

tap = rt.tap
MANY = int(os.environ.get("ROLL_STATUS_OBJECTS", "2000"))


class Replica:
    """rollcall-sync with a view of its own."""

    def __init__(self, cluster, *options):
        self.argv = ["--kubeconfig", cluster.kubeconfig(), *options]
        self.view = rt.View(os.path.join(rt.memory_dir("view"), "view"))
        self.start()

    def start(self):
        self.sync = rt.Process(["rollcall-sync", *self.argv, "--view", self.view.dir])
        rt.wait_for("a complete view", self.is_complete, 120)

    def is_complete(self):
        if not self.sync.is_running():
            raise AssertionError("rollcall-sync ended:\n" + self.sync.log()[-3000:])
        # With findings among the objects it exits with 1.
        done = self.view.rollcall("status", "--json")
        return done.returncode in (0, 1) and rt.json.loads(done.out)["complete"]

    def dump(self):
        return self.view.rollcall("dump").out

    def writes(self):
        return "event=status-writing state=begins" in self.sync.log()


def conditions(obj):
    return {c["type"]: c for c in obj.get("status", {}).get("conditions", [])}


def record(obj, name):
    for item in obj.get("status", {}).get("recordSets", []):
        if item["name"] == name:
            return conditions({"status": item}).get("Programmed")
    return None


def says(cluster, obj, ctype, status, reason, text=""):
    """Wait until the condition says so; the object."""
    last = {}

    def look():
        last["obj"] = now = cluster.get(obj)
        c = conditions(now).get(ctype, {})
        return now if (c.get("status") == status and c.get("reason") == reason and
                       text in c.get("message", "")) else None

    try:
        return rt.wait_for("says", look, 20)
    except AssertionError:
        raise AssertionError("%s: wanted %s=%s %s %r, has %r" % (
            obj["metadata"]["name"], ctype, status, reason, text,
            last["obj"].get("status"))) from None


def expect(cluster, what, obj, ctype, status, reason, text=""):
    try:
        found = says(cluster, obj, ctype, status, reason, text)
    except AssertionError as e:
        tap.ok(False, what, str(e))
        return cluster.get(obj)
    c = conditions(found)[ctype]
    return found if tap.equal(c.get("observedGeneration"), found["metadata"]["generation"],
                              what) else found


def patches(cluster):
    """Status writes since the server started, by its own count; those that change nothing too."""
    text = cluster.request("GET", "/metrics", raw=True)[1].decode()
    return sum(float(m.group(1)) for m in re.finditer(
        r'^apiserver_request_total\{(?=[^}]*resource="dns(?:zones|recordsets)")'
        r'(?=[^}]*subresource="status")(?=[^}]*verb="PATCH")[^}]*\} (\S+)$', text, re.M))


def settled_patches(cluster):
    """The count once it has stood still for three seconds."""
    state = {"count": patches(cluster), "since": time.monotonic()}

    def stands():
        now = patches(cluster)
        if now != state["count"]:
            state.update(count=now, since=time.monotonic())
        return time.monotonic() - state["since"] > 3

    rt.wait_for("writes end", stands, 300)
    return state["count"]


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

    # Conditions of others stay, and nothing moves without need.
    before = cluster.get(www)
    cluster.must("PATCH", kube.path_of(www) + "/status", {"status": {"conditions":
                 before["status"]["conditions"] + [
                     {"type": "Seen", "status": "True", "reason": "Test", "message": "",
                      "lastTransitionTime": "2026-01-01T00:00:00Z"}]}},
                 content_type="application/merge-patch+json")
    cluster.patch(www, {"spec": {"records": [{"name": "www", "a": {"content": "192.0.2.9"}}]}})
    after = rt.wait_for("observed", lambda: (lambda o: o if conditions(o)["Programmed"][
        "observedGeneration"] == 2 else None)(cluster.get(www)))
    tap.ok("Seen" in conditions(after), "a condition of somebody else stays")
    tap.equal(conditions(after)["Programmed"]["lastTransitionTime"],
              conditions(before)["Programmed"]["lastTransitionTime"],
              "lastTransitionTime stays while the status does")
    cluster.must("PATCH", kube.path_of(www) + "/status", {"status": {"conditions": [
        {"type": "Programmed", "status": "False", "reason": "Lie", "message": "x",
         "lastTransitionTime": "2026-01-01T00:00:00Z"}]}},
                 content_type="application/merge-patch+json")
    expect(cluster, "a foreign hand on our condition is put right", www, "Programmed", "True",
           "Programmed")
    return www, second, cname


def events(cluster):
    found = cluster.must("GET", "/apis/events.k8s.io/v1/namespaces/default/events?limit=500")["items"]
    return {(e["regarding"]["name"], e["reason"]) for e in found}


def told_events(cluster):
    for want in (("example-com", "ZoneProgrammed"), ("www", "RecordSetProgrammed"),
                 ("www-2", "Conflict"), ("half", "RecordSetProgrammingFailed"),
                 ("rival", "DNSZoneInUse")):
        try:
            rt.wait_for("event", lambda w=want: w in events(cluster), 20)
            tap.ok(True, "event %s %s" % want)
        except AssertionError:
            tap.ok(False, "event %s %s" % want, sorted(events(cluster)))


def hand_over(cluster, www, second):
    cluster.delete(www)
    began = time.monotonic()
    says(cluster, second, "Programmed", "True", "Programmed")
    took = time.monotonic() - began
    tap.note("winner deleted: the next is Programmed after %.3f s" % took)
    tap.ok(took < 1, "winner deleted: the next is Programmed within the second", took)
    zone, rival = rt.zone("example-com", "example.com"), rt.zone("rival", "example.com")
    cluster.delete(zone)
    began = time.monotonic()
    says(cluster, rival, "Programmed", "True", "Programmed")
    inside = rt.a_set("inside", "rival", "inside", "192.0.2.4")
    says(cluster, inside, "Programmed", "True", "Programmed")
    took = time.monotonic() - began
    tap.note("zone deleted: the next, and its record sets, are Programmed after %.3f s" % took)
    tap.ok(took < 3, "zone deleted: the next takes over, and says so", took)
    says(cluster, second, "Accepted", "False", "Pending", "waiting for DNSZone")
    tap.ok(True, "record sets of the deleted zone wait for it")


def restarts(cluster, replica):
    before = settled_patches(cluster)
    for i in range(3):
        (replica.sync.kill if i else replica.sync.stop)()
        replica.start()
        rt.wait_for("it writes again", replica.writes, 60)
        rt.wait_for("a pass over all", lambda: "event=" in replica.sync.log(), 60)
        settled_patches(cluster)
    tap.equal(patches(cluster) - before, 0, "three restarts: not one write")
    path = kube.path_of("DNSZone")
    versions = {z["metadata"]["name"]: z["metadata"]["resourceVersion"]
                for z in cluster.must("GET", path)["items"]}
    replica.sync.kill()
    # Missed while nobody looked: told after the start.
    cluster.create(rt.a_set("missed", "rival", "missed", "192.0.2.6"))
    replica.start()
    says(cluster, rt.a_set("missed", "rival", "missed", "192.0.2.6"), "Programmed", "True",
         "Programmed")
    changed = [z["metadata"]["name"] for z in cluster.must("GET", path)["items"]
               if versions.get(z["metadata"]["name"]) != z["metadata"]["resourceVersion"]]
    tap.ok(set(changed) <= {"rival"}, "what was missed is told after the start, and nothing else",
           changed)


def many(cluster, replica):
    """A zone with many record sets begins to be served: deletions are not held up meanwhile."""
    cluster.create(rt.zone("busy", "busy.test"))
    says(cluster, rt.zone("busy", "busy.test"), "Programmed", "True", "Programmed")
    gone = [rt.a_set("gone%d" % i, "busy", "gone%d" % i, "192.0.2.1") for i in range(40)]
    for obj in gone:
        cluster.create(obj)

    def fill(part):
        other = object.__new__(kube.Cluster)
        other.__dict__ = dict(cluster.__dict__, _conn=None)
        for i in part:
            other.create(rt.a_set("m%05d" % i, "many", "m%05d" % i, "192.0.2.1"))

    threads = [threading.Thread(target=fill, args=(range(k, MANY, 4),)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    last = rt.a_set("m%05d" % (MANY - 1), "many", "x", "192.0.2.1")
    server = rt.Server(replica.view)
    backend = rt.Backend(server.socket_path)
    rt.wait_for("all are in the view", lambda: backend.lookup("gone39.busy.test."), 60)
    cluster.create(rt.zone("many", "many.test"))
    took = []
    for obj in gone:
        name = obj["metadata"]["name"] + ".busy.test."
        cluster.delete(obj)
        began = time.monotonic()
        rt.wait_for("gone", lambda n=name: not backend.lookup(n))
        took.append(time.monotonic() - began)
    took.sort()
    tap.note("%d status changes at once: deletions p50 %.1f ms, worst %.1f ms" % (
        MANY, took[len(took) // 2] * 1000, took[-1] * 1000))
    tap.ok(took[-1] < 0.5, "many status changes at once do not delay a deletion", took[-5:])
    rt.wait_for("the last one is told", lambda: conditions(cluster.get(last)).get(
        "Programmed", {}).get("status") == "True", 300)
    rt.wait_for("recordCount", lambda: cluster.get(rt.zone("many", "x"))["status"].get(
        "recordCount") == MANY, 60)
    tap.ok(True, "all of them are told in the end, and counted")
    server.stop()


def replicas(cluster, first):
    second = Replica(cluster)
    rt.wait_for("equal dumps", lambda: first.dump() == second.dump(), 60)
    tap.ok("SOA" in first.dump(), "two replicas: equal dumps, serials included")
    tap.ok(not second.writes(), "the second replica does not write")
    rt.wait_for("writes end", lambda: settled_patches(cluster) >= 0, 300)
    first.sync.kill()
    began = time.monotonic()
    obj = rt.a_set("after-kill", "rival", "after-kill", "192.0.2.7")
    cluster.create(obj)
    rt.wait_for("the second leads", second.writes, 60)
    tap.note("leader killed: the other writes after %.1f s" % (time.monotonic() - began))
    says(cluster, obj, "Programmed", "True", "Programmed")
    tap.ok(True, "leader killed: the other goes on, with what was missed in between")
    first.start()
    rt.wait_for("equal dumps", lambda: first.dump() == second.dump(), 60)
    tap.ok(True, "the killed one comes back to the same dump and serials")
    began = time.monotonic()
    tap.equal(second.sync.stop(), 0, "the leader ends well")
    rt.wait_for("the first leads", first.writes, 60)
    took = time.monotonic() - began
    tap.note("leader stopped: the other writes after %.1f s" % took)
    tap.ok(took < 12, "a leader that ends gives the lease back", took)


def main():
    cluster = kube.Cluster()
    replica = Replica(cluster)
    try:
        www, second, _ = reasons(cluster)
        told_events(cluster)
        hand_over(cluster, www, second)
        restarts(cluster, replica)
        many(cluster, replica)
        replicas(cluster, replica)
    except AssertionError as e:
        tap.ok(False, "ran to its end", str(e) + "\n" + replica.sync.log()[-3000:])
        tap.done()
    tap.equal(replica.sync.stop(), 0, "rollcall-sync ends well on SIGTERM")
    cluster.stop()
    tap.done()


main()
