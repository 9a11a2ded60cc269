"""The list of what the programs are made of (tools/sbom) is CycloneDX, and has all that they load and compile in.

sbom_test.py TREE PROGRAMS. The validator comes by `tools/pypi sbom fetch`; where it is missing the test is left out, and
fails where TACIT_REQUIRE holds sbom.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

TREE, PROGRAMS = (pathlib.Path(word) for word in sys.argv[1:3])


def write(build):
    return subprocess.run([TREE / "tools/sbom", build], capture_output=True, text=True,
                          env={**os.environ, "SOURCE_DATE_EPOCH": "1800000000"})


class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = write(PROGRAMS.parent).stdout
        cls.parts = {part["name"]: part for part in json.loads(cls.text)["components"]}

    def use(self, name):
        return [one["value"] for one in self.parts[name]["properties"] if one["name"] == "tacit:use"]

    def test_is_cyclonedx(self):
        validator = JsonStrictValidator(SchemaVersion.V1_6)
        self.assertIsNone(validator.validate_str(self.text))
        for ours, other in (('"library"', '"libary"'), ('"purl"', '"perl"'), ("urn:uuid:", "uuid:")):
            self.assertIsNotNone(validator.validate_str(self.text.replace(ours, other, 1)), other)

    def test_has_each_library_that_is_loaded(self):
        for program in ("tacit", "tacitd"):
            loaded = subprocess.run(["ldd", PROGRAMS / program], capture_output=True, text=True, check=True).stdout
            paths = re.findall(r"=> (/\S+)", loaded)
            self.assertGreater(len(paths), 20)
            for path in paths:
                # Debian 12 lists some libraries below /lib, and some below /usr/lib.
                real = os.path.realpath(path)
                found = [subprocess.run(["dpkg-query", "-S", one], capture_output=True, text=True).stdout
                         for one in (real, real.removeprefix("/usr"))]
                package = next(text for text in found if text).split(":")[0]
                version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
                self.assertEqual(self.parts[package]["version"], version.stdout, path)
                self.assertEqual(self.use(package), ["linked"], path)

    def test_has_each_library_that_is_compiled_in(self):
        for package in ("libboost1.81-dev", "libcli11-dev", "libexpected-dev", "libkissfft-dev"):
            self.assertEqual(self.use(package), ["headers"])
        self.assertNotIn("libgtest-dev", self.parts)  # the tests'

    def test_says_which_library_brings_another_one(self):
        document = json.loads(self.text)
        below = {one["ref"]: one["dependsOn"] for one in document["dependencies"]}
        ref = {name: part["bom-ref"] for name, part in self.parts.items()}
        self.assertIn(ref["librocksdb7.8"], below[document["metadata"]["component"]["bom-ref"]])
        self.assertIn(ref["liblz4-1"], below[ref["librocksdb7.8"]])
        self.assertNotIn(ref["librocksdb7.8"], below[ref["liblz4-1"]])

    def test_one_build_gives_the_same_bytes(self):
        self.assertEqual(write(PROGRAMS.parent).stdout, self.text)

    def test_without_programs_is_refused(self):
        refused = write(TREE / "src")
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn(f"{TREE / 'src'}/bin/tacit is not there", refused.stderr)


if __name__ == "__main__":
    ready = subprocess.run([TREE / "tools/pypi", "sbom", "ready"], capture_output=True, text=True)
    if ready.returncode != 0:
        print(f"left out: {ready.stdout.strip()}")
        sys.exit(1 if "sbom" in os.environ.get("TACIT_REQUIRE", "").split(",") else 0)
    sys.path.insert(0, ready.stdout.strip())
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
