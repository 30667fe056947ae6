# SPDX-License-Identifier: Apache-2.0
"""Starting: programs that start at the same moment on a view that nobody has used yet do not take
each other for strangers, and the service manager is told READY=1 when there is a complete view, not
before."""
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import rolltest as rt  # noqa: E402

tap = rt.tap


class Api(http.server.ThreadingHTTPServer):
    """An API server with no objects: lists are empty, watches say nothing. Its port is taken from
    the beginning; until begin() nobody listens there."""
    daemon_threads = True

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        KINDS = {"dnszoneclasses": "DNSZoneClass", "dnszones": "DNSZone",
                 "dnsrecordsets": "DNSRecordSet"}

        def log_message(self, *_):
            pass

        def do_GET(self):
            path, _, query = self.path.partition("?")
            if "sendInitialEvents" in query:
                self.answer(422, {"kind": "Status", "code": 422})
            elif "watch=1" in query:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Connection", "close")
                self.end_headers()
                self.server.ended.wait()
            elif path.startswith("/apis/dns.networking.miloapis.com/"):
                self.answer(200, {"kind": self.KINDS[path.rsplit("/", 1)[1]] + "List",
                                  "apiVersion": rt.GROUP,
                                  "metadata": {"resourceVersion": "7"}, "items": []})
            else:
                self.answer(404, {"kind": "Status", "code": 404})

        def answer(self, code, body):
            text = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    def __init__(self):
        super().__init__(("127.0.0.1", rt.free_port()), self.Handler, bind_and_activate=False)
        self.ended = threading.Event()
        self.server_bind()
        self.kubeconfig = os.path.join(rt.tempdir("kubeconfig"), "config")
        with open(self.kubeconfig, "w") as f:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "t",
                       "clusters": [{"name": "t", "cluster": {
                           "server": "http://127.0.0.1:%d" % self.server_address[1]}}],
                       "users": [{"name": "t", "user": {}}],
                       "contexts": [{"name": "t", "context": {"cluster": "t", "user": "t"}}]}, f)

    def begin(self):
        self.server_activate()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def end(self):
        self.ended.set()
        self.shutdown()
        self.server_close()


class Manager:
    """The socket of a service manager, and what was told there."""

    def __init__(self):
        self.path = os.path.join(rt.tempdir("notify"), "socket")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        self.heard = []

    def start(self, *argv):
        return rt.Process(list(argv), env=dict(os.environ, NOTIFY_SOCKET=self.path))

    def lines(self):
        try:
            while True:
                self.heard += self.socket.recv(4096).decode().splitlines()
        except BlockingIOError:
            return self.heard

    def is_ready(self):
        return "READY=1" in self.lines()


def has_complete_view(view):
    return view.rollcall("status").returncode == 0


def test_cluster():
    api, view, manager = Api(), rt.View(), Manager()
    argv = ("rollcall-sync", "--kubeconfig", api.kubeconfig, "--view", view.dir, "--status", "never",
            "--log-level", "debug")
    sync = manager.start(*argv)
    # Twice, so it had every opportunity to say otherwise.
    rt.wait_for("the API server to be missed again",
                lambda: sync.log().count("event=source-trouble ") >= 2)
    tap.ok(not manager.is_ready() and sync.is_running(),
           "rollcall-sync: an API server that is not there: not ready", manager.heard)
    api.begin()
    rt.wait_for("READY=1", manager.is_ready)
    tap.ok(has_complete_view(view), "it comes: ready, and there is a complete view", sync.log())
    tap.equal(sync.stop(), 0, "it stops in order")
    tap.equal(manager.lines(), ["READY=1", "STOPPING=1"], "each is told once")
    api.end()

    # What was seen before is served, so who waits for it may go on.
    manager = Manager()
    sync = manager.start(*argv)
    rt.wait_for("READY=1", manager.is_ready)
    tap.ok(True, "the API server is away again: ready with the view from before")
    sync.stop()


def test_folder():
    source, view, manager = rt.Manifests(), rt.View(), Manager()
    source.put("all.json", rt.zone_class(), rt.zone("example-com", "example.com"))
    os.rename(source.dir, source.dir + ".away")
    argv = ("rollcall-sync", "--manifests", source.dir, "--view", view.dir)
    sync = manager.start(*argv)
    tap.equal(sync.proc.wait(rt.DEADLINE_S), 3, "rollcall-sync: no folder: exit 3")
    tap.ok(not manager.is_ready(), "and it was never ready", manager.heard)
    os.rename(source.dir + ".away", source.dir)
    sync = manager.start(*argv)
    rt.wait_for("READY=1", manager.is_ready)
    tap.ok(has_complete_view(view), "it comes: ready, and there is a complete view", sync.log())
    sync.stop()


def test_server():
    source, view, manager = rt.Manifests(), rt.View(), Manager()
    source.put("all.json", rt.zone_class(), rt.zone("example-com", "example.com"))
    os.makedirs(view.dir)
    path = os.path.join(rt.tempdir("sock"), "remote.sock")
    server = manager.start("rollcalld", "--view", view.dir, "--listen", path)
    rt.wait_for("rollcalld to say what is missing",
                lambda: any(l.startswith("STATUS=failing: ") for l in manager.lines()))
    tap.equal(rt.Backend(path).first.get("result"), False, "rollcalld: no view: initialize refused")
    tap.ok(not manager.is_ready(), "and not ready", manager.heard)
    view.sync_once(source)
    rt.wait_for("READY=1", manager.is_ready)
    tap.equal(rt.Backend(path).first.get("result"), True, "a view comes: ready, and it answers")
    tap.equal(server.stop(), 0, "it stops in order")
    tap.equal([l for l in manager.lines() if not l.startswith("STATUS=failing: ")],
              ["READY=1", "STATUS=answering", "STOPPING=1"], "each is told once")


def test_at_once():
    source = rt.Manifests()
    source.put("all.json", rt.zone_class(), rt.zone("example-com", "example.com"))
    strangers = []
    for _ in range(20):
        view = rt.View()
        os.makedirs(view.dir)
        lookers = [subprocess.Popen(["rollcall", "--view", view.dir, "status"],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for _ in range(8)]
        done = view.sync_once(source, None)
        said = [done.err] + [p.communicate()[1].decode() for p in lookers]
        strangers += [s for s in said if "PID namespace" in s]
        if done.returncode:
            strangers.append("exit %d: %s" % (done.returncode, done.err))
    tap.ok(not strangers, "20 views begun with nine programs at once: none is refused",
           "\n".join(strangers[:5]))


def main():
    test_at_once()
    if "libsystemd" in rt.run("ldd", shutil.which("rollcall-sync")).out:
        test_cluster()
        test_folder()
        test_server()
    else:
        tap.skip("the service manager is told when all is ready", "built without libsystemd")
    tap.done()


main()
