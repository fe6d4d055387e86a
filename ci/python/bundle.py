#!/usr/bin/env python3
"""Usage: ci/python/bundle.py BUNDLE FOLDER RESULTS [ARGUMENT]...

Writes to FOLDER the config.json of a container that runs the image that umoci has unpacked to BUNDLE: its program with
these arguments, or those of the image, as its user, without capabilities, with as much locked memory as this machine
allows, with the host's network, with /dev/infiniband where there is one, and with RESULTS as /results. The root is read-only.
"""

import json
import resource
import sys
from pathlib import Path


def locked_memory():
    """The highest limit that can be set here."""
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (ValueError, OSError):
        pass
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    return 2**64 - 1 if hard == resource.RLIM_INFINITY else hard


def changed(config, bundle, results, arguments):
    """The config of the container."""
    config["root"] = {"path": str(bundle / "rootfs"), "readonly": True}
    process = config["process"]
    process["terminal"] = False
    if arguments:
        # The image has one word as its entry point, and others only as arguments.
        process["args"] = [process["args"][0], *arguments]
    process["capabilities"] = {}
    process["noNewPrivileges"] = True
    limits = [limit for limit in process.get("rlimits", []) if limit["type"] != "RLIMIT_MEMLOCK"]
    most = locked_memory()
    process["rlimits"] = [*limits, {"type": "RLIMIT_MEMLOCK", "soft": most, "hard": most}]
    linux = config["linux"]
    # Devices of RDMA and their addresses are those of a network namespace; no user is mapped.
    kept = ("pid", "mount", "ipc", "uts")
    linux["namespaces"] = [space for space in linux["namespaces"] if space["type"] in kept]
    for name in ("uidMappings", "gidMappings", "resources", "seccomp"):
        linux.pop(name, None)
    mounts = [mount for mount in config["mounts"] if mount["destination"] not in ("/sys", "/sys/fs/cgroup")]
    mounts.append({"destination": "/sys", "type": "bind", "source": "/sys", "options": ["rbind", "ro"]})
    mounts.append({"destination": "/results", "type": "bind", "source": results, "options": ["bind", "rw"]})
    if Path("/dev/infiniband").exists():
        mounts.append({"destination": "/dev/infiniband", "type": "bind", "source": "/dev/infiniband",
                       "options": ["bind", "rw"]})
    config["mounts"] = mounts
    return config


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    unpacked, folder = Path(sys.argv[1]), Path(sys.argv[2])
    made = changed(json.loads((unpacked / "config.json").read_text()), unpacked, sys.argv[3], sys.argv[4:])
    (folder / "config.json").write_text(json.dumps(made, indent=1))
