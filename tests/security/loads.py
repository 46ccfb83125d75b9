"""Requests all the time, over gRPC and HTTP, each on a connection of its own."""

import http.client
import json
import operator
import ssl
import threading

import grpc
from edge import programs
from tandem.v1 import generation_pb2 as api, generation_pb2_grpc


def bearer(token):
    return (("authorization", f"Bearer {token}"),)


def request(max_tokens):
    return api.GenerateRequest(text="Story:", sampling=api.SamplingParams(
        max_tokens=max_tokens, ignore_eos=True, temperature=0))


class Load:
    """Threads that generate, each time on a new connection, until stopped; `failures` in words."""

    def __init__(self, address, ca, token, threads=4):
        with open(ca, "rb") as file:
            self.credentials = grpc.ssl_channel_credentials(file.read())
        self.address = address
        self.token = token
        self.failures = []
        self._done = [0] * threads
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(threads)]
        for thread in self._threads:
            thread.start()

    def channel(self):
        # A subchannel pool of its own: each channel makes its own connection.
        return grpc.secure_channel(self.address, self.credentials,
                                   options=[("grpc.use_local_subchannel_pool", 1),
                                            ("grpc.enable_http_proxy", 0)])

    def generate(self):
        with self.channel() as channel:
            stub = generation_pb2_grpc.GenerationStub(channel)
            answer = list(stub.Generate(request(8), metadata=bearer(self.token),
                                        timeout=programs.PATIENCE_S))
            assert answer[-1].usage.completion_tokens == 8, answer

    def _run(self, number):
        while not self._stop.is_set():
            try:
                self.generate()
                self._done[number] += 1
            except (grpc.RpcError, AssertionError, OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))

    def more(self):
        """Until each thread has done one that began after this call: the second that ends from now on."""
        targets = [done + 2 for done in self._done]
        programs.until(lambda: self.failures or all(map(operator.ge, self._done, targets)), "the load stands still")

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(programs.PATIENCE_S)


class HttpLoad(Load):
    """The same over HTTP."""

    def __init__(self, address, ca, token):
        self.context = ssl.create_default_context(cafile=ca)
        super().__init__(address, ca, token)

    def send(self, max_tokens):
        """The connection of a request for a stream."""
        connection = http.client.HTTPSConnection(self.address, context=self.context, timeout=programs.PATIENCE_S)
        body = {"prompt": "Story:", "max_tokens": max_tokens, "ignore_eos": True, "temperature": 0, "stream": True}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Authorization": f"Bearer {self.token}"})
        return connection

    def generate(self):
        connection = self.send(8)
        response = connection.getresponse()
        events = response.read()
        connection.close()
        assert response.status == 200 and events.endswith(b"data: [DONE]\n\n"), events[-200:]
