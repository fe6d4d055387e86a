#!/usr/bin/env python3
"""Usage: ci/python/wheel.py PROGRAM PLATFORM LICENCES FOLDER

Writes a wheel into FOLDER, and prints its path: the Python module of python/hcabench, and the program, which pip
installs as the command hcabench. PLATFORM is the platform that it runs on, such as manylinux_2_34_x86_64. LICENCES is
the file with the licences of the crates. Name, version and licence are those of Cargo.toml. The time of its files is
that of the variable SOURCE_DATE_EPOCH, so that the same files make the same wheel.
"""

import base64
import hashlib
import os
import sys
import time
import tomllib
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PANDAS, POLARS, MATPLOTLIB, HDRHISTOGRAM = "pandas>=2.1", "polars>=1.0", "matplotlib>=3.8", "hdrhistogram>=0.10"


def metadata(package):
    """The core metadata of the package."""
    lines = [
        "Metadata-Version: 2.1",
        "Name: hcabench",
        f"Version: {package['version']}",
        "Summary: Latency of RDMA, queues and clocks: the command hcabench, and a module that opens its results",
        f"License: {package['license']}",
        f"Author: {', '.join(package['authors'])}",
        "Classifier: Operating System :: POSIX :: Linux",
        "Requires-Python: >=3.11",
        f"Requires-Dist: {PANDAS}",
        "Provides-Extra: polars",
        f"Requires-Dist: {POLARS}; extra == 'polars'",
        "Provides-Extra: figures",
        f"Requires-Dist: {MATPLOTLIB}; extra == 'figures'",
        "Provides-Extra: intervals",
        f"Requires-Dist: {HDRHISTOGRAM}; extra == 'intervals'",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (REPOSITORY / "README.md").read_text(encoding="utf-8")


def contents(program, platform, licences, package):
    """The files of the wheel but RECORD, by name: content and permissions."""
    name = f"hcabench-{package['version']}"
    info = f"{name}.dist-info"
    files = {f"hcabench/{path.name}": (path.read_bytes(), 0o644) for path in (REPOSITORY / "python/hcabench").glob("*.py")}
    if "hcabench/__init__.py" not in files:
        raise SystemExit("python/hcabench has no module")
    files[f"{name}.data/scripts/hcabench"] = (program.read_bytes(), 0o755)
    texts = {path.name: path for path in (*REPOSITORY.glob("LICENSE-*"), licences)}
    texts["LICENSE-DejaVu"] = REPOSITORY / "crates/results/src/plot/font/LICENSE"
    files |= {f"{info}/licenses/{text}": (path.read_bytes(), 0o644) for text, path in texts.items()}
    tag = f"Wheel-Version: 1.0\nGenerator: ci/package\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n"
    files[f"{info}/METADATA"] = (metadata(package).encode(), 0o644)
    files[f"{info}/WHEEL"] = (tag.encode(), 0o644)
    return files, f"{info}/RECORD"


def write(path, files, record):
    """Writes the files in the order of their names, and last the record of their sums."""
    moment = max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800)  # 1980, where the time of a zip begins
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as wheel:

        def add(name, content, mode):
            entry = zipfile.ZipInfo(name, time.gmtime(moment)[:6])
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, (0o100000 | mode) << 16
            wheel.writestr(entry, content)

        for name, (content, mode) in sorted(files.items()):
            add(name, content, mode)
            found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={found},{len(content)}\n")
        add(record, "".join([*lines, f"{record},,\n"]), 0o644)


def main(program, platform, licences, folder):
    package = tomllib.loads((REPOSITORY / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    path = Path(folder) / f"hcabench-{package['version']}-py3-none-{platform}.whl"
    write(path, *contents(Path(program), platform, Path(licences), package))
    print(path)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
