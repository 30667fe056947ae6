# SPDX-License-Identifier: Apache-2.0
"""What owners of objects are told, against a real kube-apiserver: every message from a real object,
hand-overs with a stopwatch, writes counted by the server. Who of several writes: t_lease.py; many
objects at once: t_crowd.py."""
import difflib
import glob
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import kube  # noqa: E402
import rolltest as rt  # noqa: E402
from kube_status import (Replica, conditions, expect, patches, record, says, settle,  # noqa: E402
                         took, versions, worst)

tap = rt.tap


# --- every message ---

TOLD = "told"  # the namespace of the table's objects
ACCEPTED = ("True", "Accepted", "DNSRecordSet accepted for PowerDNS zone")
OUT_OF_ZONE = ("The record name is outside the zone. Check that the name belongs to this DNS zone. "
               "spec.records[0].name: ")
INVALID = "The DNS record was rejected as invalid. Check the record type and value. "
IN_THE_WAY = ("A conflicting record already exists for this name. Remove the existing record and "
              "try again. In the way: ")
APPLIED = "Record successfully applied to PDNS"
NOT_YET = "One or more records not yet programmed: "

# In src/sync/report*, but in no message: members and types of JSON, words that are looked for.
NOT_SAID = {"conditions", "lastTransitionTime", "message", "name", "nameservers",
            "observedGeneration", "reason", "recordCount", "recordSets", "records", "serial",
            "spec.records[", "status", "type", "Unknown"}
# What no object can be told as long as the program is right, and why.
NEVER_SAID = {
    "a record": "only known types have claims",
    "the spec cannot be read": "what is wrong with type or reference is always found",
    "Waiting for the zone": "names are claimed in the same commit that begins to serve the zone",
    "SOA": "a zone without SOA and without nameservers waits for nameservers",
    "SOA or NS": "... so it is the NS alone that may be missing",
}


def told_zone(name, domain=None, cls="public"):
    return rt.zone(name, domain or name + ".test", cls=cls, ns=TOLD)


def told_set(name, zone, rtype, *records):
    return rt.record_set(name, zone, rtype, [
        {"name": owner, rtype.lower(): content if isinstance(content, dict) else
         {"content": content}} for owner, content in records], ns=TOLD)


def mx(exchange):
    return {"preference": 10, "exchange": exchange}


def waits(obj, message, reason="Pending"):
    """Nothing of it is served: it says so throughout."""
    told = ("False", reason, message)
    return obj, dict({"Accepted": told, "Programmed": told}, **{
        r["name"]: told for r in obj["spec"].get("records", [])})


def serves(obj):
    return obj, dict({"Accepted": ACCEPTED,
                      "Programmed": ("True", "Programmed", "All records programmed")}, **{
        r["name"]: ("True", "Programmed", APPLIED) for r in obj["spec"]["records"]})


def fails(obj, reason, message):
    """Its only name is not served."""
    name = obj["spec"]["records"][0]["name"]
    return obj, {"Accepted": ACCEPTED, "Programmed": ("False", reason, NOT_YET + name + ": " + message),
                 name: ("False", reason, message)}


def zone_serves(obj):
    return obj, {"Accepted": ("True", "Accepted", "Nameservers retrieved from downstream"),
                 "Programmed": ("True", "Programmed", "Default records ensured")}


def table():
    """
    (object, {condition or name: (status, reason, message)}), in the order in which they are made.
    <x>: the object x, as messages name it. A message that ends in a blank goes on in words of the
    one who reads the spec. Where two compete the first by name wins, if they are of one second.
    """
    foreign = 'DNSZoneClass controller "other" is not "powerdns"'
    return [
        # Zones.
        zone_serves(told_zone("served")),
        zone_serves(told_zone("served-deep", "deep.served.test")),
        zone_serves(told_zone("used-1", "used.test")),
        waits(told_zone("used-2", "used.test"),
              "DNSZone claimed by another resource: <used-1>", "DNSZoneInUse"),
        waits(told_zone("unclassed", cls=""), "DNSZoneClassName not set"),
        waits(told_zone("misclassed", cls="Bad_Name"),
              "spec.dnsZoneClassName: is not the name of an object", "InvalidDNSZone"),
        waits(told_zone("astray", cls="nowhere"), 'DNSZoneClass "nowhere" not found'),
        waits(told_zone("foreign", cls="theirs"), foreign),
        waits(told_zone("bare", cls="bare"), "Waiting for downstream nameservers"),
        waits(told_zone("invalid", 64 * "a" + ".test"), "spec.domainName: ", "InvalidDNSZone"),
        (told_zone("headless", cls="bare"), {
            "Accepted": ("True", "Accepted", "Nameservers retrieved from downstream"),
            "Programmed": ("False", "Pending",
                           "Waiting for default records: there is no NS at the apex")}),
        serves(told_set("headless-soa", "headless", "SOA",
                        ("@", {"mname": "ns.example.net", "rname": "admin.example.net"}))),
        # Record sets, because of their zone.
        waits(told_set("of-none", "absent", "A", ("x", "192.0.2.1")),
              'waiting for DNSZone "absent"'),
        waits(told_set("of-used", "used-2", "A", ("x", "192.0.2.1")),
              'DNSZone "used-2" is not served, its domain is claimed by another resource: <used-1>',
              "DNSZoneInUse"),
        waits(told_set("of-unclassed", "unclassed", "A", ("x", "192.0.2.1")),
              'DNSZone "unclassed" has no class yet'),
        waits(told_set("of-astray", "astray", "A", ("x", "192.0.2.1")),
              'DNSZoneClass "nowhere" not found'),
        waits(told_set("of-foreign", "foreign", "A", ("x", "192.0.2.1")), foreign),
        waits(told_set("of-bare", "bare", "A", ("x", "192.0.2.1"), ("y", "192.0.2.1")),
              'DNSZone "bare" has no nameservers yet'),
        waits(told_set("of-invalid", "invalid", "A", ("x", "192.0.2.1")),
              'DNSZone "invalid" has no usable domainName'),
        # ... because of others.
        serves(told_set("a-1", "served", "A", ("www", "192.0.2.1"))),
        fails(told_set("a-2", "served", "A", ("WWW", "192.0.2.2")), "NotOwner",
              "Another DNSRecordSet owns this record: <a-1>"),
        fails(told_set("b-cname", "served", "CNAME", ("www", "x.example.net")), "Conflict",
              IN_THE_WAY + "A of <a-1>"),
        serves(told_set("c-1", "served", "CNAME", ("alone", "x.example.net"))),
        fails(told_set("c-2", "served", "A", ("alone", "192.0.2.1")), "Conflict",
              IN_THE_WAY + "CNAME of <c-1>"),
        fails(told_set("apex", "served", "CNAME", ("@", "x.example.net")), "Conflict",
              IN_THE_WAY + "SOA and NS of the zone itself"),
        fails(told_set("shadowed", "served", "A", ("x.deep", "192.0.2.1")), "Conflict",
              "Another zone answers for this name: deep.served.test of DNSZone told/served-deep"),
        serves(told_set("delegation", "served", "NS", ("deep", "ns1.example.net"))),
        # ... because of themselves.
        fails(told_set("outside", "served", "A", ("www.example.org.", "192.0.2.1")), "OutOfZone",
              OUT_OF_ZONE),
        fails(told_set("mx-bad", "served", "MX", ("mx-bad", mx("no host"))), "InvalidDNSRecordSet",
              INVALID + "spec.records[0].mx.exchange: "),
        (told_set("mx-half", "served", "MX", ("mx-half", mx("mail.example.net")),
                  ("mx-half", mx("no host"))), {
            "Accepted": ACCEPTED,
            "Programmed": ("False", "InvalidDNSRecordSet", NOT_YET +
                           "1 of 2 entries not served: spec.records[1].mx.exchange: "),
            "mx-half": ("True", "Programmed",
                        APPLIED + ", but for spec.records[1].mx.exchange: ")}),
        (told_set("mixed", "served", "A", ("mixed", "192.0.2.1"), ("www", "192.0.2.1"),
                  ("x.example.org.", "192.0.2.1")), {
            "Accepted": ACCEPTED,
            "Programmed": ("False", "NotOwner", NOT_YET +
                           "www: Another DNSRecordSet owns this record: <a-1>"),
            "mixed": ("True", "Programmed", APPLIED),
            "www": ("False", "NotOwner", "Another DNSRecordSet owns this record: <a-1>"),
            "x.example.org.": ("False", "OutOfZone",
                               OUT_OF_ZONE.replace("[0]", "[2]"))}),
    ]


def loose_table():
    """What our CRDs refuse and others may take, or have taken."""
    crowded = told_zone("crowded", 64 * "a" + ".test")
    crowded["spec"].update({"unknown%d" % i: i for i in range(110)})
    typeless = told_set("typeless", "served", "A", ("x", "192.0.2.1"))
    typeless["spec"]["recordType"] = "WKS"
    return [
        # More findings before the one that counts than are kept.
        waits(crowded, "spec.domainName: cannot be read", "InvalidDNSZone"),
        (told_set("empty", "served", "A"), {
            "Accepted": ACCEPTED, "Programmed": ("False", "InvalidDNSRecordSet", NOT_YET +
                                                 "the object has no records")}),
        waits(typeless, "spec.recordType: ", "InvalidDNSRecordSet"),
        waits(told_set("refless", "", "A", ("x", "192.0.2.1")), "spec.dnsZoneRef.name: ",
              "InvalidDNSRecordSet"),
    ]


def said_by(obj):
    """{condition or name: (status, reason, message, observedGeneration)}."""
    def tell(c):
        return c["status"], c["reason"], c["message"], c.get("observedGeneration")

    out = {k: tell(c) for k, c in conditions(obj).items()}
    for item in obj["status"].get("recordSets", []):
        for c in item["conditions"]:
            out[item["name"] if c["type"] == "Programmed" else "?"] = tell(c)
    return out


def agrees(got, want, generation):
    return got.keys() == want.keys() and all(
        g[:2] == w[:2] and g[3] == generation and
        (g[2] == w[2] or (w[2].endswith(" ") and g[2].startswith(w[2]) and len(g[2]) > len(w[2])))
        for g, w in ((got[k], want[k]) for k in want))


def told(cluster, rows):
    """Make the objects, and wait for what each is told; all texts that were."""
    names, texts = {}, []
    for obj, _ in rows:
        made = cluster.create(obj)
        names["<%s>" % made["metadata"]["name"]] = "%s %s/%s, since %s" % (
            made["kind"], TOLD, made["metadata"]["name"], made["metadata"]["creationTimestamp"])
    for obj, want in rows:
        want = {k: (*v[:2], re.sub(r"<[^>]+>", lambda m: names[m.group(0)], v[2]))
                for k, v in want.items()}
        last = {}

        def look():
            last["obj"] = now = cluster.get(obj)
            return agrees(said_by(now), want, now["metadata"]["generation"])

        what = "%s %s: %s" % (obj["kind"], obj["metadata"]["name"], want["Programmed"][1])
        try:
            rt.wait_for(what, look)
            tap.ok(True, what)
        except AssertionError:
            tap.ok(False, what, "got  %r\nwant %r" % (said_by(last["obj"]), want))
        for k, v in want.items():
            texts += [k, *v]
    return texts


def strings():
    """Those in the source of the report."""
    out = set()
    for path in glob.glob(os.path.join(rt.SRCDIR, "src/sync/report*.[ch]")):
        with open(path) as f:
            text = f.read()
        text = re.sub(r"/\*.*?\*/|^#include.*?$|'(?:[^'\\]|\\.)'", "", text, flags=re.S | re.M)
        for run in re.findall(r'"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*', text):
            pieces = re.findall(r'"((?:[^"\\]|\\.)*)"', run)
            out.add("".join(pieces).replace('\\"', '"'))
    return out - {""}


def all_is_told(texts):
    """Each string of the report was told to a real object above, or cannot be."""
    found, all_texts = strings(), "\n".join(texts)
    missing = [s for s in found - NOT_SAID - NEVER_SAID.keys() if not re.search(
        re.sub("%zu", "[0-9]+", re.sub("%s", ".+", re.escape(s))), all_texts)]
    tap.ok(len(found) > 60 and not missing,
           "each of the %d strings of the report is in what was told" % len(found), missing)
    tap.equal(sorted((NOT_SAID | NEVER_SAID.keys()) - found), [],
              "... and what is left out is there to be left out")
    for s, why in NEVER_SAID.items():
        tap.note('never told: "%s": %s' % (s, why))


def every_message(cluster):
    cluster.namespace(TOLD)
    cluster.create(rt.zone_class("theirs", controller="other"))
    cluster.create(rt.zone_class("bare", servers=None))
    return told(cluster, table())


def every_message_of_loose_crds(cluster, replica):
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/%s." + kube.API.split("/")[2]
    for plural in ("dnszones", "dnsrecordsets"):
        versions_now = cluster.must("GET", path % plural)["spec"]["versions"]
        spec = versions_now[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["x-kubernetes-preserve-unknown-fields"] = True
        if plural == "dnsrecordsets":
            del spec["properties"]["records"]["minItems"]
            del spec["properties"]["recordType"]["enum"]
            del spec["properties"]["dnsZoneRef"]["properties"]["name"]["minLength"]
        cluster.must("PATCH", path % plural, {"spec": {"versions": versions_now}},
                     content_type="application/merge-patch+json")
    rows = loose_table()

    def takes_all():
        """A dry run tells too whether unknown members are kept."""
        for obj, _ in rows:
            status, made = cluster.request(
                "POST", kube.path_of(obj).rsplit("/", 1)[0] + "?dryRun=All", obj)
            if status != 201 or made["spec"] != obj["spec"]:
                return False
        return True

    rt.wait_for("the CRDs to count", takes_all, 60)
    # A watch that began before still leaves out what is unknown.
    replica.sync.stop()
    replica.start()
    return told(cluster, rows)


# --- what kubectl get shows ---

def shown(cluster, kind, wide=False):
    """The server's answer to kubectl get: the columns, and {name: {column: cell}} without the age."""
    reply = cluster.must("GET", kube.path_of(kind, ns=TOLD),
                         accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    titles = [c["name"] for c in reply["columnDefinitions"]]
    here = [i for i, c in enumerate(reply["columnDefinitions"]) if wide or not c["priority"]]
    rows = {row["object"]["metadata"]["name"]: {titles[i]: row["cells"][i] for i in here
                                                if titles[i] != "Age"} for row in reply["rows"]}
    return [titles[i] for i in here], rows


def columns(cluster):
    """Is it served? If not, why?"""
    titles, rows = shown(cluster, "DNSRecordSet")
    tap.equal(titles, ["Name", "Zone", "Type", "First Name", "Served", "Reason", "Age"],
              "kubectl get dnsrecordsets: its columns")
    for name, *cells in (("a-1", "served", "A", "www", "True", "Programmed"),
                         ("a-2", "served", "A", "WWW", "False", "NotOwner"),
                         ("of-none", "absent", "A", "x", "False", "Pending"),
                         # The server shows no more than the first of what a path finds.
                         ("of-bare", "bare", "A", "x", "False", "Pending")):
        tap.equal(rows[name], dict(zip(titles, (name, *cells))), "... of " + name)
    titles, rows = shown(cluster, "DNSRecordSet", wide=True)
    owner = "DNSRecordSet told/a-1, since " + cluster.get(told_set("a-1", "served", "A"))[
        "metadata"]["creationTimestamp"]
    tap.equal((titles[-2:], rows["a-2"]["Why"], rows["a-1"]["Why"]),
              (["Why", "Age"], NOT_YET + "WWW: Another DNSRecordSet owns this record: " + owner,
               "All records programmed"), "... -o wide: why")

    titles, rows = shown(cluster, "DNSZone")
    tap.equal(titles, ["Name", "Domain", "Class", "Served", "Reason", "Records", "Age"],
              "kubectl get dnszones: its columns")
    rt.wait_for("all are counted", lambda: cluster.get(told_zone("served"))["status"].get(
        "recordCount") == sum(len(obj["spec"]["records"]) for obj, _ in table()
                              if obj["spec"].get("dnsZoneRef") == {"name": "served"}))
    _, rows = shown(cluster, "DNSZone")
    served = cluster.get(told_zone("served"))["status"]
    for name, *cells in (("served", "served.test", "public", "True", "Programmed",
                          served["recordCount"]),
                         ("used-2", "used.test", "public", "False", "DNSZoneInUse", 1),
                         ("headless", "headless.test", "bare", "False", "Pending", 1)):
        tap.equal(rows[name], dict(zip(titles, (name, *cells))), "... of " + name)
    titles, rows = shown(cluster, "DNSZone", wide=True)
    tap.equal((titles[-3:], rows["served"]["Serial"], rows["headless"]["Why"]),
              (["Serial", "Why", "Age"], served["serial"],
               "Waiting for default records: there is no NS at the apex"),
              "... -o wide: the serial, and why")
    titles, rows = shown(cluster, "DNSZoneClass")
    tap.equal((titles, rows["theirs"]["Controller"], rows["bare"]["Nameservers"]),
              (["Name", "Controller", "Nameservers", "Default TTL", "Age"], "other", None),
              "kubectl get dnszoneclasses: whose they are")
    tap.ok(all(n in rows["public"]["Nameservers"] for n in ("ns1.example.net", "ns2.example.net")),
           "... and with which nameservers", rows["public"])


# --- what changes ---


def reasons(cluster):
    cluster.create(rt.zone_class())
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
    cluster.create(rt.zone("lost-class", "lost-class.test", cls="absent"))
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


def events_of(cluster, name):
    """{reason: events}."""
    out = {}
    for e in cluster.must("GET", "/apis/events.k8s.io/v1/namespaces/default/events?limit=500")["items"]:
        if e["regarding"]["name"] == name:
            out[e["reason"]] = [*out.get(e["reason"], []), e]
    return out


class Flip:
    """A record set that is served and is not, in turn: the same two events again and again."""

    KINDS = ("RecordSetProgrammed", "RecordSetProgrammingFailed")

    def __init__(self, cluster):
        self.cluster = cluster
        self.obj = rt.a_set("flip", "example-com", "flip", "192.0.2.1")
        self.times = dict.fromkeys(self.KINDS, 0)
        cluster.create(self.obj)
        self.is_told("Programmed")
        self.out()
        self.first = rt.wait_for("both events", lambda: (lambda e: e if e.keys() == set(
            self.KINDS) else None)(events_of(cluster, "flip")))
        tap.ok(all(len(e) == 1 and "series" not in e[0] for e in self.first.values()),
               "an event that happened once is no series", self.first)

    def is_told(self, reason):
        says(self.cluster, self.obj, "Programmed", "True" if reason == "Programmed" else "False",
             reason)
        self.times[self.KINDS[reason != "Programmed"]] += 1

    def name(self, name):
        self.cluster.patch(self.obj, {"spec": {"records": [
            {"name": name, "a": {"content": "192.0.2.1"}}]}})

    def out(self):
        self.name("flip.example.org.")
        self.is_told("OutOfZone")

    def back(self):
        self.name("flip")
        self.is_told("Programmed")

    def is_counted(self, what):
        """Repeats are gathered for half a minute, then the event that is there says how many."""
        last = {}

        def look():
            last["events"] = found = events_of(self.cluster, "flip")
            return {k: [e.get("series", {}).get("count") for e in events]
                    for k, events in found.items()} == {k: [n] for k, n in self.times.items()}

        try:
            rt.wait_for("series", look, 120)
        except AssertionError:
            tap.ok(False, what, "want %r, got %r" % (self.times, last["events"]))
            return
        found = last["events"]
        tap.equal(*({k: (e["metadata"]["uid"], e["eventTime"], e["note"])
                     for k, (e,) in x.items()} for x in (found, self.first)), what)
        tap.ok(all(e["eventTime"] < e["series"]["lastObservedTime"] for e, in found.values()),
               "... last seen later than first", found)


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
        flip = Flip(cluster)
        flip.back()
        flip.out()
        flip.back()
        texts = every_message(cluster)
        columns(cluster)
        others(cluster, www)
        no_commits(cluster, replica, www)
        served_when_told(cluster, backend)
        reborn(cluster)
        told_events(cluster)
        flip.is_counted("the same events again: a series each, of the one that is there")
        flip.out()
        flip.back()
        flip.is_counted("... and again: the count rises")
        hand_over(cluster, www, second)
        restarts(cluster, replica)
        new_views(cluster, replica)
        texts += every_message_of_loose_crds(cluster, replica)
        all_is_told(texts)
        pruned(cluster, replica)
    except AssertionError as e:
        tap.ok(False, "ran to its end", str(e) + "\n" + replica.sync.log()[-3000:])
        tap.done()
    tap.equal(replica.sync.stop(), 0, "rollcall-sync ends well on SIGTERM")
    server.stop()
    cluster.stop()
    tap.done()


main()
