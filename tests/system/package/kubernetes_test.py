"""packaging/k8s: its manifests are Kubernetes' own, lead to each other, and its pods run.

kubernetes_test.py TREE PROGRAMS. A pod is run as kubelet would do it: the image's command and environment
(packaging/Containerfile), what the manifest adds, what kubelet says of Services, then the manifest's probes in their
order. Its paths lie in a folder of the test's, and its port is any free one. Kubernetes' schemas come by
`tools/pypi k8s fetch`; where they are missing the test is left out, and fails where TACIT_REQUIRE holds k8s.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

TREE, PROGRAMS = (pathlib.Path(word) for word in sys.argv[1:3])
VERSIONS = ("1.29", "1.37")  # the oldest and the newest that a manifest has to fit
NAMESPACE = "shop"
PATIENCE_S = 60
STOP_MS = 10_000  # a stop takes less behind its drain


def load():
    return [item for path in sorted((TREE / "packaging/k8s").glob("*.yaml"))
            for item in yaml.safe_load_all(path.read_text())]


def name_of(item):
    return f"{item['kind']} {item['metadata']['name']}"


def pick(items, kind, name=None):
    return [item for item in items if item["kind"] == kind and name in (None, item["metadata"]["name"])]


def schema_faults(item):
    if item["kind"] == "ServiceMonitor":
        schema = yaml.safe_load((TREE / "tests/system/package/servicemonitor.schema.yaml").read_text())
        return [f"{name_of(item)}: {fault.message}"
                for fault in jsonschema.Draft202012Validator(schema).iter_errors(item)]
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(item, version, strict=True)
        except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as fault:
            return [f"{name_of(item)}, Kubernetes {version}: {fault.message}"]
    return []


def image():
    """The Containerfile's container: entry point, words, environment, user, ports."""
    text = (TREE / "packaging/Containerfile").read_text()
    found = {key: json.loads(re.search(rf"(?m)^{key} (\[.*\])$", text).group(1)) for key in ("ENTRYPOINT", "CMD")}
    found["ENV"] = dict(line.split("=", 1) for line in re.findall(r"(?m)^ENV (.*)$", text))
    found["USER"] = re.search(r"(?m)^USER (\d+):(\d+)$", text).groups()
    found["EXPOSE"] = [int(port) for port in re.findall(r"(?m)^EXPOSE (\d+)$", text)]
    return found


class Workload:
    """A StatefulSet or Deployment with one container."""

    def __init__(self, item):
        self.item = item
        self.name = name_of(item)
        self.spec = item["spec"]["template"]["spec"]
        self.labels = item["spec"]["template"]["metadata"]["labels"]
        (self.container,) = self.spec["containers"]
        self.ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.mounts = {mount["mountPath"]: mount["name"] for mount in self.container["volumeMounts"]}
        self.volumes = {volume["name"] for volume in self.spec["volumes"]} | {
            claim["metadata"]["name"] for claim in item["spec"].get("volumeClaimTemplates", [])}

    def chosen_by(self, selector):
        return all(self.labels.get(key) == value for key, value in selector.items())

    def environment(self):
        """The manifest's variables, with $(NAME) filled in."""
        made = {}
        for variable in self.container.get("env", []):
            value = variable.get("value", NAMESPACE)
            if "valueFrom" in variable:
                assert variable["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}, variable
            made[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda name: made[name.group(1)], value)
        return made

    def volume_of(self, path):
        return next((self.mounts[mount] for mount in self.mounts if path.startswith(mount + "/")), None)


def workloads(items):
    return [Workload(item) for item in pick(items, "StatefulSet") + pick(items, "Deployment")]


def workload_faults(workload, items):
    """Faults of a pod: it leads nowhere, or contradicts the image."""
    of_image = image()
    context = workload.spec["securityContext"]
    config = yaml.safe_load(pick(items, "ConfigMap")[0]["data"]["tacit.yaml"])
    environment = of_image["ENV"] | workload.environment()
    selector = workload.item["spec"]["selector"]["matchLabels"]
    grace_ms = workload.spec["terminationGracePeriodSeconds"] * 1000
    stores = [environment.get("TACIT_STORE_PATH", config["store"]["path"])]
    if workload.item["kind"] == "StatefulSet":
        stores.append(config["store"]["witness"])
        if workload.item["spec"]["serviceName"] not in [s["metadata"]["name"] for s in pick(items, "Service")]:
            yield "there is no Service of serviceName"
        if workload.item["spec"]["replicas"] != 1:
            yield "a store has one writer"
    if [str(context[key]) for key in ("runAsUser", "runAsGroup")] != list(of_image["USER"]):
        yield "its user is not the image's"
    if context["fsGroup"] != context["runAsGroup"]:
        yield "its volumes are another group's"
    if sorted(workload.ports.values()) != of_image["EXPOSE"]:
        yield "its ports are not the image's"
    if not workload.chosen_by(selector):
        yield "it does not choose its own pods"
    if set(workload.mounts.values()) != workload.volumes:
        yield f"volumes are {sorted(workload.volumes)}, mounted are {sorted(workload.mounts.values())}"
    for volume in workload.spec["volumes"]:
        if "configMap" in volume and not pick(items, "ConfigMap", volume["configMap"]["name"]):
            yield "there is no ConfigMap of its volume"
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        if workload.container[kind]["httpGet"]["port"] not in workload.ports:
            yield f"there is no port of its {kind}"
    if grace_ms < int(environment.get("TACIT_SERVE_DRAIN_MS", 0)) + STOP_MS:
        yield "kubelet kills it while it drains"
    volumes = [workload.volume_of(path) for path in stores]
    if None in volumes or len(set(volumes)) != len(volumes):
        yield f"store and witness lie on {volumes}"
    if None in [workload.volume_of(path) for path in ("/run/tacit/operator", "/etc/tacit/tacit.yaml")]:
        yield "its socket or configuration lies on no volume"


def reference_faults(items):
    """Names, labels and ports that lead nowhere."""
    pods = workloads(items)
    found = [f"{pod.name}: {fault}" for pod in pods for fault in workload_faults(pod, items)]
    secrets = {volume["secret"]["secretName"] for pod in pods for volume in pod.spec["volumes"] if "secret" in volume}
    if len(secrets) > 1:
        found.append(f"trainer and workers have other Secrets: {sorted(secrets)}")
    for service in pick(items, "Service"):
        chosen = [pod for pod in pods if pod.chosen_by(service["spec"]["selector"])]
        if len(chosen) != 1 or any(port["targetPort"] not in chosen[0].ports for port in service["spec"]["ports"]):
            found.append(f"{name_of(service)}: leads to no pod and port")
    for item in pick(items, "PodDisruptionBudget"):
        if not any(pod.chosen_by(item["spec"]["selector"]["matchLabels"]) for pod in pods):
            found.append(f"{name_of(item)}: chooses no pod")
    for policy in pick(items, "NetworkPolicy"):
        chosen = [pod for pod in pods if pod.chosen_by(policy["spec"]["podSelector"]["matchLabels"])]
        if len(chosen) != 1 or any(port["port"] not in chosen[0].ports
                                   for rule in policy["spec"]["ingress"] for port in rule["ports"]):
            found.append(f"{name_of(policy)}: leads to no pod and port")
    for monitor in pick(items, "ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        chosen = [s for s in pick(items, "Service") if wanted <= s["metadata"]["labels"].items()]
        ports = {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]}
        if len(chosen) != len(pods) or any(ports != {p["name"] for p in s["spec"]["ports"]} for s in chosen):
            found.append(f"{name_of(monitor)}: leads to {len(chosen)} Services, or to no port")
        if any(s["metadata"]["labels"].get(monitor["spec"]["jobLabel"]) != "tacit" for s in chosen):
            found.append(f"{name_of(monitor)}: its job is not the alerts'")
    return found


def faults(items):
    return [fault for item in items for fault in schema_faults(item)] or reference_faults(items)


class Manifests(unittest.TestCase):
    def test_they_are_right(self):
        items = load()
        self.assertEqual(faults(items), [])
        self.assertEqual({item["kind"] for item in items},
                         {"ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceMonitor",
                          "StatefulSet"})
        self.assertEqual(len(pick(items, "NetworkPolicy")), len(workloads(items)))

    def wrong(self, kind, change, words):
        """A planted fault: `change` of an object's spec is seen, and named by `words`."""
        items = load()
        change(pick(items, kind)[0]["spec"])
        found = faults(items)
        self.assertTrue(any(words in fault for fault in found), found)

    def test_what_is_no_field_is_seen(self):
        def pod(spec):
            return spec["template"]["spec"]

        self.wrong("StatefulSet", lambda s: s.update(replcias=1), "'replcias' was unexpected")
        self.wrong("StatefulSet", lambda s: s.pop("selector"), "'selector' is a required property")
        self.wrong("StatefulSet", lambda s: pod(s)["containers"][0]["ports"][0].update(containerPort="8980"),
                   "'8980' is not of type 'integer'")
        self.wrong("Deployment", lambda s: pod(s)["containers"][0]["livenessProbe"].update(periodSecond=1),
                   "'periodSecond' was unexpected")
        self.wrong("NetworkPolicy", lambda s: s["ingress"][0].update(form=[]), "'form' was unexpected")
        self.wrong("ServiceMonitor", lambda s: s["endpoints"][0].update(intervall="15s"), "'intervall' was unexpected")
        self.wrong("ServiceMonitor", lambda s: s["endpoints"][0].update(interval="15 s"), "does not match")
        self.wrong("ServiceMonitor", lambda s: s.pop("selector"), "'selector' is a required property")

    def test_what_leads_nowhere_is_seen(self):
        def pod(spec):
            return spec["template"]["spec"]

        def container(spec):
            return pod(spec)["containers"][0]

        self.wrong("StatefulSet", lambda s: s.update(serviceName="other"), "no Service of serviceName")
        self.wrong("StatefulSet", lambda s: s.update(replicas=2), "one writer")
        self.wrong("StatefulSet", lambda s: pod(s)["volumes"][1]["secret"].update(secretName="other"), "other Secrets")
        self.wrong("StatefulSet", lambda s: pod(s)["securityContext"].update(runAsUser=1000), "user is not the image's")
        self.wrong("StatefulSet", lambda s: container(s)["readinessProbe"]["httpGet"].update(port="htpp"),
                   "no port of its readinessProbe")
        self.wrong("StatefulSet", lambda s: container(s)["volumeMounts"][3].update(name="store"), "mounted are")
        self.wrong("Deployment", lambda s: pod(s).update(terminationGracePeriodSeconds=15), "while it drains")
        self.wrong("Deployment", lambda s: pod(s)["volumes"][0]["configMap"].update(name="other"), "no ConfigMap")
        self.wrong("Service", lambda s: s["selector"].update({"app.kubernetes.io/component": "reader"}),
                   "leads to no pod")
        self.wrong("PodDisruptionBudget", lambda s: s["selector"]["matchLabels"].update(a="b"), "chooses no pod")
        self.wrong("NetworkPolicy", lambda s: s["ingress"][0]["ports"][0].update(port="htpp"), "leads to no pod")
        self.wrong("ServiceMonitor", lambda s: s["endpoints"][0].update(port="htpp"), "or to no port")
        self.wrong("ServiceMonitor", lambda s: s.update(jobLabel="app.kubernetes.io/component"), "not the alerts'")


def of_service(name, address, port):
    """The variables that kubelet puts into each pod of a namespace with this Service."""
    begin = name.upper().replace("-", "_")
    one = f"{begin}_PORT_{port}_TCP"
    return {f"{begin}_SERVICE_HOST": address, f"{begin}_SERVICE_PORT": str(port),
            f"{begin}_SERVICE_PORT_HTTP": str(port), f"{begin}_PORT": f"tcp://{address}:{port}",
            one: f"tcp://{address}:{port}", f"{one}_PROTO": "tcp", f"{one}_PORT": str(port), f"{one}_ADDR": address}


def until(holds, say):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(say())
        time.sleep(0.05)


class Pod:
    """A workload's container, as kubelet starts, probes and ends it."""

    def __init__(self, test, workload, config, more=None):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.container = workload.container
        for mount in workload.mounts:
            (self.root / mount[1:]).mkdir(parents=True)
        (self.root / "etc/tacit/tacit.yaml").write_text(self.here(config))
        of_image = image()
        services = of_service("tacit", "10.96.0.7", 8980) | of_service("tacit-kafka", "fd00::9", 9092)
        environment = of_image["ENV"] | services | workload.environment() | (more or {})
        self.environment = {"PATH": "/usr/bin:/bin"} | {
            name: self.here(value).replace("0.0.0.0:8980", "0.0.0.0:0") for name, value in environment.items()}
        entry = [word.replace("/usr/bin", str(PROGRAMS)) for word in of_image["ENTRYPOINT"]]
        self.command = entry + [self.here(word) for word in self.container.get("args", of_image["CMD"])]
        self.log = self.root / "log"
        self.process = None
        test.addCleanup(self.kill)

    def here(self, text):
        return re.sub(r"/(etc|run|var/lib)/tacit", lambda path: f"{self.root}{path.group()}", text)

    def start(self):
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(self.command, env=self.environment, cwd=self.root / "var/lib/tacit",
                                            stdout=log, stderr=log)

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def said(self):
        return self.log.read_text()

    def ask(self, path, host="127.0.0.1"):
        """The answer's status at the image's port and its text; 0: there is none."""
        port = re.search(r"serving on 0\.0\.0\.0:(\d+)", self.said())
        if port is None:
            return 0, ""
        request = urllib.request.Request(f"http://127.0.0.1:{port.group(1)}{path}", headers={"Host": host})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.read().decode()
        except OSError:
            return 0, ""

    def probe(self, kind):
        status, _ = self.ask(self.container[kind]["httpGet"]["path"])
        return 200 <= status < 400

    def wait(self, holds, state):
        def stop_or_hold():
            return self.process.poll() is not None or holds()

        until(stop_or_hold, lambda: f"not {state}: {self.said()}")
        assert self.process.poll() is None, f"it ended before it was {state}: {self.said()}"

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE_S)


class Running(unittest.TestCase):
    def setUp(self):
        self.items = load()
        self.trainer, self.replica, self.worker = workloads(self.items)
        self.config = pick(self.items, "ConfigMap")[0]["data"]["tacit.yaml"]

    def log_in_place_of_kafka(self):
        config = yaml.safe_load(self.config)
        del config["kafka"], config["feed"]
        config["source"] = {"kind": "log", "format": "json", "files": ["/var/lib/tacit/day.jsonl"], "mark": ""}
        return yaml.safe_dump(config)

    def test_the_configuration_is_right_as_it_stands(self):
        for workload in (self.trainer, self.replica):
            pod = Pod(self, workload, self.config)
            checked = subprocess.run([*pod.command, "--check-config"], env=pod.environment, capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, checked.stderr)
            self.assertIn("0.0.0.0:0", checked.stdout)

    def test_the_trainer_passes_its_probes_in_their_order(self):
        pod = Pod(self, self.trainer, self.log_in_place_of_kafka(), {"TACIT_LEARNERS_0_PARTICIPATION_BATCH": "100"})
        (pod.root / "var/lib/tacit/day.jsonl").write_text("".join(
            f'{{"label":{int(i % 3 == 0)},"features":{{"device":"d{i % 5}"}}}}\n' for i in range(400)))
        pod.start()
        pod.wait(lambda: pod.probe("startupProbe"), "started")
        pod.wait(lambda: pod.probe("readinessProbe"), "ready")
        self.assertTrue(pod.probe("livenessProbe"))
        self.assertTrue((pod.root / "var/lib/tacit-witness/store.witness").is_file())
        # The port is the public's; operators have a socket of their own.
        self.assertEqual(pod.ask("/v1/privacy")[0], 200)
        self.assertEqual(pod.ask("/v1/ledger")[0], 403)
        asked = subprocess.run(["curl", "-sf", "--unix-socket", pod.root / "run/tacit/operator",
                                "http://localhost/v1/ledger"], capture_output=True, text=True)
        self.assertEqual(asked.returncode, 0, pod.said())
        self.assertIn('"head"', asked.stdout)
        self.assertEqual(pod.end(), 0, pod.said())

    def test_a_replica_waits_for_its_first_version_and_lives(self):
        pod = Pod(self, self.replica, self.config)
        pod.start()
        pod.wait(lambda: pod.probe("startupProbe"), "started")
        self.assertFalse(pod.probe("readinessProbe"))
        self.assertTrue(pod.probe("livenessProbe"))
        for host in ("tacit", f"tacit.{NAMESPACE}", f"tacit.{NAMESPACE}.svc.cluster.local:8980"):
            self.assertEqual(pod.ask("/healthz", host)[0], 200, host)
        for host in ("tacit.other", "evil.example", "cluster.local", "evil-cluster.local"):
            self.assertEqual(pod.ask("/healthz", host)[0], 421, host)
        # It drains, and a second signal ends that.
        pod.process.send_signal(signal.SIGTERM)
        pod.wait(lambda: "answers go on for 10000 ms" in pod.said(), "draining")
        self.assertTrue(pod.probe("livenessProbe"))
        self.assertEqual(pod.end(), 0, pod.said())

    def with_workers(self):
        """The configuration with its lines for workers taken in."""
        config = re.sub(r"(?m)^# workers:", "workers:", self.config)
        self.assertIn("\nworkers:", config)
        return config.replace("format: json}", "format: json, periods: topic}", 1)

    def test_a_worker_answers_probes_and_nothing_else(self):
        pod = Pod(self, self.worker, self.with_workers())
        key = pod.root / "etc/tacit-workers/key"
        key.write_text("5a" * 32 + "\n")
        key.chmod(0o440)
        pod.start()
        pod.wait(lambda: pod.probe("startupProbe"), "started")
        status, why = pod.ask("/readyz")
        self.assertEqual(status, 503, pod.said())
        self.assertIn("no plan was read yet", why)
        self.assertFalse(pod.probe("readinessProbe"))
        self.assertTrue(pod.probe("livenessProbe"))
        self.assertEqual(pod.ask("/metrics")[0], 200)
        for path in ("/servez", "/v1/privacy", "/v1/ledger", "/v1/quality"):
            self.assertEqual(pod.ask(path)[0], 404, path)
        self.assertEqual(pod.end(), 0, pod.said())

    def test_a_trainer_takes_the_workers_key_from_the_secret(self):
        pod = Pod(self, self.trainer, self.with_workers())
        (pod.root / "etc/tacit-workers/key").write_text("5a" * 32 + "\n")
        (pod.root / "etc/tacit-workers/key").chmod(0o440)
        checked = subprocess.run([*pod.command, "--check-config"], env=pod.environment, capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_a_misspelt_key_is_refused_beside_the_services(self):
        pod = Pod(self, self.trainer, self.config, {"TACIT_SERVICE_LISTEN": "0.0.0.0:0"})
        pod.start()
        self.assertEqual(pod.process.wait(timeout=PATIENCE_S), 2)
        self.assertIn("TACIT_SERVICE_LISTEN", pod.said())


if __name__ == "__main__":
    ready = subprocess.run([TREE / "tools/pypi", "k8s", "ready"], capture_output=True, text=True)
    if ready.returncode != 0:
        print(f"left out: {ready.stdout.strip()}")
        sys.exit(1 if "k8s" in os.environ.get("TACIT_REQUIRE", "").split(",") else 0)
    sys.path.insert(0, ready.stdout.strip())
    import jsonschema
    import kubernetes_validate
    import yaml
    unittest.TestCase.maxDiff = None
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
