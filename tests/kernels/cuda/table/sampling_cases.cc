// What happens to logits: soft-cap, gathered slices, sampling, log-probabilities.
#include "absl/strings/str_cat.h"
#include "tests/kernels/cuda/table/op_case.h"

namespace tandem::kernels {
namespace {

constexpr uint32_t kTop = 5;
constexpr int32_t kPenalised = 500;  // ids of rows with penalties, shared by them

std::string Shape(const TableSizes& s, uint32_t rows) { return absl::StrCat(rows, " x ", s.vocab); }

double LogitBytes(const TableSizes& s, uint32_t rows) { return 4.0 * rows * s.vocab; }

std::vector<LogitAdjustment> Penalties(const TableSizes& s) {
  std::vector<LogitAdjustment> list(kPenalised);
  for (int32_t i = 0; i < kPenalised; ++i) {
    list[static_cast<size_t>(i)] = {
        .id = static_cast<int32_t>(static_cast<uint32_t>(i) * 251 % s.vocab),
        .repetition = 1.1f,
        .penalty = 0.5f};
  }
  return list;
}

// A mask that allows every second id.
std::vector<uint32_t> HalfOfTheIds(const TableSizes& s) {
  return std::vector<uint32_t>((s.vocab + 31) / 32, 0x55555555u);
}

OpCase SampleCase(const TableSizes& s, const std::string& how, const SamplingRow& wish,
                  uint32_t rows) {
  OpCase c{.op = "Sample " + how, .shape = Shape(s, rows), .bytes = LogitBytes(s, rows)};
  c.prepare = [=](CaseMemory& m, size_t) -> EncodeCase {
    std::vector<SamplingRow> wishes(rows, wish);
    for (uint32_t i = 0; i < rows; ++i) {
      wishes[i].logits_row = static_cast<int32_t>(i);
      wishes[i].seed = i;
    }
    const SampleParams p{.logits = m.Floats(size_t{rows} * s.vocab),
                         .vocab = s.vocab,
                         .rows = m.Put(wishes),
                         .count = rows,
                         .adjustments = m.Put(Penalties(s)),
                         .masks = m.Put(HalfOfTheIds(s)),
                         .out = static_cast<int32_t*>(m.Room(rows * sizeof(int32_t)))};
    return [p](Backend& b, size_t) { b.Encode(p); };
  };
  return c;
}

OpCase LogProbsCase(const TableSizes& s, uint32_t rows) {
  OpCase c{.op = "LogProbs", .shape = Shape(s, rows), .bytes = LogitBytes(s, rows)};
  c.prepare = [=](CaseMemory& m, size_t) -> EncodeCase {
    std::vector<LogProbsRow> wishes(rows);
    for (uint32_t i = 0; i < rows; ++i) {
      wishes[i] = {.logits_row = static_cast<int32_t>(i),
                   .ids_begin = static_cast<int32_t>(i),
                   .ids_end = static_cast<int32_t>(i + 1),
                   .top_n = kTop,
                   .out_begin = i * (kTop + 1)};
    }
    const uint32_t results = rows * (kTop + 1);
    LogProbsParams p{};
    p.logits = m.Floats(size_t{rows} * s.vocab);
    p.vocab = s.vocab;
    p.rows = m.Put(wishes);
    p.count = rows;
    p.ids = m.Put(std::vector<int32_t>(rows, 3));
    p.out_count = results;
    p.out_ids = static_cast<int32_t*>(m.Room(results * sizeof(int32_t)));
    p.out_logprobs = static_cast<float*>(m.Room(results * sizeof(float)));
    p.out_ranks = static_cast<int32_t*>(m.Room(results * sizeof(int32_t)));
    return [p](Backend& b, size_t) { b.Encode(p); };
  };
  return c;
}

OpCase SoftCapCase(const TableSizes& s, uint32_t rows) {
  OpCase c{.op = "SoftCap", .shape = Shape(s, rows), .bytes = 2 * LogitBytes(s, rows)};
  c.prepare = [=](CaseMemory& m, size_t) -> EncodeCase {
    const size_t count = size_t{rows} * s.vocab;
    const SoftCapParams p{m.Floats(count), count, 30.0f};
    return [p](Backend& b, size_t) { b.Encode(p); };
  };
  return c;
}

// As rank 0 of two does it: its own slice is in place.
OpCase UnshardCase(const TableSizes& s, uint32_t rows) {
  OpCase c{
      .op = "UnshardLogits", .shape = Shape(s, rows) + " of 2 ranks", .bytes = LogitBytes(s, rows)};
  c.prepare = [=](CaseMemory& m, size_t) -> EncodeCase {
    const uint32_t half = (s.vocab + 1) / 2;
    const float* const gathered = m.Floats(size_t{rows} * half);
    auto* const out = static_cast<float*>(m.Room(size_t{rows} * s.vocab * sizeof(float)));
    return [=](Backend& b, size_t) {
      const uint32_t starts[] = {half, s.vocab};
      b.Encode(UnshardLogitsParams{gathered, starts, 1, rows, half, out});
    };
  };
  return c;
}

}  // namespace

std::vector<OpCase> SamplingCases(const TableSizes& s) {
  const SamplingRow greedy{.temperature = 0}, plain{.temperature = 0.8f},
      cut{.temperature = 0.8f, .top_p = 0.9f, .top_k = 40},
      nucleus{.temperature = 0.8f, .top_p = 0.9f}, typical{.temperature = 0.8f, .typical_p = 0.9f},
      xtc{.temperature = 0.8f, .xtc_probability = 1.0f},
      penalised{.temperature = 0.8f, .adjustments_end = kPenalised},
      masked{.temperature = 0.8f, .mask_begin = 0};
  std::vector<OpCase> cases;
  for (const uint32_t rows : {s.batches.front(), s.batches.back()}) {
    cases.push_back(SampleCase(s, "greedy", greedy, rows));
    cases.push_back(SampleCase(s, "plain", plain, rows));
    cases.push_back(SampleCase(s, "top-k, top-p", cut, rows));
    cases.push_back(SampleCase(s, "top-p", nucleus, rows));
    cases.push_back(SampleCase(s, "typical-p", typical, rows));
    cases.push_back(SampleCase(s, "XTC", xtc, rows));
    cases.push_back(SampleCase(s, "penalties", penalised, rows));
    cases.push_back(SampleCase(s, "mask", masked, rows));
    cases.push_back(LogProbsCase(s, rows));
  }
  cases.push_back(SoftCapCase(s, s.batches.back()));
  cases.push_back(UnshardCase(s, s.batches.back()));
  return cases;
}

}  // namespace tandem::kernels
