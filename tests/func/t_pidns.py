# SPDX-License-Identifier: Apache-2.0
"""LMDB tells the users of a view apart by their PIDs. Programs of two PID namespaces, where both may
be number 1, are kept from sharing one: refused, with what to do."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import rolltest as rt  # noqa: E402

tap = rt.tap
APART = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]


def apart(*argv, **kw):
    return rt.run(*APART, *argv, timeout_s=60, **kw)


def main():
    try:
        if apart("true").returncode:
            rt.skip_all("no PID namespaces here")
    except FileNotFoundError:
        rt.skip_all("no unshare")
    source = rt.Manifests()
    source.put("all.json", rt.zone_class(), rt.zone("example-com", "example.com"),
               rt.a_set("www", "example-com", "www", "192.0.2.1"))
    view = rt.View()
    socket_path = os.path.join(rt.tempdir("sock"), "s")
    view.sync_once(source)

    server = rt.Server(view)
    for what, argv in (
            ("rollcall-sync", ["rollcall-sync", "--manifests", source.dir, "--view", view.dir,
                               "--once"]),
            ("rollcalld", ["rollcalld", "--view", view.dir, "--listen", socket_path]),
            ("rollcall", ["rollcall", "--view", view.dir, "status"])):
        done = apart(*argv)
        tap.ok(done.returncode == 3 and "PID namespace" in done.err and
               "shareProcessNamespace" in done.err,
               what + " as PID 1 of another namespace is refused, and says what to do",
               "exit %d\n%s" % (done.returncode, done.err))
    tap.equal(len(rt.Backend(server.socket_path).lookup("www.example.com.")), 1,
              "the one that was there answers on")
    server.stop()

    done = apart("rollcall-sync", "--manifests", source.dir, "--view", view.dir, "--once")
    tap.equal(done.returncode, 0, "with nobody else there, another namespace takes over")
    other = rt.Process(APART + ["rollcalld", "--view", view.dir, "--listen", socket_path])
    rt.wait_for("it listens", lambda: rt.connects(socket_path))
    tap.equal(len(rt.Backend(socket_path).lookup("www.example.com.")), 1, "and serves")
    done = view.rollcall("status")
    tap.ok(done.returncode == 3 and "PID namespace" in done.err, "now this one is the stranger",
           done.err)
    other.kill()
    rt.wait_for("its guard is gone", lambda: view.rollcall("status").returncode == 0)
    tap.ok(True, "killed, it blocks nobody")
    tap.done()


main()
