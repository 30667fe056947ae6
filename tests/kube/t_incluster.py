# SPDX-License-Identifier: Apache-2.0
"""rollcall-sync --in-cluster as in a pod: the files of a service account where Kubernetes mounts
them (in a mount namespace of the test's own), a bound token, the shipped role and nothing more."""
import json
import os
import shutil
import sys

import yaml

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import kube  # noqa: E402
import rolltest as rt  # noqa: E402

tap = rt.tap
MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
SCRIPT = ('mount -t tmpfs none /var/run && mkdir -p "$2" && mount --bind "$1" "$2" && '
          'shift 2 && exec "$@"')


def namespace_command():
    """What runs a program in a mount namespace of its own; None: the kernel or a policy forbids."""
    for argv in (["unshare", "--user", "--map-root-user", "--mount"], ["unshare", "--mount"]):
        if shutil.which("unshare") and rt.run(
                *argv, "sh", "-c", SCRIPT, "sh", rt.tempdir("try"), MOUNT, "true").returncode == 0:
            return argv
    return None


def mounts():
    """Those of the machine that a mistake of this test would add to."""
    with open("/proc/self/mounts") as f:
        return [line for line in f if line.split()[1] in ("/run", "/var/run") or MOUNT in line]


class Account:
    """The service account of pdns-conf/kubernetes, and its files as a kubelet keeps them."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.dir = rt.tempdir("serviceaccount")
        self.written = 0
        self.tokens = []
        self.rules = []
        cluster.must("POST", "/api/v1/namespaces", {"metadata": {"name": "rollcall"}})
        rbac = "/apis/rbac.authorization.k8s.io/v1/"
        paths = {"ServiceAccount": "/api/v1/namespaces/rollcall/serviceaccounts",
                 "ClusterRoleBinding": rbac + "clusterrolebindings",
                 "Role": rbac + "namespaces/rollcall/roles",
                 "RoleBinding": rbac + "namespaces/rollcall/rolebindings"}
        with open(os.path.join(rt.SRCDIR, "pdns-conf/kubernetes/rbac.yaml")) as f:
            for doc in yaml.safe_load_all(f):
                doc["metadata"]["name"] += "-pod" * (doc["kind"] == "ClusterRoleBinding")
                self.rules += doc.get("rules", [])
                if doc["kind"] != "ClusterRole":  # the cluster has it already
                    cluster.must("POST", paths[doc["kind"]], doc)
        with open(cluster.file("ca.crt")) as f:
            self.ca = f.read()

    def token(self):
        """Bound to a pod (which nothing runs), so that it ends with it."""
        pod = "rollcall-%d" % len(self.tokens)
        uid = self.cluster.must("POST", "/api/v1/namespaces/rollcall/pods", {
            "metadata": {"name": pod}, "spec": {
                "serviceAccountName": "rollcall",
                "containers": [{"name": "rollcall-sync", "image": "rollcall"}]}})["metadata"]["uid"]
        reply = self.cluster.must(
            "POST", "/api/v1/namespaces/rollcall/serviceaccounts/rollcall/token", {
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
                    "expirationSeconds": 3607, "boundObjectRef": {
                        "apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}}})
        self.tokens.append(reply["status"]["token"])
        return self.tokens[-1]

    def revoke(self, token):
        """At once: the server is started anew, since it remembers for ten seconds what it knew."""
        self.cluster.must("DELETE", "/api/v1/namespaces/rollcall/pods/rollcall-%d"
                          "?gracePeriodSeconds=0" % self.tokens.index(token))
        self.cluster.api.kill()
        self.cluster.start_api()
        rt.wait_for("the token to be refused", lambda: self.cluster.request(
            "GET", kube.API + "/dnszones", token=token)[0] == 401)

    def mount(self, token, ca=None):
        """All files change in one moment, as those of a projected volume do."""
        self.written += 1
        version = "..%d" % self.written
        os.mkdir(os.path.join(self.dir, version))
        for name, text in (("token", token), ("ca.crt", ca or self.ca), ("namespace", "rollcall")):
            with open(os.path.join(self.dir, version, name), "w") as f:
                f.write(text)
            path = os.path.join(self.dir, name)
            if not os.path.islink(path):
                os.symlink("..data/" + name, path)
        os.symlink(version, os.path.join(self.dir, "..data_tmp"))
        os.rename(os.path.join(self.dir, "..data_tmp"), os.path.join(self.dir, "..data"))


class Pod(kube.Site):
    def __init__(self, cluster, version, account, unshare):
        self.argv = [*unshare, "sh", "-c", SCRIPT, "sh", account.dir, MOUNT]
        self.env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self.env.update(KUBERNETES_SERVICE_HOST="127.0.0.1",
                        KUBERNETES_SERVICE_PORT=str(cluster.port))
        self.logs = []
        super().__init__(cluster, version)

    def command(self, *options):
        return [*self.argv, "rollcall-sync", "--in-cluster", "--view", self.view.dir, *options]

    def start_sync(self):
        # At this level every answer is told, not only the first trouble.
        self.sync = rt.Process(self.command("--log-level", "debug"), name="rollcall-sync",
                               env=self.env)
        self.logs.append(self.sync)

    def once(self, env=None):
        return rt.run(*self.command("--once"), env=env or self.env)


def follows(cluster, pod, name, what, deadline_s=20):
    obj = rt.a_set(name, "z", name, "192.0.2.1")
    cluster.create(obj)
    pod.wait(name + ".example.com", "NOERROR", deadline_s)
    cluster.delete(obj)
    pod.wait(name + ".example.com", "NXDOMAIN")
    tap.ok(True, what)


def in_order(rule):
    return json.dumps(rule, sort_keys=True)


def rights(cluster, account, token):
    """What the server says that the account may do, beyond what everybody may."""
    rules = cluster.must("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "rollcall"}}, token=token)["status"]["resourceRules"]
    got = [r for r in rules if r["apiGroups"] != ["authorization.k8s.io"]]
    tap.equal(sorted(got, key=in_order), sorted(account.rules, key=in_order),
              "the token has the rights of rbac.yaml, no more")


def tokens(cluster, account, pod):
    first = account.tokens[0]
    account.revoke(first)
    rt.wait_for("rollcall-sync is told 401", lambda: "401" in pod.sync.log())
    tap.equal(pod.rcode("stay.example.com"), "NOERROR", "token revoked: served on")
    account.mount(account.token())
    follows(cluster, pod, "second", "token replaced after it was revoked: followed again")
    account.mount(account.token())
    account.revoke(account.tokens[1])
    follows(cluster, pod, "third", "token replaced before it was revoked: followed on")


def authorities(cluster, account, pod):
    token = account.tokens[-1]
    other = os.path.join(rt.tempdir("ca"), "ca")
    # Of the same name: only the signature tells them apart.
    rt.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
           "-nodes", "-keyout", other + ".key", "-out", other + ".crt", "-subj", "/CN=test-ca",
           "-days", "30", "-addext", "keyUsage=critical,keyCertSign,cRLSign", check=0)
    with open(other + ".crt") as f:
        account.mount(token, ca=f.read())
    gone = rt.a_set("gone", "z", "gone", "192.0.2.1")
    cluster.create(gone)
    pod.wait("gone.example.com", "NOERROR")
    tap.equal(pod.sync.stop(), 0, "rollcall-sync ends well on SIGTERM")
    cluster.delete(gone)
    done = pod.once()
    tap.ok(done.returncode == 3 and "certificate" in done.err.splitlines()[-1],
           "another authority, --once: refused, and it says why",
           "%d\n%s" % (done.returncode, done.err))
    pod.start_sync()
    rt.wait_for("the certificate is complained about\n" + pod.sync.log(),
                lambda: pod.sync_lives() and "certificate" in pod.sync.log())
    tap.note(pod.sync.log().splitlines()[-1])
    tap.equal([pod.rcode(n + ".example.com") for n in ("stay", "gone")], ["NOERROR", "NOERROR"],
              "another authority: refused, and served on")
    account.mount(token)
    pod.wait("gone.example.com", "NXDOMAIN", 30)
    tap.ok(True, "the right authority is back: followed again, without a restart")


def not_in_a_pod(account, pod):
    pod.sync.stop()
    for what, env, drop, want in (
            ("no environment", {"KUBERNETES_SERVICE_HOST": ""}, None, "not in a pod"),
            ("no port", {"KUBERNETES_SERVICE_PORT": "https"}, None, "not in a pod"),
            ("no token", {}, "token", "no service account is mounted"),
            ("no authority", {}, "ca.crt", "ca.crt")):
        if drop:
            os.unlink(os.path.join(account.dir, drop))
        done = pod.once(env=dict(pod.env, **env))
        tap.ok(done.returncode == 3 and want in done.err, "%s: refused, and it says why" % what,
               "%d\n%s" % (done.returncode, done.err))
        if drop:
            account.mount(account.tokens[-1])
    tap.equal(pod.rcode("stay.example.com"), "NOERROR", "and what was seen before is served")
    done = pod.once()
    tap.ok(done.returncode == 0, "--once, with all that it needs", done.err)


def main():
    versions = rt.pdns_versions()
    if not versions:
        rt.skip_all("no pdns_server")
    mounts_before = mounts()
    unshare = namespace_command()
    if not unshare:
        rt.skip_all("no mount namespace may be made here (unshare --user --map-root-user --mount)")
    cluster = kube.Cluster()
    account = Account(cluster)
    cluster.create(rt.zone_class())
    cluster.create(rt.zone("z", "example.com"))
    cluster.create(rt.a_set("stay", "z", "stay", "192.0.2.1"))
    account.mount(account.token())
    pod = Pod(cluster, versions[0], account, unshare)
    try:
        pod.wait("stay.example.com", "NOERROR")
        follows(cluster, pod, "first", "with the files of a service account: followed")
        rights(cluster, account, account.tokens[0])
        tokens(cluster, account, pod)
        pod.verify("after the tokens")
        authorities(cluster, account, pod)
        not_in_a_pod(account, pod)
    except AssertionError as e:
        tap.ok(False, "ran to its end", "%s\n%s" % (e, pod.sync.log()[-3000:]))
        tap.done()
    tap.ok(not any(t in p.log() for t in account.tokens for p in pod.logs), "no token is in a log")
    tap.equal(mounts(), mounts_before, "nothing was mounted outside")
    pod.pdns.stop()
    pod.server.stop()
    cluster.stop()
    tap.done()


main()
