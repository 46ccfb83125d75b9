"""Chat templates that write calls as those of models do whose templates no package of PyPI has."""

_TOOLS = "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}"
_MESSAGES = """\
{%- for message in messages %}
{{- '<' ~ message.role ~ '>' ~ (message.content or '') }}
{%- if message.tool_calls %}CALLS{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<assistant>{% endif %}"""


def _template(calls):
    return _TOOLS + _MESSAGES.replace("CALLS", calls)


def _invoke(marker, parameter, start, end):
    """MiniMax' and DeepSeek's markup."""
    return _template(f"""{{{{ '\\n{start}\\n' }}}}
    {{%- for call in message.tool_calls %}}
        {{{{- '<{marker}invoke name="' ~ call.function.name ~ '">\\n' }}}}
        {{%- for key, value in call.function.arguments | items %}}
            {{{{- '<{marker}parameter name="' ~ key ~ '"{parameter}>' ~ (value if value is string else value | tojson) }}}}
            {{{{- '</{marker}parameter>\\n' }}}}
        {{%- endfor %}}
        {{{{- '</{marker}invoke>\\n' }}}}
    {{%- endfor %}}
    {{{{- '{end}' }}}}""")


TEMPLATES = {
    "minimax_m2": _invoke("", "", "<minimax:tool_call>", "</minimax:tool_call>"),
    "deepseek_v32": _invoke("｜DSML｜", """ string="' ~ ('true' if value is string else 'false') ~ '\"""",
                            "<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
    "deepseek_v31": _template("""<｜tool▁calls▁begin｜>{% for call in message.tool_calls %}<｜tool▁call▁begin｜>
        {{- call.function.name ~ '<｜tool▁sep｜>' ~ (call.function.arguments | tojson) }}<｜tool▁call▁end｜>{% endfor %}
        {{- '<｜tool▁calls▁end｜>' }}"""),
    "kimi_k2": _template("""<|tool_calls_section_begin|>{% for call in message.tool_calls %}<|tool_call_begin|>
        {{- call.id ~ '<|tool_call_argument_begin|>' ~ (call.function.arguments | tojson) }}<|tool_call_end|>{% endfor %}
        {{- '<|tool_calls_section_end|>' }}"""),
}
