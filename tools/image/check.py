"""Executes a Containerfile in a fresh Debian root, and checks the image: what is in it, that each program starts, that it serves.

usage: check.py cpu|cuda WORK      (as root, in a mount namespace of its own: `./dev image-check`)

WORK keeps the base that debootstrap made; the rest of it is made anew. Ends with 1 and a reason if a step or a check fails.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import builder
import container
import containerfile
import cuda_stand_in
import layer

MIB = 1 << 20
STORY = ("tandem", "generate", "--prompt", "Story:", "--stop", "\n", "--max-tokens", "120", "--temperature", "0.7", "--seed", "7",
         "--usage")
HTTP_STORY = {"prompt": "Story:", "stop": "\n", "max_tokens": 120, "temperature": 0.7, "seed": 7}


class Failed(Exception):
    """What the image lacks."""


def timed(what, action):
    """Runs `action`, prints `what` with its seconds, and returns its result."""
    start = time.monotonic()
    result = action()
    print(f"{time.monotonic() - start:7.1f} s  {what}", flush=True)
    return result


def build(kind, work):
    """The image of deploy/container/Containerfile.KIND."""
    base, folder = os.path.join(work, "base"), os.path.join(work, kind)
    if not os.path.isdir(base):
        shutil.rmtree(base + ".new", ignore_errors=True)
        timed("debootstrap", lambda: builder.make_base(base + ".new"))
        os.rename(base + ".new", base)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    options = timed("the stand-in for NVIDIA's packages", lambda: cuda_stand_in.make(folder)) if kind == "cuda" else {}
    image = builder.Builder(base, folder, os.getcwd(), **options)
    with open(f"deploy/container/Containerfile.{kind}", encoding="utf-8") as text:
        instructions = containerfile.read(text.read())
    for instruction in instructions:
        timed(f"{instruction.name} {instruction.text[:100]}", lambda step=instruction: image.execute(step))
    return image


def check_files(image):
    """Prints what the layer holds; none of it may be a compiler, setuid, or writable by others."""
    found = layer.files(image.layer)
    owned = layer.owned_by_packages(image.root)
    print(f"layer: {sum(size for _, size in found) / MIB:.1f} MiB in {len(found)} files; packages: "
          + " ".join(sorted(layer.packages(image.root) - layer.packages(image.base))))
    # Container builders make a layer of each instruction.
    size, taken_in = sum(size for _, size in found), sum(image.taken_in)
    print(f"its instructions took in {taken_in / MIB:.1f} MiB")
    if taken_in > size:
        raise Failed(f"{(taken_in - size) / MIB:.1f} MiB were taken in that a later instruction deletes or replaces: they stay in the image")
    print("files of no package:")
    generated = {}
    for path, size in found:
        if path in owned:
            continue
        if path.startswith(("/etc/ssl/", "/var/", "/usr/share/doc/tandem/")) or "/__pycache__/" in path:
            folder = "/usr/**/__pycache__" if "/__pycache__/" in path else os.path.dirname(path)
            count, total = generated.get(folder, (0, 0))
            generated[folder] = (count + 1, total + size)
        else:
            print(f"  {size:10d}  {path}")
    for folder, (count, total) in sorted(generated.items()):
        print(f"  {total:10d}  {folder}/ ({count} files)")
    if tools := layer.compilers(image.root):
        raise Failed(f"a compiler: {tools}")
    for path, _ in found:
        status = os.lstat(image.layer + path)
        if not os.path.islink(image.layer + path) and status.st_mode & 0o6002:
            raise Failed(f"{path} has the mode {status.st_mode:o}")


def check_programs(image, running):
    """Each program says what it is, as the image's user."""
    for name in sorted(os.listdir(image.layer + "/usr/bin")):
        if not name.startswith("tandem"):
            continue
        text = timed(f"{name} --help", lambda program=name: running.run(program, "--help"))
        if "usage: tandem" not in text.lower():
            raise Failed(f"{name} --help printed: {text[:200]}")


def ask(running, body):
    """The answer to a completion over HTTP, asked from inside the image, which has a Python but no curl."""
    with open(os.path.join(os.path.dirname(__file__), "http_client.py"), encoding="utf-8") as program:
        return json.loads(running.run("python3", "-c", program.read(), "/v1/completions", json.dumps(body)))


def check_start(running):
    """It serves both APIs, soon after its start."""
    timed("start to ready", lambda: running.run("tandem", "wait", "--timeout", "60s"))
    timed("then to an answer over HTTP", lambda: ask(running, {**HTTP_STORY, "max_tokens": 1}))


def check_service(image, running):
    """It serves as the image's user on a read-only root, and the stop signal ends it."""
    inside = running.run("sh", "-c", "id -u; id -g; cat /proc/1/comm; touch /usr/x 2>&1 || true")
    if not re.fullmatch("64100\n64100\ntandem_coordina\n.*Read-only file system\n", inside):
        raise Failed(f"not user 64100, process 1 and a read-only root: {inside}")
    print(timed("a story", lambda: running.run(*STORY)))
    answer = timed("a story over HTTP", lambda: ask(running, HTTP_STORY))
    print(answer["choices"][0]["text"], answer["usage"])
    if (answer["choices"][0]["finish_reason"], answer["choices"][0]["stop_reason"]) != ("stop", "\n"):
        raise Failed(f"the story over HTTP has no end: {answer}")
    code = timed(image.stop_signal, running.stop)
    if code != 0:
        raise Failed(f"it ended with {code}: {running.log()}")


def check_gpu_worker(image, log_path):
    """Where there is no GPU, the image's own command starts the GPU worker, which says what it lacks."""
    command, image.command = image.command, ["--model=/usr/share/tandem/demo.gguf", "--device=cuda"]
    with container.Container(image, log_path) as running:
        code = timed("--device=cuda", lambda: running.process.wait(container.DEADLINE_S))
        if code != 1 or "CUDA" not in running.log():
            raise Failed(f"without a GPU it ended with {code}: {running.log()}")
        print(running.log().splitlines()[-1])
    image.command = command


def main(kind, work):
    image = build(kind, work)
    log_path = os.path.join(work, f"{kind}.log")
    check_files(image)
    if kind == "cuda":
        check_gpu_worker(image, log_path)
        image.command = ["--model=/usr/share/tandem/demo.gguf", "--tensor-parallel-size=2", "--http-listen=127.0.0.1:8080"]
    with container.Container(image, log_path) as running:
        check_start(running)
        check_programs(image, running)
        check_service(image, running)
    print("ok", flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1], os.path.abspath(sys.argv[2]))
    except (Failed, OSError, subprocess.SubprocessError, containerfile.Malformed) as error:
        sys.exit(f"image-check: {error}")
