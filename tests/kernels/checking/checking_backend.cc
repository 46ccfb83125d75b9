#include "tests/kernels/checking/checking_backend.h"

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/step_guard.h"
#include "tests/kernels/checking/compare.h"
#include "tests/kernels/checking/mirror.h"

namespace tandem::kernels::checking {
namespace {

using EncodeOn = std::function<void(Backend&)>;

// What was encoded: an op, a copy or host work. Only ops have outputs to compare.
struct Step {
  std::string name;
  EncodeOn subject;
  EncodeOn judge;  // empty: only the subject runs it
  std::vector<Output> outputs;
  bool mirror_all = false;  // afterwards all memory may have changed
};

// Replaces arrays in host memory, which are there while encoding only, by copies.
struct CopyHostArrays {
  std::vector<std::shared_ptr<std::byte[]>>& copies;

  template <class T>
  void operator()(const char*, T*& pointer, const Array& array) const {
    if (array.access != Access::kHost) return;
    const size_t bytes = array.bytes(pointer);
    copies.emplace_back(new std::byte[bytes]);
    std::memcpy(copies.back().get(), pointer, bytes);
    pointer = reinterpret_cast<T*>(copies.back().get());
  }
  void operator()(const char*, Weight&) const {}
};

// Replaces the subject's addresses by the judge's.
struct TranslateToJudge {
  const Mirror& mirror;

  template <class T>
  void operator()(const char*, T*& pointer, const Array& array) const {
    if (array.access != Access::kHost) pointer = mirror.Judge(pointer);
  }
  void operator()(const char*, Weight& weight) const { weight = mirror.Judge(weight); }
};

struct CollectOutputs {
  float tolerance;
  std::vector<Output>& outputs;

  template <class T>
  void operator()(const char*, T* pointer, const Array& array) const {
    if (!array.written() || pointer == nullptr) return;
    Output output = {pointer,  ElementOf<T>(array.type), array.rows, array.cols, array.stride,
                     tolerance};
    if (output.element == Element::kI32) output.tolerance = 0;
    for (size_t part = 0; part < array.parts; ++part) {
      if constexpr (!std::is_void_v<T>) output.data = pointer + part * array.part_stride;
      outputs.push_back(output);
    }
  }
  void operator()(const char*, const Weight&) const {}

  template <class T>
  static Element ElementOf(tensor::Type type) {
    if constexpr (std::is_same_v<T, int32_t>) return Element::kI32;
    if constexpr (std::is_same_v<T, double>) return Element::kF64;
    switch (type) {
      case tensor::Type::kF32:
        return Element::kF32;
      case tensor::Type::kBF16:
        return Element::kBF16;
      case tensor::Type::kQ8_0:
        return Element::kQ8_0;
      default:
        return Element::kF16;
    }
  }
};

float ToleranceOf(const Op& op, const Tolerances& tolerances) {
  const std::string_view name = OpName(op);
  for (const std::string_view moves :
       {"Embed", "CopyRows", "GatherRows", "PoolRows", "UnshardLogits"}) {
    if (name == moves) return 0;
  }
  const auto* const attention = std::get_if<AttentionParams>(&op);
  if (attention != nullptr && (attention->pages.type == tensor::Type::kBF16 ||
                               attention->pages.type == tensor::Type::kQ8_0)) {
    return tolerances.rounded_attention;
  }
  // Every composite has a product.
  const bool composite =
      std::visit([]<class Params>(const Params&) { return Composite<Params>; }, op);
  return composite || name.ends_with("MatMul") ? tolerances.matmul : tolerances.other;
}

class CheckingBackend final : public Backend, private HostStream {
 public:
  CheckingBackend(std::unique_ptr<Backend> subject, std::unique_ptr<Backend> judge,
                  const Tolerances& tolerances)
      : subject_(std::move(subject)),
        judge_(std::move(judge)),
        tolerances_(tolerances),
        name_("checking " + std::string(subject_->name()) + " against " +
              std::string(judge_->name())),
        mirror_(std::make_shared<Mirror>()) {}

  std::string_view name() const override { return name_; }

  absl::StatusOr<Buffer> Allocate(size_t bytes) override {
    TANDEM_ASSIGN_OR_RETURN(Buffer subject, subject_->Allocate(bytes));
    TANDEM_ASSIGN_OR_RETURN(Buffer judge, judge_->Allocate(bytes));
    return Mirror::Add(mirror_, std::move(subject), std::move(judge));
  }
  absl::StatusOr<Buffer> AllocateHost(size_t bytes) override {
    return subject_->AllocateHost(bytes);
  }
  // Values of Q8_0 in columns are no blocks that could be compared.
  bool WantsKeyColumns(const KvPages& shape) const override {
    return shape.type != tensor::Type::kQ8_0 && subject_->WantsKeyColumns(shape);
  }
  absl::StatusOr<Weight> PlaceWeight(const Weight& host) override {
    TANDEM_ASSIGN_OR_RETURN(Weight subject, subject_->PlaceWeight(host));
    TANDEM_ASSIGN_OR_RETURN(Weight judge, judge_->PlaceWeight(host));
    mirror_->AddWeight(subject, judge);
    return subject;
  }

  void BeginEncode(EncodeMode mode) override {
    mode_ = mode;
    submitted_ = false;
    steps_.clear();
    host_arrays_.clear();
    if (mode == EncodeMode::kRun) return;
    subject_->BeginEncode(mode);
    judge_->BeginEncode(mode);
  }

  absl::StatusOr<size_t> FinishPlan() override {
    TANDEM_ASSIGN_OR_RETURN(const size_t bytes, subject_->FinishPlan());
    TANDEM_RETURN_IF_ERROR(judge_->FinishPlan().status());
    return bytes;
  }

  absl::StatusOr<Ticket> Submit(Deadline deadline) override {
    deadline_ = deadline;
    submitted_ = true;
    return Ticket{};
  }

  absl::Status Wait(Ticket) override {
    NoteBlockingCall("Backend::Wait");
    if (!std::exchange(submitted_, false))
      return absl::FailedPreconditionError("Wait: nothing was submitted");
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      TANDEM_RETURN_IF_ERROR(Run(step, absl::StrCat(name_, ": op ", i, " (", step.name, ")")));
    }
    return absl::OkStatus();
  }

  void Upload(void* device, const void* host, size_t bytes) override {
    void* const judge = mirror_->Judge(device);
    Add({"Upload",
         [=](Backend& b) { b.Upload(device, host, bytes); },
         [=](Backend& b) { b.Upload(judge, host, bytes); },
         {}});
  }
  void Download(void* host, const void* device, size_t bytes) override {
    Add({"Download", [=](Backend& b) { b.Download(host, device, bytes); }, nullptr, {}});
  }

  void Encode(const Op& op) override {
    Op subject = op;
    ForEachPointer(subject, CopyHostArrays{host_arrays_});
    Op judge = subject;
    ForEachPointer(judge, TranslateToJudge{*mirror_});
    Step step{std::string(OpName(op)),
              [subject](Backend& b) { b.Encode(subject); },
              [judge](Backend& b) { b.Encode(judge); },
              {}};
    ForEachPointer(subject, CollectOutputs{ToleranceOf(op, tolerances_), step.outputs});
    Add(std::move(step));
  }

  HostStream* host_stream() override { return subject_->host_stream() == nullptr ? nullptr : this; }

 private:
  void Enqueue(std::function<absl::Status(Deadline)> work) override {
    Add({"host work",
         [work = std::move(work)](Backend& b) { b.host_stream()->Enqueue(work); },
         nullptr,
         {},
         true});
  }

  // Plans at once, runs later.
  void Add(Step step) {
    if (mode_ == EncodeMode::kRun) return steps_.push_back(std::move(step));
    step.subject(*subject_);
    if (step.judge) step.judge(*judge_);
  }

  // The error of either backend as it is; INTERNAL, with `where` in front, if their outputs differ.
  // Afterwards the judge has the subject's values.
  absl::Status Run(const Step& step, const std::string& where) {
    TANDEM_RETURN_IF_ERROR(RunOn(*subject_, step.subject));
    if (step.judge) TANDEM_RETURN_IF_ERROR(RunOn(*judge_, step.judge));
    // Outputs may lie in the gaps between each other's rows, so nothing is mirrored before all are
    // compared.
    for (const Output& output : step.outputs) {
      if (absl::Status status = CompareOutput(output); !status.ok()) return Annotate(status, where);
    }
    for (const Output& output : step.outputs) {
      TANDEM_RETURN_IF_ERROR(MirrorBytes(output.data, output.bytes()));
    }
    if (!step.mirror_all) return absl::OkStatus();
    absl::Status status;
    mirror_->ForEach([&](const std::byte* data, size_t bytes) {
      if (status.ok()) status = MirrorBytes(data, bytes);
    });
    return status;
  }

  absl::Status CompareOutput(const Output& output) {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<std::byte> is,
                            Read(*subject_, output.data, output.bytes()));
    TANDEM_ASSIGN_OR_RETURN(const std::vector<std::byte> should,
                            Read(*judge_, mirror_->Judge(output.data), output.bytes()));
    return Compare(output, is, should);
  }

  // The subject's bytes, and what lies between rows, become the judge's.
  absl::Status MirrorBytes(const void* data, size_t bytes) {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<std::byte> values, Read(*subject_, data, bytes));
    auto* const to = const_cast<void*>(mirror_->Judge(data));
    return RunOn(*judge_, [&](Backend& b) { b.Upload(to, values.data(), values.size()); });
  }

  absl::StatusOr<std::vector<std::byte>> Read(Backend& backend, const void* data, size_t size) {
    std::vector<std::byte> bytes(size);
    TANDEM_RETURN_IF_ERROR(
        RunOn(backend, [&](Backend& b) { b.Download(bytes.data(), data, size); }));
    return bytes;
  }

  absl::Status RunOn(Backend& backend, const EncodeOn& encode) {
    backend.BeginEncode(EncodeMode::kRun);
    encode(backend);
    return backend.SubmitAndWait(deadline_);
  }

  const std::unique_ptr<Backend> subject_;
  const std::unique_ptr<Backend> judge_;
  const Tolerances tolerances_;
  const std::string name_;
  // Shared with the buffers given out, which may outlive this.
  const std::shared_ptr<Mirror> mirror_;
  EncodeMode mode_ = EncodeMode::kRun;
  Deadline deadline_ = Deadline::At({});
  bool submitted_ = false;
  std::vector<Step> steps_;
  std::vector<std::shared_ptr<std::byte[]>> host_arrays_;
};

}  // namespace

std::unique_ptr<Backend> MakeCheckingBackend(std::unique_ptr<Backend> subject,
                                             std::unique_ptr<Backend> judge,
                                             const Tolerances& tolerances) {
  return std::make_unique<CheckingBackend>(std::move(subject), std::move(judge), tolerances);
}

}  // namespace tandem::kernels::checking
