"""TemplatePool: renders chat templates in a few processes, each job bounded in time and size."""

import asyncio
import json
import os
import sys

from gateway.errors import bad_request
from gateway.template_worker import frame, length_of

_START_S = 10  # for a process to start, beside the job's own time


class TemplatePool:
    """Of one event loop. At most `size` processes; jobs beyond them wait their turn."""

    def __init__(self, size: int = 2, limit_s: float = 2.0):
        self._limit_s = limit_s
        self._turns = asyncio.Semaphore(size)
        self._idle: list[asyncio.subprocess.Process] = []

    async def render(self, template: str, variables: dict) -> str:
        """Raises ApiError 400 with what the template said or did wrong."""
        job = frame({"template": template, "variables": variables, "limit_s": self._limit_s})
        async with self._turns:
            process = await self._take()
            try:
                answer = await asyncio.wait_for(_exchange(process, job), self._limit_s + _START_S)
            except BaseException as error:  # also when the client is gone: no answer is left over
                await _end(process)
                if isinstance(error, (asyncio.IncompleteReadError, ConnectionError, TimeoutError)):
                    raise bad_request("the chat template took more than its "
                                      f"{self._limit_s:g} s or its memory: it was stopped",
                                      "messages") from error
                raise
            self._idle.append(process)
        if "error" in answer:
            raise bad_request(answer["error"], "messages")
        return answer["text"]

    async def _take(self) -> asyncio.subprocess.Process:
        while self._idle:
            process = self._idle.pop()
            if process.returncode is None:
                return process
        return await asyncio.create_subprocess_exec(
            sys.executable, "-sP", "-c", "from gateway.template_worker import main; main()",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})

    async def close(self) -> None:
        for process in self._idle:
            await _end(process)
        self._idle = []


async def _exchange(process: asyncio.subprocess.Process, job: bytes) -> dict:
    process.stdin.write(job)
    await process.stdin.drain()
    header = await process.stdout.readexactly(4)
    return json.loads(await process.stdout.readexactly(length_of(header)))


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        try:
            process.kill()
        except ProcessLookupError:
            pass
    await process.wait()
