# SPDX-License-Identifier: Apache-2.0
"""pdns-conf/kubernetes without a cluster: pdns_server as the pod starts it, and whether the manifests
fit together and with the programs."""
import glob
import os
import re
import shutil
import sys

import dns.rcode

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


def main():
    test_manifests()
    test_settings()
    versions = rt.pdns_versions()
    if not versions:
        tap.skip("pdns_server as the pod starts it", "no pdns_server")
    for version in versions:
        test_version(version)
    tap.done()


main()
