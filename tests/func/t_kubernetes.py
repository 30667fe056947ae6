# SPDX-License-Identifier: Apache-2.0
"""pdns-conf/kubernetes without a cluster: pdns_server as the pod starts it, and whether the manifests
fit together and with the programs."""
import glob
import os
import re
import shutil
import sys

import dns.rcode
try:
    import yaml
except ImportError:
    yaml = None

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import rolltest as rt  # noqa: E402

tap = rt.tap
FOLDER = os.path.join(rt.SRCDIR, "pdns-conf", "kubernetes")
# What differs between a pod and this machine, and nothing else.
OWN = ("local-address", "local-port", "socket-dir", "remote-connection-string")


def read(name):
    with open(os.path.join(FOLDER, name)) as f:
        return f.read()


def settings(name="pdns.conf"):
    lines = [l.split("#", 1)[0].strip() for l in read(name).splitlines()]
    return dict(l.split("=", 1) for l in lines if l)


class Shipped(rt.Pdns):
    """pdns_server by start.sh with its pdns.conf, both as they are."""

    def __init__(self, version, server, resolv, folder=FOLDER):
        self.version, self.port, self.dir = version, rt.free_port(), rt.tempdir("pdns")
        path = os.path.join(self.dir, "resolv.conf")
        with open(path, "w") as f:
            f.write(resolv)
        bindir = os.path.dirname(version.tool("pdns_server"))
        rt.Process.__init__(
            self, ["sh", os.path.join(folder, "start.sh"), path, "--local-address=127.0.0.1",
                   "--local-port=%d" % self.port, "--socket-dir=" + self.dir,
                   "--remote-connection-string=unix:path=%s,timeout=2000" % server.socket_path],
            name="pdns_server", env=dict(os.environ, PATH=bindir + ":" + os.environ["PATH"]))
        rt.wait_for("pdns_server answers", self.answers)

    def resolver(self):
        """Where it looks for the targets of ALIAS records."""
        found = re.search(r"DNS Proxy launched, local port \d+, remote (\S+)", self.log())
        return found and found.group(1)

    def config(self):
        """What it goes by."""
        pairs = (l.split("=", 1) for l in self.control("current-config").splitlines() if "=" in l)
        return {k.strip(): v.strip() for k, v in pairs if not k.startswith("#")}


def port_53(table):
    """A resolver on an address of this machine's own, or None: it takes a privilege."""
    for last in range(53, 250):
        try:
            return rt.Resolver(table, address="127.0.53.%d" % last, port=53)
        except PermissionError:
            return None
        except OSError:
            continue
    return None


def test_version(version):
    v = version.text
    bindir = os.path.dirname(version.tool("pdns_server"))
    done = rt.run(os.path.join(bindir, "pdns_server"), "--config-dir=" + FOLDER, "--config=check")
    tap.ok(done.returncode == 0, v + ": all settings of pdns.conf are known", done.out + done.err)

    source, view = rt.Manifests(), rt.View()
    for path in glob.glob(os.path.join(rt.SRCDIR, "pdns-conf", "example", "*.yaml")):
        shutil.copy(path, source.dir)
    view.sync_once(source)
    server = rt.Server(view)
    sync = view.sync(source)
    resolver = port_53({"www.example.com": ["192.0.2.99"]})
    address = resolver.address if resolver else "127.0.0.1"
    pdns = Shipped(version, server, "search svc.cluster.local\nnameserver %s\noptions ndots:5\n"
                   % address)
    tap.equal(pdns.records("www.example.com"), view_records(view, "www.example.com."),
              v + ": it answers from the view")
    tap.equal(pdns.rcode("nope.example.org"), "REFUSED", v + ": and refuses what is no zone's")
    tap.equal(pdns.rcode("mail.example.com"), "NOERROR", v + ": there is a name")
    source.delete("mail.yaml")
    rt.wait_for("its manifest's end", lambda: not re.search(
        r"^mail\.example\.com\.", view.rollcall("dump").out, re.M))
    tap.equal(pdns.rcode("mail.example.com"), "NXDOMAIN",
              v + ": what is deleted is gone with the next query")
    log = [l for l in pdns.log().splitlines() if re.search(r"(?i)unknown|unable|deprecated", l)]
    tap.equal(log, [], v + ": nothing is complained about")
    config = pdns.config()
    # It tells those only that are not as by default, and of the defaults not those of backends.
    config.setdefault("remote-dnssec", "no")
    defaults = rt.run(os.path.join(bindir, "pdns_server"), "--config=default").out
    config.update((k, w) for k, w in re.findall(r"^#?\s*([a-z0-9-]+)=(.*)$", defaults, re.M)
                  if k not in config)
    tap.equal({k: config.get(k) for k in settings() if k not in OWN},
              {k: w for k, w in settings().items() if k not in OWN},
              v + ": every setting is what pdns.conf says")
    tap.equal(pdns.resolver(), address + ":53", v + ": ALIAS is looked up at the pod's nameserver")
    if resolver:
        rt.wait_for("the ALIAS", lambda: pdns.rcode("example.com") == "NOERROR")
        tap.equal([l.split()[-1] for l in pdns.records("example.com")], ["192.0.2.99"],
                  v + ": and found there")
    else:
        tap.skip(v + ": and found there", "port 53 may not be used")
    pdns.stop()

    for what, resolv, want in (
            ("the first of several nameservers, whatever is before it",
             "# nameserver 192.0.2.1\nnameserver fe80::1%eth0\nnameserver\t127.0.53.7 \n"
             "nameserver 192.0.2.2\n", "127.0.53.7:53"),
            ("an IPv6 address", "nameserver fd00:10:96::a\n", "[fd00:10:96::a]:53")):
        pdns = Shipped(version, server, resolv)
        tap.equal(pdns.resolver(), want, "%s: resolv.conf: %s" % (v, what))
        pdns.stop()
    pdns = Shipped(version, server, "search example\n")
    tap.ok(pdns.resolver() is None and "no nameserver in " in pdns.log() and
           dns.rcode.to_text(pdns.ask("mail.example.com", "A").rcode()) != "SERVFAIL",
           v + ": resolv.conf: no nameserver: told, and all but ALIAS is answered", pdns.log())
    pdns.stop()
    folder = os.path.join(rt.tempdir("edited"), "pdns")
    shutil.copytree(FOLDER, folder, copy_function=shutil.copyfile)  # to be written
    with open(os.path.join(folder, "pdns.conf"), "a") as f:
        f.write("resolver=127.0.53.9:5353\n")
    pdns = Shipped(version, server, "nameserver 127.0.53.7\n", folder=folder)
    tap.equal(pdns.resolver(), "127.0.53.9:5353", v + ": a resolver in pdns.conf is preferred")
    pdns.stop()
    sync.stop()
    server.stop()


def view_records(view, name):
    """A records as the view has them, told as Pdns.records tells."""
    out = []
    for line in view.rollcall("dump", check=0).out.splitlines():
        fields = line.split()
        if len(fields) >= 5 and fields[0] == name and fields[3] == "A":
            out.append("%s %s A %s" % (name, fields[1], fields[4]))
    if not out:
        raise AssertionError("nothing of " + name)
    return sorted(out)


def test_settings():
    """What must not be cached there must not be cached here."""
    ours, strict = settings(), settings(os.path.join("..", "strict.conf"))
    strict.pop("resolver")  # start.sh
    tap.equal({k: ours.get(k) for k in strict if k not in OWN},
              {k: w for k, w in strict.items() if k not in OWN},
              "pdns.conf has all of strict.conf")


# --- the manifests -----------------------------------------------------------------------------

def test_manifests():
    shipped = {os.path.basename(p) for p in glob.glob(os.path.join(FOLDER, "*"))}
    kustomization = read("kustomization.yaml")
    named = set(re.findall(r"[\w.-]+\.yaml|\bcrds\b", re.search(
        r"^resources: \[(.*?)\]", kustomization, re.M | re.S).group(1)))
    files = set(re.search(r"^  files: \[(.*?)\]", kustomization, re.M).group(1).split(", "))
    tap.equal(named | files | {"kustomization.yaml", "Containerfile"}, shipped,
              "kustomization.yaml has all that is in the folder, and nothing else")


def documents():
    """All that `kubectl apply -k` would apply but the CRDs, by kind."""
    out = {}
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.yaml"))):
        with open(path) as f:
            for doc in yaml.safe_load_all(f):
                out.setdefault(doc["kind"], []).append(doc)
    return out


def option(container, name):
    return next((a.split("=", 1)[1] for a in container.get("args", ())
                 if a.startswith("--%s=" % name)), None)


def test_ports(kinds):
    (deployment,), (policy,) = kinds["Deployment"], kinds["NetworkPolicy"]
    template = deployment["spec"]["template"]
    containers = template["spec"]["initContainers"] + template["spec"]["containers"]
    ports = {c["name"]: {p["name"]: p for p in c["ports"]} for c in containers}
    http = {c["name"]: int(option(c, "http").lstrip(":")) for c in containers if option(c, "http")}
    tap.equal(http, {"rollcall-sync": 9153, "rollcalld": 9154}, "both programs serve --http")
    for c in containers:
        if c["name"] in http:
            tap.equal([p["containerPort"] for p in ports[c["name"]].values()], [http[c["name"]]],
                      c["name"] + ": its port is declared, and no other")
            tap.ok(all(c[probe]["httpGet"]["port"] in ports[c["name"]]
                       for probe in ("startupProbe", "livenessProbe")), c["name"] + " is probed there")
            program = c["command"][0].rsplit("/", 1)[1]
            known = rt.run(program, "--help", check=0).out
            tap.equal([a for a in c["args"] if a.split("=", 1)[0] + " " not in known.replace("\n", " ")
                       and a.split("=", 1)[0] + "=" not in known], [],
                      c["name"] + ": its options exist")
    pdns = template["spec"]["containers"][0]
    tap.equal(pdns["command"], ["sh", "/etc/pdns/start.sh", "/etc/resolv.conf"],
              "pdns_server is started by start.sh")
    tap.equal(pdns["readinessProbe"]["httpGet"]["port"], http["rollcalld"],
              "and is ready when rollcalld is")

    # Who goes by annotations finds each port once: the pod's, and that of one Service.
    scraped = [template["metadata"].get("annotations", {})]
    for service in kinds["Service"]:
        if service["metadata"].get("annotations"):
            scraped.append(service["metadata"]["annotations"])
            tap.equal([(p["port"], p["targetPort"]) for p in service["spec"]["ports"]],
                      [(http["rollcalld"], http["rollcalld"])],
                      "the annotated Service is of that port alone")
            tap.ok(service["spec"].get("publishNotReadyAddresses") and
                   service["spec"].get("clusterIP") == "None",
                   "and is of each pod, ready or not", service)
    tap.equal(sorted(a["prometheus.io/port"] for a in scraped if a["prometheus.io/scrape"] == "true"),
              ["9153", "9154"], "annotations name each port of metrics once")

    labels = template["metadata"]["labels"].items()
    for what, selector in [("NetworkPolicy", policy["spec"]["podSelector"]["matchLabels"])] + [
            ("Service " + s["metadata"]["name"], s["spec"]["selector"]) for s in kinds["Service"]]:
        tap.ok(selector and selector.items() <= labels, what + " is of these pods", selector)
    allowed = {}
    for rule in policy["spec"]["ingress"]:
        for p in rule["ports"]:
            allowed[p["port"], p["protocol"]] = "from" in rule
    tap.equal(allowed, {(53, "UDP"): False, (53, "TCP"): False, (9153, "TCP"): True,
                        (9154, "TCP"): True},
              "the NetworkPolicy opens DNS to all, and what --http shows to some")
    tap.equal({(p["containerPort"], p.get("protocol", "TCP")) for c in ports.values()
               for p in c.values()}, set(allowed), "and forgets no port")
    tap.equal(policy["spec"]["policyTypes"], ["Ingress"], "and leaves the way out open")


def has_kustomize():
    """Before 1.24 it is another one, which does not know of patches with a target."""
    return shutil.which("kubectl") and "Kustomize Version" in rt.run(
        "kubectl", "version", "--client").out


def test_kustomize():
    """As kubectl would apply it: nothing is left out, the image and the settings are where they are
    looked for."""
    done = rt.run("kubectl", "kustomize", FOLDER)
    docs = list(yaml.safe_load_all(done.out)) if done.returncode == 0 else []
    found = {}
    for doc in docs:
        found[doc["kind"]] = found.get(doc["kind"], 0) + 1
    want = {kind: len(of_kind) for kind, of_kind in documents().items() if kind != "Kustomization"}
    want.update(ConfigMap=1, CustomResourceDefinition=3)
    tap.equal(found, want, "kubectl kustomize has all of it")
    if done.returncode:
        tap.note(done.err)
        return
    config = next(d for d in docs if d["kind"] == "ConfigMap")
    deployment = next(d for d in docs if d["kind"] == "Deployment")["spec"]["template"]["spec"]
    tap.equal([v["configMap"]["name"] for v in deployment["volumes"] if "configMap" in v],
              [config["metadata"]["name"]], "the pod has the settings")
    tap.equal(config["data"], {name: read(name) for name in ("pdns.conf", "start.sh")},
              "as they are here")
    # An own kustomization on top, as kustomization.yaml tells.
    own = rt.tempdir("own")
    shutil.copytree(FOLDER, os.path.join(own, "rollcall"))
    for name, text in (
            ("pdns.conf", read("pdns.conf") + "resolver=192.0.2.53\n"),
            ("who-may-scrape.yaml", "- {op: remove, path: /spec/ingress/1/from}\n"),
            ("kustomization.yaml", """\
namespace: dns
resources: [rollcall]
images: [{name: rollcall, newName: registry.example.org/rollcall, newTag: "0.1.0"}]
configMapGenerator:
- {name: pdns-conf, behavior: merge, files: [pdns.conf]}
patches:
- {target: {kind: NetworkPolicy, name: rollcall}, path: who-may-scrape.yaml}
""")):
        with open(os.path.join(own, name), "w") as f:
            f.write(text)
    done = rt.run("kubectl", "kustomize", own)
    docs = list(yaml.safe_load_all(done.out)) if done.returncode == 0 else []
    by_kind = {d["kind"]: d for d in docs}
    if not tap.ok(docs, "an own kustomization can stand on top", done.err):
        return
    config, policy = by_kind["ConfigMap"], by_kind["NetworkPolicy"]
    tap.ok("resolver=192.0.2.53" in config["data"]["pdns.conf"] and "start.sh" in config["data"],
           "with settings of its own", config)
    spec = by_kind["Deployment"]["spec"]["template"]["spec"]
    tap.equal({c["image"] for c in spec["containers"] + spec["initContainers"]},
              {"registry.example.org/rollcall:0.1.0"}, "an image of its own")
    tap.ok("from" not in policy["spec"]["ingress"][1], "a policy of its own", policy)
    tap.equal({d["metadata"].get("namespace", "dns") for d in docs} |
              {s["namespace"] for d in docs for s in d.get("subjects", ())}, {"dns"},
              "and a namespace of its own, the rights as well")


def main():
    test_manifests()
    test_settings()
    if yaml:
        test_ports(documents())
    else:
        tap.skip("the manifests' ports", "no yaml module of Python")
    if yaml and has_kustomize():
        test_kustomize()
    else:
        tap.skip("what kubectl makes of it", "no kubectl of 1.24, or no yaml module of Python")
    versions = rt.pdns_versions()
    if not versions:
        tap.skip("pdns_server as the pod starts it", "no pdns_server")
    for version in versions:
        test_version(version)
    tap.done()


main()
