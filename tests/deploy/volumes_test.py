"""What pods mount: the claim with models, and secrets, with what the overlay secure makes of them."""

import os
import shutil
import sys
import unittest

import yaml

sys.path.insert(0, "tests/deploy")
import manifests  # noqa: E402


def variables(container):
    """Of the environment, those with a value."""
    return {entry["name"]: entry["value"] for entry in container.get("env", []) if "value" in entry}


def claim_mounts(pod, container):
    """(claim, whether volume and mount are read-only) by path."""
    claims = {v["name"]: v["persistentVolumeClaim"] for v in pod["volumes"] if "persistentVolumeClaim" in v}
    return {mount["mountPath"]: (claims[mount["name"]]["claimName"],
                                 claims[mount["name"]].get("readOnly", False) and mount.get("readOnly", False))
            for mount in container["volumeMounts"] if mount["name"] in claims}


class VolumesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = manifests.copy_of_tree(os.environ["TEST_TMPDIR"])
        cls.rendered = manifests.render_all(cls.tree)

    def test_the_job_fills_the_claim_that_servers_read(self):
        [(_, filler)] = manifests.pod_specs(self.rendered["fill-models"])
        [pull] = filler["containers"]
        self.assertEqual(claim_mounts(filler, pull), {"/models": ("tandem-models", False)})
        self.assertEqual(variables(pull)["HF_HOME"], "/models")
        [job] = [d for d in self.rendered["fill-models"] if d["kind"] == "Job"]
        readers = 0
        for name, pod, container in manifests.each_container(self.rendered):
            if pod is filler or "/models" not in claim_mounts(pod, container):
                continue
            with self.subTest(container=name):
                self.assertEqual(claim_mounts(pod, container)["/models"], ("tandem-models", True))
                if container["command"] == ["tandem_coordinator"]:
                    readers += 1
                    self.assertEqual(manifests.flag(container, "model"), pull["args"][0])
                    self.assertLessEqual({"HF_HOME": "/models", "HF_HUB_OFFLINE": "1"}.items(), variables(container).items())
        self.assertEqual(readers, 5)
        modes = {overlay: [d["spec"]["accessModes"] for d in documents if d["kind"] == "PersistentVolumeClaim"]
                 for overlay, documents in self.rendered.items()}
        one, many, none = [["ReadWriteOnce"]], [["ReadWriteMany"]], []
        self.assertEqual(modes, {"cpu-demo": none, "fill-models": one, "model-by-name": none, "monitoring": none, "multi-node": many, "multi-node-cpu": many,
                                 "replicas": many, "secure": one, "single-node": one})
        # No service or policy of the servers takes its pod for one of them.
        self.assertNotEqual(job["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"], "tandem")

    def test_the_init_container_fetches_what_the_server_serves(self):
        [(_, pod)] = manifests.pod_specs(self.rendered["model-by-name"])
        [pull], [server] = pod["initContainers"], pod["containers"]
        self.assertEqual(manifests.flag(server, "model"), pull["args"][0])
        homes = [variables(container)["HF_HOME"] for container in (pull, server)]
        self.assertEqual(homes, ["/models", "/models"])
        mounts = [{mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}["/models"]
                  for container in (pull, server)]
        self.assertEqual(mounts, [False, True])

    def test_secrets_can_rotate_and_are_the_groups_alone(self):
        volumes = 0
        for name, pod, container in manifests.each_container(self.rendered):
            secrets = {v["name"]: v["secret"] for v in pod["volumes"] if "secret" in v}
            for mount in container["volumeMounts"]:
                if mount["name"] in secrets:
                    volumes += 1
                    self.assertNotIn("subPath", mount, name)  # it would never change
                    self.assertTrue(mount["readOnly"], name)
                    self.assertEqual(secrets[mount["name"]]["defaultMode"], 0o440, name)
        self.assertEqual(volumes, 2 * (2 * 3) + 2)

    def test_certificates_and_tokens_are_those_of_the_secrets(self):
        [(_, pod)] = manifests.pod_specs(self.rendered["secure"])
        [server] = pod["containers"]
        secrets = {v["name"]: v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v}
        mounts = {mount["mountPath"]: secrets.get(mount["name"]) for mount in server["volumeMounts"]}
        for flag, secret, file in (("tls-cert", "tandem-server-tls", "tls.crt"), ("tls-key", "tandem-server-tls", "tls.key"),
                                   ("tokens", "tandem-tokens", "tokens")):
            folder, name = os.path.split(manifests.flag(server, flag))
            self.assertEqual((mounts[folder], name), (secret, file))
        for probe in manifests.PROBES:
            [authorities] = [word for word in server[probe]["exec"]["command"] if word.startswith("--tls-ca=")]
            self.assertEqual(mounts[os.path.dirname(authorities.split("=")[1])], "tandem-server-tls")
        with open("deploy/k8s/overlays/secure/certificate.yaml", encoding="utf-8") as text:
            certificate = yaml.safe_load(text)["spec"]
        self.assertEqual(certificate["secretName"], "tandem-server-tls")
        [service, *_] = [d["metadata"] for d in self.rendered["secure"] if d["kind"] == "Service"]
        for name in ("tandem", "tandem-http"):
            self.assertLessEqual({name, f"{name}.{service['namespace']}"}, set(certificate["dnsNames"]))
        ports = [port for d in self.rendered["secure"] if d["kind"] == "Service" for port in d["spec"]["ports"]]
        self.assertEqual({port["name"]: port.get("appProtocol") for port in ports}, {"grpc": "https", "http": "https", "metrics": None})

    def test_secure_stands_on_other_overlays(self):
        secure = os.path.join(self.tree, "overlays", "secure")
        with open(os.path.join(secure, "kustomization.yaml"), encoding="utf-8") as text:
            kustomization = text.read()
        self.assertIn("- ../single-node\n", kustomization)
        for overlay in ("cpu-demo", "model-by-name", "replicas"):
            with self.subTest(overlay=overlay):
                other = os.path.join(self.tree, "overlays", f"secure-{overlay}")
                shutil.copytree(secure, other)
                with open(os.path.join(other, "kustomization.yaml"), "w", encoding="utf-8") as text:
                    text.write(kustomization.replace("- ../single-node\n", f"- ../{overlay}\n"))
                [(_, plain)] = manifests.pod_specs(self.rendered[overlay])
                [(_, pod)] = manifests.pod_specs(manifests.render(other))
                [before], [after] = plain["containers"], pod["containers"]
                added = ["--tls-cert=/etc/tandem-tls/tls.crt", "--tls-key=/etc/tandem-tls/tls.key", "--tokens=/etc/tandem-tokens/tokens"]
                self.assertEqual(after["args"], before["args"] + added)
                self.assertEqual([set(after[probe]) & {"grpc", "exec"} for probe in manifests.PROBES], [{"exec"}] * 3)
                mounted = {mount["mountPath"] for mount in after["volumeMounts"]} - {mount["mountPath"] for mount in before["volumeMounts"]}
                self.assertEqual(mounted, {"/etc/tandem-tls", "/etc/tandem-tokens"})


if __name__ == "__main__":
    unittest.main()
