# SPDX-License-Identifier: Apache-2.0
"""What rollcall-sync tells at --http about a cluster: watches, lists and their causes, revisions,
and the life of the source."""
import http.client
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import kube  # noqa: E402
import rolltest as rt  # noqa: E402

tap = rt.tap


class Web:
    def __init__(self, port):
        self.port = port

    def ask(self, path):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        c.request("GET", path)
        reply = c.getresponse()
        text = reply.read().decode()
        c.close()
        return reply.status, text

    def is_ready(self):
        try:
            return self.ask("/readyz")[0] == 200
        except OSError:
            return False

    def samples(self):
        out = {}
        for line in self.ask("/metrics")[1].splitlines():
            if line and not line.startswith("#"):
                series, value = line.rsplit(" ", 1)
                out[series] = float(value)
        return out

    def value(self, series):
        return self.samples().get(series)


def main():
    cluster = kube.Cluster()
    cluster.create(rt.zone_class())
    cluster.create(rt.zone("z", "example.com"))
    www = rt.a_set("www", "z", "www", "192.0.2.1")
    cluster.create(www)
    port = rt.free_port()
    view = rt.View()
    # Events are counted one by one below: our own statuses, come back as events, would be more.
    sync = rt.Process(["rollcall-sync", "--kubeconfig", cluster.kubeconfig(), "--view", view.dir,
                       "--status", "never", "--http", "127.0.0.1:%d" % port])
    web = Web(port)
    rt.wait_for("rollcall-sync is ready\n" + sync.log(), web.is_ready)
    rt.wait_for("the source is live", lambda: web.value("rollcall_sync_source_live") == 1)
    got = web.samples()
    for resource in ("dnszoneclasses", "dnszones", "dnsrecordsets"):
        tap.ok(got.get('rollcall_sync_revision{resource="%s"}' % resource, 0) > 0,
               "the revision of %s is told" % resource)
        lists = sum(v for k, v in got.items()
                    if k.startswith('rollcall_lists_total{kind="%s",' % resource))
        tap.ok(lists >= 1, "lists of %s are counted with their cause" % resource, lists)
    revision = got['rollcall_sync_revision{resource="dnsrecordsets"}']

    cluster.create(rt.a_set("new", "z", "new", "192.0.2.2"))
    rt.wait_for("the event", lambda: web.value('rollcall_sync_objects{kind="DNSRecordSet"}') == 2)
    cluster.delete(www)
    rt.wait_for("the event", lambda: web.value('rollcall_sync_removed_total{by="event"}') == 1)
    got = web.samples()
    tap.ok(got['rollcall_sync_revision{resource="dnsrecordsets"}'] > revision,
           "the revision rises with events")
    for kind in ("added", "deleted"):
        series = 'rollcall_watch_events_total{kind="dnsrecordsets",type="%s"}' % kind
        tap.equal(got.get(series), 1.0, series)
    tap.equal((got.get('rollcall_sync_news_total{news="put"}'),
               got.get('rollcall_sync_news_total{news="absent"}')), (1.0, 1.0),
              "news is counted by what it is")
    tap.ok("event DELETED" in web.ask("/removals")[1], "the page has the evidence")
    if shutil.which("promtool"):
        done = rt.run("promtool", "check", "metrics", stdin=web.ask("/metrics")[1].encode())
        tap.ok(done.returncode == 0 and not done.out + done.err, "promtool finds nothing",
               done.out + done.err)
    else:
        tap.skip("promtool finds nothing", "no promtool")

    cluster.api.kill()
    rt.wait_for("the source to be missed",
                lambda: web.value("rollcall_sync_source_reachable") == 0, 60)
    got = web.samples()
    tap.equal(got["rollcall_sync_source_live"], 0.0, "a dead API server is no live source")
    status, text = web.ask("/readyz")
    tap.ok(status == 200 and "the source cannot be read since" in text,
           "for a minute that is a warning", text)
    tap.ok(any(k.startswith("rollcall_watch_ends_total{") for k in got),
           "watches that ended are counted")
    cluster.start_api()
    rt.wait_for("the source is live again",
                lambda: web.value("rollcall_sync_source_live") == 1, 120)
    tap.equal(web.ask("/readyz"), (200, "ok\n"), "and all is well again")
    sync.stop()
    tap.done()


main()
