# SPDX-License-Identifier: Apache-2.0
"""Manifests, zone files and questions for the benchmark.

gen.py NAMES DIR writes
	DIR/manifests/all.json	one List: a class, the zones, one DNSRecordSet (an A record) per name
	DIR/zones/ZONE		the same as master files
	DIR/hits, DIR/misses	questions for dnsperf, in random order (fixed seed)

Names are hNNNNNNN.zNNN.bench.example, 10,000 in a zone; what starts with m does not exist.
"""
import json
import os
import random
import sys

API = "dns.networking.miloapis.com/v1alpha1"
PER_ZONE = 10000
QUESTIONS = 100000
NAMESERVERS = ["ns1.bench.net", "ns2.bench.net"]
CREATED = "2026-01-01T00:00:00Z"


def zone_name(index):
    return "z%03d.bench.example" % (index // PER_ZONE)


def owner(index):
    return "h%07d" % index


def address(index):
    return "10.%d.%d.%d" % (index >> 16 & 255, index >> 8 & 255, index & 255)


def item(kind, name, spec, namespace="bench"):
    meta = {"name": name, "creationTimestamp": CREATED}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": API, "kind": kind, "metadata": meta, "spec": spec}


def items(names):
    yield item("DNSZoneClass", "bench", {
        "controllerName": "powerdns",
        "nameServerPolicy": {"mode": "Static", "static": {"servers": NAMESERVERS}}}, None)
    for first in range(0, names, PER_ZONE):
        zone = zone_name(first)
        yield item("DNSZone", zone.split(".")[0],
                   {"domainName": zone, "dnsZoneClassName": "bench"})
    for index in range(names):
        yield item("DNSRecordSet", owner(index), {
            "dnsZoneRef": {"name": zone_name(index).split(".")[0]}, "recordType": "A",
            "records": [{"name": owner(index), "ttl": 300, "a": {"content": address(index)}}]})


def write_manifest(names, path):
    dump = json.JSONEncoder(separators=(",", ":")).encode
    with open(path, "w") as out:
        out.write('{"apiVersion":"v1","kind":"List","items":[\n')
        for number, one in enumerate(items(names)):
            out.write(",\n" if number else "")
            out.write(dump(one))
        out.write("\n]}\n")


def write_zones(names, folder):
    for first in range(0, names, PER_ZONE):
        zone = zone_name(first)
        with open(os.path.join(folder, zone), "w") as out:
            out.write("$ORIGIN %s.\n$TTL 300\n" % zone)
            out.write("@ 3600 SOA %s. hostmaster.%s. 1 10800 3600 604800 3600\n" %
                      (NAMESERVERS[0], zone))
            for server in NAMESERVERS:
                out.write("@ 3600 NS %s.\n" % server)
            for index in range(first, min(first + PER_ZONE, names)):
                out.write("%s A %s\n" % (owner(index), address(index)))


def write_questions(names, folder):
    rand = random.Random(1)
    for kind, letter in (("hits", "h"), ("misses", "m")):
        with open(os.path.join(folder, kind), "w") as out:
            for _ in range(QUESTIONS):
                index = rand.randrange(names)
                out.write("%s%s.%s A\n" % (letter, owner(index)[1:], zone_name(index)))


def generate(names, folder):
    for sub in ("manifests", "zones"):
        os.makedirs(os.path.join(folder, sub), exist_ok=True)
    write_manifest(names, os.path.join(folder, "manifests", "all.json"))
    write_zones(names, os.path.join(folder, "zones"))
    write_questions(names, folder)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: gen.py NAMES DIR")
    generate(int(sys.argv[1]), sys.argv[2])
