"""VllmEngine as a client that nobody here wrote calls it: smg-grpc-proto of PyPI, the stubs that routers for vLLM use.
Skipped where the package is not installed."""

import os
import sys
import unittest

# Its protobuf and gRPC, which are newer than Debian's.
sys.path.insert(0, os.path.join(os.environ.get("TANDEM_VENV", "/none"), "lib",
                                f"python3.{sys.version_info[1]}", "site-packages"))
sys.path.insert(0, "tests/gateway")
import programs  # noqa: E402

try:
    import grpc
    from smg_grpc_proto.generated import common_pb2
    from smg_grpc_proto.generated import vllm_engine_pb2 as api
    from smg_grpc_proto.generated.vllm_engine_pb2_grpc import VllmEngineStub
except ImportError:
    api = None


@unittest.skipUnless(api, "needs smg-grpc-proto of PyPI")
class VllmClientTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.coordinator = programs.start_coordinator("--max-num-seqs", "3")
        cls.addClassCleanup(cls.coordinator.kill)
        channel = grpc.insecure_channel(cls.coordinator.address,
                                        options=[("grpc.enable_http_proxy", 0)])
        cls.addClassCleanup(channel.close)
        cls.stub = VllmEngineStub(channel)

    def generate(self, stream, **sampling):
        request = api.GenerateRequest(request_id="one", text="Story: Once", stream=stream,
                                      sampling_params=api.SamplingParams(**sampling))
        return list(self.stub.Generate(request, timeout=programs.PATIENCE_S))

    def test_chunks_add_up_to_the_whole(self):
        whole = self.generate(False, temperature=0, max_tokens=12, logprobs=2)
        self.assertEqual(len(whole), 1)
        complete = whole[0].complete
        self.assertEqual(complete.finish_reason, "length")
        self.assertEqual(len(complete.output_ids), 12)
        self.assertEqual(complete.completion_tokens, 12)
        self.assertEqual(len(complete.output_logprobs.top_logprobs[11].values), 2)
        streamed = self.generate(True, temperature=0, max_tokens=12)
        ids = [one for message in streamed for one in message.chunk.token_ids]
        self.assertEqual(ids, list(complete.output_ids))
        self.assertEqual(streamed[-1].complete.finish_reason, "length")

    def test_token_ids_in_are_the_text_in(self):
        complete = self.generate(False, temperature=0, max_tokens=4, prompt_logprobs=0)[0].complete
        prompt = list(complete.input_logprobs.token_ids)
        self.assertEqual(len(prompt), complete.prompt_tokens)
        request = api.GenerateRequest(
            tokenized=api.TokenizedInput(input_ids=prompt),
            sampling_params=api.SamplingParams(temperature=0, max_tokens=4))
        answer = list(self.stub.Generate(request, timeout=programs.PATIENCE_S))[0].complete
        self.assertEqual(answer.output_ids, complete.output_ids)

    def test_continuations(self):
        complete = [one.complete for one in self.generate(False, n=3, seed=1, max_tokens=8)]
        self.assertEqual(sorted(one.index for one in complete), [0, 1, 2])
        self.assertEqual(len({tuple(one.output_ids) for one in complete}), 3)

    def test_abort(self):
        request = api.GenerateRequest(
            request_id="long", text="Story:", stream=True,
            sampling_params=api.SamplingParams(ignore_eos=True))
        stream = self.stub.Generate(request, timeout=programs.PATIENCE_S)
        next(stream)
        self.stub.Abort(api.AbortRequest(request_ids=["long"]), timeout=programs.PATIENCE_S)
        self.assertEqual([one for one in stream][-1].complete.finish_reason, "abort")

    def test_how_it_is(self):
        def ask(method, request):
            return method(request, timeout=programs.PATIENCE_S)

        self.assertTrue(ask(self.stub.HealthCheck, api.HealthCheckRequest()).healthy)
        self.assertEqual(ask(self.stub.GetModelInfo, api.GetModelInfoRequest()).served_model_name,
                         "Tandem demo")
        self.assertEqual(ask(self.stub.GetServerInfo, api.GetServerInfoRequest()).max_num_seqs, 3)
        self.assertEqual(len(ask(self.stub.GetLoads, api.GetLoadsRequest()).loads), 1)
        self.generate(False, max_tokens=1)
        self.assertTrue(ask(self.stub.FlushCache, common_pb2.FlushCacheRequest()).success)
        self.assertEqual(self.generate(False, max_tokens=1)[0].complete.cached_tokens, 0)

    def test_what_is_not_there_is_refused_by_name(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.generate(False, structural_tag="{}")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertIn("sampling_params.structural_tag", caught.exception.details())

    def test_an_answer_has_the_form_that_is_asked_for(self):
        self.assertEqual(self.generate(False, grammar='root ::= "a"')[0].complete.finish_reason, "stop")
        complete = self.generate(False, regex="[0-9]{3}", logprobs=0)[0].complete
        self.assertEqual(complete.finish_reason, "stop")
        self.assertLessEqual(complete.completion_tokens, 3)


if __name__ == "__main__":
    unittest.main()
