#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What --http shows: metrics, health and the page, and the monitoring made from them."""
import base64
import glob
import hashlib
import html
import html.parser
import http.client
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import rolltest as rt
from rolltest import tap

MONITORING = os.path.join(rt.SRCDIR, "pdns-conf", "monitoring")
HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>&\""
HOSTS = 120
MANY = 6000


class Http:
    """One program's endpoint."""

    def __init__(self, port):
        self.port = port

    def ask(self, path, method="GET"):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        c.request(method, path)
        reply = c.getresponse()
        reply.text = reply.read().decode("utf-8")
        c.close()
        return reply

    def get(self, path):
        reply = self.ask(path)
        if reply.status != 200:
            raise AssertionError("%s: %d\n%s" % (path, reply.status, reply.text))
        return reply.text

    def is_there(self):
        try:
            return self.ask("/healthz").status == 200
        except OSError:
            return False

    def samples(self):
        out = {}
        for line in self.get("/metrics").splitlines():
            if line and not line.startswith("#"):
                series, value = line.rsplit(" ", 1)
                out[series] = float(value)
        return out

    def value(self, series):
        return self.samples().get(series)


class Page(html.parser.HTMLParser):
    """Tags, attributes and visible text of a page; an element out of its place is an error."""
    VOID = {"meta", "input", "br", "link"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.attributes, self.open, self.words = [], [], [], [], []
        self.feed(text)
        self.text = re.sub(r"\s+", " ", " ".join(self.words))
        self.is_balanced = not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, k, v) for k, v in attrs]
        self.links += [v for k, v in attrs if tag == "a" and k == "href"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError("</%s> closes another element" % tag)

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    def go_on(self):
        """The link to what follows, if there is one."""
        return next((l for l in self.links if "after=" in l or "before=" in l or "&n=" in l
                     or "p&d=" in l), None)


def world():
    m = rt.Manifests()
    m.put("class.json", rt.zone_class())
    m.put("foreign.json", rt.zone_class(name="other", controller="other-dns"))
    m.put("zones.json", rt.zone("z", "example.com"), rt.zone("z2", "example.net"),
          rt.zone("shop", "shop.example", cls="other"),
          rt.zone("late", "example.com", created="2026-05-01T00:00:00Z"),
          rt.zone("none", "broken.example", cls="missing"))
    m.put("www.json", rt.a_set("www", "z", "www", "192.0.2.2"))
    m.put("www2.json", rt.a_set("www-newer", "z", "www", "192.0.2.9",
                                created="2026-07-01T00:00:00Z"))
    m.put("cname.json", rt.record_set("alias", "z", "CNAME", [
        {"name": "www", "cname": {"content": "x.example.org."}}],
        created="2026-08-01T00:00:00Z"))
    m.put("txt.json", rt.record_set("hostile", "z", "TXT", [
        {"name": "t", "txt": {"content": HOSTILE}}]))
    m.put("bad.json", rt.record_set("bad", "z", "A", [
        {"name": HOSTILE, "a": {"content": HOSTILE}}, {"name": "ok", "a": {"content": "192.0.2.7"}}]))
    m.put("wait.json", rt.a_set("waiting", "nowhere", "www.example.org.", "192.0.2.8"))
    m.put("hosts.json", *[rt.a_set("host-%03d" % i, "z2", "host-%03d" % i, "198.51.100.%d" % i)
                          for i in range(HOSTS)])
    m.put("old.json", rt.a_set("old", "z", "old", "192.0.2.77"))
    return m


def start(m, *options):
    view = rt.View()
    port = rt.free_port()
    sync = view.sync(m, "--http", "127.0.0.1:%d" % port, *options)
    web = Http(port)
    rt.wait_for("rollcall-sync is ready", lambda: web.is_there() and
                web.ask("/readyz").status == 200)
    return view, sync, web


# --- metrics -----------------------------------------------------------------------------------

def promtool(*args, stdin=None):
    done = rt.run("promtool", *args, stdin=stdin)
    return done.returncode == 0, done.out + done.err


def check_text(who, web):
    web.get("/metrics")
    text = web.get("/metrics")  # the second time shows what registers itself anew each time
    families = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)
    names = [n for n, _ in families]
    tap.equal(sorted(set(names)), sorted(names), "%s: every family is there once" % who)
    tap.equal(re.findall(r"^# HELP (\S+) \S.*\.$", text, re.M), names,
              "%s: every family has a sentence of help" % who)
    used = {re.sub(r"_(bucket|sum|count)$", "", s.split("{")[0]) if any(
        s.startswith(n + "_") and t == "histogram" for n, t in families) else s.split("{")[0]
            for s in web.samples()}
    tap.ok(used <= set(names), "%s: every sample belongs to a family" % who, used - set(names))
    if shutil.which("promtool"):
        good, out = promtool("check", "metrics", stdin=text.encode())
        tap.ok(good and not out.strip(), "%s: promtool finds nothing" % who, out)
    else:
        tap.skip("%s: promtool finds nothing" % who, "no promtool")
    return set(names)


def test_metrics(m, web):
    want = {
        'rollcall_sync_objects{kind="DNSZoneClass"}': 2, 'rollcall_sync_objects{kind="DNSZone"}': 5,
        'rollcall_sync_objects{kind="DNSRecordSet"}': HOSTS + 7,
        'rollcall_sync_zones{state="served"}': 2, 'rollcall_sync_zones{state="in use"}': 1,
        'rollcall_sync_zones{state="class missing"}': 1,
        'rollcall_sync_zones{state="class of another controller"}': 1,
        'rollcall_sync_names': HOSTS + 4, 'rollcall_sync_names_contested': 1,
        'rollcall_sync_claims{verdict="Served"}': HOSTS + 4,
        'rollcall_sync_claims{verdict="NotOwner"}': 1,
        'rollcall_sync_claims{verdict="Conflict"}': 1,
        'rollcall_sync_findings{severity="fault",reason="Invalid"}': 2,
        'rollcall_sync_complete': 1, 'rollcall_sync_source_live': 1,
        'rollcall_sync_removals_held': 0, 'rollcall_sync_healed_total': 0,
        'rollcall_sync_removed_total{by="list"}': None,
    }

    def differs():
        got = web.samples()
        return {k: got.get(k) for k, v in want.items() if got.get(k) != v}
    try:
        rt.wait_for("the census", lambda: not differs())
    except AssertionError:
        pass
    tap.equal(differs(), {}, "objects, zones, names, claims and findings are counted")
    tap.ok(0 <= web.value("rollcall_sync_confirmed_age_seconds") < 60,
           "the age of the view is told")
    commits = web.value("rollcall_sync_commits_total")
    tap.ok(commits >= 1 and web.value("rollcall_sync_commit_seconds_count") == commits,
           "each commit is timed")
    generation = web.value("rollcall_view_generation")
    series = set(web.samples())
    m.delete("old.json")
    m.put("bad.json", rt.a_set("bad", "z", "ok", "192.0.2.7"))
    m.put("more.json", *[rt.a_set("more-%d" % i, "z", "more-%d" % i, "192.0.2.1")
                         for i in range(50)])
    want.update({'rollcall_sync_findings{severity="fault",reason="Invalid"}': 0,
                 'rollcall_sync_objects{kind="DNSRecordSet"}': HOSTS + 56,
                 'rollcall_sync_names': HOSTS + 53, 'rollcall_sync_claims{verdict="Served"}': HOSTS + 53,
                 'rollcall_sync_removed_total{by="list"}': 1})
    try:
        rt.wait_for("the census", lambda: not differs())
    except AssertionError:
        pass
    tap.equal(differs(), {}, "counts follow what changes")
    tap.ok(web.value("rollcall_view_generation") > generation, "the generation rises")
    new = {s for s in set(web.samples()) - series if not s.startswith("rollcall_sync_removed_total")}
    tap.equal(new, set(), "more objects are not more series")


def test_server(view):
    port = rt.free_port()
    server = rt.Server(view, "--http", "127.0.0.1:%d" % port)
    web = Http(port)
    rt.wait_for("rollcalld's endpoint", web.is_there)
    backend = rt.Backend(server.socket_path)
    backend.lookup("www.example.com", "A")
    backend.lookup("nothing.example.com", "A")
    backend.call("setFresh", id=1)
    names = check_text("rollcalld", web)
    got = web.samples()
    for series, want in (
            ('rollcall_server_calls_total{method="lookup",result="answered"}', 1),
            ('rollcall_server_calls_total{method="lookup",result="empty"}', 1),
            ('rollcall_server_calls_total{method="lookup",result="failed"}', 0),
            ('rollcall_server_calls_total{method="setFresh",result="refused"}', 1),
            ('rollcall_server_call_seconds_count', 4), ('rollcall_server_connections', 1),
            ('rollcall_server_ready', 1)):
        tap.equal(got.get(series), want, "rollcalld tells " + series)
    tap.ok(got['rollcall_server_bytes_total{direction="sent"}'] > 50 and
           got['rollcall_server_bytes_total{direction="received"}'] > 50, "rollcalld counts bytes")
    ready = web.ask("/readyz")
    tap.ok(ready.status == 200 and ready.text.startswith("ready generation="),
           "rollcalld is ready and says from what", ready.text)
    backend.close()
    server.stop()

    empty = rt.View()
    os.makedirs(empty.dir)
    port = rt.free_port()
    server = rt.Server(empty, "--http", "127.0.0.1:%d" % port)
    web = Http(port)
    rt.wait_for("rollcalld's endpoint", web.is_there)
    ready = web.ask("/readyz")
    tap.ok(ready.status == 503 and ready.text.startswith("not ready: ") and len(ready.text) > 20,
           "without a view rollcalld is alive, not ready, and says why", ready.text)
    tap.equal(web.value("rollcall_server_ready"), 0.0, "and its metric says so")
    server.stop()
    return names


# --- health ------------------------------------------------------------------------------------

def test_health(m, web):
    tap.equal(web.get("/healthz"), "ok\n", "alive")
    tap.equal(web.get("/readyz"), "ok\n", "ready")
    m.put_text("broken.yaml", "a: [1\n")
    rt.wait_for("the warning", lambda: "warning" in web.get("/readyz"))
    tap.ok("manifests that cannot be read: 1" in web.get("/readyz"), "a warning leaves it ready, and is told")
    page = Page(web.get("/"))
    tap.ok("manifests that cannot be read: 1" in page.text, "the page tells the same")
    tap.equal(web.value("rollcall_sync_manifests_unreadable"), 1.0, "so do the metrics")
    m.delete("broken.yaml")
    rt.wait_for("the warning to go", lambda: web.get("/readyz") == "ok\n")
    aside = m.dir + ".aside"
    os.rename(m.dir, aside)
    rt.wait_for("the source to be missed", lambda: web.value("rollcall_sync_source_reachable") == 0)
    reply = web.ask("/readyz")
    tap.ok(reply.status == 200 and "the source cannot be read since" in reply.text and
           "after 60 s" in reply.text, "an unreachable source has a stated grace", reply.text)
    tap.ok("the source cannot be read since" in Page(web.get("/")).text, "the page tells that too")
    os.rename(aside, m.dir)
    rt.wait_for("the source to be back", lambda: web.value("rollcall_sync_source_reachable") == 1)
    tap.equal(web.get("/readyz"), "ok\n", "and it is well again")


def test_not_ready():
    """503 as the program says it; every cause and its time are in tests/unit/test_health.c."""
    view, port = rt.View(), rt.free_port()
    config = os.path.join(rt.tempdir("kubeconfig"), "config")
    nobody = socket.socket()
    nobody.bind(("127.0.0.1", 0))  # and does not listen
    with open(config, "w") as f:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "t",
                   "clusters": [{"name": "t", "cluster": {
                       "server": "http://127.0.0.1:%d" % nobody.getsockname()[1]}}],
                   "users": [{"name": "t", "user": {}}],
                   "contexts": [{"name": "t", "context": {"cluster": "t", "user": "t"}}]}, f)
    sync = rt.Process(["rollcall-sync", "--kubeconfig", config, "--view", view.dir, "--http",
                       "127.0.0.1:%d" % port])
    web = Http(port)
    rt.wait_for("rollcall-sync's endpoint", web.is_there)
    rt.wait_for("the source to be missed", lambda: web.value("rollcall_sync_source_reachable") == 0)
    reply = web.ask("/readyz")
    tap.ok(reply.status == 503 and
           reply.text.startswith("not ready\nerror: no complete view yet: ") and
           ": the source cannot be read since " in reply.text,
           "without a view it is not ready, and says why", reply.text)
    tap.ok("no complete view" in web.ask("/").text, "the page tells that too")
    tap.equal(web.value("rollcall_sync_complete"), 0.0, "and the metrics")
    tap.equal(web.get("/healthz"), "ok\n", "alive it is")
    sync.stop()
    nobody.close()

    m, view, port = rt.Manifests(), rt.View(), rt.free_port()
    m.put("base.json", rt.zone_class(), rt.zone("z", "example.com"))
    sync = rt.Process(["env", "--ignore-signal=XFSZ", "rollcall-sync", "--manifests", m.dir,
                       "--view", view.dir, "--http", "127.0.0.1:%d" % port])
    web = Http(port)
    rt.wait_for("rollcall-sync is ready", lambda: web.is_there() and
                web.ask("/readyz").status == 200)
    # As on a full disk, but for this process alone.
    limits = resource.prlimit(sync.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(sync.pid, resource.RLIMIT_FSIZE, (0, limits[1]))
    m.put("www.json", rt.a_set("www", "z", "www", "192.0.2.1"))
    rt.wait_for("not ready", lambda: web.ask("/readyz").status == 503)
    reply = web.ask("/readyz")
    tap.ok(reply.text.startswith("not ready\nerror: the view cannot be written (see commit-failed "
                                 "in the log); it is served as it was before\n"),
           "a view that cannot be written is not ready, and says so", reply.text)
    tap.equal(web.value("rollcall_sync_view_writable"), 0.0, "the metrics tell the same")
    resource.prlimit(sync.pid, resource.RLIMIT_FSIZE, limits)
    rt.wait_for("ready again", lambda: web.ask("/readyz").status == 200)
    tap.equal((web.get("/readyz"), web.value("rollcall_sync_view_writable")), ("ok\n", 1.0),
              "with room it gets well by itself")
    tap.ok("192.0.2.1" in view.rollcall("dump").out, "and what was told meanwhile is in the view")
    sync.stop()


# --- the page ----------------------------------------------------------------------------------

def check_frame(path, reply):
    """What holds for every page; a list of what does not."""
    wrong = []
    policy = reply.getheader("Content-Security-Policy") or ""
    style = re.search(r"<style>(.*?)</style>", reply.text, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    if "default-src 'none'; style-src 'sha256-%s';" % digest not in policy:
        wrong.append("the policy does not allow the style: sha256-" + digest)
    if reply.getheader("X-Content-Type-Options") != "nosniff":
        wrong.append("no nosniff")
    if reply.getheader("Content-Type") != "text/html; charset=utf-8":
        wrong.append("type")
    page = Page(reply.text)
    if not page.is_balanced:
        wrong.append("elements are left open: %r" % page.open)
    foreign = {"script", "img", "iframe", "object", "link", "svg"} & set(page.tags)
    if foreign:
        wrong.append("elements: %r" % foreign)
    for tag, name, value in page.attributes:
        if name.startswith("on") or name == "style" or \
                (name in ("href", "src", "action") and not value.startswith("/")):
            wrong.append("attribute %s=%r of %s" % (name, value, tag))
    return ["%s: %s" % (path, w) for w in wrong], page


def test_crawl(web):
    seen, left, wrong = {}, ["/"], []
    while left and len(seen) < 400:
        path = left.pop()
        if path in seen or path in ("/metrics", "/readyz"):
            continue
        reply = web.ask(path)
        seen[path] = reply.status
        if reply.status != 200:
            wrong.append("%s: %d" % (path, reply.status))
            continue
        more, page = check_frame(path, reply)
        wrong += more
        left += page.links
    tap.ok(len(seen) > 100, "the pages link to each other", seen)
    tap.ok(not wrong, "every page is well-formed, closed to the world, and answers",
           "\n".join(wrong))


def test_pages(web):
    home = Page(web.get("/"))
    for what in ("In step with the source", "zones not served", "example.com", "broken.example",
                 "its class is not there", "NotOwner", "Conflict", "default/www-newer",
                 "default/www has A and is older", "spec.records[0].a.content",
                 "manifest gone-before.json gone"):
        tap.ok(what in home.text, "the overview has " + what, home.text)
    tap.ok(HOSTILE not in web.get("/findings") and html.escape(HOSTILE[:8]) in web.get("/findings"),
           "what others wrote is escaped")

    found, path, pages = set(), "/zone?d=example.net", 0
    while path and pages < 10:
        page = Page(web.get(path))
        found |= set(re.findall(r"host-\d+\.example\.net", page.text))
        path = page.go_on()
        pages += 1
    tap.equal((len(found), pages), (HOSTS, 3), "the names of a zone come page by page, all of them")
    tap.ok("No DNSZone asks" in Page(web.get("/zone?d=nowhere.example")).text,
           "a zone that is not there")

    for asked, wants in (
            ("www.example.com", ("Answered", "192.0.2.2", "NotOwner", "Conflict", "default/www")),
            ("WWW.Example.COM.", ("Answered",)),
            ("t.example.com", ("Answered", "<script>")),
            ("nothing.example.com", ("NXDOMAIN",)),
            ("gone.example.com", ("NXDOMAIN", "Removed", "manifest gone-before.json gone")),
            ("www.example.org", ("REFUSED", "default/waiting", "waits for its DNSZone")),
            ("x.broken.example", ("REFUSED", "its class is not there"))):
        page = Page(web.get("/?q=" + asked))
        missing = [w for w in wants if w not in page.text]
        tap.ok(not missing, "explained: " + asked, "%r\n%s" % (missing, page.text))
    reply = web.ask("/?q=a..b%3Cscript%3E")
    tap.ok(reply.status == 400 and "not a domain name" in reply.text and
           "<script" not in reply.text, "what is no name is refused, and shown escaped", reply.text)
    tap.equal(web.ask("/?q=%").status, 200, "a broken parameter is none")
    tap.equal(web.ask("/zone?d=..").status, 400, "a broken domain is refused")
    for path in ("/zones?after=zz", "/zone?d=example.com&after=07", "/lost?d=00ff", "/removals?before=x",
                 "/findings?k=9&after=%00", "/lost?p&d=00&n=00", "/findings?k=2&after=" + "a" * 600):
        tap.equal(web.ask(path).status, 200, "a place that is none begins anew: " + path[:40])
    for method in ("POST", "PUT", "DELETE"):
        tap.equal(web.ask("/", method).status, 405, method + " is refused")


def test_bounded():
    """A needle behind more rows than one page looks at."""
    m = rt.Manifests()
    m.put("base.json", rt.zone_class(), rt.zone("z", "example.com"))
    objects = [rt.a_set("r%05d" % i, "z", "n%05d" % i, "192.0.2.1") for i in range(MANY)]
    objects.append(rt.a_set("s-needle", "z", "n%05d" % (MANY - 1), "192.0.2.2",
                            created="2026-07-01T00:00:00Z"))
    objects.append(rt.record_set("t-bad", "z", "A", [{"name": "x", "a": {"content": "no"}}]))
    m.put("many.json", *objects)
    _, sync, web = start(m)
    for path, needle in (("/findings", "default/t-bad"), ("/lost", "default/s-needle")):
        first = Page(web.get(path))
        tap.ok("rows so far" in first.text and needle not in first.text,
               path + " stops looking, and says so", first.text)
        second = Page(web.get(first.go_on()))
        tap.ok(needle in second.text, path + " goes on from there", second.text)
    page = Page(web.get("/?q=nothing.example.com"))
    tap.ok("NXDOMAIN" in page.text and "Not all objects were looked at" in page.text,
           "explain stops looking, and says so", page.text)
    tap.ok("Not all" not in Page(web.get("/?q=n00007.example.com")).text,
           "what is answered is found without looking")
    sync.stop()


# --- the browser -------------------------------------------------------------------------------

def test_browser(web):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        tap.skip("the page in a browser", "no chromium; sh tests/install.sh browser")
        return
    home = rt.tempdir("chromium")
    base = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--user-data-dir=" + home, "--enable-logging=stderr", "--window-size=1200,1600"]
    env = dict(os.environ, HOME=home, XDG_CONFIG_HOME=home, XDG_CACHE_HOME=home)
    url = "http://127.0.0.1:%d" % web.port
    try:
        dom = rt.run(*base, "--dump-dom", url + "/?q=t.example.com", timeout_s=120, env=env)
        shot = os.path.join(home, "page.png")
        drawn = rt.run(*base, "--screenshot=" + shot, url + "/", timeout_s=120, env=env)
    except subprocess.TimeoutExpired:
        tap.ok(False, "the browser shows the page", "it did not end in 120 s")
        return
    tap.ok(dom.returncode == 0 and "&lt;script&gt;" in dom.out and
           not re.search(r"<(script|img)", dom.out),
           "a browser sees text where others wrote markup", dom.out[-2000:])
    said = dom.err + drawn.err
    tap.ok("Content Security Policy" not in said and "CONSOLE" not in said,
           "and finds nothing to complain about", [l for l in said.splitlines() if "CONSOLE" in l])
    # A page without its style has one background; 8 KiB of PNG are more than blank paper.
    with open(shot, "rb") as f:
        png = f.read()
    tap.ok(png.startswith(b"\x89PNG") and len(png) > 8192, "and draws it")


# --- monitoring --------------------------------------------------------------------------------

def registered():
    """Names of all metrics in the sources: some are there with a cluster only."""
    out = set()
    for path in glob.glob(os.path.join(rt.SRCDIR, "src", "*", "*.c")):
        with open(path) as f:
            out |= set(re.findall(r'"(rollcall_[a-z_]+)"', f.read()))
    return out


def metric_names(expression):
    expression = re.sub(r'"[^"]*"', '""', expression)
    names = set(re.findall(r"\brollcall_[a-z_]+", expression))
    return {re.sub(r"_(bucket|sum|count)$", "", n) for n in names}


def test_monitoring(shown):
    known = shown | registered()
    with open(os.path.join(MONITORING, "grafana-dashboard.json")) as f:
        board = json.load(f)
    ids = [p["id"] for p in board["panels"]]
    tap.equal(len(ids), len(set(ids)), "the dashboard's panels have an id each")
    places = [(p["gridPos"]["x"] + p["gridPos"]["w"] <= 24) for p in board["panels"]]
    tap.ok(all(places), "and fit the width")
    used = set()
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            used |= metric_names(target["expr"])
    tap.ok(len(used) > 25 and used <= known, "the dashboard asks for metrics that exist", used - known)
    tap.ok(all(p.get("description") for p in board["panels"] if p["type"] != "row"),
           "each panel says what it shows")

    rules = os.path.join(MONITORING, "rollcall.rules.yaml")
    with open(rules) as f:
        text = f.read()
    used = set()
    for expression in re.findall(r"^ +expr: (?:>-\n)?((?:.*\n)(?: {10}[^ ].*\n)*)", text, re.M):
        used |= metric_names(expression)
    tap.ok(len(used) > 10 and used <= known, "the alerts ask for metrics that exist", used - known)
    alerts = text.count("- alert:")
    tap.ok(alerts >= 15 and alerts == text.count("summary:") == text.count("description:"),
           "each alert says what to do")
    if not shutil.which("promtool"):
        tap.skip("promtool loads the alerts", "no promtool")
        return
    good, out = promtool("check", "rules", rules)
    tap.ok(good, "promtool loads the alerts", out)
    # It writes beside the file in some versions.
    copy = rt.tempdir("rules")
    for path in glob.glob(os.path.join(MONITORING, "*.yaml")):
        shutil.copy(path, copy)
    good, out = promtool("test", "rules", os.path.join(copy, "rollcall.rules.test.yaml"))
    tap.ok(good, "the alerts fire when they should, and not else", out)


# --- logs --------------------------------------------------------------------------------------

def test_logs():
    m = rt.Manifests()
    m.put("base.json", rt.zone_class(), rt.zone("z", "example.com"))
    m.put_text('b"ad\n.yaml', "a: [1\n")
    for program, options in (("rollcall-sync", ("--log-format", "json")), ("rollcall-sync", ()),
                             ("rollcalld", ("--log-format", "json")), ("rollcalld", ())):
        if program == "rollcall-sync":
            view, proc, _ = start(m, *options)
        else:
            proc = rt.Server(view, *options)
            rt.wait_for("a line", proc.log)
        proc.stop()
        lines = [l for l in proc.log().splitlines() if l]
        if options:
            rows = [json.loads(l) for l in lines]
            good = all({"level", "program", "event"} <= set(r) for r in rows)
        else:
            pair = r'[a-z][a-z-]*=(?:"[^"]*"|[^\s"]+)'
            good = all(re.fullmatch(r"%s(?: %s)*" % (pair, pair), l) for l in lines)
        tap.ok(lines and good, "%s %s: every line of the log can be taken apart" % (
            program, " ".join(options) or "(key=value)"), "\n".join(lines))


def main():
    m = world()
    m.put("gone-before.json", rt.a_set("gone", "z", "gone", "192.0.2.78"))
    view, sync, web = start(m)
    m.delete("gone-before.json")
    rt.wait_for("the removal", lambda: web.value('rollcall_sync_removed_total{by="list"}') == 1)
    # The counters begin anew with the program, the history does not.
    sync.stop()
    port = rt.free_port()
    sync = view.sync(m, "--http", "127.0.0.1:%d" % port)
    web = Http(port)
    rt.wait_for("rollcall-sync is ready", lambda: web.is_there() and
                web.ask("/readyz").status == 200)
    rt.wait_for("the census", lambda: web.value("rollcall_sync_names"))
    shown = check_text("rollcall-sync", web)
    test_pages(web)
    test_crawl(web)
    test_browser(web)
    test_metrics(m, web)
    test_health(m, web)
    shown |= test_server(view)
    sync.stop()
    test_not_ready()
    test_bounded()
    test_monitoring(shown)
    test_logs()
    tap.done()


main()
