#!/usr/bin/env python3
"""Usage: ci/python/licences.py [CRATES] <METADATA

Checks that each crate that `cargo metadata --format-version 1` names has a licence that ci/check allows. With CRATES,
the lines "NAME vVERSION" of `cargo tree` of the crates that are built into hcabench, it prints the texts of their
licences instead, which ask that a copy of the program has them. Each text comes once, with the crates that have it. A
crate without a text has that of its repository's other crates or, where its licence may be Apache-2.0, which is one
text for all, that of hcabench. Exit code 1 if a crate has none of them.
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


def texts(package):
    """Those in the crate's folder."""
    is_licence = re.compile(r"(licen[sc]e|copying|notice|unlicense)", re.IGNORECASE)
    files = (path for path in Path(package["manifest_path"]).parent.iterdir() if is_licence.match(path.name))
    return {path.read_text(encoding="utf-8", errors="replace").strip() for path in files if path.is_file()}


def print_notices(crates, apache):
    """Prints the texts of the licences of crates; those without one end it."""
    own = {package["id"]: texts(package) for package in crates}
    by_repository, owners, without = {}, {}, []
    for package in crates:
        by_repository.setdefault(package["repository"], set()).update(own[package["id"]])
    for package in crates:
        name = f"{package['name']} {package['version']} ({package['license'] or 'see its text'})"
        found = own[package["id"]] or by_repository[package["repository"]]
        if not found and "Apache-2.0" in (package["license"] or ""):
            found = {apache}
        if not found:
            without.append(name)
        for text in found:
            owners.setdefault(text, []).append(name)
    print("hcabench is built of these crates, beside its own code. Above each text are the crates that it belongs to.")
    owners.setdefault(apache, []).append("the standard library of Rust (MIT OR Apache-2.0)")
    for text, names in sorted(owners.items(), key=lambda item: (sorted(item[1]), item[0])):
        print(f"\n{'-' * 100}\n" + "\n".join(sorted(names)) + f"\n\n{text}")
    if without:
        print("\n".join(sorted(without)), file=sys.stderr)
        sys.exit(f"{len(without)} crates come without the text of their licence")


if __name__ == "__main__":
    metadata = json.load(sys.stdin)
    packages = metadata["packages"]
    if sys.argv[1:]:
        built_in = {tuple(line.split()[:2]) for line in sys.argv[1].splitlines() if line.strip()}
        print_notices([package for package in packages if package["id"] not in metadata["workspace_members"]
                       and (package["name"], "v" + package["version"]) in built_in],
                      Path("LICENSE-APACHE").read_text(encoding="utf-8").strip())
        sys.exit()
    refused = [reason for package in packages if (reason := refusal(package))]
    if refused or len(packages) < 20:
        print("\n".join(refused), file=sys.stderr)
        sys.exit(f"{len(refused)} of {len(packages)} crates have a licence that is not allowed")
    print(f"the licences of {len(packages)} crates are allowed")
