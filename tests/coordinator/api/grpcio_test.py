"""Health and reflection as grpcio's own packages use them, on their newest protocol buffers. Skipped where PyPI's are not installed.
"""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, "tests/gateway")
import programs  # noqa: E402

PYTHON = os.path.join(os.environ.get("TANDEM_VENV", "/none"), "bin", "python")
# Knows the server's address and no .proto file of it.
CLIENT = """
import json, sys
import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

channel = grpc.insecure_channel(sys.argv[1], options=[("grpc.enable_http_proxy", 0)])
health = health_pb2_grpc.HealthStub(channel)
found = {"health": {name: health.Check(health_pb2.HealthCheckRequest(service=name), timeout=60).status
                    for name in ("", "startup", "liveness", "readiness", "tandem.v1.Generation")}}
found["watched"] = next(health.Watch(health_pb2.HealthCheckRequest(service="readiness"), timeout=60)).status
try:
    health.Check(health_pb2.HealthCheckRequest(service="none"), timeout=60)
except grpc.RpcError as error:
    found["unknown"] = error.code().name

database = ProtoReflectionDescriptorDatabase(channel)
found["services"] = sorted(database.get_services())
pool = descriptor_pool.DescriptorPool(database)
service = pool.FindServiceByName("tandem.v1.Generation")

def call(name, **fields):
    method = service.methods_by_name[name]
    kind, answer = (message_factory.GetMessageClass(one) for one in (method.input_type, method.output_type))
    return channel.unary_unary(f"/{service.full_name}/{name}", kind.SerializeToString, answer.FromString)(kind(**fields), timeout=60)

ids = list(call("Tokenize", text="Story: a cat").ids)
found["text"] = call("Detokenize", ids=ids).text
print(json.dumps(found))
"""
SERVING = 1


@unittest.skipIf(subprocess.run([PYTHON, "-c", "import grpc_health, grpc_reflection"], capture_output=True).returncode
                 if os.path.exists(PYTHON) else True, "needs grpcio-health-checking and grpcio-reflection of PyPI")
class GrpcioTest(unittest.TestCase):

    def test_health_and_reflection(self):
        server = programs.start_coordinator()
        self.addCleanup(server.kill)
        done = subprocess.run([PYTHON, "-c", CLIENT, server.address], capture_output=True, text=True, timeout=2 * programs.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(set(found["health"].values()), {SERVING}, found)
        self.assertEqual((found["watched"], found["unknown"]), (SERVING, "NOT_FOUND"))
        self.assertLessEqual({"tandem.v1.Generation", "vllm.grpc.engine.VllmEngine", "grpc.health.v1.Health"}, set(found["services"]))
        self.assertIn("Story: a cat", found["text"])


if __name__ == "__main__":
    unittest.main()
