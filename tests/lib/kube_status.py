# SPDX-License-Identifier: Apache-2.0
"""What tests of statuses share: a replica of rollcall-sync, conditions, and writes as the server
counts them."""
import os
import re
import time
import urllib.request

import kube
import rolltest as rt

tap = rt.tap


class Replica:
    """rollcall-sync with a view of its own."""

    def __init__(self, cluster, *options, user="agent"):
        self.port = rt.free_port()
        self.argv = ["--kubeconfig", cluster.kubeconfig(user),
                     "--http", "127.0.0.1:%d" % self.port, *options]
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

    def generation(self):
        return rt.json.loads(self.view.rollcall("status", "--json").out)["generation"]

    def dump(self):
        return self.view.rollcall("dump").out

    def value(self, series):
        """Of a metric; 0 if there is none."""
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.port) as reply:
                lines = reply.read().decode().splitlines()
        except OSError:
            return 0
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines
                   if line.rsplit(" ", 1)[0] == series)

    def writes(self):
        return "event=status-writing state=begins" in self.sync.log()

    def identity(self):
        """As the Lease named it when it got it last."""
        return re.findall(r"event=lease-acquired .*identity=(\S+)", self.sync.log())[-1]

    def has_lost(self):
        return "event=lease-lost" in self.sync.log()

    def is_idle(self):
        return self.value("rollcall_sync_status_queue") == 0

    def has_looked_at_all(self):
        return self.value('rollcall_sync_status_passes_total{result="complete"}') >= 1 and \
            self.value("rollcall_sync_status_queue") == 0


def conditions(obj):
    return {c["type"]: c for c in obj.get("status", {}).get("conditions", [])}


def record(obj, name):
    for item in obj.get("status", {}).get("recordSets", []):
        if item["name"] == name:
            return conditions({"status": item}).get("Programmed")
    return None


def says(cluster, obj, ctype, status, reason, text="", deadline_s=20):
    """Wait until the condition says so; the object."""
    last = {}

    def look():
        last["obj"] = now = cluster.get(obj)
        c = conditions(now).get(ctype, {})
        return now if (c.get("status") == status and c.get("reason") == reason and
                       text in c.get("message", "")) else None

    try:
        return rt.wait_for("says", look, deadline_s)
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


def versions(cluster):
    return {(kind, o["metadata"]["name"]): o["metadata"]["resourceVersion"]
            for kind in ("DNSZone", "DNSRecordSet")
            for o in cluster.must("GET", kube.path_of(kind))["items"]}


def settle(cluster):
    """Wait until no object has changed for half a second; their versions."""
    state = {"seen": versions(cluster), "since": time.monotonic()}

    def stands():
        now = versions(cluster)
        if now != state["seen"]:
            state.update(seen=now, since=time.monotonic())
        return time.monotonic() - state["since"] > 0.5

    rt.wait_for("writes end", stands, 300)
    return state["seen"]


def took(began):
    return time.monotonic() - began


def worst(times):
    return "p50 %.1f ms, worst %.1f ms" % (sorted(times)[len(times) // 2] * 1000, max(times) * 1000)
