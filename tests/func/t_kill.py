#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""rollcall-sync is killed at random instants while manifests come and go. After each restart the
view is sound, and equals the folder. ROLL_KILLS and ROLL_SEED choose other runs."""
import os
import random
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import rolltest as rt
from rolltest import tap

KILLS = int(os.environ.get("ROLL_KILLS", "200"))
SEED = int(os.environ.get("ROLL_SEED", "20261202"))
NAMES = 40

rnd = random.Random(SEED)
manifests, view = rt.Manifests(), rt.View()
model = {}  # file -> object


def zone_of(i):
    return "z%d" % (i % 3)


def change():
    """One random change to the folder, and to the model of it."""
    what = rnd.random()
    i = rnd.randrange(NAMES)
    name = "r%02d.json" % i
    if what < 0.05:
        z = rnd.randrange(3)
        zone_file = "zone%d.json" % z
        if zone_file in model:
            manifests.delete(zone_file)
            del model[zone_file]
        else:
            model[zone_file] = rt.zone("z%d" % z, "zone%d.example" % z)
            manifests.put(zone_file, model[zone_file])
    elif what < 0.35 and name in model:
        manifests.delete(name)
        del model[name]
    elif what < 0.45 and name in model:
        other = "moved/" + name
        os.makedirs(manifests.path("moved"), exist_ok=True)
        os.rename(manifests.path(name), manifests.path(other))
        model.pop(other, None)
        model[other] = model.pop(name)
    elif what < 0.5 and "moved/" + name in model:
        manifests.delete("moved/" + name)
        del model["moved/" + name]
    else:
        owner = "n%d" % rnd.randrange(NAMES)
        address = "192.0.2.%d" % rnd.randrange(1, 255)
        model[name] = rt.a_set("r%02d" % i, zone_of(i), owner, address,
                               created="2026-01-01T00:00:%02dZ" % i)
        manifests.put(name, model[name])


def want():
    """What the model means: of several objects at one name the oldest serves; here their ages are
    their numbers, and of one object in two files the first by path counts."""
    zones = {o["metadata"]["name"]: o["spec"]["domainName"]
             for o in model.values() if o["kind"] == "DNSZone"}
    objects = {}
    for path in sorted(model):
        o = model[path]
        if o["kind"] == "DNSRecordSet":
            objects.setdefault(o["metadata"]["name"], o)
    out = {}
    for _, o in sorted(objects.items()):
        domain = zones.get(o["spec"]["dnsZoneRef"]["name"])
        if domain:
            record = o["spec"]["records"][0]
            out.setdefault("%s.%s" % (record["name"], domain), record["a"]["content"])
    return out


def served():
    out = {}
    done = view.rollcall("dump")
    for line in done.out.splitlines():
        if line.startswith(";") or not line.strip():
            continue
        owner, _, _, rtype, rdata = line.split(None, 4)
        if rtype == "A":
            out[owner.rstrip(".")] = rdata
    return out


def once(turn):
    proc = view.sync(manifests)
    # Changes go on until the kill and beyond it: the rest happens while nobody looks.
    delay = rnd.uniform(0, 0.03) if turn % 2 else rnd.uniform(0, 0.12)
    timer = threading.Timer(delay, proc.kill)
    timer.start()
    for _ in range(rnd.randrange(1, 12)):
        change()
    timer.join()
    for _ in range(rnd.randrange(0, 3)):
        change()
    if "Sanitizer" in proc.log():
        return proc.log()
    if os.path.exists(os.path.join(view.dir, "current")):
        done = view.rollcall("verify")
        if done.returncode:
            return "after the kill: verify: " + done.out + done.err
    proc = view.sync(manifests)
    expected = want()
    try:
        rt.wait_for("the folder's content", lambda: served() == expected)
    except AssertionError:
        got = served()
        return "view and folder differ: %r\n%s" % (
            sorted(set(got.items()) ^ set(expected.items())), proc.log())
    # Killed again, at rest this time.
    proc.kill()
    done = view.rollcall("verify")
    return "verify: " + done.out + done.err if done.returncode else None


manifests.put("class.json", rt.zone_class())
for number in range(3):
    model["zone%d.json" % number] = rt.zone("z%d" % number, "zone%d.example" % number)
    manifests.put("zone%d.json" % number, model["zone%d.json" % number])

trouble = None
turn = 0
while turn < KILLS and not trouble:
    turn += 1
    trouble = once(turn)
tap.ok(not trouble, "killed at %d random instants: the view is sound, and equals the folder" % KILLS,
       "seed %d, kill %d: %s" % (SEED, turn, trouble))
tap.done()
