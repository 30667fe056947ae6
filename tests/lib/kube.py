# SPDX-License-Identifier: Apache-2.0
"""A real API server for tests: etcd and kube-apiserver on loopback, TLS, RBAC, tokens.

No controllers run, so nothing finishes the deletion of a namespace. The CRDs and the role are those
of pdns-conf/kubernetes.
"""
import base64
import glob
import http.client
import json
import os
import secrets
import shutil
import signal
import ssl

import yaml

import rolltest as rt

PATHS = {"DNSZoneClass": "dnszoneclasses", "DNSZone": "dnszones", "DNSRecordSet": "dnsrecordsets"}
API = "/apis/dns.networking.miloapis.com/v1alpha1"


def path_of(obj_or_kind, name=None, ns="default"):
    kind = obj_or_kind if isinstance(obj_or_kind, str) else obj_or_kind["kind"]
    if not isinstance(obj_or_kind, str):
        name = name or obj_or_kind["metadata"]["name"]
        ns = obj_or_kind["metadata"].get("namespace", ns)
    head = API if kind == "DNSZoneClass" else "%s/namespaces/%s" % (API, ns)
    return "%s/%s%s" % (head, PATHS[kind], "/" + name if name else "")


RBAC = "/apis/rbac.authorization.k8s.io/v1/"


def shipped_role(kind):
    """The rules of the Role or ClusterRole in pdns-conf/kubernetes."""
    with open(os.path.join(rt.SRCDIR, "pdns-conf/kubernetes/rbac.yaml")) as f:
        return next(doc["rules"] for doc in yaml.safe_load_all(f) if doc["kind"] == kind)


class Audit:
    """What the server was asked to change, by its own account. Its options are for Cluster."""

    def __init__(self):
        self.path = os.path.join(rt.tempdir("audit"), "log")
        with open(self.path + ".policy", "w") as f:
            yaml.safe_dump({
                "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
                "rules": [{"level": "Metadata", "verbs": ["create", "update", "patch", "delete",
                                                          "deletecollection"]},
                          {"level": "None"}]}, f)
        # Blocking: what was answered is in the log.
        self.options = ["--audit-log-path=" + self.path, "--audit-log-mode=blocking",
                        "--audit-policy-file=" + self.path + ".policy"]

    def position(self):
        return os.path.getsize(self.path)

    def of(self, user, since=0):
        """"verb resource/name: code" of all that the user asked for, denied or not, in order."""
        with open(self.path, "rb") as f:
            f.seek(since)
            entries = [json.loads(line) for line in f.read().splitlines(True)
                       if line.endswith(b"\n")]
        out = []
        for e in entries:
            if e["user"]["username"] != user:
                continue
            ref = e.get("objectRef", {})
            out.append("%s %s: %d" % (e["verb"], "/".join(
                ref[k] for k in ("resource", "name", "subresource") if k in ref),
                e.get("responseStatus", {}).get("code", 0)))
        return out


class Cluster:
    def __init__(self, extra=(), users=()):
        """users: more of them, that may do nothing yet."""
        self.dir = rt.tempdir("kube")
        self.binary = os.path.join(os.environ["ROLL_KUBE_DIR"], "bin", "kube-apiserver")
        self.port, self.etcd_port, self.peer_port = (rt.free_port() for _ in range(3))
        self.tokens = {user: secrets.token_hex(24) for user in
                       ("admin", "agent", "nobody", *users)}
        self.extra = list(extra)
        self._pki()
        self.etcd = self.api = None
        self.start_etcd()
        self.start_api()
        self._conn = None
        self.setup()

    # --- processes ---

    def start_etcd(self):
        self.etcd = rt.Process([
            "etcd", "--name", "t", "--data-dir", os.path.join(self.dir, "etcd"),
            "--listen-client-urls", "http://127.0.0.1:%d" % self.etcd_port,
            "--advertise-client-urls", "http://127.0.0.1:%d" % self.etcd_port,
            "--listen-peer-urls", "http://127.0.0.1:%d" % self.peer_port,
            "--initial-advertise-peer-urls", "http://127.0.0.1:%d" % self.peer_port,
            "--initial-cluster", "t=http://127.0.0.1:%d" % self.peer_port,
            "--unsafe-no-fsync=true", "--logger", "zap"])

    def start_api(self):
        f = self.file
        self.api = rt.Process([
            self.binary, "--etcd-servers=http://127.0.0.1:%d" % self.etcd_port,
            "--bind-address=127.0.0.1", "--secure-port=%d" % self.port, "--insecure-port=0",
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
            "--tls-cert-file=" + f("api.crt"), "--tls-private-key-file=" + f("api.key"),
            "--client-ca-file=" + f("ca.crt"), "--cert-dir=" + self.dir,
            "--token-auth-file=" + f("tokens.csv"), "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-signing-key-file=" + f("sa.key"),
            "--service-account-key-file=" + f("sa.pub"), "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection,"
            "TaintNodesByCondition,Priority,RuntimeClass,DefaultStorageClass,DefaultIngressClass,"
            "PersistentVolumeClaimResize"] + self.extra)
        rt.wait_for("kube-apiserver is ready", self._ready, 120)

    def _ready(self):
        if not self.api.is_running():
            raise AssertionError("kube-apiserver ended:\n" + self.api.log()[-3000:])
        self._conn = None
        try:
            return self.request("GET", "/readyz", raw=True)[0] == 200
        except OSError:
            return False

    def stop(self):
        for proc in (self.api, self.etcd):
            if proc.is_running():
                proc.signal(signal.SIGCONT)
                proc.kill()

    # --- keys ---

    def file(self, name):
        return os.path.join(self.dir, name)

    def _openssl(self, *args):
        rt.run("openssl", *args, check=0)

    def _pki(self):
        f = self.file
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f("ca.key"))
        self._openssl("req", "-x509", "-new", "-key", f("ca.key"), "-subj", "/CN=test-ca", "-days",
                      "30", "-out", f("ca.crt"), "-addext", "basicConstraints=critical,CA:TRUE",
                      "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        for name, subject, ext in (
                ("api", "/CN=kube-apiserver", "subjectAltName=DNS:localhost,IP:127.0.0.1\n"
                 "extendedKeyUsage=serverAuth"),
                ("admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth")):
            with open(f("ext"), "w") as out:
                out.write(ext + "\n")
            self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out",
                          f(name + ".key"))
            self._openssl("req", "-new", "-key", f(name + ".key"), "-subj", subject, "-out",
                          f(name + ".csr"))
            self._openssl("x509", "-req", "-in", f(name + ".csr"), "-CA", f("ca.crt"), "-CAkey",
                          f("ca.key"), "-CAcreateserial", "-days", "30", "-out", f(name + ".crt"),
                          "-extfile", f("ext"))
        self._openssl("genrsa", "-out", f("sa.key"), "2048")
        self._openssl("rsa", "-in", f("sa.key"), "-pubout", "-out", f("sa.pub"))
        with open(f("tokens.csv"), "w") as out:
            for user, token in self.tokens.items():
                out.write('%s,%s,%s%s\n' % (token, user, user,
                                            ',"system:masters"' if user == "admin" else ""))

    def b64(self, name):
        with open(self.file(name), "rb") as f:
            return base64.b64encode(f.read()).decode()

    def kubeconfig(self, user="agent", user_block=None, server=None, cluster_block=None):
        path = os.path.join(rt.tempdir("kubeconfig"), "config")
        with open(path, "w") as f:
            yaml.safe_dump({
                "apiVersion": "v1", "kind": "Config", "current-context": "t",
                "clusters": [{"name": "t", "cluster": cluster_block or {
                    "server": server or "https://127.0.0.1:%d" % self.port,
                    "certificate-authority-data": self.b64("ca.crt")}}],
                "users": [{"name": "u", "user": user_block or {"token": self.tokens[user]}}],
                "contexts": [{"name": "t", "context": {"cluster": "t", "user": "u"}}]}, f)
        os.chmod(path, 0o600)
        return path

    # --- requests as admin ---

    def connection(self, timeout_s=30):
        context = ssl.create_default_context(cafile=self.file("ca.crt"))
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout_s,
                                           context=context)

    def another(self):
        """A connection of its own to the same cluster, for another thread."""
        other = object.__new__(Cluster)
        other.__dict__ = dict(self.__dict__, _conn=None)
        return other

    def request(self, method, path, body=None, raw=False, content_type="application/json",
                token=None, accept="application/json"):
        data = json.dumps(body).encode() if body is not None else None
        for attempt in (0, 1):
            try:
                if self._conn is None:
                    self._conn = self.connection()
                self._conn.request(method, path, data, {
                    "Authorization": "Bearer " + (token or self.tokens["admin"]),
                    "Content-Type": content_type, "Accept": accept})
                reply = self._conn.getresponse()
                text = reply.read()
                return reply.status, text if raw else json.loads(text)
            except (http.client.HTTPException, OSError):
                self._conn = None
                if attempt:
                    raise

    def must(self, method, path, body=None, **kw):
        status, reply = self.request(method, path, body, **kw)
        if status >= 300:
            raise AssertionError("%s %s: %d %s" % (method, path, status, reply))
        return reply

    def create(self, obj):
        return self.must("POST", path_of(obj).rsplit("/", 1)[0], obj)

    def patch(self, obj, change):
        return self.must("PATCH", path_of(obj), change, content_type="application/merge-patch+json")

    def delete(self, obj):
        return self.must("DELETE", path_of(obj))

    def get(self, obj):
        return self.must("GET", path_of(obj))

    def namespace(self, name):
        self.must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    # --- rights ---

    def allow(self, user, name, rules, ns=None):
        """A role and its binding, both called `name`, for the namespace or the whole cluster."""
        where = RBAC + ("namespaces/%s/roles" % ns if ns else "clusterroles")
        self.must("POST", where, {"metadata": {"name": name}, "rules": rules})
        self.must("POST", where[:-1] + "bindings", {
            "metadata": {"name": name},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "name": name,
                        "kind": "Role" if ns else "ClusterRole"}})

    def disallow(self, name, ns=None):
        where = RBAC + ("namespaces/%s/roles" % ns if ns else "clusterroles")
        self.must("DELETE", where[:-1] + "bindings/" + name)
        self.must("DELETE", where + "/" + name)

    def may(self, user, verb, resource, **attributes):
        """resource: with its subresource and group, as in dnszones/status.example.com."""
        resource, _, group = resource.partition(".")
        resource, _, subresource = resource.partition("/")
        return self.must("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": dict(
                attributes, verb=verb, group=group, resource=resource, subresource=subresource)}},
            token=self.tokens[user])["status"]["allowed"]

    def _etcdctl(self, *args, check=0):
        return rt.run("etcdctl", "--endpoints", "http://127.0.0.1:%d" % self.etcd_port, *args,
                      check=check, env=dict(os.environ, ETCDCTL_API="3")).out

    def revision(self):
        """Of the latest write."""
        return json.loads(self._etcdctl("endpoint", "status", "--write-out=json"))[0]["Status"][
            "header"]["revision"]

    def compact(self):
        """Forget all history of etcd."""
        self._etcdctl("compact", str(self.revision()), check=None)

    def back_up(self):
        """The path of a snapshot of etcd."""
        path = os.path.join(rt.tempdir("snapshot"), "db")
        self._etcdctl("snapshot", "save", path)
        return path

    def restore(self, path):
        """As the manuals of etcd and Kubernetes say: with every server stopped."""
        self.api.kill()
        self.etcd.kill()
        shutil.rmtree(self.file("etcd"))
        self._etcdctl("snapshot", "restore", path, "--name", "t", "--data-dir", self.file("etcd"),
                      "--initial-cluster", "t=http://127.0.0.1:%d" % self.peer_port,
                      "--initial-advertise-peer-urls", "http://127.0.0.1:%d" % self.peer_port)
        self.start_etcd()
        self.start_api()

    def apply_crds(self):
        for path in sorted(glob.glob(os.path.join(rt.SRCDIR, "pdns-conf/kubernetes/crds/dns*.yaml"))):
            with open(path) as f:
                crd = yaml.safe_load(f)
            self.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        for plural in PATHS.values():
            rt.wait_for("CRD " + plural, lambda p=plural: self.request(
                "GET", API + "/" + p, raw=True)[0] == 200, 60)

    def setup(self):
        self.apply_crds()
        with open(os.path.join(rt.SRCDIR, "pdns-conf/kubernetes/rbac.yaml")) as f:
            for doc in yaml.safe_load_all(f):
                base = "/apis/rbac.authorization.k8s.io/v1/"
                where = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
                         "Role": "namespaces/default/roles",
                         "RoleBinding": "namespaces/default/rolebindings"}.get(doc["kind"])
                if "subjects" in doc:
                    doc["subjects"] = [{"kind": "User", "name": "agent",
                                        "apiGroup": "rbac.authorization.k8s.io"}]
                if where:
                    self.must("POST", base + where, doc)


class Site:
    """One pod's worth: sync, server, pdns, fed by the cluster."""

    def __init__(self, cluster, version, *options, kubeconfig=None, view=None):
        self.cluster = cluster
        self.options = options
        self.kubeconfig = kubeconfig or cluster.kubeconfig()
        # In memory, as the shipped Deployment has it.
        self.view = view or rt.View(os.path.join(rt.memory_dir("view"), "view"))
        self.sync = None
        self.start_sync()
        rt.wait_for("a complete view", lambda: self.sync_lives() and self.is_complete(), 300)
        self.server = rt.Server(self.view)
        self.pdns = rt.Pdns.remote(version, self.server, extra=["zone-cache-refresh-interval=0"])

    def start_sync(self):
        self.sync = rt.Process(["rollcall-sync", "--kubeconfig", self.kubeconfig, "--view",
                                self.view.dir, *self.options])

    def sync_lives(self):
        if not self.sync.is_running():
            raise AssertionError("rollcall-sync ended:\n" + self.sync.log()[-3000:])
        return True

    def is_complete(self):
        return rt.run("rollcall", "--view", self.view.dir, "status").returncode == 0

    def rcode(self, name, rtype="A"):
        return self.pdns.rcode(name, rtype)

    def wait(self, name, want, deadline_s=20):
        rt.wait_for("%s is %s (%s now)" % (name, want, self.rcode(name)),
                    lambda: self.rcode(name) == want, deadline_s)

    def verify(self, what):
        done = self.view.rollcall("verify")
        rt.tap.ok(done.returncode == 0, what + ": verify", done.out[-2000:] + done.err[-2000:])

    def stop(self):
        self.pdns.stop()
        self.server.stop()
        rt.tap.equal(self.sync.stop(), 0, "rollcall-sync ends well on SIGTERM")
