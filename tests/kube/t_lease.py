# SPDX-License-Identifier: Apache-2.0
"""Who of several replicas writes, against a real kube-apiserver: by the server's own account of who
asked it for what. Replicas of which one is killed, or stands still past its time; what the Lease is
called, and what rights it takes."""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import kube  # noqa: E402
import rolltest as rt  # noqa: E402
from kube_status import Replica, patches, says, settle, took, versions  # noqa: E402

tap = rt.tap
DNS = kube.API.split("/")[2]
CROWD = 60


def lease_path(ns, name=None):
    return "/apis/coordination.k8s.io/v1/namespaces/%s/leases%s" % (ns, "/" + name if name else "")


def leases(cluster, ns):
    """Name and holder of each Lease."""
    return {x["metadata"]["name"]: x["spec"].get("holderIdentity")
            for x in cluster.must("GET", lease_path(ns))["items"]}


def has_equal_dumps(first, second, what):
    try:
        rt.wait_for("equal dumps", lambda: first.dump() == second.dump(), 60)
    except AssertionError:
        pass
    return tap.equal(first.dump(), second.dump(), what)


def replicas(cluster, first):
    second = Replica(cluster)
    has_equal_dumps(first, second, "two replicas: equal dumps, serials included")
    tap.ok("SOA" in first.dump() and not second.writes(), "the second replica does not write")
    first.sync.kill()
    began = time.monotonic()
    obj = rt.a_set("after-kill", "z", "after-kill", "192.0.2.7")
    cluster.create(obj)
    rt.wait_for("the second leads", second.writes, 60)
    tap.note("leader killed: the other writes after %.1f s" % took(began))
    says(cluster, obj, "Programmed", "True", "Programmed")
    tap.ok(took(began) < 30, "leader killed: the other goes on, with what was missed", took(began))
    first.start()
    has_equal_dumps(first, second, "the killed one comes back to the same dump and serials")
    began = time.monotonic()
    tap.equal(second.sync.stop(), 0, "the leader ends well")
    rt.wait_for("the first leads", first.writes, 60)
    tap.note("leader stopped: the other writes after %.1f s" % took(began))
    tap.ok(took(began) < 12, "a leader that ends gives the lease back", took(began))


def modes(cluster, first):
    """--status never and always."""
    first.sync.stop()
    settle(cluster)
    count = patches(cluster)
    obj = rt.a_set("untold", "z", "untold", "192.0.2.9")
    replica = Replica(cluster, "--status", "never")
    cluster.create(obj)
    rt.wait_for("it is served", lambda: "untold.example.com." in replica.dump())
    settle(cluster)
    tap.ok(patches(cluster) == count and "lease" not in replica.sync.log(),
           "--status never: nothing is written, not even the Lease", replica.sync.log())
    tap.equal(replica.value("rollcall_sync_status_queue"), 0, "... and nothing waits for it")
    replica.sync.stop()
    replica = Replica(cluster, "--status", "always")
    says(cluster, obj, "Programmed", "True", "Programmed")
    tap.ok(replica.writes() and "lease" not in replica.sync.log(),
           "--status always: written without a Lease", replica.sync.log())
    tap.equal(replica.sync.stop(), 0, "... and it ends well")


def frozen(cluster, audit):
    """
    A leader that stands still past its time, with statuses that it was about to write: so that it
    has them when it stops, it may not write them just then.
    """
    role = kube.shipped_role("ClusterRole")
    mute = [r for r in role if r["verbs"] != ["patch"]]
    for user in ("first", "second"):
        cluster.allow(user, user + "-mute", mute)
        cluster.allow(user, user + "-may-write", role)
        cluster.allow(user, user + "-lease", kube.shipped_role("Role"), ns="default")
    writing = ("first", "patch", "dnsrecordsets/status." + DNS)
    rt.wait_for("the rights count", lambda: all(cluster.may(
        user, "get", "leases.coordination.k8s.io", namespace="default", name="rollcall-powerdns")
        for user in ("first", "second")) and cluster.may(*writing))
    first = Replica(cluster, user="first")
    rt.wait_for("the first leads", first.writes, 60)
    rt.wait_for("a look at all", first.has_looked_at_all, 60)
    second = Replica(cluster, user="second")

    cluster.disallow("first-may-write")
    rt.wait_for("it may not write", lambda: not cluster.may(*writing))
    crowd = [rt.a_set("crowd%d" % i, "z", "crowd%d" % i, "192.0.2.1") for i in range(CROWD)]
    for obj in crowd:
        cluster.create(obj)
    rt.wait_for("the first has something to write", lambda: first.value(
        "rollcall_sync_status_queue") >= CROWD and first.value(
        'rollcall_sync_status_patches_total{result="denied"}') > 0)
    first.sync.signal(signal.SIGSTOP)
    cluster.allow("first", "first-may-write", role)
    rt.wait_for("it may write again", lambda: cluster.may(*writing))
    for obj in crowd[:CROWD // 2]:
        cluster.patch(obj, {"spec": {"records": [
            {"name": obj["metadata"]["name"], "a": {"content": "192.0.2.2"}}]}})
    away = rt.a_set("away", "z", "away", "192.0.2.3")
    cluster.create(away)
    rt.wait_for("the second leads", second.writes, 60)
    for obj in [*crowd, away]:
        says(cluster, obj, "Programmed", "True", "Programmed", deadline_s=60)
    rt.wait_for("it has written all", second.is_idle)
    seen, since = settle(cluster), audit.position()

    first.sync.signal(signal.SIGCONT)
    rt.wait_for("it knows that it is not the leader", lambda: first.has_lost() and first.value(
        "rollcall_sync_lease_held") == 0)
    has_equal_dumps(first, second, "stopped past its time, continued: it follows again")
    rt.wait_for("it sees the other's Lease", lambda: 'holder="%s"' % second.identity() in
                first.sync.log())
    tap.equal(audit.of("first", since), [], "... and has asked the server for no change at all")
    tap.equal(versions(cluster), seen, "... no object has changed")
    denied = [x for x in audit.of("first") if x.endswith("/status: 403")]
    tap.ok(denied, "the server's account has what it wanted to write before")

    since = audit.position()
    obj = rt.a_set("later", "z", "later", "192.0.2.4")
    cluster.create(obj)
    says(cluster, obj, "Programmed", "True", "Programmed")
    rt.wait_for("the second has written all", second.is_idle)
    tap.ok("patch dnsrecordsets/later/status: 200" in audit.of("second", since) and
           not audit.of("first", since), "the other one goes on alone",
           (audit.of("second", since), audit.of("first", since)))
    tap.equal(second.sync.stop(), 0, "the second ends well")
    rt.wait_for("the first leads again", lambda: first.sync.log().count(
        "event=status-writing state=begins") == 2, 60)
    since = audit.position()
    obj = rt.a_set("again", "z", "again", "192.0.2.5")
    cluster.create(obj)
    says(cluster, obj, "Programmed", "True", "Programmed")
    tap.ok("patch dnsrecordsets/again/status: 200" in audit.of("first", since),
           "the first one takes its turn, and writes", audit.of("first", since))
    tap.equal(first.sync.stop(), 0, "... and ends well")


def may_lead(cluster, ns, name):
    """Of the first user: the three verbs, of a Lease of this name."""
    return [cluster.may("first", verb, "leases.coordination.k8s.io", namespace=ns, name=name)
            for verb in ("get", "update", "delete")]


def renews(cluster, ns, name):
    """Wait until the holder of the Lease has written it once more; the holder."""
    def spec():
        return cluster.must("GET", lease_path(ns, name))["spec"]

    first = spec()["renewTime"]
    rt.wait_for("the Lease is renewed", lambda: spec()["renewTime"] != first)
    return spec()["holderIdentity"]


def default_name(cluster):
    """The shipped Role, in the namespace of the Lease, is enough, and for that name only."""
    tap.equal((may_lead(cluster, "default", "rollcall-powerdns"),
               may_lead(cluster, "default", "rollcall-other")),
              ([True, True, False], [False, False, False]),
              "the shipped Role: get and update, for the default name alone")
    cluster.namespace("leases")
    cluster.allow("first", "first-lease", kube.shipped_role("Role"), ns="leases")
    rt.wait_for("the Role counts", lambda: may_lead(cluster, "leases", "rollcall-powerdns")[0])
    for ns, options in (("default", ()), ("leases", ("--lease-namespace", "leases"))):
        what = " ".join(options) or "no option"
        before = leases(cluster, "default")
        replica = Replica(cluster, *options, user="first")
        rt.wait_for("it leads", replica.writes, 60)
        tap.equal(leases(cluster, ns).get("rollcall-powerdns"), replica.identity(),
                  what + ": the Lease rollcall-powerdns in " + ns)
        tap.equal(renews(cluster, ns, "rollcall-powerdns"), replica.identity(), "... is renewed")
        tap.ok("lease=%s/rollcall-powerdns " % ns in replica.sync.log() and
               "lease-denied" not in replica.sync.log(), "... the log names it, nothing is denied",
               replica.sync.log())
        if ns != "default":
            tap.equal((list(leases(cluster, ns)), leases(cluster, "default")),
                      (["rollcall-powerdns"], before), "... and there is no other")
        tap.equal(replica.sync.stop(), 0, "... it ends well")
        tap.equal(leases(cluster, ns)["rollcall-powerdns"], "", "... and gives the Lease back")


def other_names(cluster):
    """
    Other namespaces and controllers, other Leases: the log says of which one the Role has to
    speak. It is the same one however the same is said.
    """
    for ns in ("team-a", "team-b"):
        cluster.namespace(ns)
    both = ("--namespace", "team-a", "--namespace", "team-b")
    names = ["rollcall-powerdns"]
    for options, same, form in (
            (both[:2], both[:2], "rollcall-powerdns-[0-9a-f]{8}"),
            (both, both[2:] + both[:2], "rollcall-powerdns-[0-9a-f]{8}"),
            (("--controller-name", "dns"), ("--controller-name", "dns"), "rollcall-dns"),
            (("--controller-name", "Example.com/DNS"), ("--controller-name", "Example.com/DNS"),
             "rollcall--xample-com-[0-9a-f]{8}"),
            (("--controller-name", "example.com/dns"), ("--controller-name", "example.com/dns"),
             "rollcall-example-com-dns-[0-9a-f]{8}")):
        what = " ".join(options)
        before = leases(cluster, "default")
        replica = Replica(cluster, *options, user="first")
        denied = rt.wait_for("it says what it may not", lambda: re.search(
            r"event=lease-denied lease=default/(\S+) verb=get resource=leases\.coordination\.k8s\.io ",
            replica.sync.log()))
        name = denied.group(1)
        tap.ok(re.fullmatch(form, name) and name not in names, what + ": a Lease of its own, " + name,
               (form, names))
        names.append(name)
        tap.ok(not replica.writes() and leases(cluster, "default") == before,
               "... without a Role for it nobody leads", replica.sync.log())
        replica.sync.stop()
        rules = kube.shipped_role("Role")
        for rule in rules:
            if "resourceNames" in rule:
                rule["resourceNames"] = [name]
        cluster.allow("first", name, rules, ns="default")
        rt.wait_for("the Role counts", lambda: may_lead(cluster, "default", name)[1])
        replica = Replica(cluster, *options, user="first")
        rt.wait_for("it leads", replica.writes, 60)
        tap.equal(leases(cluster, "default"), dict(before, **{name: replica.identity()}),
                  "... with a Role for the name that the log told it has it")
        second = Replica(cluster, *same, user="first")
        rt.wait_for("it sees the other's Lease", lambda: 'lease=default/%s holder="%s"' % (
            name, replica.identity()) in second.sync.log())
        tap.ok(not second.writes(), "... another one waits for the same: " + " ".join(same))
        second.sync.stop()
        replica.sync.stop()


def main():
    audit = kube.Audit()
    cluster = kube.Cluster(extra=audit.options, users=("first", "second"))
    cluster.create(rt.zone_class())
    cluster.create(rt.zone("z", "example.com"))
    replica = Replica(cluster)
    try:
        rt.wait_for("a look at all", replica.has_looked_at_all, 60)
        replicas(cluster, replica)
        modes(cluster, replica)
        frozen(cluster, audit)
        default_name(cluster)
        other_names(cluster)
    except AssertionError as e:
        tap.ok(False, "ran to its end", str(e) + "\n" + replica.sync.log()[-3000:])
        tap.done()
    cluster.stop()
    tap.done()


main()
