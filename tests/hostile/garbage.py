"""Bytes that no well-behaved client sends: raw, TLS, HTTP/1, HTTP/2 frames, gRPC messages."""

import random
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS = 1, 4


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    """An HTTP/2 frame (RFC 9113, 4.1); `length` may lie."""
    length = len(payload) if length is None else length
    return length.to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


def headers(path, more=()):
    """A request's header block, in literals without indexing (RFC 7541, 6.2.2)."""
    block = b""
    for name, value in [(":method", "POST"), (":scheme", "http"), (":path", path),
                        (":authority", "x"), ("content-type", "application/grpc"),
                        ("te", "trailers"), *more]:
        name, value = name.encode(), value.encode()
        block += b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
    return block


def call(path, body, stream=1):
    """One unary call: its headers and its body."""
    return (frame(HEADERS, END_HEADERS, stream, headers(path)) +
            frame(DATA, END_STREAM, stream, body))


def message(payload, length=None, compressed=0):
    """A length-prefixed gRPC message; `length` may lie."""
    return struct.pack(">BI", compressed, len(payload) if length is None else length) + payload


def hello():
    """The start of a connection as a client makes it."""
    return PREFACE + frame(SETTINGS)


def raw():
    """Byte strings for a fresh connection: (name, bytes)."""
    noise = random.Random(10)
    yield "nothing", b""
    yield "one zero", b"\0"
    for size in (1, 9, 24, 1000, 1 << 20):
        yield f"{size} random bytes", noise.randbytes(size)
    yield "TLS hello", bytes.fromhex("16030100a5010000a10303") + noise.randbytes(160)
    yield "HTTP/1", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "HTTP/1 upgrade", b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    yield "a header without end", b"GET /" + b"a" * 100000
    yield "half a preface", PREFACE[:10]
    yield "a preface alone", PREFACE
    yield "a preface twice", hello() + PREFACE
    for kind in range(12):
        yield f"frame {kind} of noise", hello() + frame(kind, 0xff, 1, noise.randbytes(40))
        yield f"frame {kind} of 16 MB", hello() + frame(kind, 0, 1, b"", (1 << 24) - 1)
        yield f"frame {kind} cut", hello() + frame(kind, 0, 1, b"abc", 100)
        yield f"frame {kind} on stream 2^31", hello() + frame(kind, 4, 0xffffffff, b"\0" * 8)
    yield "headers that do not decode", hello() + frame(HEADERS, 5, 1, b"\xff" * 100)
    yield "endless continuation", (hello() + frame(HEADERS, 0, 1, headers("/x")) +
                                   frame(CONTINUATION, 0, 1, b"\0\1a\1b" * 1000) * 20)
    yield "windows overflow", hello() + frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff") * 3
    yield "ping flood", hello() + frame(PING, 0, 0, b"\0" * 8) * 5000
    yield "settings flood", hello() + frame(SETTINGS) * 5000
    yield "rapid reset", hello() + b"".join(
        frame(HEADERS, END_HEADERS, 2 * i + 1, headers("/tandem.v1.Generation/Generate")) +
        frame(RST_STREAM, 0, 2 * i + 1, b"\0\0\0\x08") for i in range(2000))


def protobuf():
    """Bodies of calls: (name, bytes)."""
    noise = random.Random(11)
    yield "no body", b""
    yield "a cut prefix", b"\0\0"
    yield "an empty message", message(b"")
    yield "a length of 4 GB", message(b"x", 0xffffffff)
    yield "compressed by nothing", message(b"x", compressed=1)
    yield "a cut varint", message(b"\x08\xff")
    yield "a wrong wire type", message(b"\x0f\x00")
    yield "a string past the end", message(b"\x12\x7fabc")
    yield "a text that is not UTF-8", message(b"\x12\x02\xff\xfe")
    yield "groups without end", message(b"\x0b" * 500)
    yield "2^40 token ids", message(b"\x1a\x80\x80\x80\x80\x20")
    for i in range(20):
        yield f"noise {i}", message(noise.randbytes(noise.randrange(1, 200)))
