# SPDX-License-Identifier: Apache-2.0
"""rollcall against a real kube-apiserver, etcd and pdns_server: the promise, with a stopwatch, and
everything that can die in between."""
import glob
import os
import signal
import sys
import threading
import time

import yaml

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import kube  # noqa: E402
import rolltest as rt  # noqa: E402

tap = rt.tap
OBJECTS = int(os.environ.get("ROLL_OBJECTS", "100000"))
DELETES = int(os.environ.get("ROLL_DELETES", "1000"))


def basic(cluster, site):
    cluster.create(rt.zone_class())
    cluster.create(rt.zone("example-com", "example.com"))
    www = rt.a_set("www", "example-com", "www", "192.0.2.1")
    cluster.create(www)
    site.wait("www.example.com", "NOERROR")
    tap.ok(True, "create: answers")
    cluster.patch(www, {"spec": {"records": [{"name": "web", "a": {"content": "192.0.2.2"}}]}})
    site.wait("web.example.com", "NOERROR")
    tap.equal(site.rcode("www.example.com"), "NXDOMAIN", "renamed: the old name went in the same moment")
    cluster.patch(www, {"spec": {"recordType": "TXT", "records": [
        {"name": "web", "txt": {"content": "x"}}]}})
    rt.wait_for("retyped", lambda: site.pdns.records("web.example.com") == [])
    tap.equal(len(site.pdns.records("web.example.com", "TXT")), 1, "retyped: TXT instead of A")
    cluster.create(rt.zone("other", "other.test"))
    cluster.patch(www, {"spec": {"dnsZoneRef": {"name": "other"}}})
    site.wait("web.example.com", "NXDOMAIN")
    site.wait("web.other.test", "NOERROR")
    tap.ok(True, "retargeted: left the one zone for the other")
    before = site.view.status().get("generation")
    cluster.must("PATCH", kube.path_of(www) + "/status", {"status": {"conditions": [
        {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "m",
         "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}, content_type="application/merge-patch+json")
    marker = rt.a_set("marker", "other", "marker", "192.0.2.3")
    cluster.create(marker)
    site.wait("marker.other.test", "NOERROR")
    after = site.view.status().get("generation")
    tap.ok(before is None or after is None or after - before <= 2,
           "a change of status alone is no commit", (before, after))
    cluster.delete(www)
    site.wait("web.other.test", "NXDOMAIN")
    tap.ok(True, "delete: gone")
    why = site.view.rollcall("why-gone", "web.other.test")
    tap.ok(why.returncode == 0 and "DELETED" in why.out, "why-gone tells the evidence", why.out + why.err)
    # Finalizers: gone at the deletionTimestamp, whatever the finalizer waits for.
    held = rt.a_set("held", "other", "held", "192.0.2.4")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    cluster.create(held)
    site.wait("held.other.test", "NOERROR")
    cluster.delete(held)
    site.wait("held.other.test", "NXDOMAIN")
    tap.ok("deletionTimestamp" in cluster.get(held)["metadata"],
           "terminating, not yet deleted: not served")
    cluster.patch(held, {"metadata": {"finalizers": None}})
    # Two zones for one domain: the second takes over in the commit that loses the first.
    cluster.create(rt.zone("second", "example.com", created=None))
    cluster.create(rt.a_set("by-second", "second", "second", "192.0.2.5"))
    tap.equal(site.rcode("second.example.com"), "NXDOMAIN", "the younger DNSZone is not served")
    cluster.delete(rt.zone("example-com", "example.com"))
    site.wait("second.example.com", "NOERROR")
    cluster.delete(rt.zone("second", "example.com"))
    site.wait("second.example.com", "REFUSED")
    tap.ok(True, "zone hand-over, then zone gone: REFUSED")
    cluster.create(rt.zone("example-com", "example.com"))
    site.verify("after the basics")


def alias(cluster, version, site):
    """The seed's missing test: create, resolve through a resolver, delete, gone."""
    resolver = rt.Resolver({"lb.example.net": ["192.0.2.77"]})
    pdns = rt.Pdns.remote(version, site.server, extra=["zone-cache-refresh-interval=0",
                          "expand-alias=yes", "resolver=127.0.0.1:%d" % resolver.port])
    obj = rt.record_set("alias", "example-com", "ALIAS",
                        [{"name": "app", "alias": {"content": "lb.example.net"}}])
    cluster.create(obj)
    rt.wait_for("ALIAS answers", lambda: pdns.records("app.example.com") ==
                ["app.example.com. 60 A 192.0.2.77"])
    cluster.delete(obj)
    rt.wait_for("ALIAS gone", lambda: pdns.records("app.example.com") == "NXDOMAIN")
    cluster.create(rt.record_set("next-owner", "example-com", "CNAME",
                                 [{"name": "app", "cname": {"content": "www.example.net"}}]))
    rt.wait_for("the next owner has the name", lambda: len(pdns.records(
        "app.example.com", "CNAME")) == 1 and pdns.records("app.example.com", "CNAME") != "NXDOMAIN")
    tap.ok(True, "ALIAS: created, resolved, deleted, gone; the next owner is not blocked")
    pdns.stop()


def restarts(cluster, site):
    """The seed's other missing test: nothing is lost while sync is away, however it went."""
    objs = [rt.a_set("r%d" % i, "example-com", "r%d" % i, "192.0.2.9") for i in range(6)]
    for obj in objs:
        cluster.create(obj)
    site.wait("r5.example.com", "NOERROR")
    site.sync.kill()
    cluster.delete(objs[0])
    tap.equal(site.rcode("r0.example.com"), "NOERROR", "sync is down: served as it was")
    site.start_sync()
    site.wait("r0.example.com", "NXDOMAIN")
    tap.equal(site.rcode("r1.example.com"), "NOERROR", "deleted while sync was down: gone after its start")
    site.sync.kill()
    cluster.delete(objs[1])
    cluster.compact()
    site.start_sync()
    site.wait("r1.example.com", "NXDOMAIN")
    tap.equal(site.rcode("r2.example.com"), "NOERROR", "... and with the history compacted")
    for i, obj in enumerate(objs[2:5]):
        # Killed around the moment of the event: before, between event and commit, or after.
        killer = threading.Timer(0.0003 * (i + 1), site.sync.kill)
        killer.start()
        cluster.delete(obj)
        killer.join()
        site.start_sync()
        site.wait("r%d.example.com" % (i + 2), "NXDOMAIN")
    tap.equal(site.rcode("r5.example.com"), "NOERROR", "killed around the event: gone all the same")
    site.verify("after the restarts")


def outages(cluster, site):
    cluster.create(rt.a_set("stay", "example-com", "stay", "192.0.2.10"))
    site.wait("stay.example.com", "NOERROR")
    stop = threading.Event()
    wrong = []

    def watcher():
        while not stop.is_set():
            code = site.rcode("stay.example.com")
            if code != "NOERROR":
                wrong.append(code)
            stop.wait(0.005)

    thread = threading.Thread(target=watcher, daemon=True)
    thread.start()
    try:
        for what, down, up in (
                ("kube-apiserver killed", lambda: cluster.api.kill(), cluster.start_api),
                ("etcd stopped and continued", lambda: cluster.etcd.signal(signal.SIGSTOP),
                 lambda: cluster.etcd.signal(signal.SIGCONT)),
                ("etcd killed", lambda: cluster.etcd.kill(), cluster.start_etcd)):
            down()
            site.sync_lives()
            up()
            rt.wait_for("the API server is well", cluster._ready, 120)
            name = "after-" + what.split()[0] + "-" + what.split()[1]
            obj = rt.a_set(name, "example-com", name, "192.0.2.11")
            rt.wait_for("create works", lambda o=obj: cluster.request(
                "POST", kube.path_of(o).rsplit("/", 1)[0], o)[0] in (201, 409), 120)
            site.wait(name + ".example.com", "NOERROR", 150)
            cluster.delete(obj)
            site.wait(name + ".example.com", "NXDOMAIN", 30)
            tap.ok(True, what + ": followed again")
    finally:
        stop.set()
        thread.join()
    tap.ok(not wrong, "not one wrong answer for a name that stays", wrong[:5])
    # A revoked token, a role taken away: ignorance, which removes nothing.
    role = cluster.must("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/rollcall")
    cluster.must("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/rollcall")
    rt.wait_for("the role is gone", lambda: cluster.request(
        "GET", kube.API + "/dnszones", token=cluster.tokens["agent"])[0] == 403)
    site.sync.kill()
    site.start_sync()
    rt.wait_for("sync was told 403", lambda: "403" in site.sync.log() or
                "orbidden" in site.sync.log(), 60)
    tap.equal(site.rcode("stay.example.com"), "NOERROR", "403: served on")
    del role["metadata"]["resourceVersion"], role["metadata"]["uid"]
    cluster.must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    obj = rt.a_set("after-403", "example-com", "after-403", "192.0.2.12")
    cluster.create(obj)
    site.wait("after-403.example.com", "NOERROR", 90)
    tap.ok(True, "403 ended: followed again")
    # The CRD changes (watches end, versions expire), and is deleted (objects are really gone).
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/dnsrecordsets." \
           "dns.networking.miloapis.com"
    crd = cluster.must("GET", path)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][
        "note"] = {"type": "string"}
    cluster.must("PUT", path, crd)
    obj = rt.a_set("after-crd", "example-com", "after-crd", "192.0.2.13")
    cluster.create(obj)
    site.wait("after-crd.example.com", "NOERROR", 90)
    tap.equal(site.rcode("stay.example.com"), "NOERROR", "CRD changed: followed, nothing lost")
    site.verify("after the outages")


def shipped_manifests(cluster):
    """The server takes every manifest of pdns-conf/kubernetes (as a dry run: no controllers here)."""
    where = {"Namespace": "/api/v1/namespaces",
             "ServiceAccount": "/api/v1/namespaces/rollcall/serviceaccounts",
             "Service": "/api/v1/namespaces/rollcall/services",
             "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/rollcall/networkpolicies",
             "Deployment": "/apis/apps/v1/namespaces/rollcall/deployments",
             "PodDisruptionBudget": "/apis/policy/v1beta1/namespaces/rollcall/poddisruptionbudgets"}
    cluster.must("POST", where["Namespace"], {"metadata": {"name": "rollcall"}})
    bad, count = [], 0
    for path in sorted(glob.glob(os.path.join(rt.SRCDIR, "pdns-conf/kubernetes/*.yaml"))):
        with open(path) as f:
            docs = list(yaml.safe_load_all(f))
        for doc in docs:
            if doc["kind"] not in where or doc["kind"] == "Namespace":
                continue
            # This server is older than what they are made for: no policy/v1 (1.21), no load balancer
            # of two protocols (1.26), no native sidecars (1.29).
            if doc["kind"] == "PodDisruptionBudget":
                doc["apiVersion"] = "policy/v1beta1"
            elif doc["kind"] == "Service":
                doc["spec"]["type"] = "ClusterIP"
                doc["spec"].pop("externalTrafficPolicy", None)
            elif doc["kind"] == "Deployment":
                pod = doc["spec"]["template"]["spec"]
                for sidecar in pod.pop("initContainers"):
                    tap.equal(sidecar.pop("restartPolicy"), "Always",
                              sidecar["name"] + " is a native sidecar")
                    pod["containers"].append(sidecar)
            status, reply = cluster.request("POST", where[doc["kind"]] + "?dryRun=All", doc)
            count += 1
            if status != 201:
                bad.append("%s: %s %s" % (path, status, reply))
    tap.ok(not bad and count == 6, "the shipped manifests are taken by the server", "\n".join(bad))


def namespaces(cluster):
    """--namespace: the named ones only, a watch each, with a role that allows no more."""
    for ns in ("team-a", "team-b", "team-c"):
        cluster.must("POST", "/api/v1/namespaces", {"metadata": {"name": ns}})
        cluster.create(rt.zone("z", ns + ".test", ns=ns))
        cluster.create(rt.a_set("a", "z", "www", "192.0.2.1", ns=ns))
    base = "/apis/rbac.authorization.k8s.io/v1/"
    group = "dns.networking.miloapis.com"
    subject = [{"kind": "User", "name": "nobody", "apiGroup": "rbac.authorization.k8s.io"}]
    cluster.must("POST", base + "clusterroles", {
        "metadata": {"name": "classes"}, "rules": [{
            "apiGroups": [group], "resources": ["dnszoneclasses"], "verbs": ["list", "watch"]}]})
    cluster.must("POST", base + "clusterrolebindings", {
        "metadata": {"name": "classes"}, "subjects": subject,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "classes"}})
    for ns in ("team-a", "team-b"):
        path = base + "namespaces/" + ns
        cluster.must("POST", path + "/roles", {"metadata": {"name": "dns"}, "rules": [{
            "apiGroups": [group], "resources": ["dnszones", "dnsrecordsets"],
            "verbs": ["list", "watch"]}]})
        cluster.must("POST", path + "/rolebindings", {
            "metadata": {"name": "dns"}, "subjects": subject,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "dns"}})
    rt.wait_for("the roles count", lambda: cluster.request(
        "GET", kube.path_of("DNSZone", ns="team-b"), token=cluster.tokens["nobody"])[0] == 200)
    site = kube.Site(cluster, rt.pdns_versions()[0], "--namespace", "team-a", "--namespace", "team-b",
                kubeconfig=cluster.kubeconfig("nobody"))
    tap.equal([site.rcode("www.team-%s.test" % x) for x in "abc"],
              ["NOERROR", "NOERROR", "REFUSED"], "--namespace: the named ones are served")
    cluster.delete(rt.a_set("a", "z", "www", "192.0.2.1", ns="team-b"))
    site.wait("www.team-b.test", "NXDOMAIN")
    tap.equal(site.rcode("www.team-a.test"), "NOERROR", "--namespace: each has its watch")
    site.verify("--namespace")
    site.stop()


def crd_deleted(cluster, site):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/dnsrecordsets." \
           "dns.networking.miloapis.com"
    crd = cluster.must("GET", path)
    cluster.must("DELETE", path)
    site.wait("stay.example.com", "NXDOMAIN", 60)
    tap.ok(True, "CRD deleted: DELETED events for its objects count")
    tap.equal(site.pdns.rcode("example.com", "SOA"), "NOERROR", "and the zone, of another kind, stays")
    rt.wait_for("the CRD is gone", lambda: cluster.request("GET", path)[0] == 404, 60)
    cluster.must("POST", path.rsplit("/", 1)[0], {
        "apiVersion": crd["apiVersion"], "kind": crd["kind"], "spec": crd["spec"],
        "metadata": {"name": crd["metadata"]["name"]}})
    obj = rt.a_set("again", "example-com", "again", "192.0.2.14")
    rt.wait_for("the CRD is back", lambda: cluster.request(
        "POST", kube.path_of(obj).rsplit("/", 1)[0], obj, raw=True)[0] in (201, 409), 60)
    site.wait("again.example.com", "NOERROR", 90)
    tap.ok(True, "CRD made again: followed again")
    site.verify("after the CRD")


def promise(cluster, site):
    """DELETES deletions among OBJECTS objects: from the reply to DELETE until NXDOMAIN."""
    start = time.monotonic()
    cluster.create(rt.zone("big", "big.test"))
    names = ["n%06d" % i for i in range(OBJECTS)]

    def fill(part):
        worker = cluster.another()
        for name in part:
            worker.create(rt.a_set(name, "big", name, "192.0.2.1"))

    threads = [threading.Thread(target=fill, args=(names[i::4],), daemon=True) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    site.wait(names[-1] + ".big.test", "NOERROR", 120)
    tap.note("%d objects created in %.0f s" % (OBJECTS, time.monotonic() - start))
    asker = rt.Asker(site.pdns.port)
    took = []
    for name in names[::max(1, OBJECTS // DELETES)][:DELETES]:
        wire = rt.dns.message.make_query(name + ".big.test", "A").to_wire()
        cluster.delete(rt.a_set(name, "big", name, "192.0.2.1"))
        began = time.monotonic()
        while asker.ask(wire)[3] & 15 != 3:
            if time.monotonic() - began > 20:
                break
        took.append(1000 * (time.monotonic() - began))
    took.sort()
    p50, p99, worst = took[len(took) // 2], took[int(len(took) * 0.99)], took[-1]
    tap.note("DELETE reply to NXDOMAIN, %d deletions at %d objects: p50 %.2f ms, p99 %.2f ms, "
             "worst %.2f ms" % (len(took), OBJECTS, p50, p99, worst))
    tap.note("promise of 10 ms (p50) and 50 ms (p99): %s, with %.2f ms and %.2f ms" % (
        "kept" if p50 <= 10 and p99 <= 50 else "missed", p50, p99))
    # A shared test machine gets ten times that before it is a failure.
    tap.ok(p50 < 100 and p99 < 500, "deleted names are gone at once")
    site.sync.kill()
    start = time.monotonic()
    site.start_sync()
    extra = rt.a_set("late", "big", "late", "192.0.2.1")
    cluster.create(extra)
    site.wait("late.big.test", "NOERROR", 120)
    tap.note("restart of sync at %d objects: in step again after %.2f s" % (
        OBJECTS, time.monotonic() - start))
    site.verify("at %d objects" % OBJECTS)


def main():
    versions = rt.pdns_versions()
    if not versions:
        rt.skip_all("no pdns_server")
    cluster = kube.Cluster()
    site = kube.Site(cluster, versions[0])
    try:
        basic(cluster, site)
        alias(cluster, versions[0], site)
        restarts(cluster, site)
        outages(cluster, site)
        shipped_manifests(cluster)
        namespaces(cluster)
        crd_deleted(cluster, site)
        promise(cluster, site)
    except AssertionError as e:
        tap.ok(False, "ran to its end", str(e) + "\n" + site.sync.log()[-3000:])
        tap.done()
    site.stop()
    cluster.stop()
    tap.done()


main()
