"""Generates text through a running server, by the command line program `tandem generate`."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

REQUESTS_IN_FLIGHT = 64


@dataclass(frozen=True)
class Request:
    prompt: str
    max_tokens: int
    temperature: float
    seed: int
    stop: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Output:
    text: str
    finish_reason: str


def generate(program: Path, server: str, requests: list[Request]) -> list[Output]:
    """One output per request, in order. The program sends all lines of a file at once, so: in portions."""
    outputs: list[Output] = []
    for start in range(0, len(requests), REQUESTS_IN_FLIGHT):
        outputs += _portion(program, server, requests[start:start + REQUESTS_IN_FLIGHT])
    return outputs


def _portion(program: Path, server: str, requests: list[Request]) -> list[Output]:
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(request)) + "\n" for request in requests)
        file.flush()
        command = [program, "generate", "--server", server, "--prompts-file", file.name, "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program} generate ended with exit code {done.returncode}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if len(lines) != len(requests):
        raise RuntimeError(f"{program} generate gave {len(lines)} results for {len(requests)} requests")
    return [Output(line["text"], line["finish_reason"]) for line in lines]
