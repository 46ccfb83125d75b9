"""Garbage on the ports of a running server. Afterwards a normal request gives its normal answer, and
descriptors, memory and blocks are back; at the end nothing is left behind."""

import os
import signal
import socket
import subprocess
import sys
import unittest

import grpc

sys.path.insert(0, "tests/hostile")
import garbage  # noqa: E402
import processes  # noqa: E402

MEMORY_BOUND = 96 << 20  # of growth, over all processes; a leak of each request would exceed it
MEMORY_LEFT = 48 << 20  # once what was freed is given back
METHODS = ("Generate", "Tokenize", "Detokenize", "GetModelInfo", "GetStats", "NoSuchMethod")


class ServerTest(unittest.TestCase):

    def setUp(self):
        self.server = processes.Server("--max-num-seqs", "4")
        self.addCleanup(self.server.kill)
        self.assertTrue(self.server.wait_ready(), self.server.log())
        self.pids = self.server.pids()
        self.assertEqual(len(self.pids), 3)
        self.normal = self.server.answer()
        self.idle = self.holdings()
        self.idle_memory = self.memory()

    def holdings(self):
        stats = self.server.stats()
        self.server.wait_quiet()
        return {
            "free blocks": stats["tandem_kv_blocks_free"],
            "running": stats["tandem_num_requests_running"],
            "waiting": stats["tandem_num_requests_waiting"],
            "descriptors": [processes.num_descriptors(pid) for pid in self.pids],
        }

    def memory(self):
        return sum(processes.resident_bytes(pid) for pid in self.pids)

    def tearDown(self):
        """What every case ends with: the server is as it was, and leaves nothing when it stops."""
        self.assertEqual(self.server.answer(), self.normal)
        processes.until(lambda: self.holdings() == self.idle,
                        f"not back to {self.idle}: {self.holdings()}")
        processes.until(lambda: self.memory() - self.idle_memory < MEMORY_LEFT, "memory is not back")
        ports = processes.listening_ports(self.server.process.pid)
        self.assertIn(self.server.port, ports)
        self.assertEqual(self.server.stop(), 0, self.server.log())
        processes.until(lambda: not any(map(processes.exists, self.pids)), "a process is left")
        self.assertFalse([name for name in os.listdir("/dev/shm") if "tandem" in name])
        # By inode: the ports themselves may be another program's by now.
        left = {inode for _, _, inode in processes.tcp_sockets()}
        self.assertFalse(left & set(ports.values()), "a socket still listens")

    def send(self, port, data):
        """Sends, and reads until the server closes or has no more to say to a closed sender."""
        with processes.connect(port) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):
                    pass
            except TimeoutError:
                raise
            except OSError:
                pass  # the server has ended the connection

    def test_garbage_on_every_port(self):
        ports = processes.listening_ports(self.server.process.pid)
        self.assertIn(self.server.port, ports)
        self.assertGreater(len(ports), 1, "the port of the workers is not among them")
        after_round = []
        for round_number in range(4):
            for port in sorted(ports):
                for name, data in garbage.raw():
                    with self.subTest(port=port, name=name, round=round_number):
                        self.send(port, data)
            self.server.wait_quiet()
            after_round.append(self.memory())
        # The first rounds fill the allocator's arena; what leaks would come again.
        self.assertLess(after_round[3] - after_round[1], MEMORY_BOUND, after_round)

    def test_messages_that_do_not_parse(self):
        for method in METHODS:
            for name, body in garbage.protobuf():
                with self.subTest(method=method, name=name):
                    self.send(self.server.port, garbage.hello() + garbage.call(
                        f"/tandem.v1.Generation/{method}", body))

    def test_no_message_is_inflated(self):
        with grpc.insecure_channel(self.server.address, options=(("grpc.enable_http_proxy", 0),),
                                   compression=grpc.Compression.Gzip) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            with self.assertRaises(grpc.RpcError) as refused:
                check(bytes(256 << 20), timeout=processes.PATIENCE_S)
        self.assertEqual(refused.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertLess(processes.peak_bytes(self.server.process.pid), self.idle_memory + MEMORY_BOUND)

    def test_connections_that_stay_open(self):
        before = self.memory()
        starts = [b"", garbage.PREFACE[:7], garbage.hello(), garbage.hello() + garbage.frame(
            garbage.HEADERS, garbage.END_HEADERS, 1,
            garbage.headers("/tandem.v1.Generation/Generate"))]
        open_ones = [processes.connect(self.server.port) for _ in range(200)]
        for i, connection in enumerate(open_ones):
            connection.sendall(starts[i % len(starts)])
        self.assertEqual(self.server.answer(), self.normal)  # beside them
        for connection in open_ones:
            connection.close()
        self.assertLess(self.memory() - before, MEMORY_BOUND)

    def test_clients_that_are_killed(self):
        for _ in range(8):
            client = subprocess.Popen(
                [processes.TANDEM, "generate", "--server", self.server.address, "--prompt", "x",
                 "--max-tokens", "2000", "--ignore-eos"], stdout=subprocess.PIPE)
            self.assertTrue(client.stdout.read(1))  # it streams
            client.send_signal(signal.SIGKILL)
            client.wait()
            client.stdout.close()

    def test_requests_at_their_limits(self):
        huge = "x" * (1 << 20)
        for arguments in (["--prompt", huge[:100000]], ["--prompt", "x", "--max-tokens", "1000000"],
                          ["--prompt-token-ids", "999999999"], ["--prompt", ""],
                          ["--prompt", "x", "--stop", ""]):
            code, _, err = processes.run(processes.TANDEM, "generate", "--server",
                                         self.server.address, *arguments)
            self.assertEqual((code, err.count("\n")), (1, 1), (arguments[0], err))
        code, _, err = processes.run(processes.TANDEM, "generate", "--server", self.server.address,
                                     "--prompt", "-", input=huge.encode())
        self.assertEqual((code, err.count("\n")), (1, 1), err)


if __name__ == "__main__":
    unittest.main()
