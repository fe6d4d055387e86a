#!/usr/bin/env python3
"""Usage: ci/python/licences.py <METADATA

Checks that each crate that `cargo metadata --format-version 1` names has a licence that ci/licences allows.
"""

import hashlib
import json
import re
import sys
from pathlib import Path

ALLOWED = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "Unicode-3.0", "BSL-1.0", "0BSD"}
# It names no licence: the file is the text of MIT.
FILES = {"rdma-sys": "57d00757299cb18c43f715ac65f694a32ba9f745cdac82f67acd79e377573dba"}


def allows(expression):
    """Whether an SPDX expression can be met by what is allowed; AND binds closer than OR, and / is an old OR."""
    words = re.findall(r"[()]|[^\s()/]+|/", expression)

    def either():
        met = both()
        while words and words[0] in ("OR", "/"):
            words.pop(0)
            met = both() or met
        return met

    def both():
        met = one()
        while words and words[0] == "AND":
            words.pop(0)
            met = one() and met
        return met

    def one():
        word = words.pop(0)
        if word == "(":
            met = either()
            words.pop(0)
            return met
        if words and words[0] == "WITH":
            del words[:2]
        return word in ALLOWED

    return either() and not words


def refusal(package):
    """Why a crate is refused, or nothing."""
    name, licence = package["name"], package["license"]
    if licence is None and package["license_file"]:
        path = Path(package["manifest_path"]).parent / package["license_file"]
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        return None if FILES.get(name) == found else f"{name}: the file {package['license_file']} with the sum {found}"
    return None if licence is not None and allows(licence) else f"{name}: {licence}"


if __name__ == "__main__":
    packages = json.load(sys.stdin)["packages"]
    refused = [reason for package in packages if (reason := refusal(package))]
    if refused or len(packages) < 20:
        print("\n".join(refused), file=sys.stderr)
        sys.exit(f"{len(refused)} of {len(packages)} crates have a licence that is not allowed")
    print(f"the licences of {len(packages)} crates are allowed")
