"""A server of Tandem's gRPC API whose answers are given beforehand: for what no small model writes."""

import sys
import threading
from concurrent import futures

import grpc

sys.path.insert(0, "gateway/tandem_gateway")
from health.v1 import health_pb2, health_pb2_grpc  # noqa: E402
from tandem.v1 import generation_pb2 as api, generation_pb2_grpc  # noqa: E402

PIECE = 3  # characters of a message


class ScriptedServer(generation_pb2_grpc.GenerationServicer, health_pb2_grpc.HealthServicer):
    """Each request gets the next of `answers`, in small pieces; `prompts` are what it was asked, `params` how."""

    def __init__(self, chat_template):
        self.answers = []
        self.prompts = []
        self.params = []
        self.tokenized = []
        self._chat_template = chat_template
        self._server = grpc.server(futures.ThreadPoolExecutor(8), options=(("grpc.so_reuseport", 0),))
        generation_pb2_grpc.add_GenerationServicer_to_server(self, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def stop(self):
        self._server.stop(grace=None).wait()

    def Watch(self, request, context):
        yield health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
        ended = threading.Event()
        if context.add_callback(ended.set):
            ended.wait()

    def GetModelInfo(self, request, context):
        return api.GetModelInfoResponse(name="scripted", context_length=4096, chat_template=self._chat_template)

    def Tokenize(self, request, context):
        self.tokenized.append(request.text)
        return api.TokenizeResponse(ids=range(len(request.text)))

    def Detokenize(self, request, context):
        return api.DetokenizeResponse(token_bytes=[b"" for _ in request.ids])

    def Generate(self, request, context):
        self.prompts.append(request.text)
        self.params.append(request.sampling)
        answer = self.answers.pop(0)
        for at in range(0, len(answer), PIECE):
            yield api.GenerateResponse(text=answer[at:at + PIECE], token_ids=[1])
        yield api.GenerateResponse(finish_reason=api.FINISH_REASON_STOP,
                                   usage=api.Usage(prompt_tokens=len(request.text), completion_tokens=len(answer)))
