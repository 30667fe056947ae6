# SPDX-License-Identifier: Apache-2.0
"""kube-apiserver, etcd and rollcall-sync die, freeze and come back while objects are written and
names are asked for all the time; then etcd comes back as it was some time ago.

Whatever a name answers was written, and not before what it answered last: so a name that nobody
touches never vanishes. After each outage the view is what the API server has.
"""
import http.client
import json
import os
import random
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import kube  # noqa: E402
import rolltest as rt  # noqa: E402

tap = rt.tap
SEED = int(os.environ.get("ROLL_SEED", "1"))
TURNS = int(os.environ.get("ROLL_TURNS", "1"))  # of all outages; 0: none
WRITERS = 3
NAMES = 40  # a writer's record sets
ZONES = 4  # a writer's zones
WRITES_MAX = 4000  # a writer's, in one outage
STAY = "stay.test"
ABSENT = {"DNSRecordSet": "NXDOMAIN", "DNSZone": "REFUSED"}


class Name:
    """A name whose answer hangs on one object, and what the answer may be."""

    def __init__(self, kind, obj, name):
        self.kind = kind
        self.obj = obj
        self.name = name
        self.wire = rt.dns.message.make_query(name, "A").to_wire()
        self.settle(ABSENT[kind], False)

    def settle(self, answer, exists):
        self.answers = [answer]  # all that was written or tried, in this order
        self.at = 0  # which one was answered last
        self.exists = exists  # the object
        self.is_in_doubt = False

    def may_answer(self, answer):
        if answer not in self.answers[self.at:]:
            return False
        self.at = self.answers.index(answer, self.at)
        return True


def answer_of(asker, name):
    """An address or an rcode."""
    reply = rt.dns.message.from_wire(asker.ask(name.wire))
    return reply.answer[0][0].address if reply.answer else rt.dns.rcode.to_text(reply.rcode())


class Questioner(threading.Thread):
    def __init__(self, port, names):
        super().__init__(daemon=True)
        self.port = port
        self.names = names
        self.lock = threading.Lock()  # from question to verdict
        self.asked = 0
        self.wrong = []
        self.stopped = threading.Event()

    def run(self):
        asker = rt.Asker(self.port)
        rng = random.Random(SEED)
        while not self.stopped.is_set():
            name = rng.choice(self.names)
            with self.lock:
                answer = answer_of(asker, name)
                if not name.may_answer(answer):
                    self.wrong.append("%s: %s, not of %s" % (name.name, answer,
                                                             name.answers[name.at:]))
            self.asked += 1
            self.stopped.wait(0.0005)

    def stop(self):
        self.stopped.set()
        self.join()


class Writer:
    """Writes objects of its own, and knows of each whether that was acknowledged."""

    def __init__(self, cluster, number):
        self.cluster = cluster
        self.number = number
        self.rng = random.Random("%d %d" % (SEED, number))
        self.records = [Name("DNSRecordSet", "w%d-%d" % (number, i),
                             "w%d-%d.%s" % (number, i, STAY)) for i in range(NAMES)]
        self.zones = [Name("DNSZone", "w%d-z%d" % (number, i), "www.w%d-z%d.test" % (number, i))
                      for i in range(ZONES)]
        self.names = self.records + self.zones
        self.serial = 0
        self.acknowledged = self.in_doubt = self.not_sent = 0
        self.refused = []
        self.thread = None

    def prepare(self):
        """Below the zones the records stay as they are."""
        for zone in self.zones:
            self.cluster.create(rt.a_set(zone.obj + "-www", zone.obj, "www", self.address_in(zone)))

    def address_in(self, zone):
        return "192.0.2.%d" % (1 + self.zones.index(zone))

    def plan(self, name):
        """Method, path, body, and the answer once it is done."""
        path = kube.path_of(name.kind, name.obj)
        if name.exists and self.rng.random() < 0.4:
            return "DELETE", path, None, ABSENT[name.kind]
        if name.kind == "DNSZone":
            if not name.exists:
                body, answer = rt.zone(name.obj, name.name[len("www."):]), self.address_in(name)
            elif name.answers[-1] == "REFUSED":
                body, answer = {"spec": {"dnsZoneClassName": "public"}}, self.address_in(name)
            else:
                body, answer = {"spec": {"dnsZoneClassName": "of-others"}}, "REFUSED"
        else:
            self.serial += 1
            answer = "10.%d.%d.%d" % (self.number, self.serial >> 8, self.serial & 255)
            body = rt.a_set(name.obj, "stay", name.obj, answer)
        if name.exists:
            return "PATCH", path, {"spec": body["spec"]}, answer
        return "POST", path.rsplit("/", 1)[0], body, answer

    def write(self, conn, name):
        """What cannot be sent was not written; what was sent and not acknowledged, maybe."""
        method, path, body, answer = self.plan(name)
        try:
            if conn.sock is None:
                conn.connect()
        except OSError:
            self.not_sent += 1
            return False
        name.answers.append(answer)
        try:
            conn.request(method, path, body and json.dumps(body), {
                "Authorization": "Bearer " + self.cluster.tokens["admin"],
                "Content-Type": "application/merge-patch+json" if method == "PATCH"
                                else "application/json"})
            reply = conn.getresponse()
            text = reply.read()
        except (http.client.HTTPException, OSError):
            conn.close()
            self.in_doubt += 1
            name.is_in_doubt = True
            return False
        if reply.status >= 300:
            self.in_doubt += 1
            name.is_in_doubt = True
            # Of a name without doubts we know what there is.
            if reply.status < 500 and reply.status != 429:
                self.refused.append("%s %s: %d %s" % (method, path, reply.status, text))
            return False
        self.acknowledged += 1
        name.exists = method != "DELETE"
        return True

    def start(self):
        # The others are not touched before the next start.
        touched = self.rng.sample(self.names, len(self.names) // 2)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(touched,), daemon=True)
        self.thread.start()

    def _run(self, touched):
        conn = self.cluster.connection(timeout_s=2)
        for _ in range(WRITES_MAX):
            name = self.rng.choice(touched)
            done = name.is_in_doubt or self.write(conn, name)
            if self.stopped.wait(0.002 if done else 0.05):
                break
        conn.close()

    def stop(self):
        self.stopped.set()
        self.thread.join()


class Test:
    def __init__(self):
        self.rng = random.Random(SEED)
        self.cluster = kube.Cluster()
        self.cluster.create(rt.zone_class())
        self.cluster.create(rt.zone_class("of-others", controller="other"))
        self.cluster.create(rt.zone("stay", STAY))
        self.writers = [Writer(self.cluster, i) for i in range(WRITERS)]
        for writer in self.writers:
            writer.prepare()
        self.own = [Name("DNSRecordSet", "own-%d" % i, "own-%d.%s" % (i, STAY)) for i in range(6)]
        self.own.append(Name("DNSZone", "own-z", "www.own-z.test"))
        self.names = self.own + [name for writer in self.writers for name in writer.names]
        self.site = kube.Site(self.cluster, rt.pdns_versions()[0])
        self.questioner = Questioner(self.site.pdns.port, self.names)
        self.settle("without an outage")
        self.questioner.start()

    def stop(self):
        self.questioner.stop()
        self.site.stop()
        self.cluster.stop()

    # --- in step again ---

    def listed(self, kind):
        plural = "%s/%s" % (kube.API, kube.PATHS[kind])
        return {o["metadata"]["name"]: o for o in self.cluster.must("GET", plural)["items"]}

    def model(self):
        """What the API server has: domains, address records, counts of objects."""
        zones, sets = self.listed("DNSZone"), self.listed("DNSRecordSet")
        served = {name: o["spec"]["domainName"] for name, o in zones.items()
                  if o["spec"]["dnsZoneClassName"] == "public"}
        records = set()
        for o in sets.values():
            domain = served.get(o["spec"]["dnsZoneRef"]["name"])
            for record in o["spec"]["records"] if domain else []:
                records.add(("%s.%s" % (record["name"], domain), record["a"]["content"]))
        return set(served.values()), records, {"DNSZoneClass": 2, "DNSZone": len(zones),
                                               "DNSRecordSet": len(sets)}

    def view(self):
        dump, status = (json.loads(self.site.view.rollcall(what, "--json").out)
                        for what in ("dump", "status"))
        records = {(r["name"].rstrip("."), r["content"]) for zone in dump for r in zone["records"]
                   if r["type"] == "A"}
        return {zone["domain"] for zone in dump}, records, status["objects"]

    def differences(self):
        model, view = self.model(), self.view()
        return [] if model == view else [
            "zones: missing %s, left over %s" % (model[0] - view[0], view[0] - model[0]),
            "records: missing %s, left over %s" % (model[1] - view[1], view[1] - model[1]),
            "objects: %s, in the view %s" % (model[2], view[2])]

    def settle(self, what):
        """The writers are at rest. Until the view is what the API server has, and answers are."""
        began = time.monotonic()
        left = []

        def in_step():
            self.site.sync_lives()
            left[:] = self.differences()
            return not left

        try:
            rt.wait_for("the view to be what is listed", in_step, 90)
        except AssertionError as e:
            raise AssertionError("%s: %s\n%s" % (what, e, "\n".join(left)))
        tap.note("%s: in step %.2f s later" % (what, time.monotonic() - began))
        self.site.verify(what)
        asker = rt.Asker(self.site.pdns.port)
        zones, records = self.listed("DNSZone"), dict(self.model()[1])
        sets = self.listed("DNSRecordSet")
        bad = []
        with self.questioner.lock:
            for name in self.names:
                want = records.get(name.name, ABSENT[name.kind])
                got = answer_of(asker, name)
                if got != want or not name.may_answer(got):
                    bad.append("%s: %s, is %s, was %s" % (name.name, got, want, name.answers))
                name.settle(want, name.obj in (zones if name.kind == "DNSZone" else sets))
        tap.ok(not bad, what + ": every name answers what is there", "\n".join(bad))

    def told(self):
        wrong, self.questioner.wrong = self.questioner.wrong, []
        return wrong

    # --- outages ---

    def pause(self, least, most):
        self.questioner.stopped.wait(self.rng.uniform(least, most))

    def under_load(self, what, outage):
        for writer in self.writers:
            writer.acknowledged = writer.in_doubt = writer.not_sent = 0
            writer.start()
        asked = self.questioner.asked
        try:
            self.pause(0.2, 0.7)
            outage()
            rt.wait_for("the API server is well", self.cluster._ready, 120)
            self.pause(0.2, 0.5)
            # So that nothing is said of an outage that nobody noticed.
            rt.wait_for("writes and questions", lambda: self.questioner.asked - asked > 100 and
                        sum(w.acknowledged for w in self.writers) > 30, 120)
        finally:
            for writer in self.writers:
                writer.stop()
        total = [sum(getattr(w, c) for w in self.writers)
                 for c in ("acknowledged", "in_doubt", "not_sent")]
        tap.note("%s: %d writes acknowledged, %d in doubt, %d not sent" % (what, *total))
        refused = [r for w in self.writers for r in w.refused]
        tap.ok(not refused, what + ": of each write it is known whether it was acknowledged",
               "\n".join(refused))
        self.settle(what)
        asked = self.questioner.asked - asked
        wrong = self.told()
        tap.ok(not wrong, what + ": no wrong answer", "of %d\n%s" % (asked, "\n".join(wrong)))

    def outages(self):
        cluster, site = self.cluster, self.site

        def killed(*processes):
            for process in processes:
                process().kill()
                self.pause(0, 0.3)
            self.pause(0, 0.5)
            if etcd in processes:
                cluster.start_etcd()
            if sync in processes and self.rng.random() < 0.5:
                site.start_sync()
            if api in processes:
                cluster.start_api()
            if not site.sync.is_running():
                self.pause(0, 0.3)
                site.start_sync()

        def frozen(process, then=signal.SIGCONT):
            process().signal(signal.SIGSTOP)
            self.pause(0.5, 2.5)
            process().signal(then)
            if then == signal.SIGKILL:
                process().kill()
                (cluster.start_api if process is api else cluster.start_etcd)()

        def api():
            return cluster.api

        def etcd():
            return cluster.etcd

        def sync():
            return site.sync

        all_outages = [
            ("kube-apiserver killed", lambda: killed(api)),
            ("etcd killed", lambda: killed(etcd)),
            ("kube-apiserver and etcd killed", lambda: killed(api, etcd)),
            ("etcd and kube-apiserver killed", lambda: killed(etcd, api)),
            ("kube-apiserver frozen", lambda: frozen(api)),
            ("etcd frozen", lambda: frozen(etcd)),
            ("kube-apiserver frozen, then killed", lambda: frozen(api, signal.SIGKILL)),
            ("rollcall-sync killed", lambda: killed(sync)),
            ("kube-apiserver and rollcall-sync killed", lambda: killed(api, sync)),
            ("rollcall-sync and etcd killed", lambda: killed(sync, etcd))]
        for _ in range(TURNS):
            for what, outage in self.rng.sample(all_outages, len(all_outages)):
                self.under_load(what, outage)

    # --- etcd from a backup ---

    def write(self, name, address):
        """Make, change or (address None) delete its object. What is answered then."""
        if name.kind == "DNSZone":
            obj = rt.zone(name.obj, name.name[len("www."):])
        else:
            obj = rt.a_set(name.obj, "stay", name.obj, address or "192.0.2.1")
        if address is None:
            self.cluster.delete(obj)
        elif name.exists:
            self.cluster.patch(obj, {"spec": obj["spec"]})
        else:
            self.cluster.create(obj)
        name.exists = address is not None
        return address or ABSENT[name.kind]

    def written(self, name, address):
        name.answers.append(address or ABSENT[name.kind])
        self.write(name, address)

    def spend(self, revisions):
        """Without a change to anything served."""
        for i in range(revisions):
            self.cluster.patch(rt.zone_class("of-others"),
                               {"metadata": {"annotations": {"n": str(i)}}})

    def sees_that_it_is_behind(self):
        rt.wait_for("rollcall-sync sees that the server is behind",
                    lambda: "event=source-behind" in self.site.sync.log())

    def restored(self):
        """The revisions of a second time begin where the first one was when it was backed up.

        Until they are above all that was seen, neither lists nor events are news; then all is.
        """
        cluster, site = self.cluster, self.site
        changed, gone, gone_again, changed_again, kept, made, zone = self.own
        cluster.create(rt.a_set("own-z-www", zone.obj, "www", "192.0.2.99"))
        for i, name in enumerate((changed, gone, gone_again, changed_again, kept)):
            self.written(name, "192.0.2.%d" % (100 + i))
        self.settle("before the backup")
        first = {name: name.answers[0] for name in self.own}
        backup = cluster.back_up()
        # The last that is known of zones will soon be behind the server, the rest ahead of it.
        self.written(zone, "192.0.2.99")
        self.spend(200)
        self.written(changed, "192.0.2.200")
        self.written(gone, None)
        self.written(made, "192.0.2.201")
        self.settle("after the backup")
        seen = cluster.revision()
        cluster.restore(backup)
        self.sees_that_it_is_behind()
        second = {name: self.write(name, address) for name, address in (
            (gone_again, None), (changed_again, "192.0.2.202"))}
        site.sync.kill()
        site.options = ["--log-level", "debug"]
        site.start_sync()
        self.sees_that_it_is_behind()
        site.sync.signal(signal.SIGHUP)
        for refused in ('what=dnsrecordsets doing=list reason="the server is behind',
                        "event=list-refused what=dnszones"):
            rt.wait_for("the log to have " + refused, lambda: refused in site.sync.log())
        tap.ok(cluster.revision() < seen, "the server is behind all the time")
        asker = rt.Asker(site.pdns.port)
        tap.equal([answer_of(asker, name) for name in self.own],
                  [name.answers[-1] for name in self.own],
                  "a server that is behind changes nothing")
        for name in self.own:
            name.answers.append(second.get(name, first[name]))
        while cluster.revision() <= seen:
            self.spend(10)
        self.settle("restored from a backup")
        tap.equal([name.answers[0] for name in self.own],
                  [second.get(name, first[name]) for name in self.own],
                  "what was in the backup is there again, and what was written since")
        wrong = self.told()
        tap.ok(not wrong, "restored from a backup: no wrong answer", "\n".join(wrong))
        self.under_load("after all", lambda: None)


def main():
    if not rt.pdns_versions():
        rt.skip_all("no pdns_server")
    tap.note("seed %d" % SEED)
    test = Test()
    try:
        test.outages()
        test.restored()
    except AssertionError as e:
        tap.ok(False, "ran to its end", "%s\n%s" % (e, test.site.sync.log()[-3000:]))
        test.questioner.stop()
        tap.done()
    test.stop()
    tap.done()


main()
