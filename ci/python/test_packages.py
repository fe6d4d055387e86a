import base64
import hashlib
import json
import os
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

import sbom
import wheel

REGISTRY = "registry+index"


def package(name, version="1.0.0", source=REGISTRY):
    return {"id": f"{name} {version}", "name": name, "version": version, "source": source, "license": "MIT/Apache-2.0",
            "repository": None}


class Packages(unittest.TestCase):
    def test_a_wheel_has_what_pip_checks_and_is_the_same_at_any_time(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, SOURCE_DATE_EPOCH="1700000000"):
            program, licences = Path(folder, "program"), Path(folder, "LICENSES-of-crates")
            program.write_bytes(b"\x7fELF")
            licences.write_text("MIT")
            made = []
            for name in ("first", "second"):
                (Path(folder) / name).mkdir()
                with mock.patch("builtins.print") as printed:
                    wheel.main(str(program), "manylinux_2_35_x86_64", str(licences), str(Path(folder, name)))
                made.append(Path(printed.call_args[0][0]))
            self.assertEqual(made[0].read_bytes(), made[1].read_bytes())
            with zipfile.ZipFile(made[0]) as archive:
                names = archive.namelist()
                record = next(name for name in names if name.endswith(".dist-info/RECORD"))
                rows = [line.split(",") for line in archive.read(record).decode().splitlines()]
                self.assertEqual(sorted(row[0] for row in rows), sorted(names))
                for name, found, size in rows:
                    content = archive.read(name)
                    if name != record:
                        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                        self.assertEqual((found, int(size)), (f"sha256={digest}", len(content)))
                command = next(name for name in names if name.endswith(".data/scripts/hcabench"))
                self.assertEqual(archive.getinfo(command).external_attr >> 16, 0o100755)
                self.assertIn("hcabench/__init__.py", names)

    def test_a_bill_names_the_crates_that_are_built_in_and_their_sums(self):
        root, used, test = package("hcabench", source=None), package("used", "2.0.0"), package("only-tests")
        nodes = [{"id": root["id"], "deps": [{"pkg": used["id"], "dep_kinds": [{"kind": None}]},
                                             {"pkg": test["id"], "dep_kinds": [{"kind": "dev"}]}]},
                 {"id": used["id"], "deps": []}, {"id": test["id"], "deps": []}]
        metadata = {"packages": [test, used, root], "resolve": {"nodes": nodes}}
        lock = {"package": [{"name": "used", "version": "2.0.0", "checksum": "ab"}]}
        bill = sbom.bill(metadata, "hcabench v1.0.0 (/x)\nused v2.0.0\n", lock, 0)
        self.assertEqual([found["name"] for found in bill["components"]], ["used"])
        self.assertEqual(bill["components"][0]["hashes"], [{"alg": "SHA-256", "content": "ab"}])
        self.assertEqual(bill["components"][0]["licenses"], [{"expression": "MIT OR Apache-2.0"}])
        self.assertEqual(bill["metadata"]["timestamp"], "1970-01-01T00:00:00Z")
        self.assertEqual(bill["dependencies"][1], {"ref": "workspace:hcabench@1.0.0", "dependsOn": ["pkg:cargo/used@2.0.0"]})
        self.assertEqual(json.dumps(bill), json.dumps(sbom.bill(metadata, "used v2.0.0\nhcabench v1.0.0\n", lock, 0)))
        linked = sbom.bill(metadata, "hcabench v1.0.0 (/x)\nused v2.0.0\n", lock, 0, "1.2.5")
        self.assertEqual([found["name"] for found in linked["components"]], ["used", "musl"])
        self.assertEqual(linked["dependencies"][1]["dependsOn"], ["pkg:cargo/used@2.0.0", "pkg:generic/musl@1.2.5"])


if __name__ == "__main__":
    unittest.main()
