"""Tandem's HTTP door: OpenAI's API in front of gRPC. docs/http-api.md is its reference."""
