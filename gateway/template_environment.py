"""Chat templates: Jinja2 with what Hugging Face's templates expect of transformers.

The template comes from a model file: the environment is sandboxed. It does not bound time or
memory; template_worker.py does.
"""

import datetime
import functools
import json

import jinja2
import jinja2.ext
import jinja2.sandbox
from jinja2 import nodes


class TemplateError(Exception):
    """A line for the client."""


class GenerationTag(jinja2.ext.Extension):
    """{% generation %} marks, for training, what the assistant says: its body is rendered."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


def _raise_exception(message: str):
    raise TemplateError(f"the chat template refuses this conversation: {message}")


def _tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False) -> str:
    """Unlike Jinja2's own: no escapes for HTML, the order of keys is kept."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def _strftime_now(form: str) -> str:
    return datetime.datetime.now().strftime(form)


@functools.cache
def environment() -> jinja2.Environment:
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols])
    made.filters["tojson"] = _tojson
    made.globals["raise_exception"] = _raise_exception
    made.globals["strftime_now"] = _strftime_now
    return made


@functools.lru_cache(maxsize=8)
def _compiled(template: str) -> jinja2.Template:
    return environment().from_string(template)


def render(template: str, variables: dict) -> str:
    """Raises TemplateError, whatever the template does short of never ending."""
    try:
        return _compiled(template).render(**variables)
    except TemplateError:
        raise
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(
            f"the chat template cannot be compiled: line {error.lineno}: {error.message}") from error
    except MemoryError as error:
        raise TemplateError("the chat template needs too much memory") from error
    except Exception as error:  # a template may raise anything
        detail = " ".join(str(error).split())[:300]
        raise TemplateError(
            f"the chat template failed: {type(error).__name__}: {detail}") from error
