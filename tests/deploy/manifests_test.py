"""Every overlay renders, is valid by the published schemas, and keeps the rules of a careful cluster."""

import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, "tests/deploy")
import manifests  # noqa: E402

# The oldest and newest versions whose schemas manifests must satisfy.
VERSIONS = ("1.27", "1.33")
NO_LIBRARY = "kubernetes-validate is not installed: ./dev test adds it where PyPI can be reached"
NOT_KUBERNETES = {"LeaderWorkerSet", "ServiceMonitor", "PrometheusRule"}
# The names that the dashboard and the alerts may use.
METRIC = re.compile(r"tandem_[a-z0-9_]+")


def schema_library():
    """The module kubernetes_validate of the virtual environment that ./dev deps makes, or None."""
    environment = os.environ.get("TANDEM_VENV", "")
    packages = os.path.join(environment, "lib", f"python3.{sys.version_info[1]}", "site-packages")
    if os.path.isdir(packages):
        sys.path.insert(0, packages)
    try:
        import kubernetes_validate
        return kubernetes_validate
    except ImportError:
        return None


class ManifestsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rendered = manifests.render_all(manifests.copy_of_tree(os.environ["TEST_TMPDIR"]))

    def test_every_overlay_is_tested(self):
        self.assertEqual(sorted(os.listdir("deploy/k8s/overlays")), sorted(manifests.OVERLAYS))

    def test_documents_are_valid_by_kubernetes_schemas(self):
        library = schema_library()
        if library is None:
            self.skipTest(NO_LIBRARY)
        for overlay, documents in self.rendered.items():
            for document in documents:
                if document["kind"] in NOT_KUBERNETES:
                    continue
                for version in VERSIONS:
                    with self.subTest(overlay=overlay, kind=document["kind"], version=version):
                        library.validate(document, version, strict=True)

    def test_a_misspelt_field_is_refused(self):
        library = schema_library()
        if library is None:
            self.skipTest(NO_LIBRARY)
        service = next(d for d in self.rendered["cpu-demo"] if d["kind"] == "Service")
        wrong = json.loads(json.dumps(service))
        wrong["spec"]["clusterIp"] = "None"
        with self.assertRaises(library.ValidationError):
            library.validate(wrong, VERSIONS[0], strict=True)

    def test_the_group_of_several_nodes_is_valid_by_its_definition(self):
        schemas = os.path.join(os.environ.get("TANDEM_SHARED", ""), "schemas", "leaderworkerset-crd.yaml")
        if not os.path.isfile(schemas):
            self.skipTest("no leaderworkerset-crd.yaml in $TANDEM_SHARED/schemas")
        if schema_library() is None:
            self.skipTest(NO_LIBRARY)
        import jsonschema
        import yaml
        with open(schemas, encoding="utf-8") as text:
            definition = yaml.safe_load(text)
        [version] = [v for v in definition["spec"]["versions"] if v["name"] == "v1"]
        schema = closed(version["schema"]["openAPIV3Schema"])
        for overlay in ("multi-node", "multi-node-cpu"):
            [group] = [d for d in self.rendered[overlay] if d["kind"] == "LeaderWorkerSet"]
            jsonschema.validate(group, schema)
        group["spec"]["leaderWorkerTemplate"]["sise"] = 2
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate(group, schema)

    def test_no_service_takes_the_name_of_a_group(self):
        for overlay, documents in self.rendered.items():
            names = {kind: {d["metadata"]["name"] for d in documents if d["kind"] == kind} for kind in ("Service", "LeaderWorkerSet")}
            self.assertFalse(names["Service"] & names["LeaderWorkerSet"], overlay)

    def test_what_an_autoscaler_sets_no_manifest_sets(self):
        targets = 0
        for overlay, documents in self.rendered.items():
            for scaler in (d["spec"] for d in documents if d["kind"] == "HorizontalPodAutoscaler"):
                target = scaler["scaleTargetRef"]
                [scaled] = [d["spec"] for d in documents
                            if d["kind"] == target["kind"] and d["metadata"]["name"] == target["name"]]
                self.assertNotIn("replicas", scaled, overlay)
                self.assertGreaterEqual(scaler["minReplicas"], 2, overlay)
                targets += 1
        self.assertEqual(targets, 1)

    def test_ranks_of_a_node_end_together(self):
        [group] = [d for d in self.rendered["multi-node"] if d["kind"] == "LeaderWorkerSet"]
        template = group["spec"]["leaderWorkerTemplate"]
        folder = os.path.join(os.environ["TEST_TMPDIR"], "ranks")
        os.makedirs(folder)
        with open(f"{folder}/tandem_worker_cuda", "w", encoding="ascii") as program:
            program.write("#!/bin/sh\ncase $* in *--device-index=5*) exit 3 ;; esac\nexec sleep 1000\n")
        os.chmod(f"{folder}/tandem_worker_cuda", 0o755)
        for pod in ("leaderTemplate", "workerTemplate"):
            [command] = [c["command"] for c in template[pod]["spec"]["containers"] if c["name"] == "workers"]
            command = [word.replace("$(LWS_LEADER_ADDRESS)", "leader") for word in command]
            done = subprocess.run(command, env={"PATH": f"{folder}:{os.environ['PATH']}"}, timeout=60, check=False)
            self.assertEqual(done.returncode, 3, pod)

    def test_flags_are_those_of_the_programs(self):
        programs = {"tandem_coordinator ": ["coordinator/tandem_coordinator"], "tandem_worker ": ["worker/tandem_worker"],
                    "tandem_worker_cuda ": ["worker/tandem_worker"],
                    "tandem pull": ["client/tandem", "pull"], "tandem wait": ["client/tandem", "wait"]}
        landmarks = {"tandem_coordinator ": "--listen", "tandem_worker ": "--collective-listen", "tandem_worker_cuda ": "--device-index", "tandem pull": "--attempts",
                     "tandem wait": "--service"}
        known = {}
        for name, command in programs.items():
            text = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60).stdout
            known[name] = set(re.findall(r"--[a-z][a-z0-9-]*", text))
            self.assertIn(landmarks[name], known[name])
        commands = [(name, container["command"] + container.get("args", [])) for name, _, container in manifests.each_container(self.rendered)]
        commands += [(f"{name}/{probe}", container[probe]["exec"]["command"])
                     for name, _, container in manifests.each_container(self.rendered) for probe in manifests.PROBES if "exec" in container.get(probe, {})]
        for name, words in commands:
            line = " ".join(words)
            [program] = [p for p in programs if p in line]
            used = set(re.findall(r"--[a-z][a-z0-9-]*", line))
            self.assertTrue(used, name)
            self.assertLessEqual(used, known[program], name)

    def test_pods_have_no_privileges(self):
        for name, pod in manifests.each_pod(self.rendered):
            with self.subTest(pod=name):
                security = pod["securityContext"]
                self.assertTrue(security["runAsNonRoot"])
                self.assertGreater(security["runAsUser"], 0)
                self.assertEqual(security["seccompProfile"]["type"], "RuntimeDefault")
                self.assertFalse(pod["automountServiceAccountToken"])
                self.assertFalse(pod["enableServiceLinks"])
                for key in ("hostNetwork", "hostPID", "hostIPC"):
                    self.assertNotIn(key, pod)
                for volume in pod["volumes"]:
                    self.assertNotIn("hostPath", volume)
        for name, _, container in manifests.each_container(self.rendered):
            with self.subTest(container=name):
                security = container["securityContext"]
                self.assertFalse(security["allowPrivilegeEscalation"])
                self.assertTrue(security["readOnlyRootFilesystem"])
                self.assertEqual(security["capabilities"], {"drop": ["ALL"]})

    def test_images_are_pinned(self):
        for name, _, container in manifests.each_container(self.rendered):
            tag = container["image"].rpartition(":")[2]
            self.assertRegex(tag, r"^\d+\.\d+\.\d+$", name)

    def test_resources_are_bounded(self):
        for name, pod, container in manifests.each_container(self.rendered):
            with self.subTest(container=name):
                resources = container["resources"]
                self.assertIn("cpu", resources["requests"])
                self.assertIn("memory", resources["requests"])
                self.assertIn("memory", resources["limits"])
                gpus = "nvidia.com/gpu"
                self.assertEqual(resources["requests"].get(gpus), resources["limits"].get(gpus))
                if manifests.flag(container, "workers") != "external" and gpus in resources["limits"]:
                    ranks = manifests.flag(container, "tensor-parallel-size")
                    if ranks is not None:
                        self.assertEqual(resources["limits"][gpus], ranks)
        for name, pod in manifests.each_pod(self.rendered):
            for volume in pod["volumes"]:
                if "emptyDir" in volume:
                    self.assertIn("sizeLimit", volume["emptyDir"], f"{name}: {volume['name']}")

    def test_servers_are_probed_and_drained(self):
        servers = 0
        for name, pod, container in manifests.each_container(self.rendered):
            if container["command"][0] != "tandem_coordinator":
                continue
            servers += 1
            with self.subTest(container=name):
                for probe in manifests.PROBES:
                    service = probe.removesuffix("Probe")
                    if manifests.flag(container, "tls-cert"):
                        self.assertNotIn("grpc", container[probe])
                        self.assertIn(f"--service={service}", container[probe]["exec"]["command"])
                    else:
                        self.assertEqual(container[probe]["grpc"], {"port": 50051, "service": service})
                    self.assertLess(container[probe]["timeoutSeconds"], container[probe]["periodSeconds"] + 1)
                for flag, name, port in (("listen", "grpc", 50051), ("http-listen", "http", 8080), ("metrics-listen", "metrics", 9464)):
                    self.assertEqual(manifests.flag(container, flag), f"0.0.0.0:{port}")
                    self.assertIn({"name": name, "containerPort": port}, container["ports"])
                starts = container["startupProbe"]
                load = manifests.seconds(manifests.flag(container, "load-timeout") or "600s")
                self.assertGreaterEqual(starts["periodSeconds"] * starts["failureThreshold"], load)
                [command, pause] = container["lifecycle"]["preStop"]["exec"]["command"]
                self.assertEqual(command, "sleep")
                drain = manifests.seconds(manifests.flag(container, "drain-timeout"))
                self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], int(pause) + drain + 3 * 5 + 5)
                mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
                self.assertIn("/tmp", mounts)
        self.assertEqual(servers, 7)

    def test_only_named_clients_reach_the_port(self):
        for overlay in manifests.SERVERS:
            documents = self.rendered[overlay]
            with self.subTest(overlay=overlay):
                policies = {d["metadata"]["name"]: d["spec"] for d in documents if d["kind"] == "NetworkPolicy"}
                [clients, monitors] = policies["tandem"]["ingress"]
                self.assertEqual(clients["from"], [{"podSelector": {"matchLabels": {"tandem-client": "true"}}}])
                self.assertEqual([port["port"] for port in clients["ports"]], [50051, 8080, 9464])
                self.assertEqual([port["port"] for port in monitors["ports"]], [9464])

    def test_services_reach_the_servers_ports(self):
        for overlay in manifests.SERVERS:
            documents = self.rendered[overlay]
            with self.subTest(overlay=overlay):
                services = {d["metadata"]["name"]: d["spec"] for d in documents if d["kind"] == "Service"}
                self.assertEqual(sorted(services), ["tandem", "tandem-http"])
                self.assertEqual(services["tandem"]["clusterIP"], "None")
                self.assertNotIn("clusterIP", services["tandem-http"])
                ports = {port["name"]: port for service in services.values() for port in service["ports"]}
                self.assertEqual({name: port["port"] for name, port in ports.items()}, {"grpc": 50051, "http": 8080, "metrics": 9464})
                self.assertEqual(services["tandem"]["selector"], services["tandem-http"]["selector"])
                for name, port in ports.items():
                    self.assertEqual(port["targetPort"], name)

    def test_dashboard_and_alerts_name_the_same_metrics(self):
        documents = self.rendered["monitoring"]
        [board] = [json.loads(d["data"]["dashboard.json"]) for d in documents if d["kind"] == "ConfigMap"]
        [rules] = [d["spec"]["groups"] for d in documents if d["kind"] == "PrometheusRule"]
        shown = {m for panel in board["panels"] for t in panel["targets"] for m in METRIC.findall(t["expr"])}
        alerted = {m for group in rules for rule in group["rules"] for m in METRIC.findall(rule["expr"])}
        self.assertTrue(alerted)
        self.assertLessEqual(alerted, shown)
        [scaler] = [d for d in self.rendered["replicas"] if d["kind"] == "HorizontalPodAutoscaler"]
        [metric] = scaler["spec"]["metrics"]
        self.assertIn(metric["pods"]["metric"]["name"], shown)


def closed(schema):
    """The schema, with fields refused that it does not name."""
    if isinstance(schema, dict):
        schema = {key: closed(value) for key, value in schema.items()}
        if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            if schema.get("type") == "object" and schema["properties"]:
                schema.setdefault("additionalProperties", False)
        return schema
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    return schema


if __name__ == "__main__":
    unittest.main()
