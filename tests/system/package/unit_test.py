"""The unit's own limits: tacitd trains and serves under them, and what they forbid is forbidden.

unit_test.py TREE PROGRAMS. The unit's mounts, capabilities, system calls and limits are read from
systemd/tacitd.service and applied here, without systemd, in a mount namespace of the test; a setting that this
file does not know fails. `systemd-analyze` names the calls of a group, and judges the unit. Needs root that may make
mount namespaces. Where that is missing the test is left out, and fails where TACIT_REQUIRE holds deb.
"""

import ctypes
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

TREE, PROGRAMS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
UNIT, WORKER = (TREE / "systemd" / name for name in ("tacitd.service", "tacitd-worker@.service"))
# The unit's mounts may hide the tree: all that is read of it is read before.
UNIT_TEXT, WORKER_TEXT, CONFIG, SOURCE = (
    path.read_text() for path in (UNIT, WORKER, TREE / "packaging/tacit.yaml", pathlib.Path(__file__)))
WORKER_CONFIG = """
source: {kind: kafka, topic: clicks, periods: topic, format: json}
kafka: {bootstrap.servers: "127.0.0.1:1", group.id: tacit}
schema: {features: [{name: device, kind: categorical, buckets: 256}]}
learners:
  - id: ctr
    model: {kind: linear}
    mechanism: {kind: sums}
    participation: {mode: once}
    privacy: {unit: event, epsilon: 4, delta: 1e-8}
feed: {topic: model}
workers: {topic: sums, key_file: /var/lib/programs/workers.key}
store: {path: /var/lib/tacit/store, witness: none}
serve: {operator_listen: "unix:/run/tacit/operator"}
"""
LIBC = ctypes.CDLL(None, use_errno=True)
HOME = pathlib.Path("/var/lib/programs")  # what the package has in /usr and /etc
USER = 64_321  # a user who owns nothing else

CLONE_NEWNS = 0x20000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_CAPBSET_DROP, SECCOMP_MODE_FILTER = 38, 22, 24, 2
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}

# Settings that describe a life, not a limit, or that follow from others which are applied.
DESCRIBED = {"Type", "ExecStart", "ExecReload", "WatchdogSec", "Restart", "RestartSec", "RestartPreventExitStatus",
             "TimeoutStopSec", "TimeoutStartSec", "User", "Group", "WorkingDirectory", "SystemCallErrorNumber",
             "PrivateMounts"}
# Settings whose effect is a system call that others refuse as well, or a thing that a process without
# capabilities cannot do: the probes below try each.
BY_CAPABILITY = {"ProtectClock", "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules", "RestrictRealtime",
                 "RemoveIPC"}
# Settings that systemd makes a filter of arguments of: (call, argument, bits that are refused).
NAMESPACES = 0x7E020000
BY_ARGUMENT = {
    "RestrictNamespaces": [("clone", 0, NAMESPACES), ("unshare", 0, NAMESPACES | 0x80)],
    "RestrictSUIDSGID": [("chmod", 1, 0o6000), ("fchmod", 1, 0o6000), ("fchmodat", 2, 0o6000)],
    "LockPersonality": [("personality", 0, 0xFFFFFFFF)],
}


def settings(text=UNIT_TEXT):
    found = {}
    for line in text.partition("[Service]")[2].partition("\n[")[0].splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def of_worker(value):
    """A word of the worker's unit, as systemd says it for tacitd-worker@1."""
    return value.replace("%i", "1").replace("%t", "/run").replace("%S", "/var/lib")


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def mount(source, target, kind=None, flags=0, data=None):
    encode = lambda text: None if text is None else str(text).encode()
    check(LIBC.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(data)), f"mount {target}")


def read_only(place):
    mount(place, place, flags=MS_BIND | MS_REC)
    mount(None, place, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID)


def apply_mounts(unit):
    """The unit's file system, in a namespace of this process."""
    check(LIBC.unshare(CLONE_NEWNS), "unshare")
    mount(None, "/", flags=MS_REC | MS_PRIVATE)
    programs, data = [(PROGRAMS / name).read_bytes() for name in ("tacitd", "tacit")], []
    mount("tmpfs", "/var/lib", "tmpfs", data="mode=755")
    mount("tmpfs", "/run", "tmpfs", data="mode=755")
    HOME.mkdir()
    for name, content in zip(("tacitd", "tacit"), programs):
        (HOME / name).write_bytes(content)
        (HOME / name).chmod(0o755)
    mode = int(unit["StateDirectoryMode"][0], 8)
    own = [pathlib.Path("/var/lib") / name for name in unit["StateDirectory"][0].split()]
    own += [pathlib.Path("/run") / name for name in unit["RuntimeDirectory"][0].split()]
    own += [pathlib.Path(of_worker(f"{place}/tacit-worker-%i")) for place in ("/var/lib", "/run")]
    for place in own:
        place.mkdir()
        place.chmod(mode)
        os.chown(place, USER, USER)
    if unit["PrivateDevices"] == ["yes"]:
        nodes = {name: os.stat(f"/dev/{name}").st_rdev for name in ("null", "zero", "full", "random", "urandom")}
        mount("tmpfs", "/dev", "tmpfs", flags=MS_NOSUID, data="mode=755")
        for name, number in nodes.items():
            os.mknod(f"/dev/{name}", 0o020666, number)
            os.chmod(f"/dev/{name}", 0o666)
    if unit["ProtectHome"] == ["yes"]:
        for place in ("/home", "/root", "/run/user"):
            if os.path.isdir(place):
                mount("tmpfs", place, "tmpfs", data="mode=000")
    if unit["PrivateTmp"] == ["yes"]:
        for place in ("/tmp", "/var/tmp"):
            mount("tmpfs", place, "tmpfs", data="mode=1777")
    if unit["ProtectProc"] == ["invisible"]:
        mount("proc", "/proc", "proc", flags=MS_NOSUID | MS_NODEV | MS_NOEXEC, data="hidepid=2")
    if unit["ProtectKernelTunables"] == ["yes"]:
        read_only("/proc/sys")
        read_only("/sys")
    if unit["ProtectControlGroups"] == ["yes"] and os.path.isdir("/sys/fs/cgroup"):
        read_only("/sys/fs/cgroup")
    if unit["ProtectSystem"] == ["strict"]:
        return lambda: lock_down(own)
    return lambda: None


def lock_down(own):
    """Makes all mounts read-only except for the unit's own folders, /dev, /proc and private ones."""
    for place in own:
        mount(place, place, flags=MS_BIND)
    spared = {str(place) for place in own} | {"/proc", "/tmp", "/var/tmp", "/dev"}
    mounts = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    for place in dict.fromkeys(mounts):
        if place in spared or place.startswith(("/proc/", "/dev/")):
            continue
        try:
            mount(None, place, flags=MS_REMOUNT | MS_BIND | MS_RDONLY)
        except OSError:
            if place == "/":
                raise


def names_of(group):
    """The calls of a group, as systemd has it."""
    said = subprocess.run(["systemd-analyze", "syscall-filter", group], text=True, capture_output=True, check=True)
    names = set()
    for line in said.stdout.splitlines()[1:]:
        word = line.strip()
        if word.startswith("@"):
            names |= names_of(word)
        elif word and not word.startswith("#"):
            names.add(word)
    return names


def allowed(unit):
    calls = set()
    for value in unit["SystemCallFilter"]:
        for word in value.lstrip("~").split():
            group = names_of(word) if word.startswith("@") else {word}
            calls = calls - group if value.startswith("~") else calls | group
    # systemd always allows what an exec needs.
    return calls | names_of("@default") | {"execve", "exit", "exit_group", "rt_sigreturn"}


def seccomp(unit):
    """The program for the kernel: the allowed calls, and of sockets the allowed families."""
    header = next(path for path in ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
                                    "/usr/include/asm/unistd_64.h") if os.path.exists(path))
    numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)", pathlib.Path(header).read_text()))
    code = []
    add = lambda op, yes, no, value: code.append(struct.pack("HBBI", op, yes, no, value))
    load, equal, any_of, give = 0x20, 0x15, 0x45, 0x06
    ALLOW, REFUSE, MISSING = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38  # EPERM, ENOSYS
    add(load, 0, 0, 4)
    add(equal, 1, 0, 0xC000003E)  # x86-64 alone: SystemCallArchitectures=native
    add(give, 0, 0, REFUSE)
    add(load, 0, 0, 0)
    families = [FAMILIES[name] for name in unit["RestrictAddressFamilies"][0].split()]
    add(equal, 0, 3 + len(families), int(numbers["socket"]))
    add(load, 0, 0, 16)
    for i, family in enumerate(families):
        add(equal, len(families) - i, 0, family)
    add(give, 0, 0, REFUSE)
    add(give, 0, 0, ALLOW)
    special = {"socket", "clone3", "setns"}
    for key, rules in BY_ARGUMENT.items():
        for name, argument, bits in rules if unit[key] == ["yes"] else []:
            special.add(name)
            add(equal, 0, 4, int(numbers[name]))
            add(load, 0, 0, 16 + 8 * argument)
            add(any_of, 0, 1, bits)
            add(give, 0, 0, REFUSE)
            add(give, 0, 0, ALLOW)
    # Its arguments lie where no filter sees them: its callers use clone.
    add(equal, 0, 1, int(numbers["clone3"]))
    add(give, 0, 0, MISSING)
    for name in sorted(allowed(unit) - special):
        if name in numbers:
            add(equal, 0, 1, int(numbers[name]))
            add(give, 0, 0, ALLOW)
    add(give, 0, 0, REFUSE)
    return b"".join(code)


def within(limit, what):
    """The limit, or less where this machine has less to give."""
    hard = resource.getrlimit(what)[1]
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)


def confine(unit, program):
    """Run between fork and exec: all that is the process's own."""
    os.umask(int(unit["UMask"][0], 8))
    for key, what in (("LimitNOFILE", resource.RLIMIT_NOFILE), ("LimitCORE", resource.RLIMIT_CORE)):
        limit = within(int(unit[key][0]), what)
        resource.setrlimit(what, (limit, limit))
    os.chdir(unit["WorkingDirectory"][0])
    if unit["CapabilityBoundingSet"] == [""]:
        for capability in range(64):
            LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    if unit["NoNewPrivileges"] == ["yes"]:
        check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    filters = Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    check(LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filters), 0, 0), "seccomp")


# Each must fail where it is confined, and for root outside of it succeeds or fails by another reason.
PROBES = r"""
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def refused(call):
    try:
        return call() == -1
    except (OSError, ValueError):
        return True
tries = {
    "mount": lambda: libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None),
    "a namespace": lambda: libc.unshare(0x20000),
    "a user namespace": lambda: libc.unshare(0x10000000),
    "another's namespace": lambda: libc.setns(os.open("/proc/self/ns/user", os.O_RDONLY), 0),
    "another personality": lambda: libc.personality(0x0040000),
    "a program with its owner's rights": lambda: os.chmod(os.path.join(os.getcwd(), "."), 0o4700),
    "netlink": lambda: socket.socket(16, socket.SOCK_RAW, 0),
    "a raw packet": lambda: socket.socket(17, socket.SOCK_RAW, 0),
    "chroot": lambda: os.chroot("/tmp"),
    "setuid": lambda: os.setuid(0),
    "the clock": lambda: libc.settimeofday(ctypes.create_string_buffer(16), None),
    "the host's name": lambda: socket.sethostname("other"),
    "the kernel's log": lambda: libc.klogctl(3, ctypes.create_string_buffer(16), 16),
    "tracing": lambda: libc.ptrace(16, os.getppid(), None, None),
    "bpf": lambda: libc.syscall(321, 0, None, 0),
    "a module": lambda: libc.syscall(175, None, 0, b""),
    "writing /etc": lambda: open("/etc/tacit-was-here", "w"),
    "writing /usr": lambda: open("/usr/tacit-was-here", "w"),
    "reading a home": lambda: os.listdir("/root"),
    "a device": lambda: open("/dev/kmsg") if os.path.exists("/dev/kmsg") else (_ for _ in ()).throw(OSError()),
    "a tunable": lambda: open("/proc/sys/kernel/panic", "w"),
    "another's process": lambda: os.listdir("/proc/1"),
    "real time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "more files": lambda: __import__("resource").setrlimit(7, (1 << 20, 1 << 20)),
}
print(*(name for name, call in tries.items() if not refused(call)), sep="\n")
"""


class Unit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.unit = settings()
        cls.program = seccomp(cls.unit)
        cls.judged = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", UNIT], text=True, capture_output=True, cwd="/")
        lock = apply_mounts(cls.unit)
        (HOME / "tacit.yaml").write_text(CONFIG.replace("/var/log/tacit", str(HOME)))
        (HOME / "day.jsonl").write_text("".join(
            f'{{"label":{int(i % 3 == 0)},"features":{{"device":"d{i % 5}"}}}}\n' for i in range(400)))
        (HOME / "worker.yaml").write_text(WORKER_CONFIG)
        key = HOME / "workers.key"
        key.write_text("5a" * 32 + "\n")
        key.chmod(0o640)
        os.chown(key, 0, USER)
        lock()

    def confined(self, *command, program=None, **options):
        def before():
            try:
                confine(self.unit, program or self.program)
            except BaseException as error:
                os.write(1, f"confine: {error!r}\n".encode())
                raise

        return subprocess.Popen(command, preexec_fn=before, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, **options)

    def daemon(self, *more, **options):
        command = self.unit["ExecStart"][0].replace("/usr/bin", str(HOME)).replace("/etc/tacit", str(HOME)).split()
        # A busy machine would starve a trainer that takes only what is left.
        environment = {"NOTIFY_SOCKET": "/run/nobody", "PATH": "/usr/bin:/bin", "TACIT_TRAINING_IDLE_PRIORITY": "false"}
        return self.confined(*command, *more, env=environment, **options)

    def test_every_setting_is_applied(self):
        known = DESCRIBED | BY_CAPABILITY | set(BY_ARGUMENT) | set(re.findall(r'unit\["(\w+)"\]', SOURCE))
        known |= {"LimitNOFILE", "LimitCORE", "AmbientCapabilities", "SystemCallArchitectures"}
        self.assertEqual(set(self.unit) - known, set())
        self.assertEqual(self.unit["AmbientCapabilities"], [""])
        self.assertEqual(self.unit["SystemCallArchitectures"], ["native"])
        for key in BY_CAPABILITY | set(BY_ARGUMENT):
            self.assertEqual(self.unit[key], ["yes"], key)

    def test_it_trains_and_serves(self):
        learnt = self.daemon("--until-end")
        said, _ = learnt.communicate(timeout=120)
        self.assertEqual(learnt.returncode, 0, said)
        self.assertRegex(said, r"stopped at commit [1-9]")
        daemon = self.daemon()
        try:
            for _ in range(600):
                done = subprocess.run(["curl", "-sf", "--unix-socket", "/run/tacit/tacitd.sock",
                                       "http://localhost/readyz"], capture_output=True, text=True)
                if done.returncode == 0 or daemon.poll() is not None:
                    break
                time.sleep(0.1)
            self.assertIsNone(daemon.poll(), daemon.stdout.read() if daemon.poll() is not None else "")
            scored = subprocess.run(
                [HOME / "tacit", "query", "score", "--url", "unix:/run/tacit/tacitd.sock", "--learner", "ctr",
                 "--row", '{"label":0,"features":{"device":"d1"}}', "--json"], capture_output=True, text=True)
            self.assertEqual(scored.returncode, 0, scored.stderr)
            self.assertRegex(scored.stdout, r'"scores":\[[\d.]+E-1\]')
            metrics = subprocess.run(["curl", "-sf", "--unix-socket", "/run/tacit/operator",
                                      "http://localhost/metrics"], capture_output=True, text=True).stdout
            self.assertIn("tacit_ready 1", metrics)
            files = within(int(self.unit["LimitNOFILE"][0]), resource.RLIMIT_NOFILE)
            limits = pathlib.Path(f"/proc/{daemon.pid}/limits").read_text()
            self.assertRegex(limits, rf"Max open files +{files} ")
            status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
            for line in (r"CapEff:\t0+\n", r"CapBnd:\t0+\n", r"NoNewPrivs:\t1\n", r"Seccomp:\t2\n",
                         rf"Uid:\t{USER}\t{USER}\t"):
                self.assertRegex(status, line)
        finally:
            daemon.send_signal(signal.SIGTERM)
            said, _ = daemon.communicate(timeout=60)
        self.assertEqual(daemon.returncode, 0, said)

    def test_a_workers_unit_has_the_same_limits(self):
        worker = settings(WORKER_TEXT)
        of_its_own = {"ExecStart", "Environment", "DynamicUser", "SupplementaryGroups", "User", "Group", "StateDirectory",
                      "RuntimeDirectory", "WorkingDirectory"}
        for unit in (worker, self.unit):
            self.assertEqual({key: value for key, value in unit.items() if key not in of_its_own},
                             {key: value for key, value in self.unit.items() if key not in of_its_own})
        self.assertEqual(worker["DynamicUser"], ["yes"])
        self.assertEqual(worker["SupplementaryGroups"], self.unit["Group"])
        self.assertEqual((worker["StateDirectory"], worker["RuntimeDirectory"]), (["tacit-worker-%i"],) * 2)
        self.assertEqual(worker["ExecStart"], [self.unit["ExecStart"][0] + " --worker"])

    def test_a_worker_runs_without_store_and_serves_probes_alone(self):
        unit = settings(WORKER_TEXT)
        command = unit["ExecStart"][0].replace("/usr/bin", str(HOME)).replace("/etc/tacit/tacit.yaml", str(HOME / "worker.yaml"))
        environment = dict(word.split("=", 1) for line in unit["Environment"] for word in of_worker(line).split())
        worker = self.confined(*command.split(), env=environment | {"NOTIFY_SOCKET": "/run/nobody", "PATH": "/usr/bin:/bin"})

        def status(path):
            asked = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket",
                                    "/run/tacit-worker-1/operator", f"http://localhost{path}"], capture_output=True, text=True)
            return int(asked.stdout or 0)

        try:
            for _ in range(600):
                if status("/healthz") == 200 or worker.poll() is not None:
                    break
                time.sleep(0.1)
            self.assertEqual([status(path) for path in ("/healthz", "/readyz", "/metrics")], [200, 503, 200])
            for path in ("/servez", "/v1/privacy", "/v1/ledger", "/v1/dashboard", "/v2"):
                self.assertEqual(status(path), 404, path)
            self.assertLessEqual(set(os.listdir("/var/lib/tacit-worker-1")), {"dead-letters.jsonl"})
        finally:
            worker.send_signal(signal.SIGTERM)
            said, _ = worker.communicate(timeout=60)
        self.assertEqual(worker.returncode, 0, said)

    def test_what_is_forbidden_is_refused(self):
        probes = self.confined(shutil.which("python3", path="/usr/bin:/bin"), "-c", PROBES)
        said, _ = probes.communicate(timeout=60)
        self.assertEqual((probes.returncode, said.strip()), (0, ""))

    def test_a_trainer_may_take_what_is_left(self):
        idle = self.confined(shutil.which("python3", path="/usr/bin:/bin"), "-c",
                             "import os; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))")
        said, _ = idle.communicate(timeout=60)
        self.assertEqual(idle.returncode, 0, said)

    def test_a_list_without_what_it_needs_is_seen(self):
        """The planted fault: a unit that forbids memory to be mapped."""
        planted = settings()
        planted["SystemCallFilter"].append("~@memlock mmap mprotect epoll_create1 eventfd2 timerfd_create")
        daemon = self.daemon("--until-end", program=seccomp(planted))
        said, _ = daemon.communicate(timeout=60)
        self.assertNotEqual(daemon.returncode, 0, said)

    def test_exposure_is_low(self):
        found = re.search(r"Overall exposure level for \S+: ([\d.]+)", self.judged.stdout)
        self.assertTrue(found, self.judged.stdout + self.judged.stderr)
        self.assertLessEqual(float(found.group(1)), 1.5)


def may_make_namespaces():
    """Whether a child of this process may have mounts of its own."""
    child = os.fork()
    if child == 0:
        os._exit(0 if LIBC.unshare(CLONE_NEWNS) == 0 and LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    wanted = "deb" in os.environ.get("TACIT_REQUIRE", "").split(",")
    if os.geteuid() != 0 or shutil.which("systemd-analyze") is None or not may_make_namespaces():
        print("unit_test needs root, mount namespaces and systemd-analyze")
        sys.exit(1 if wanted else 0)
    unittest.main(argv=sys.argv[:1])
