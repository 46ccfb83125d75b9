"""The most tokens per second that a machine's peaks allow a model: its roofline."""

from dataclasses import dataclass, replace


@dataclass
class Limits:
    """Activations, KV cache and attention are not counted: contexts here are short."""

    peaks: object
    kernels: str
    matrices: list

    def with_bandwidth(self, bandwidth):
        """The same machine while its memory gives that many bytes per second."""
        return replace(self, peaks=replace(self.peaks, bandwidth=bandwidth))

    def seconds_of_memory(self, tokens):
        """Of a step: every weight that it needs is read once."""
        return sum(matrix.bytes_read(tokens) for matrix in self.matrices) / self.peaks.bandwidth

    def seconds_of_arithmetic(self, tokens, sampled):
        """Of a step of `tokens`, `sampled` of which the head is computed for; None where a peak was not measured."""
        seconds = 0.0
        for matrix in self.matrices:
            peak = self.peaks.of_type(self.kernels, matrix.kind)
            if peak is None:
                return None
            seconds += 2 * matrix.weights * matrix.used * (sampled if matrix.head else tokens) / peak
        return seconds

    def decode(self, batch):
        """Tokens per second of `batch` sequences that decode together."""
        return self._rate(batch, batch)

    def prefill(self, tokens):
        """Tokens per second of a prompt that is one step."""
        return self._rate(tokens, 1)

    def of_case(self, case):
        """Of ("prefill", tokens) or ("decode", batch)."""
        kind, count = case
        return self.prefill(count) if kind == "prefill" else self.decode(count)

    def _rate(self, tokens, sampled):
        arithmetic = self.seconds_of_arithmetic(tokens, sampled)
        return None if arithmetic is None else tokens / max(arithmetic, self.seconds_of_memory(tokens))

    def describe(self):
        """A line about the model."""
        gigabytes = sum(matrix.bytes for matrix in self.matrices) / 1e9
        ops = [2e-9 * sum(matrix.weights * matrix.used for matrix in self.matrices if head or not matrix.head)
               for head in (False, True)]
        return f"{gigabytes:.3g} GB of weights; a token takes {ops[0]:.3g} GOP without the head, {ops[1]:.3g} with it"
