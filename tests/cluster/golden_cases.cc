#include "tests/cluster/golden_cases.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "common/base/check.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;

Json ReadJson(const std::string& path) {
  std::ifstream file(path);
  TANDEM_CHECK(file.good()) << path;
  return Json::parse(file);
}

std::vector<std::vector<float>> ReadRows(const std::string& path, size_t rows, size_t columns) {
  std::vector<std::vector<float>> all(rows, std::vector<float>(columns));
  std::ifstream file(path, std::ios::binary);
  for (auto& row : all) {
    file.read(reinterpret_cast<char*>(row.data()),
              static_cast<std::streamsize>(columns * sizeof(float)));
  }
  TANDEM_CHECK(file.good()) << path << " is shorter than its index says";
  return all;
}

GoldenDraft ReadDraft(const Json& entry, const std::string& folder, size_t positions,
                      size_t vocab) {
  GoldenDraft draft;
  draft.guesses = entry.at("draft").get<std::vector<TokenId>>();
  draft.logits = ReadRows(folder + "/" + entry.at("logits").get<std::string>(), positions, vocab);
  draft.guess_logits = ReadRows(folder + "/" + entry.at("draft_logits").get<std::string>(),
                                draft.guesses.size(), vocab);
  return draft;
}

std::vector<GoldenCase> ReadCases(const Json& list, const std::string& folder, size_t vocab) {
  std::vector<GoldenCase> cases;
  for (const Json& entry : list) {
    GoldenCase one;
    one.tokens = entry.at("tokens").get<std::vector<TokenId>>();
    one.positions = entry.at("positions").get<std::vector<int>>();
    one.greedy = entry.at("greedy").get<std::vector<TokenId>>();
    one.logits =
        ReadRows(folder + "/" + entry.at("logits").get<std::string>(), one.positions.size(), vocab);
    if (entry.contains("mtp")) {
      one.draft = ReadDraft(entry.at("mtp"), folder, one.positions.size(), vocab);
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

}  // namespace

std::string GoldenPath(const std::string& relative) { return "tests/golden/" + relative; }

GoldenModel ReadArchGolden(const std::string& name) {
  const std::string folder = GoldenPath("arch/" + name);
  const Json index = ReadJson(folder + "/cases.json");
  return {.path = folder + "/model.gguf",
          .cases = ReadCases(index.at("cases"), folder, index.at("vocab").get<size_t>())};
}

GoldenModel ReadLoraGolden(const std::string& name) {
  const std::string folder = GoldenPath("lora/" + name);
  const Json index = ReadJson(folder + "/cases.json");
  return {.path = GoldenPath("arch/" + name + "/model.gguf"),
          .adapter = folder + "/adapter.gguf",
          .cases = ReadCases(index.at("cases"), folder, index.at("vocab").get<size_t>())};
}

GoldenModel ReadQuantGolden(const std::string& file) {
  const std::string folder = GoldenPath("quant/models");
  const Json index = ReadJson(folder + "/cases.json");
  for (const Json& model : index.at("models")) {
    if (model.at("file") != file) continue;
    GoldenModel golden{
        .path = folder + "/" + file,
        .cases = ReadCases(model.at("cases"), folder, index.at("vocab").get<size_t>())};
    for (const auto& [what, figures] : model.at("for_information").items()) {
      if (figures.contains("rms_diff")) golden.reference_rms = figures.at("rms_diff").get<double>();
    }
    return golden;
  }
  TANDEM_CHECK(false) << "no golden model " << file;
  return {};
}

}  // namespace tandem::testing
