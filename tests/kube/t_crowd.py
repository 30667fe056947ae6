# SPDX-License-Identifier: Apache-2.0
"""Many objects change at once: their statuses take as long as they take, and nothing urgent waits
for them. ROLL_STATUS_OBJECTS says how many."""
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import kube  # noqa: E402
import rolltest as rt  # noqa: E402
from kube_status import Replica, says, took, worst  # noqa: E402

tap = rt.tap
MANY = int(os.environ.get("ROLL_STATUS_OBJECTS", "2000"))
ALL_S = MANY / 20 + 60  # there are a hundred requests a second


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


def crowd(cluster, replica, backend):
    cluster.create(rt.zone_class())
    cluster.create(rt.zone("busy", "busy.test"))
    gone = [rt.a_set("gone%d" % i, "busy", "gone%d" % i, "192.0.2.1") for i in range(20)]
    losers = [rt.a_set("loser%d" % i, "busy", "gone%d" % i, "192.0.2.2") for i in range(10, 20)]
    many = [rt.a_set("m%05d" % i, "many", "m%05d" % i, "192.0.2.1") for i in range(MANY)]
    create_all(cluster, gone)
    create_all(cluster, losers + many)
    # All of them wait for their zone, and nobody has told them so yet.
    rt.wait_for("all objects in the view", lambda: replica.value(
        'rollcall_sync_objects{kind="DNSRecordSet"}') == len(gone + losers + many), 120)
    replica.sync.stop()
    replica.argv.remove("--status=never")
    replica.start()
    for obj in losers:
        says(cluster, obj, "Programmed", "False", "NotOwner", deadline_s=ALL_S)

    cluster.create(rt.zone("many", "many.test"))
    rt.wait_for("they are served", lambda: backend.lookup(many[-1]["metadata"]["name"] +
                                                          ".many.test."))
    queue = rt.wait_for("most of them in the queue", lambda: (
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
    # Whoever waits for its turn among them waits for many seconds.
    tap.ok(rest > 0, "many statuses wait", rest)
    tap.note("meanwhile: deleted and gone after " + worst(off))
    tap.ok(max(off) < 1, "... and no deletion with them", off)
    tap.note("meanwhile: deleted and handed over after " + worst(over))
    tap.ok(max(over) < 2, "... nor the news that a name has changed hands", over)
    says(cluster, many[-1], "Programmed", "True", "Programmed", deadline_s=ALL_S)
    rt.wait_for("recordCount", lambda: cluster.get(rt.zone("many", "x"))["status"].get(
        "recordCount") == MANY, 60)
    rt.wait_for("all of them are told in the end, and counted", replica.is_idle, ALL_S)
    tap.equal(replica.value("rollcall_sync_status_dropped_total"), 0, "all are told, none dropped")


def main():
    cluster = kube.Cluster()
    replica = Replica(cluster, "--status=never")
    server = rt.Server(replica.view)
    backend = rt.Backend(server.socket_path)
    try:
        crowd(cluster, replica, backend)
    except AssertionError as e:
        tap.ok(False, "ran to its end", str(e) + "\n" + replica.sync.log()[-3000:])
        tap.done()
    replica.sync.stop()
    server.stop()
    cluster.stop()
    tap.done()


main()
