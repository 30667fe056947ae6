# SPDX-License-Identifier: Apache-2.0
"""Loopback ports for servers of tests. As a program: prints one."""
import random
import socket

_held = []


def _candidates():
    """Those that the kernel gives to no client: one may have such a port before a server binds it,
    or while a server that is restarted does not."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        low, high = map(int, f.read().split())
    return [*range(10000, low), *range(high + 1, 65536)] or list(range(low, high + 1))


def _is_free(port):
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.socket() as tcp:
            udp.bind(("127.0.0.1", port))
            tcp.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


def free_port():
    """A port that is free for UDP and TCP, and this process's own among all tests until it ends."""
    candidates = _candidates()
    while True:
        port = random.choice(candidates)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind("\0rollcall-test-port-%d" % port)
        except OSError:
            claim.close()
            continue
        if _is_free(port):
            _held.append(claim)
            return port
        claim.close()


if __name__ == "__main__":
    print(free_port())
