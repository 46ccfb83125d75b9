#include "kernels/checking/step_runner.h"

#include "common/base/status.h"

namespace tandem::kernels::checking {

absl::Status StepRunner::Run(const Step& step, const std::string& where) {
  TANDEM_RETURN_IF_ERROR(RunOn(subject_, step.subject));
  if (step.judge) TANDEM_RETURN_IF_ERROR(RunOn(judge_, step.judge));
  // Outputs may lie in the gaps between each other's rows, so nothing is mirrored before all are
  // compared.
  for (const Output& output : step.outputs) {
    if (absl::Status status = CompareOutput(output); !status.ok()) return Annotate(status, where);
  }
  for (const Output& output : step.outputs) TANDEM_RETURN_IF_ERROR(MirrorOutput(output));
  if (!step.mirror_all) return absl::OkStatus();
  absl::Status status;
  mirror_.ForEach([&](const std::byte* data, size_t bytes) {
    if (status.ok()) status = MirrorBytes(data, Read(subject_, data, bytes, &status));
  });
  return status;
}

absl::Status StepRunner::CompareOutput(const Output& output) {
  absl::Status status;
  const auto is = Read(subject_, output.data, output.bytes(), &status);
  const auto should = Read(judge_, mirror_.Judge(static_cast<const std::byte*>(output.data)),
                           output.bytes(), &status);
  TANDEM_RETURN_IF_ERROR(status);
  return Compare(output, is, should);
}

absl::Status StepRunner::MirrorOutput(const Output& output) {
  absl::Status status;
  const auto bytes = Read(subject_, output.data, output.bytes(), &status);
  TANDEM_RETURN_IF_ERROR(status);
  return MirrorBytes(output.data, bytes);
}

absl::Status StepRunner::MirrorBytes(const void* data, const std::vector<std::byte>& bytes) {
  auto* const to = const_cast<std::byte*>(mirror_.Judge(static_cast<const std::byte*>(data)));
  return RunOn(judge_, [&](Backend& b) { b.Upload(to, bytes.data(), bytes.size()); });
}

std::vector<std::byte> StepRunner::Read(Backend& backend, const void* data, size_t size,
                                        absl::Status* status) {
  std::vector<std::byte> bytes(size);
  if (status->ok())
    *status = RunOn(backend, [&](Backend& b) { b.Download(bytes.data(), data, size); });
  return bytes;
}

absl::Status StepRunner::RunOn(Backend& backend, const Encode& encode) {
  backend.BeginEncode(EncodeMode::kRun);
  encode(backend);
  TANDEM_RETURN_IF_ERROR(backend.Submit(deadline_));
  return backend.Wait();
}

}  // namespace tandem::kernels::checking
