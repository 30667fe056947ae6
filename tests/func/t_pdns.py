# SPDX-License-Identifier: Apache-2.0
"""The whole path, manifest to answer, through every PowerDNS at hand: all types, ENTs, wildcards,
delegations, ALIAS, transfers, tools and API, with the shipped settings, strict and cached; and a
deleted manifest is gone with the next query."""
import json
import os
import sys
import time
import urllib.request

import dns.query
import dns.rdatatype
import dns.zone

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import rolltest as rt  # noqa: E402

tap = rt.tap

ALL_TYPES = {
    "A": ({"content": "192.0.2.10"}, "192.0.2.10"),
    "AAAA": ({"content": "2001:DB8:0::10"}, "2001:db8::10"),
    "TXT": ({"content": 'v=spf1 -all; "quoted" c:\\path'}, '"v=spf1 -all; \\"quoted\\" c:\\\\path"'),
    "MX": ({"preference": 10, "exchange": "mail.example.com"}, "10 mail.example.com."),
    "SRV": ({"priority": 0, "weight": 5, "port": 443, "target": "svc.example.com."},
            "0 5 443 svc.example.com."),
    "CAA": ({"flag": 0, "tag": "issue", "value": "letsencrypt.org"}, '0 issue "letsencrypt.org"'),
    "PTR": ({"content": "target.example.test."}, "target.example.test."),
    "TLSA": ({"usage": 3, "selector": 1, "matchingType": 1, "certData": "AB" * 32},
             "3 1 1 " + "ab" * 32),
    "HTTPS": ({"priority": 1, "target": ".", "params": {"alpn": "h2,h3", "ipv4hint": "192.0.2.1"}},
              '1 . alpn="h2,h3" ipv4hint="192.0.2.1"'),
    "SVCB": ({"priority": 0, "target": "svc.example.com", "params": {}}, "0 svc.example.com."),
}


def manifests():
    m = rt.Manifests()
    m.put("class.json", rt.zone_class())
    m.put("zones.json", rt.zone("example-com", "example.com"), rt.zone("rev", "2.0.192.in-addr.arpa"))
    m.put("all.json", *[rt.record_set("all-" + t.lower(), "example-com", t,
                                      [{"name": "all", "ttl": 120, t.lower(): body}])
                        for t, (body, _) in ALL_TYPES.items()])
    m.put("www.json", rt.a_set("www", "example-com", "www", "192.0.2.20", "192.0.2.21"))
    m.put("alias.json", rt.record_set("apex-alias", "example-com", "ALIAS",
                                      [{"name": "@", "alias": {"content": "lb.example.net"}}]))
    m.put("cname.json", rt.record_set("cname", "example-com", "CNAME", [
        {"name": "c1", "cname": {"content": "c2.example.com"}},
        {"name": "c2", "cname": {"content": "www.example.com"}}]))
    m.put("ent.json", rt.a_set("ent", "example-com", "x.y.ent", "192.0.2.30"))
    m.put("wild.json", rt.a_set("wild", "example-com", "*", "192.0.2.40"))
    m.put("cut.json",
          rt.record_set("cut", "example-com", "NS", [{"name": "sub",
                                                      "ns": {"content": "ns.sub.example.com"}}]),
          rt.a_set("glue", "example-com", "ns.sub", "192.0.2.53"))
    m.put("soa.json", rt.record_set("soa", "rev", "SOA", [
        {"name": "@", "soa": {"mname": "ns1.example.net", "rname": "admin@example.net",
                              "serial": 77}}]))
    m.put("ptr.json", rt.record_set("ptr", "rev", "PTR",
                                    [{"name": "10", "ptr": {"content": "all.example.com"}}]))
    return m


def check_answers(pdns, v):
    def answers(name, rtype, want, **kw):
        got = pdns.records(name, rtype, **kw)
        got = got if isinstance(got, str) else sorted(g.split(" ", 3)[3] for g in got)
        tap.equal(got, want, "%s: %s %s" % (v, name, rtype))

    for rtype, (_, want) in ALL_TYPES.items():
        answers("all.example.com", rtype, [want])
    answers("ALL.Example.COM", "A", ["192.0.2.10"])
    answers("www.example.com", "A", ["192.0.2.20", "192.0.2.21"])
    answers("www.example.com", "AAAA", [])
    answers("www.example.com", "A", ["192.0.2.20", "192.0.2.21"], tcp=True)
    answers("example.com", "A", ["192.0.2.99"])
    answers("example.com", "AAAA", ["2001:db8::99"])
    answers("example.com", "NS", ["ns1.example.net.", "ns2.example.net."])
    answers("c1.example.com", "A", ["192.0.2.20", "192.0.2.21", "c2.example.com.",
                                    "www.example.com."])
    answers("10.2.0.192.in-addr.arpa", "PTR", ["all.example.com."])
    answers("2.0.192.in-addr.arpa", "SOA",
            ["ns1.example.net. admin.example.net. 77 10800 3600 604800 3600"])
    answers("anything.example.com", "A", ["192.0.2.40"])
    answers("y.ent.example.com", "A", [])
    answers("ent.example.com", "A", [])
    answers("nope.ent.example.com", "A", "NXDOMAIN")
    answers("example.org", "A", "REFUSED")
    soa = pdns.records("example.com", "SOA")[0].split()
    tap.equal(soa[3:5] + soa[6:], ["ns1.example.net.", "hostmaster.example.com.", "10800", "3600",
                                   "604800", "3600"], v + ": SOA made from the class")
    referral = pdns.ask("host.sub.example.com", "A")
    tap.ok(not referral.answer and not referral.flags & dns.flags.AA and referral.authority and
           referral.authority[0].rdtype == dns.rdatatype.NS and referral.additional,
           v + ": delegation with glue, without AA", referral.to_text())


def check_tools(pdns, v):
    zones = pdns.util("list-all-zones", check=0).out.split()
    tap.equal(sorted(z.rstrip(".") for z in zones), ["2.0.192.in-addr.arpa", "example.com"],
              v + ": pdnsutil list-all-zones")
    done = pdns.util("check-zone", "2.0.192.in-addr.arpa")
    tap.ok(done.returncode == 0 and "0 errors" in done.out + done.err,
           v + ": pdnsutil check-zone finds no error", done.out + done.err)
    listing = pdns.util("list-zone", "example.com", check=0).out
    tap.ok("192.0.2.20" in listing and "ns.sub.example.com" in listing, v + ": pdnsutil list-zone",
           listing)
    for words in (["add-record", "example.com.", "new.example.com." if pdns.version.number >= (5, 0)
                   else "new", "A", "192.0.2.1"],
                  ["create-zone", "new.test"], ["delete-zone", "example.com"]):
        done = pdns.util(*words)
        tap.ok(done.returncode != 0, v + ": pdnsutil " + words[0] + " is refused",
               done.out + done.err)
    tap.equal(pdns.rcode("www.example.com"), "NOERROR", v + ": and nothing changed")
    transfer = dns.zone.from_xfr(dns.query.xfr("127.0.0.1", "example.com", port=pdns.port,
                                               timeout=10, lifetime=20, relativize=False),
                                 relativize=False)
    names = {n.to_text() for n in transfer}
    tap.ok({"all.example.com.", "www.example.com.", "*.example.com.", "ns.sub.example.com.",
            "x.y.ent.example.com."} <= names, v + ": zone transfer", sorted(names))


def api(pdns, path, data=None, method=None):
    request = urllib.request.Request("http://127.0.0.1:%d/api/v1/servers/localhost%s" % (
        pdns.web_port, path), data=data, method=method, headers={"X-API-Key": "k"})
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, json.loads(reply.read() or b"null")
    except urllib.error.HTTPError as e:
        return e.code, None


def check_api(pdns, v):
    status, zone = api(pdns, "/zones/example.com.")
    tap.ok(status == 200 and any(r["name"] == "www.example.com." for r in zone["rrsets"]),
           v + ": API GET zone", zone)
    status, found = api(pdns, "/search-data?q=www*&max=10")
    tap.ok(status == 200 and any(r.get("name", "").startswith("www.example.com") for r in found),
           v + ": API search", found)
    if pdns.version.number >= (5, 0):
        status, zone = api(pdns, "/zones/example.com.?rrset_name=www.example.com.&rrset_type=A")
        tap.ok(status == 200 and len(zone["rrsets"]) == 1 and len(zone["rrsets"][0]["records"]) == 2,
               v + ": API GET one RRset (APILookup)", zone)
    body = json.dumps({"rrsets": [{"name": "api.example.com.", "type": "A", "ttl": 1,
                                   "changetype": "REPLACE",
                                   "records": [{"content": "192.0.2.7", "disabled": False}]}]})
    status, _ = api(pdns, "/zones/example.com.", body.encode(), "PATCH")
    tap.ok(status in (422, 500), v + ": API PATCH is refused", status)
    tap.equal(pdns.records("api.example.com"), pdns.records("other-name.example.com") and
              ["api.example.com. 300 A 192.0.2.40"], v + ": and the wildcard still answers there")


def main():
    versions = rt.pdns_versions()
    if not versions:
        rt.skip_all("no pdns_server")
    resolver = rt.Resolver({"lb.example.net": ["192.0.2.99", "2001:db8::99"]})
    for version in versions:
        source, view = manifests(), rt.View()
        done = view.sync_once(source, None)
        tap.equal((done.returncode, done.err.count("\n") < 60), (0, True),
                  version.text + ": the manifests are good")
        for conf in ("strict.conf", "cached.conf"):
            v = version.text + " " + conf.split(".")[0]
            is_cached = conf == "cached.conf"
            server = rt.Server(view, *(["--cacheable"] if is_cached else []))
            web_port = rt.free_port()
            pdns = rt.Pdns.remote(version, server, conf, [
                "resolver=127.0.0.1:%d" % resolver.port, "expand-alias=yes", "disable-axfr=no",
                "allow-axfr-ips=127.0.0.1", "api=yes", "api-key=k", "webserver=yes",
                "webserver-address=127.0.0.1", "webserver-port=%d" % web_port])
            pdns.web_port = web_port
            sync = view.sync(source, "--pdns-control", os.path.join(pdns.dir,
                                                                    "pdns.controlsocket"))
            rt.wait_for("sync watches", lambda: sync.is_running() and
                        view.rollcall("status").returncode == 0)
            check_answers(pdns, v)
            if not is_cached:
                rt.wait_for("the webserver", lambda: api(pdns, "/zones")[0] == 200)
                check_tools(pdns, v)
                check_api(pdns, v)
            # The bound that cached.conf states, had every purge been lost.
            bound_s = 45 if is_cached else 5
            # The wildcard would hide that a name is gone: take it away first.
            source.delete("wild.json")
            rt.wait_for("wildcard gone", lambda: pdns.rcode("w-%d.example.com" % time.time_ns())
                        == "NXDOMAIN", bound_s)
            start = time.monotonic()
            source.delete("www.json")
            rt.wait_for("www gone", lambda: pdns.rcode("www.example.com") == "NXDOMAIN", bound_s)
            tap.note("%s: gone %.1f ms after unlink" % (v, 1000 * (time.monotonic() - start)))
            rt.wait_for("the chain ends", lambda: pdns.records("c1.example.com") == "NXDOMAIN",
                        bound_s)
            source.put("www.json", rt.a_set("www", "example-com", "www", "192.0.2.20",
                                            "192.0.2.21"))
            source.put("wild.json", rt.a_set("wild", "example-com", "*", "192.0.2.40"))
            rt.wait_for("www back", lambda: len(pdns.records("www.example.com")) == 2 and
                        not isinstance(pdns.records("www.example.com"), str), bound_s)
            tap.ok(True, v + ": deleted and made again, a CNAME chain to it too")
            # A zone that appears, with the zone cache on: announced over the control socket.
            source.put("new.json", rt.zone("new", "new.test"),
                       rt.a_set("new-a", "new", "a", "192.0.2.1"))
            rt.wait_for("new zone", lambda: pdns.rcode("a.new.test") == "NOERROR", bound_s)
            source.delete("new.json")
            rt.wait_for("zone gone", lambda: pdns.rcode("a.new.test") == "REFUSED", bound_s)
            tap.ok(True, v + ": a zone comes and goes, zone cache on")
            pdns.stop()
            tap.ok(sync.stop() == 0, v + ": rollcall-sync ends well", sync.log())
            tap.ok(server.stop() == 0, v + ": rollcalld ends well", server.log())
        server, sync = rt.Server(view), view.sync(source)
        # A zone that appears and goes, with the zone cache off: seen by the next query.
        pdns = rt.Pdns.remote(version, server, "strict.conf", ["zone-cache-refresh-interval=0"])
        source.put("new.json", rt.zone("new", "new.test"), rt.a_set("new-a", "new", "a", "192.0.2.1"))
        rt.wait_for("new zone", lambda: pdns.rcode("a.new.test") == "NOERROR")
        source.delete("new.json")
        rt.wait_for("zone gone", lambda: pdns.rcode("a.new.test") == "REFUSED")
        tap.ok(True, version.text + ": a zone comes and goes")
        tap.ok("rror" not in "".join(line for line in pdns.log().splitlines()
                                     if "remote" in line.lower()),
               version.text + ": PowerDNS has nothing to complain of", pdns.log())
        pdns.stop()
        tap.ok(sync.stop() == 0, version.text + ": rollcall-sync ends well", sync.log())
        tap.ok(server.stop() == 0, version.text + ": rollcalld ends well", server.log())
    tap.done()


main()
