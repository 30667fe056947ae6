# SPDX-License-Identifier: Apache-2.0
"""Where inotify cannot be had, or not for every folder, the folder is looked at again and again: all
changes are seen all the same, and the log says what to do."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import rolltest as rt  # noqa: E402

tap = rt.tap

# The limits of a user namespace of its own (namespaces(7)): nobody else is affected.
LIMITED = ["unshare", "--user", "--map-root-user", "sh", "-ec",
           'echo "$1" > "/proc/sys/user/$0"; shift; exec "$@"']


def limited(limit, value, *argv):
    return [*LIMITED, limit, str(value), *argv]


def check(what, limit, value, remedy):
    source, view = rt.Manifests(), rt.View()
    source.put("all.json", rt.zone_class(), rt.zone("z", "example.com"),
               rt.a_set("www", "z", "www", "192.0.2.1"))
    sync = rt.Process(limited(limit, value, "rollcall-sync", "--manifests", source.dir,
                              "--view", view.dir))

    def names():
        done = view.rollcall("dump")
        return {line.split(".")[0] for line in done.out.splitlines() if "192.0.2." in line}

    def becomes(expected, how):
        try:
            rt.wait_for(how, lambda: names() == expected)
            good = True
        except AssertionError:
            good = False
        tap.ok(good, what + ": " + how, "%r\n%s" % (names(), sync.log()))

    becomes({"www"}, "what is there is served")
    source.put("api.json", rt.a_set("api", "z", "api", "192.0.2.2"))
    becomes({"www", "api"}, "a new manifest is seen")
    os.mkdir(source.path("sub"))
    source.put("sub/a.json", rt.a_set("a", "z", "a", "192.0.2.3"))
    becomes({"www", "api", "a"}, "one in a new subfolder as well")
    source.put("sub/a.json", rt.a_set("a", "z", "b", "192.0.2.3"))
    becomes({"www", "api", "b"}, "a change of it")
    source.delete("sub/a.json")
    becomes({"www", "api"}, "that it is gone")
    source.delete("api.json")
    becomes({"www"}, "that another is gone")
    log = sync.log()
    tap.ok("event=folder-polled" in log and remedy in log, what + ": the log says what to do", log)
    tap.equal(log.count("event=folder-polled"), 1, what + ": once")
    tap.equal(view.rollcall("verify").returncode, 0, what + ": the view is sound")
    tap.equal(sync.stop(), 0, what + ": it stops in order")


def main():
    try:
        if rt.run(*limited("max_inotify_instances", 0, "true")).returncode:
            rt.skip_all("no user namespaces with limits here")
    except FileNotFoundError:
        rt.skip_all("no unshare")
    check("no inotify", "max_inotify_instances", 0, "fs.inotify.max_user_instances")
    check("watches for one folder", "max_inotify_watches", 1, "fs.inotify.max_user_watches")
    tap.done()


main()
