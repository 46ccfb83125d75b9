"""A running coordinator: its channel, whether it serves, its model, and how much it has to do."""

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator

import grpc

from gateway.access import Access
from health.v1 import health_pb2, health_pb2_grpc
from tandem.v1 import generation_pb2 as api
from tandem.v1 import generation_pb2_grpc

_LOG = logging.getLogger("gateway")
_CALL_TIMEOUT_S = 10
_CHECK_INTERVAL_S = 1  # of health, where it cannot be watched
_RETRY_S = (0.1, 0.2, 0.5, 1.0, 2.0)
_MAX_MESSAGE_BYTES = 64 << 20  # log-probabilities of a long prompt, bytes of many tokens
_OPTIONS = (
    ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


def _text(name: bytes) -> str:
    return name.decode(errors="replace")


def _options(address: str) -> tuple[tuple[str, int], ...]:
    host = address.rpartition(":")[0].strip("[]")
    if host in ("localhost", "::1") or host.startswith("127."):
        return (*_OPTIONS, ("grpc.enable_http_proxy", 0))  # a proxy would look on its own host
    return _OPTIONS


@dataclasses.dataclass(frozen=True)
class Model:
    """What a coordinator serves."""
    id: str
    max_model_len: int
    chat_template: str
    bos_token: str
    eos_token: str
    adapters: tuple[str, ...] = ()  # names of LoRA adapters, each a model of its own to clients


class Coordinator:
    """Of the event loop's thread. `model` is None until it has served once."""

    def __init__(self, address: str, served_model_name: str | None, chat_template: str | None,
                 access: Access = Access()):
        self.address = address
        self.model: Model | None = None
        self.serving = False
        self.has_served = asyncio.Event()
        self.in_flight = 0
        self._served_model_name = served_model_name
        self._chat_template = chat_template
        self._pieces: dict[int, bytes] = {}
        self._access = access
        self._channel = (
            grpc.aio.insecure_channel(address, options=_options(address)) if access.tls is None
            else grpc.aio.secure_channel(address, access.tls, options=_options(address)))
        self.stub = generation_pb2_grpc.GenerationStub(self._channel)
        self._health = health_pb2_grpc.HealthStub(self._channel)

    async def watch(self) -> None:
        """Follows the coordinator's health until cancelled."""
        failures = 0
        problem = None
        while True:
            try:
                async for status in self._statuses():
                    await self._set_serving(status == health_pb2.HealthCheckResponse.SERVING)
                    failures, problem = 0, None
            except grpc.aio.AioRpcError as error:
                if error.code() != problem:
                    _LOG.warning("%s: %s", self.address, error.details())
                problem = error.code()
            except Exception:
                _LOG.exception("%s: its health cannot be followed", self.address)
            self.serving = False
            await asyncio.sleep(_RETRY_S[min(failures, len(_RETRY_S) - 1)])
            failures += 1

    async def _statuses(self) -> AsyncIterator[int]:
        """The first and each other one."""
        request, headers = health_pb2.HealthCheckRequest(), self._access.own_headers()
        try:
            async for answer in self._health.Watch(request, metadata=headers):
                yield answer.status
            return
        except grpc.aio.AioRpcError as error:
            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise
        last = None  # others have all of its watches
        while True:
            answer = await self._health.Check(request, metadata=headers, timeout=_CALL_TIMEOUT_S)
            if answer.status != last:
                yield (last := answer.status)
            await asyncio.sleep(_CHECK_INTERVAL_S)

    async def _set_serving(self, serving: bool) -> None:
        if serving:
            await self.load()
            self._pieces.clear()
        if serving != self.serving:
            _LOG.info("%s: %s", self.address, "serving" if serving else "not serving")
        self.serving = serving
        if serving:
            self.has_served.set()

    async def load(self) -> None:
        """For a caller that does not watch: the model, or why there is none yet."""
        self.model = await self._fetch_model()

    async def _fetch_model(self) -> Model:
        info = await self.stub.GetModelInfo(api.GetModelInfoRequest(), timeout=_CALL_TIMEOUT_S,
                                            metadata=self._access.own_headers())
        special = await self._fetch_pieces(
            [id for id, known in ((info.bos_id, info.HasField("bos_id")),
                                  (info.eos_id, info.HasField("eos_id"))) if known])
        return Model(
            id=self._served_model_name or info.name or "tandem",
            max_model_len=info.context_length,
            chat_template=self._chat_template or info.chat_template,
            bos_token=_text(special.get(info.bos_id, b"")) if info.HasField("bos_id") else "",
            eos_token=_text(special.get(info.eos_id, b"")) if info.HasField("eos_id") else "",
            adapters=tuple(info.adapters))

    async def _fetch_pieces(self, ids: list[int]) -> dict[int, bytes]:
        answer = await self.stub.Detokenize(
            api.DetokenizeRequest(ids=ids, want_token_bytes=True), timeout=_CALL_TIMEOUT_S,
            metadata=self._access.own_headers())
        return dict(zip(ids, answer.token_bytes))

    async def pieces(self, ids: set[int]) -> dict[int, bytes]:
        """The bytes of these ids: what has been fetched is kept."""
        missing = [id for id in ids if id not in self._pieces]
        if missing:
            self._pieces.update(await self._fetch_pieces(missing))
        return {id: self._pieces[id] for id in ids}

    def generate(self, request: api.GenerateRequest, timeout_s: float | None = None):
        """The call, for the caller."""
        return self.stub.Generate(request, timeout=timeout_s,
                                  metadata=self._access.callers_headers())

    def embed(self, request: api.EmbedRequest, timeout_s: float | None = None):
        """The call, for the caller."""
        return self.stub.Embed(request, timeout=timeout_s,
                               metadata=self._access.callers_headers())

    async def ask_for_caller(self) -> None:
        """Raises what the server says to a caller who may not generate."""
        await self.stub.GetModelInfo(api.GetModelInfoRequest(), timeout=_CALL_TIMEOUT_S,
                                     metadata=self._access.callers_headers())

    async def tokenize(self, text: str, add_special_tokens: bool) -> api.TokenizeResponse:
        """Control tokens that are written out in the text are parsed, as in vLLM."""
        return await self.stub.Tokenize(
            api.TokenizeRequest(text=text, add_special_tokens=add_special_tokens,
                                parse_special_tokens=True), timeout=_CALL_TIMEOUT_S,
            metadata=self._access.callers_headers())

    async def detokenize(self, ids: list[int]) -> str:
        answer = await self.stub.Detokenize(api.DetokenizeRequest(ids=ids),
                                            timeout=_CALL_TIMEOUT_S,
                                            metadata=self._access.callers_headers())
        return answer.text

    async def close(self) -> None:
        await self._channel.close()
