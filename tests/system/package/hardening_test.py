"""The programs that ship have the compiler's and the linker's defences.

hardening_test.py PROGRAMS. Reads tacit and tacitd in the folder PROGRAMS as ELF, by readelf of binutils. A program that
this test compiles without any of the defences shows that each is missed.
"""

import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
ENDBR64 = bytes.fromhex("f30f1efa")  # an indirect jump may land here
PROBE = bytes.fromhex("48830c2400")  # orq $0, (%rsp): looks at a page before the stack grows past it

BARE = """
#include <cstdio>
#include <cstring>
#include <vector>
__attribute__((noinline)) void Copy(const char* from, size_t bytes) {
  char block[1 << 16];
  std::memcpy(block, from, bytes);
  std::puts(block);
}
int main(int words, char** texts) {
  std::vector<int> numbers(words);
  Copy(texts[0], std::strlen(texts[0]) + 1);
  return numbers[std::strlen(texts[0])];
}
"""
NO_DEFENCES = ["-O1", "-U_FORTIFY_SOURCE", "-U_GLIBCXX_ASSERTIONS", "-fno-stack-protector", "-fno-stack-clash-protection",
               "-fno-pie", "-no-pie", "-Wl,-z,norelro,-z,lazy,-z,execstack"]
ON_X86 = platform.machine() == "x86_64"
if ON_X86:
    NO_DEFENCES.append("-fcf-protection=none")


def readelf(program, *options):
    return subprocess.run(["readelf", "-W", *options, program], text=True, capture_output=True, check=True).stdout


def place_in_file(program, address):
    for line in readelf(program, "-l").splitlines():
        if match := re.match(r" *LOAD +(\w+) (\w+) \w+ (\w+)", line):
            offset, begin, size = (int(text, 16) for text in match.groups())
            if begin <= address < begin + size:
                return offset + address - begin
    raise AssertionError(f"{program} has nothing at {address:x}")


def missing(program):
    """The defences that the program lacks."""
    segments, dynamic = readelf(program, "-l"), readelf(program, "-d")
    imports = set(re.findall(r" UND (\w+)", readelf(program, "--dyn-syms")))
    has = {
        "any address": bool(re.search(r"\(FLAGS_1\).*\bPIE\b", dynamic)),
        "no code on the stack": bool(re.search(r"GNU_STACK .* RW +0x", segments)),
        "relocations are read-only": "GNU_RELRO" in segments and "BIND_NOW" in dynamic,
        "stack protector": "__stack_chk_fail" in imports,
        "fortified buffers": any(re.fullmatch(r"__\w+_chk", name) for name in imports),
        "checked containers": any("__glibcxx_assert_fail" in name for name in imports),
    }
    if ON_X86:
        content = pathlib.Path(program).read_bytes()
        main = re.search(r": (\w+) +\d+ FUNC .* main$", readelf(program, "-s"), re.MULTILINE)
        has["marks for jumps"] = content.startswith(ENDBR64, place_in_file(program, int(main.group(1), 16)))
        has["stack clash"] = PROBE in content
    return [name for name, is_there in has.items() if not is_there]


class Hardening(unittest.TestCase):
    def test_programs_have_all_defences(self):
        for name in ("tacit", "tacitd"):
            self.assertEqual(missing(PROGRAMS / name), [], name)

    def test_a_program_without_them_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            source, program = pathlib.Path(folder, "bare.cc"), pathlib.Path(folder, "bare")
            source.write_text(BARE)
            subprocess.run(["g++", *NO_DEFENCES, source, "-o", program], check=True)
            self.assertEqual(len(missing(program)), 8 if ON_X86 else 6, missing(program))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
