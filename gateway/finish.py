"""Why an answer ended: `finish_reason` and vLLM's `stop_reason`."""

from tandem.v1 import generation_pb2 as api

FINISH_REASONS = {api.FINISH_REASON_STOP: "stop", api.FINISH_REASON_LENGTH: "length"}


def stop_reason(message: api.GenerateResponse, params: api.SamplingParams) -> str | int | None:
    """The request's stop string or id that ended it; None for the model's own end."""
    kind = message.WhichOneof("matched_stop")
    if kind == "matched_stop_string":
        return message.matched_stop_string
    if kind and message.matched_stop_token_id in params.stop_token_ids:
        return message.matched_stop_token_id
    return None
