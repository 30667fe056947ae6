# SPDX-License-Identifier: Apache-2.0
"""What a real pdns_server's clients see when something beside it fails: server absent, restarted,
stalled, not ready; sync absent; view absent, damaged, replaced. Never a wrong NXDOMAIN, and the
way back needs nobody."""
import os
import shutil
import signal
import socket
import sys

import dns.exception
import dns.message

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import rolltest as rt  # noqa: E402

tap = rt.tap


def small():
    m = rt.Manifests()
    m.put("all.json", rt.zone_class(), rt.zone("example-com", "example.com"),
          rt.a_set("www", "example-com", "www", "192.0.2.1"))
    return m


def burst(port, count):
    """Questions sent without waiting for answers; bounded in number."""
    wire = dns.message.make_query("www.example.com", "A").to_wire()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("127.0.0.1", port))
        for i in range(count):
            try:
                s.send((i & 0xffff).to_bytes(2, "big") + wire[2:])
            except OSError:
                pass


def ok_again(pdns, what, deadline_s=10):
    """Questions that pdns drops because its queues are full are asked again."""
    def asked():
        try:
            return pdns.ask("www.example.com", timeout_s=0.5).rcode() == 0
        except dns.exception.Timeout:
            return False
    rt.wait_for(what, asked, deadline_s)


def one_version(version, source):
    v = version.text
    view = rt.View()
    path = os.path.join(rt.tempdir("sock"), "remote.sock")

    # No server, zone cache off: SERVFAIL, then answers as soon as the socket is there.
    pdns = rt.Pdns.remote(version, path, extra=["zone-cache-refresh-interval=0"])
    tap.equal(pdns.rcode("www.example.com"), "SERVFAIL", v + ": server absent: SERVFAIL")

    # A server without any view yet refuses to initialize: SERVFAIL, never NXDOMAIN or REFUSED.
    server = rt.Server(view, socket_path=path)
    for name in ("www.example.com", "nope.example.com", "example.org"):
        tap.equal(pdns.rcode(name), "SERVFAIL", v + ": no view yet: SERVFAIL for " + name)
    tap.equal(rt.Backend(path).first.get("result"), False, v + ": initialize is refused")
    view.sync_once(source)
    tap.equal(pdns.rcode("www.example.com"), "NOERROR", v + ": the first view answers at once")
    tap.equal(pdns.rcode("nope.example.com"), "NXDOMAIN", v + ": and denies")

    # Restarted: one SERVFAIL per connection at most, then well.
    server.kill()
    tap.equal(pdns.rcode("www.example.com"), "SERVFAIL", v + ": server killed: SERVFAIL")
    server = rt.Server(view, socket_path=path)
    codes = [pdns.rcode("www.example.com") for _ in range(24)]
    tap.ok(codes.count("NOERROR") >= 24 - 6 and set(codes) <= {"NOERROR", "SERVFAIL"} and
           codes[-6:] == ["NOERROR"] * 6,
           v + ": server restarted: one SERVFAIL a connection", codes)

    # Stalled: SERVFAIL after the timeout; well again afterwards; nothing lost.
    server.signal(signal.SIGSTOP)
    reply = pdns.ask("www.example.com", timeout_s=15)
    tap.equal(reply.rcode(), 2, v + ": server stalled: SERVFAIL")
    server.signal(signal.SIGCONT)
    ok_again(pdns, "answers after a stall")
    tap.ok(server.is_running(), v + ": the late reply to a closed socket harms nobody")

    # Stalled under a burst: the shipped overload-queue-length keeps pdns alive.
    server.signal(signal.SIGSTOP)
    burst(pdns.port, 12000)
    server.signal(signal.SIGCONT)
    ok_again(pdns, "answers after a burst", 30)
    tap.ok(pdns.is_running(), v + ": 12,000 questions on a stalled server do not end pdns")

    # Sync absent, in whatever way: served as it was.
    sync = view.sync(source)
    rt.wait_for("sync holds the lock", lambda: "event=view-opened" in sync.log())
    second = rt.run("rollcall-sync", "--manifests", source.dir, "--view", view.dir, "--once")
    tap.ok(second.returncode == 3 and str(sync.pid) in second.err,
           v + ": a second writer is refused, and told by whom", second.err)
    sync.kill()
    tap.equal(pdns.rcode("www.example.com"), "NOERROR", v + ": sync killed: still served")

    # The folder itself is away (unmounted, renamed): not a proof of anything.
    os.rename(source.dir, source.dir + ".away")
    gone = rt.run("rollcall-sync", "--manifests", source.dir, "--view", view.dir, "--once")
    tap.equal(gone.returncode, 3, v + ": no folder: exit 3")
    tap.equal(pdns.rcode("www.example.com"), "NOERROR", v + ": no folder: still served")
    os.rename(source.dir + ".away", source.dir)

    # The view is damaged under a running server: failure, then healed by the next sync.
    current = os.path.join(view.dir, os.readlink(os.path.join(view.dir, "current")))
    data = os.path.join(current, "data.mdb")
    server.stop()
    size = os.path.getsize(data)
    for what, damage in (("truncated", lambda f: f.truncate(8192)),
                         ("overwritten", lambda f: f.write(b"\xa5" * size)),
                         ("emptied", lambda f: f.truncate(0))):
        current = os.path.join(view.dir, os.readlink(os.path.join(view.dir, "current")))
        with open(os.path.join(current, "data.mdb"), "r+b") as f:
            damage(f)
        server = rt.Server(view, socket_path=path)
        for _ in range(8):
            code = pdns.rcode("www.example.com")
            if code != "SERVFAIL":
                break
        tap.equal(code, "SERVFAIL", v + ": view %s: SERVFAIL" % what)
        done = rt.run("rollcall", "--view", view.dir, "status")
        tap.ok(done.returncode == 3 and done.err, v + ": view %s: rollcall status says so" % what,
               done.out + done.err)
        view.sync_once(source)
        ok_again(pdns, "healed")
        tap.ok(True, v + ": view %s: rebuilt by sync, served without a restart" % what)
        server.stop()

    # The whole directory is taken away and made again under a running server.
    server = rt.Server(view, socket_path=path)
    ok_again(pdns, "served")
    os.rename(view.dir, view.dir + ".away")
    shutil.rmtree(view.dir + ".away")
    view.sync_once(source)
    ok_again(pdns, "served from the new directory")
    source.put("more.json", rt.a_set("more", "example-com", "more", "192.0.2.2"))
    view.sync_once(source)
    rt.wait_for("the new view is read", lambda: pdns.rcode("more.example.com") == "NOERROR")
    source.delete("more.json")
    tap.ok(True, v + ": directory removed and made again: followed")
    server.signal(signal.SIGHUP)
    tap.equal([pdns.rcode("www.example.com") for _ in range(6)], ["NOERROR"] * 6,
              v + ": SIGHUP drops no connection")
    pdns.stop()
    server.stop()
    tap.ok(not os.path.exists(path), v + ": the socket is removed at the end")

    # Zone cache on: pdns will not start without us; started, it survives us.
    pdns = rt.Pdns.remote(version, path, wait=False)
    rt.wait_for("pdns gives up", lambda: not pdns.is_running())
    tap.ok(True, v + ": zone cache on, server absent: pdns_server exits")
    server = rt.Server(view, socket_path=path)
    pdns = rt.Pdns.remote(version, path)
    ok_again(pdns, "answers")
    server.kill()
    try:
        reply = pdns.control("REDISCOVER")
    except socket.timeout:
        reply = "timeout"
    server = rt.Server(view, socket_path=path)
    rt.wait_for("old zones are kept", lambda: pdns.rcode("www.example.com") == "NOERROR")
    tap.ok(pdns.is_running(), v + ": refresh while the server is away keeps the zones", reply)
    pdns.stop()
    server.stop()


def stale(version, source):
    """--max-stale: SERVFAIL once the source was last confirmed too long ago."""
    view = rt.View()
    view.sync_once(source)
    server = rt.Server(view, "--max-stale", "1s")
    rt.wait_for("too old", lambda: rt.Backend(server.socket_path).first.get("result") is False)
    pdns = rt.Pdns.remote(rt.pdns_versions()[0], server, extra=["zone-cache-refresh-interval=0"])
    tap.equal(pdns.rcode("www.example.com"), "SERVFAIL", "--max-stale passed: SERVFAIL")
    view.sync_once(source)
    rt.wait_for("confirmed", lambda: pdns.rcode("www.example.com") == "NOERROR", 5)
    tap.ok(True, "confirmed again: answers")
    pdns.stop()
    server.stop()
    server = rt.Server(view, "--max-stale", "1h")
    tap.equal(rt.Backend(server.socket_path).first.get("result"), True, "--max-stale not passed")
    server.stop()


def sockets(source):
    view = rt.View()
    view.sync_once(source)
    server = rt.Server(view, "--socket-mode", "0600")
    tap.equal(oct(os.stat(server.socket_path).st_mode & 0o777), "0o600", "--socket-mode")
    second = rt.run("rollcalld", "--view", view.dir, "--listen", server.socket_path, timeout_s=20)
    tap.ok(second.returncode == 3 and "listens on it" in second.err,
           "a socket with a living server is not taken over", second.err)
    server.kill()
    again = rt.Server(view, socket_path=server.socket_path)
    tap.ok(again.listens(), "a dead one's socket is")
    again.stop()
    plain = os.path.join(rt.tempdir("file"), "file")
    open(plain, "w").close()
    other = rt.run("rollcalld", "--view", view.dir, "--listen", plain, timeout_s=20)
    tap.ok(other.returncode == 3 and os.path.isfile(plain),
           "a file that is no socket is left alone", other.err)
    long = rt.run("rollcalld", "--view", view.dir, "--listen", "/tmp/" + "x" * 120, timeout_s=20)
    tap.ok(long.returncode == 3 and "107" in long.err, "a path too long is refused with the limit",
           long.err)


def main():
    versions = rt.pdns_versions()
    source = small()
    sockets(source)
    if not versions:
        tap.skip("faults through PowerDNS", "no pdns_server")
        tap.done()
    stale(versions[0], source)
    for version in versions:
        one_version(version, source)
    tap.done()


main()
