#!/usr/bin/env python3
"""Usage: ci/python/sbom.py CRATES [--musl=VERSION] <METADATA

Prints the bill of materials of hcabench, in JSON of CycloneDX 1.5: the crates that are built into the program, each
with version, licence, package URL and the sum that Cargo.lock has, and which of them uses which. METADATA is what
`cargo metadata --format-version 1` prints, CRATES the lines "NAME vVERSION" of `cargo tree`, as for licences.py. The
time is that of the variable SOURCE_DATE_EPOCH, so that the same crates make the same bill. With --musl the C library of
the static program is a component as well.
"""

import json
import os
import sys
import tomllib
from datetime import datetime, timezone
from pathlib import Path

LOCK = Path(__file__).resolve().parents[2] / "Cargo.lock"


def reference(package):
    """The package URL of a crate; those of the workspace are not in a registry, and have none."""
    name = f"{package['name']}@{package['version']}"
    return f"pkg:cargo/{name}" if package["source"] else f"workspace:{name}"


def component(package, sums):
    """A crate as the format has it."""
    made = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "scope": "required",
    }
    if package["source"]:
        made["purl"] = reference(package)
    if checksum := sums.get((package["name"], package["version"])):
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["license"]:
        # An old way of writing OR, which is no SPDX expression.
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if package["repository"]:
        made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return made


def c_library(version):
    """The C library that is linked into the static program."""
    return {
        "type": "library",
        "bom-ref": f"pkg:generic/musl@{version}",
        "name": "musl",
        "version": version,
        "scope": "required",
        "purl": f"pkg:generic/musl@{version}",
        "licenses": [{"expression": "MIT"}],
    }


def bill(metadata, crates, lock, moment, musl=None):
    """The whole bill."""
    built_in = {tuple(line.split()[:2]) for line in crates.splitlines() if line.strip()}
    packages = {package["id"]: package for package in metadata["packages"]
                if (package["name"], f"v{package['version']}") in built_in}
    root = next(package for package in packages.values() if package["name"] == "hcabench")
    sums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    uses = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}

    def used_by(package):
        normal = (use["pkg"] for use in uses[package["id"]] if any(kind["kind"] is None for kind in use["dep_kinds"]))
        return sorted(reference(packages[name]) for name in set(normal) if name in packages)

    ordered = sorted(packages.values(), key=reference)
    main = component(root, sums) | {"type": "application"}
    main.pop("scope")
    linked = [c_library(musl)] if musl else []
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": main,
        },
        "components": [component(package, sums) for package in ordered if package is not root] + linked,
        "dependencies": [{"ref": reference(package), "dependsOn": used_by(package) +
                          [library["bom-ref"] for library in linked if package is root]} for package in ordered],
    }


if __name__ == "__main__":
    with_musl = [word.removeprefix("--musl=") for word in sys.argv[2:] if word.startswith("--musl=")]
    if len(sys.argv) != 2 + len(with_musl) or len(with_musl) > 1:
        sys.exit(__doc__)
    locked = tomllib.loads(LOCK.read_text(encoding="utf-8"))
    made = bill(json.load(sys.stdin), sys.argv[1], locked, int(os.environ["SOURCE_DATE_EPOCH"]), *with_musl)
    if len(made["components"]) < 20:
        sys.exit(f"the bill has {len(made['components'])} components only")
    print(json.dumps(made, indent=1))
