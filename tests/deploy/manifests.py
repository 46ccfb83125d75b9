"""Manifests as kubectl renders them, and where their pods are."""

import os
import shutil
import subprocess

import yaml

SERVERS = ("cpu-demo", "model-by-name", "multi-node", "multi-node-cpu", "replicas", "secure", "single-node")
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
OVERLAYS = tuple(sorted((*SERVERS, "fill-models", "monitoring")))


def copy_of_tree(work):
    """deploy/k8s below `work` as plain files: kustomize refuses the links of Bazel's runfiles."""
    tree = os.path.join(work, "k8s")
    if not os.path.isdir(tree):
        shutil.copytree("deploy/k8s", tree, symlinks=False)
    return tree


def render(folder):
    """The documents that `kubectl kustomize` makes of a folder."""
    done = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"kubectl kustomize {folder}: {done.stderr}")
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def render_all(tree):
    """The documents of every overlay by its name."""
    return {name: render(os.path.join(tree, "overlays", name)) for name in OVERLAYS}


def pod_specs(documents):
    """(name, pod spec) of everything that makes pods."""
    for document in documents:
        spec = document.get("spec", {})
        if document["kind"] in ("Deployment", "Job"):
            yield document["kind"], spec["template"]["spec"]
        elif document["kind"] == "LeaderWorkerSet":
            template = spec["leaderWorkerTemplate"]
            yield "leader", template["leaderTemplate"]["spec"]
            yield "worker", template["workerTemplate"]["spec"]


def each_pod(rendered):
    """(name, pod spec) of all overlays."""
    for overlay, documents in rendered.items():
        for name, pod in pod_specs(documents):
            yield f"{overlay}/{name}", pod


def each_container(rendered):
    """(name, pod spec, container) of all overlays."""
    for name, pod in each_pod(rendered):
        for container in pod.get("initContainers", []) + pod["containers"]:
            yield f"{name}/{container['name']}", pod, container


def seconds(text):
    """A flag's duration, as the manifests write it."""
    if not text.endswith("s"):
        raise AssertionError(f"a duration in seconds, not {text!r}")
    return int(text[:-1])


def flag(container, name):
    """The value of --name=VALUE among a container's arguments, or None."""
    for argument in container.get("args", []):
        if argument.startswith(f"--{name}="):
            return argument.split("=", 1)[1]
    return None
