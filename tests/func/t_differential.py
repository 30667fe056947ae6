# SPDX-License-Identifier: Apache-2.0
"""Two servers, one truth: `rollcall dump` loaded into PowerDNS's own bind backend must answer
exactly as PowerDNS with rollcall does.

Several hundred generated zones (fixed seed) with wildcards, delegations and glue, CNAME chains,
empty non-terminals, all types. Asked are every owner, every name above it, names beside and below,
for every type and ANY. Compared: rcode, AA, answer and authority sections.
"""
import os
import random
import sys

import dns.message
import dns.name
import dns.rdatatype

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import rolltest as rt  # noqa: E402

tap = rt.tap
SEED = 20260101
ZONES = int(os.environ.get("ROLL_ZONES", "240"))
QTYPES = ["A", "AAAA", "CNAME", "TXT", "MX", "SRV", "CAA", "NS", "SOA", "PTR", "TLSA", "HTTPS",
          "SVCB", "ANY"]
LABELS = ["a", "b", "www", "mail", "x1", "deep", "_tcp", "long-label-of-no-meaning", "zz"]


def entry(rng, rtype, owner, domain, cut):
    inside = "%s.%s" % (rng.choice(LABELS), domain)
    outside = "%s.example.org" % rng.choice(LABELS)
    target = rng.choice([inside, inside, outside, domain])
    host = target.replace("_tcp", "www")
    body = {
        "A": lambda: {"content": "192.0.2.%d" % rng.randrange(256)},
        "AAAA": lambda: {"content": "2001:DB8::%x" % rng.randrange(65536)},
        "CNAME": lambda: {"content": target},
        "TXT": lambda: {"content": rng.choice(["hello world", "v=spf1 -all; x", 'say "hi"',
                                               "c:\\path", "x" * 300, '"a" "b c"', "gr\u00fc\u00dfe"])},
        "MX": lambda: {"preference": rng.randrange(100), "exchange": host},
        "SRV": lambda: {"priority": 1, "weight": rng.randrange(9), "port": 443, "target": host},
        "CAA": lambda: {"flag": 0, "tag": "issue", "value": rng.choice(["ca.example", ";"])},
        "NS": lambda: {"content": rng.choice(["ns." + cut if cut else host, "ns1.example.org"])},
        "PTR": lambda: {"content": target},
        "TLSA": lambda: {"usage": 3, "selector": 1, "matchingType": 1,
                         "certData": "%064X" % rng.getrandbits(256)},
        "HTTPS": lambda: {"priority": 1, "target": rng.choice([".", target]),
                          "params": {"alpn": "h2,h3", "port": "8443"}},
        "SVCB": lambda: {"priority": rng.choice([0, 2]), "target": target, "params": {}},
        "SOA": lambda: {"mname": "ns1.example.net", "rname": "admin.example.net",
                        "serial": 2026010100 + rng.randrange(99), "ttl": 60},
    }[rtype]()
    out = {"name": owner, rtype.lower(): body}
    if rng.random() < 0.5:
        out["ttl"] = rng.choice([0, 1, 60, 3600])
    return out


def make_zone(rng, n):
    domain = "z%d.test" % n
    objects = [rt.zone("z%d" % n, domain, cls=rng.choice(["public", "ttl60"]))]
    owners = ["@"]
    for _ in range(rng.randrange(2, 9)):
        base = rng.choice(owners)
        label = rng.choice(LABELS)
        owners.append(label if base == "@" else label + "." + base)
    if rng.random() < 0.6:
        base = rng.choice(owners)
        owners.append("*" if base == "@" else "*." + base)
    plain = [o for o in owners if not o.startswith("*")]
    cuts = []
    if rng.random() < 0.4:
        cut = "sub" if rng.random() < 0.5 else "sub." + rng.choice(plain[1:] or ["b"])
        cuts.append(cut)
        owners += ["ns." + cut, "below." + cut]
    count = 0
    for owner in dict.fromkeys(owners):
        types = ["A", "AAAA", "TXT", "MX", "SRV", "CAA", "PTR", "TLSA", "HTTPS", "SVCB"]
        chosen = rng.sample(types, rng.randrange(1, 4))
        if owner != "@" and rng.random() < 0.3:
            chosen = ["CNAME"] + (chosen[:1] if rng.random() < 0.2 else [])
        if rng.random() < 0.15 and owner != "@" and len(owner.split(".")) > 1:
            chosen = []  # leaves an empty non-terminal when something is below
        if owner == "@" and rng.random() < 0.2:
            chosen.append(rng.choice(["SOA", "NS"]))
        for rtype in chosen:
            count += 1
            records = [entry(rng, rtype, owner, domain, None)
                       for _ in range(1 if rtype in ("CNAME", "SOA") else rng.randrange(1, 3))]
            objects.append(rt.record_set("z%d-r%d" % (n, count), "z%d" % n, rtype, records,
                                         created="2026-01-%02dT00:00:00Z" % rng.randrange(1, 28)))
    for cut in cuts:
        count += 1
        objects.append(rt.record_set("z%d-cut%d" % (n, count), "z%d" % n, "NS", [
            entry(rng, "NS", cut, domain, cut + "." + domain) for _ in range(2)]))
    names = set()
    for owner in owners + cuts:
        name = dns.name.from_text(domain if owner == "@" else owner + "." + domain)
        while len(name.labels) >= 3:
            names.add(name)
            name = name.parent()
        base = dns.name.from_text(domain if owner == "@" else owner.replace("*", "any") + "." +
                                  domain)
        names |= {base, dns.name.from_text("nope", base), dns.name.from_text("nope.nope", base)}
    objects.append(rt.record_set("z%d-alias" % n, "z%d" % n, "ALIAS", [
        {"name": rng.choice(["@", "only-alias", "www"]), "alias": {"content": "lb.example.org"}}]))
    return domain, objects, sorted(names)


def canonical(wire):
    """What must agree, as text. Additional data counts in referrals, where it is the glue; beside
    an answer PowerDNS makes its choice by the order in which the backend gave the records."""
    m = dns.message.from_wire(wire, ignore_trailing=False, one_rr_per_rrset=False)
    out = ["rcode %d flags %04x" % (m.rcode(), m.flags)]
    for title, section in (("answer", m.answer), ("authority", m.authority),
                           ("additional", [] if m.answer else m.additional)):
        rows = ["%s %s %d %s %s" % (title, s.name.to_text().lower(), s.ttl,
                                    dns.rdatatype.to_text(s.rdtype), r.to_text().lower())
                for s in section for r in s]
        out += sorted(rows)
    return "\n".join(out)


def questions(names):
    for name in names:
        for qtype in QTYPES:
            query = dns.message.make_query(name, qtype)
            query.flags = 0
            yield name, qtype, query.to_wire()


def main():
    versions = rt.pdns_versions()
    if not versions:
        rt.skip_all("no pdns_server")
    rng = random.Random(SEED)
    zones = [make_zone(rng, n) for n in range(ZONES)]
    manifests = rt.Manifests()
    manifests.put("00-class.json", rt.zone_class(),
                  rt.zone_class("ttl60", servers=["ns9.example.net"], ttl=60))
    for domain, objects, _ in zones:
        manifests.put(domain + ".json", *objects)
    view = rt.View()
    done = view.sync_once(manifests, None)
    tap.ok(done.returncode in (0, 1), "the generated manifests are read (exit 0 or 1)", done.err)
    tap.ok(view.rollcall("verify").returncode == 0, "verify finds the view as it must be")

    zonedir = rt.tempdir("zones")
    conf = []
    for domain, _, _ in zones:
        path = os.path.join(zonedir, domain)
        with open(path, "w") as f:
            f.write(view.rollcall("dump", domain, "--pdns", check=0).out)
        with open(path + ".standard", "w") as f:
            f.write(view.rollcall("dump", domain, check=0).out)
        conf.append('zone "%s" { type master; file "%s"; };' % (domain, path))
    named = os.path.join(zonedir, "named.conf")
    with open(named, "w") as f:
        f.write("\n".join(conf) + "\n")
    bad = []
    for domain, _, _ in zones[:40]:
        path = os.path.join(zonedir, domain) + ".standard"
        # What is asked of named is whether it can read the zone. It also refuses apex nameservers
        # without address, which the generator makes.
        check = rt.run("named-checkzone", "-i", "none", "-k", "ignore", "-n", "ignore", domain, path)
        said = [line for line in check.out.splitlines()
                if " NS '" not in line and not line.endswith("not loaded due to errors.")]
        if check.returncode and said:
            bad.append("\n".join(said))
        read = rt.run("ldns-read-zone", path)
        if read.returncode:
            bad.append(domain + ": ldns: " + read.err)
    tap.ok(not bad, "named-checkzone and ldns-read-zone accept the dumps", "\n".join(bad[:8]))

    server = rt.Server(view)
    # The bind backend is asked in the installed version only: it is a package of its own.
    theirs = rt.Pdns(versions[0], ["launch=bind", "bind-config=" + named, "any-to-tcp=no",
                                   "zone-cache-refresh-interval=0", "no-shuffle=yes",
                                   "cache-ttl=0", "query-cache-ttl=0", "negquery-cache-ttl=0"])
    for index, version in enumerate(versions):
        ours = rt.Pdns.remote(version, server, extra=["zone-cache-refresh-interval=0",
                                                      "any-to-tcp=no", "no-shuffle=yes",
                                                      "expand-alias=no"])
        asked, parsed, wrong = 0, 0, []
        a, b = rt.Asker(ours.port), rt.Asker(theirs.port)
        # Later versions are asked every third zone: same code of ours, other parser of theirs.
        for domain, _, names in zones if index == 0 else zones[::4]:
            for name, qtype, wire in questions(names):
                asked += 1
                got, want = a.ask(wire), b.ask(wire)
                if got == want:
                    continue
                parsed += 1
                got, want = canonical(got), canonical(want)
                if got != want:
                    wrong.append("%s %s\n  rollcall: %s\n  bind:     %s" % (
                        name, qtype, got.replace("\n", "\n    "), want.replace("\n", "\n    ")))
        tap.note("%s: %d questions, %d compared by meaning" % (version.text, asked, parsed))
        tap.ok(asked > 10000 or ZONES < 240, "enough was asked")
        tap.ok(not wrong, "PowerDNS %s: rollcall and the bind backend agree on every answer" %
               version.text, "%d differ\n%s" % (len(wrong), "\n".join(wrong[:6])))
        ours.stop()
    theirs.stop()
    tap.ok(server.is_running(), "rollcalld still runs")
    tap.done()


main()
