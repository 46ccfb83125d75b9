"""Bodies of requests and a chat template that have a bit of everything."""

TOOL = {"type": "function", "function": {
    "name": "weather", "description": "of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}
CHAT = {"model": "m", "messages": [
    {"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"A\"}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "rain"}],
    "tools": [TOOL], "tool_choice": "auto", "n": 2, "stream": True,
    "stream_options": {"include_usage": True}, "temperature": 0.5, "stop": ["x"], "logprobs": True,
    "top_logprobs": 3, "logit_bias": {"5": 1}, "chat_template_kwargs": {"a": 1}, "seed": 3}
COMPLETION = {"model": "m", "prompt": ["a", "b"], "n": 2, "max_tokens": 3, "echo": True, "logprobs": 2,
              "stop": "x", "stream": False, "top_p": 0.5, "logit_bias": {"5": 1}}
SCHEMA = {"type": "object", "properties": {"city": {"$ref": "#/$defs/city"}, "$ref": {"enum": ["#", 1]}},
          "required": ["city"], "$defs": {"city": {"type": "string"}}}
# Each of them has a form.
FORMED = [
    {"prompt": "a", "response_format": {"type": "json_schema", "json_schema": {
        "name": "n", "description": "d", "strict": True, "schema": SCHEMA}}, "guided_json": None},
    {"prompt": "a", "response_format": {"type": "text"}, "guided_json": SCHEMA, "structured_outputs": None},
    {"prompt": "a", "guided_json": "{}"},
    {"prompt": "a", "guided_choice": ["x", "y"], "n": 2},
    {"prompt": "a", "structured_outputs": {"choice": ["x", "y"], "json": None, "disable_fallback": False}},
]
MESSAGES = [{"role": "user", "content": "hi"}]
FORCED = [
    {"messages": MESSAGES, "tools": [TOOL, {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
     "tool_choice": "required", "parallel_tool_calls": False},
    {"messages": MESSAGES, "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
     "tool_choice": {"type": "function", "function": {"name": "f"}}, "response_format": {"type": "text"}},
    {"messages": MESSAGES, "tools": [TOOL], "tool_choice": "none", "response_format": {"type": "json_object"}},
]
EMBEDDING = {"model": "m", "input": ["a", [5, 6], "b"], "dimensions": 3, "encoding_format": "base64",
             "pooling": "mean", "normalize": False, "user": "u"}
RESPONSE = {"model": "m", "instructions": "Be brief.", "input": [
    {"role": "developer", "content": "hi"}, {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "so"}]},
    {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "rain"}]}],
    "tools": [{"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": True},
              {"type": "namespace", "name": "mcp__x", "tools": [{"type": "function", "name": "f"}]}],
    "tool_choice": {"type": "function", "name": "f"}, "max_output_tokens": 5, "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"format": {"type": "text"}, "verbosity": "low"}, "stream": True, "stream_options": {"include_obfuscation": False},
    "include": ["reasoning.encrypted_content"], "store": False, "top_p": 0.5, "metadata": {"a": "b"}}
MESSAGE = {"model": "m", "max_tokens": 5, "system": [{"type": "text", "text": "Be brief."}], "messages": [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "so", "signature": ""}, {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "1", "name": "f", "input": {"city": "A"}}]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "rain"}]},
        {"type": "text", "text": "And?"}]}],
    "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA}], "tool_choice": {"type": "any"},
    "thinking": {"type": "enabled", "budget_tokens": 1024}, "stop_sequences": ["x"], "stream": True, "top_k": 5,
    "output_config": {"effort": "low"}, "metadata": {"user_id": "u"}}
TEMPLATE = ("{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[{{ m.content | trim }}]"
            "{% elif m.tool_calls %}{{ m.tool_calls[0].function | tojson }}{% else %}{{ m['content'] }}"
            "{% endif %}{% endfor %}{% set ns = namespace(x='') %}{% macro f(a) %}<{{ a }}>{% endmacro %}"
            "{{ f(ns.x) }}{% if add_generation_prompt %}{{ messages[-1:] | list }}{% endif %}")
