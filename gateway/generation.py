"""Generation: the gRPC calls of one HTTP request, and their messages in the order they come."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator

import grpc

from gateway.backend import Coordinator
from gateway.errors import unavailable
from tandem.v1 import generation_pb2 as api


class Generation:
    """Starts the calls at once. close() must be called: it cancels what still runs."""

    def __init__(self, coordinator: Coordinator, requests: list[api.GenerateRequest],
                 timeout_s: float):
        self._coordinator = coordinator
        self._calls = [coordinator.generate(one, timeout_s) for one in requests]
        self._pumps: list[asyncio.Task] = []
        coordinator.in_flight += len(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    async def messages(self) -> AsyncIterator[tuple[int, api.GenerateResponse]]:
        """(which request, its next message). Ends when all have ended; raises what one raises."""
        source = self._of_one() if len(self._calls) == 1 else self._of_several()
        async for index, message in source:
            if message.finish_reason == api.FINISH_REASON_CANCELLED:
                raise unavailable("the server is shutting down")
            yield index, message

    async def _of_one(self):
        read = self._calls[0].read
        while (message := await read()) is not grpc.aio.EOF:
            yield 0, message

    async def _of_several(self):
        arrived: asyncio.Queue = asyncio.Queue(2 * len(self._calls))

        async def pump(index, call):
            try:
                while (message := await call.read()) is not grpc.aio.EOF:
                    await arrived.put((index, message))
                await arrived.put((index, None))
            except grpc.aio.AioRpcError as error:
                await arrived.put((index, error))

        self._pumps = [asyncio.create_task(pump(*one)) for one in enumerate(self._calls)]
        running = len(self._calls)
        while running:
            index, message = await arrived.get()
            if isinstance(message, Exception):
                raise message
            if message is None:
                running -= 1
            else:
                yield index, message

    def close(self) -> None:
        """May be called more than once."""
        for task in self._pumps:
            task.cancel()
        for call in self._calls:
            call.cancel()  # no effect on one that has ended
        self._coordinator.in_flight -= len(self._calls)
        self._calls, self._pumps = [], []


@dataclasses.dataclass
class Answer:
    """One request's whole answer; `last`: the message that says why and how it ended. `messages`: of
    each its text and number of tokens, if they are kept."""
    keeps_messages: bool = False
    text: str = ""
    messages: list[tuple[str, int]] = dataclasses.field(default_factory=list)
    logprobs: list[api.TokenLogprobs] = dataclasses.field(default_factory=list)
    prompt_logprobs: list[api.TokenLogprobs] = dataclasses.field(default_factory=list)
    last: api.GenerateResponse = dataclasses.field(default_factory=api.GenerateResponse)

    def add(self, message: api.GenerateResponse) -> None:
        self.text += message.text
        if self.keeps_messages:
            self.messages.append((message.text, len(message.token_ids)))
        self.logprobs.extend(message.logprobs)
        self.prompt_logprobs.extend(message.prompt_logprobs)
        if message.finish_reason:
            self.last = message


async def gather(generation: Generation, keep_messages: bool) -> list[Answer]:
    """The whole answers, in the order of the requests."""
    answers = [Answer(keep_messages) for _ in range(len(generation))]
    async for index, message in generation.messages():
        answers[index].add(message)
    return answers
