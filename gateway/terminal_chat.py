"""tandem_chat: a conversation in the terminal, by the model's chat template."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator

import grpc

from gateway import chat_prompt
from gateway.access import calling_for
from gateway.answer_reader import AnswerReader, ChannelReader, MarkedReader, Parts
from gateway.backend import Coordinator
from gateway.connection_flags import add_connection_flags, read_access
from gateway.errors import ApiError, from_grpc
from gateway.gpt_oss_calls import GptOssParser
from gateway.reasoning import MARKERS, ThoughtsReader, beginning, markers_of_template
from gateway.template_pool import TemplatePool
from gateway.tool_parsers import has_channels
from gateway.version import VERSION
from tandem.v1 import generation_pb2 as api

_HELP = """\
/reset         forget the conversation, not the system prompt
/system TEXT   another system prompt, or none; forgets the conversation
/save FILE     the conversation as JSON
/quit          as Ctrl-D does; Ctrl-C stops an answer"""


def _reader(template: str, prompt: str) -> AnswerReader:
    if has_channels(template, has_tools=False):
        return ChannelReader(GptOssParser())
    markers = MARKERS.get(markers_of_template(template))
    return MarkedReader(markers and ThoughtsReader(markers, beginning(markers, prompt)))


async def _parts(messages: AsyncIterator[api.GenerateResponse],
                 reader: AnswerReader) -> AsyncIterator[Parts]:
    """What an answer thinks and says, and the calls in it, as it comes."""
    async for message in messages:
        yield reader.read(message.text, last=False)
    yield reader.read("", last=True)


class _Screen:
    """Thoughts are dim, and on a terminal only."""

    def __init__(self):
        self._shows_thoughts = sys.stdout.isatty()
        self._is_dim = False

    def show(self, parts: Parts) -> None:
        if parts.reasoning and self._shows_thoughts:
            self._print(parts.reasoning, dim=True)
        if parts.content:
            self._print(parts.content, dim=False)

    def end(self) -> None:
        self._print("\n", dim=False)

    def _print(self, text: str, dim: bool) -> None:
        change = "" if dim == self._is_dim else "\x1b[2m" if dim else "\x1b[0m\n\n"
        self._is_dim = dim
        print(change + text, end="", flush=True)


class Conversation:
    """The messages so far, and one coordinator to go on with them."""

    def __init__(self, coordinator: Coordinator, params: api.SamplingParams, system: str):
        self._coordinator = coordinator
        self._templates = TemplatePool(size=1)
        self._params = params
        self.set_system(system)

    def set_system(self, text: str) -> None:
        self._system = [{"role": "system", "content": text}] if text else []
        self.reset()

    def reset(self) -> None:
        self.messages = list(self._system)

    async def answer(self, text: str) -> None:
        """Prints the answer as it comes. One that fails is forgotten, one that is stopped is not."""
        asked = [*self.messages, {"role": "user", "content": text}]
        if self._coordinator.model is None:
            await self._coordinator.load()
        prompt = await chat_prompt.render(self._templates, self._coordinator.model, asked, [], True,
                                          {})
        said, thoughts, has_called = "", "", False
        reader, screen = _reader(self._coordinator.model.chat_template, prompt), _Screen()
        call = self._coordinator.generate(api.GenerateRequest(
            text=prompt, sampling=self._params, add_special_tokens=False,
            parse_special_tokens=True, skip_special_tokens=not reader.may_think))
        try:
            async for parts in _parts(call, reader):
                said += parts.content
                thoughts += parts.reasoning
                has_called = has_called or bool(parts.calls)
                screen.show(parts)
            if has_called and not said:
                print("tandem_chat: the model only called a tool, and there is none here: the question is forgotten",
                      file=sys.stderr)
        except grpc.aio.AioRpcError:
            said = ""
            raise
        finally:
            call.cancel()
            screen.end()
            if said:
                thought = {"reasoning_content": thoughts} if thoughts else {}
                self.messages = [*asked, {"role": "assistant", "content": said, **thought}]

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"messages": self.messages}, file, ensure_ascii=False, indent=2)
            file.write("\n")

    async def close(self) -> None:
        await self._templates.close()
        await self._coordinator.close()


def _obey(conversation: Conversation, line: str) -> bool:
    """Whether to go on after this command."""
    command, _, rest = line.partition(" ")
    rest = rest.strip()
    if command == "/quit":
        return False
    if command == "/reset":
        conversation.reset()
    elif command == "/system":
        conversation.set_system(rest)
    elif command == "/save" and rest:
        try:
            conversation.save(rest)
        except OSError as error:
            print(f"tandem_chat: {rest}: {error.strerror}", file=sys.stderr)
    else:
        print(_HELP)
    return True


def _converse(conversation: Conversation, runner: asyncio.Runner) -> int:
    """Until the input ends: 0, or 1 if it is not a terminal and an answer failed."""
    prompt = "> " if sys.stdin.isatty() else ""
    while True:
        try:
            line = input(prompt).strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return 0
        if line.startswith("/"):
            if not _obey(conversation, line):
                return 0
        elif line:
            try:
                runner.run(conversation.answer(line))
            except KeyboardInterrupt:
                continue
            except (ApiError, grpc.aio.AioRpcError) as error:
                known = error if isinstance(error, ApiError) else from_grpc(error)
                print(f"tandem_chat: {known.message}", file=sys.stderr)
                if not prompt:
                    return 1


def main() -> int:
    parser = argparse.ArgumentParser("tandem_chat", description="A conversation in the terminal.",
                                     epilog=_HELP, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"tandem_chat {VERSION}")
    parser.add_argument("--server", default="127.0.0.1:50051", metavar="HOST:PORT",
                        help="a running coordinator (%(default)s)")
    add_connection_flags(parser)
    parser.add_argument("--system", default="", metavar="TEXT", help="the system prompt (none)")
    parser.add_argument("--chat-template", metavar="FILE", type=argparse.FileType(encoding="utf-8"),
                        help="a Jinja template instead of the model's")
    parser.add_argument("--temperature", type=float, help="(1)")
    parser.add_argument("--top-p", type=float, help="(1)")
    parser.add_argument("--max-tokens", type=int, help="of an answer (to the end of the context)")
    parser.add_argument("--seed", type=int, help="(random)")
    found = parser.parse_args()
    try:
        template = found.chat_template.read() if found.chat_template else None
        params = api.SamplingParams(temperature=found.temperature, top_p=found.top_p,
                                    max_tokens=found.max_tokens, seed=found.seed)
    except ValueError as error:
        parser.exit(2, f"tandem_chat: {error}\n")
    access = read_access(parser, found, [found.server])
    authorization = f"Bearer {access.token}" if access.token else ""
    with calling_for(authorization), asyncio.Runner() as runner:

        async def connect() -> Conversation:
            return Conversation(Coordinator(found.server, None, template, access), params, found.system)

        conversation = runner.run(connect())
        try:
            return _converse(conversation, runner)
        finally:
            runner.run(conversation.close())
