# SPDX-License-Identifier: Apache-2.0
"""rollcalld killed at random instants while objects come and go and clients ask: what it left in the
view blocks nobody, and every answer after its restart is right."""
import os
import random
import sys
import threading

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import rolltest as rt  # noqa: E402

tap = rt.tap
KILLS = int(os.environ.get("ROLL_KILLS", "200"))
NAMES = 12


def main():
    rng = random.Random(4)
    source = rt.Manifests()
    source.put("zone.json", rt.zone_class(), rt.zone("example-com", "example.com"))
    view = rt.View()
    view.sync_once(source)
    sync = view.sync(source)
    path = os.path.join(rt.tempdir("sock"), "s")
    present = set()
    stop = threading.Event()

    def client():
        """Asks on and on, whatever happens to the other end."""
        while not stop.is_set():
            try:
                backend = rt.Backend(path, timeout_s=5)
                while not stop.is_set():
                    backend.lookup("n%d.example.com." % rng.randrange(NAMES))
            except (OSError, ValueError):
                stop.wait(0.001)

    threads = [threading.Thread(target=client) for _ in range(2)]
    for t in threads:
        t.start()
    wrong = []
    try:
        for kill in range(KILLS):
            server = rt.Server(view, socket_path=path)
            name = rng.randrange(NAMES)
            if name in present:
                source.delete("n%d.json" % name)
                present.remove(name)
            else:
                source.put("n%d.json" % name,
                           rt.a_set("n%d" % name, "example-com", "n%d" % name, "192.0.2.1"))
                present.add(name)
            timer = threading.Timer(rng.random() * 0.02, server.proc.kill)
            timer.start()
            timer.join()
            server.proc.wait()
            if kill % 20 == 19 or kill == KILLS - 1:
                server = rt.Server(view, socket_path=path)
                backend = rt.Backend(path)
                try:
                    rt.wait_for("answers as the folder says", lambda: all(
                        bool(backend.lookup("n%d.example.com." % n)) == (n in present)
                        for n in range(NAMES)), 10)
                except AssertionError as e:
                    wrong.append("after %d kills: %s" % (kill + 1, e))
                server.kill()
    finally:
        stop.set()
        for t in threads:
            t.join()
    tap.ok(not wrong, "%d kills: answers are right after each restart" % KILLS, "\n".join(wrong))
    tap.ok(sync.is_running(), "rollcall-sync was not harmed", sync.log())
    tap.equal(sync.stop(), 0, "rollcall-sync ends well")
    done = view.rollcall("verify")
    tap.ok(done.returncode == 0, "verify", done.out + done.err)
    size = os.stat(os.path.join(view.dir, "current", "data.mdb")).st_blocks * 512
    tap.ok(size < 16 << 20, "slots of killed readers do not make the view grow", size)
    tap.done()


main()
