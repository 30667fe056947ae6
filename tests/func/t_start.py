# SPDX-License-Identifier: Apache-2.0
"""Programs that start at the same moment on a view that nobody has used yet do not take each other
for strangers."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["ROLL_SRCDIR"], "tests", "lib"))
import rolltest as rt  # noqa: E402

tap = rt.tap


def main():
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
    tap.done()


main()
