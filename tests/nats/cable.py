"""Two network namespaces with a cable between them, which can be cut; only root can make them."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

NEAR, FAR = "10.199.7.1", "10.199.7.2"
_NEW_NET = 0x40000000


def ip(*words: str) -> None:
    """Run `ip`, whose own words are the error."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip() or done.returncode}")


def enter(namespace: str) -> None:
    """Move this process into a namespace; what it starts is there, too."""
    handle = os.open(Path("/run/netns") / namespace, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(handle, _NEW_NET):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    finally:
        os.close(handle)


class Cable:
    """The server stands at the near end, where this process is from now on."""

    def __init__(self) -> None:
        self.near, self.far = f"dig-near-{os.getpid()}", f"dig-far-{os.getpid()}"
        try:
            for name in (self.near, self.far):
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "lo", "up")
            ip("-n", self.near, "link", "add", "near", "type", "veth", "peer", "name", "far",
               "netns", self.far)  # fmt: skip
            for name, end, address in ((self.near, "near", NEAR), (self.far, "far", FAR)):
                ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
                ip("-n", name, "link", "set", end, "up")
            enter(self.near)
        except OSError:
            self.close()
            raise

    def cut(self, is_link: bool) -> None:
        """Take the link down, or the far end's address away."""
        if is_link:
            ip("-n", self.near, "link", "set", "near", "down")
        else:
            ip("-n", self.far, "addr", "del", f"{FAR}/24", "dev", "far")

    def mend(self, is_link: bool) -> None:
        """Undo a cut."""
        if is_link:
            ip("-n", self.near, "link", "set", "near", "up")
        else:
            ip("-n", self.far, "addr", "add", f"{FAR}/24", "dev", "far")

    def close(self) -> None:
        """Take both namespaces away, as far as they are there."""
        for name in (self.near, self.far):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
