// Figures: what a program measured, as a JSON object in a file. The file is whole after every
// figure, so that nothing is lost where a time limit ends the program. Errors go to stderr.
#ifndef TANDEM_TESTS_KERNELS_CUDA_TABLE_FIGURES_H_
#define TANDEM_TESTS_KERNELS_CUDA_TABLE_FIGURES_H_

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace tandem::kernels {

using Json = nlohmann::ordered_json;

class Figures {
 public:
  // Empty: no file.
  explicit Figures(std::string path) : path_(std::move(path)) {}

  void Set(const std::string& name, Json value) {
    all_[name] = std::move(value);
    Write();
  }
  void Append(const std::string& name, Json value) {
    all_[name].push_back(std::move(value));
    Write();
  }

 private:
  void Write() const {
    if (path_.empty()) return;
    const std::string partial = path_ + ".partial";
    const bool written = static_cast<bool>(std::ofstream(partial) << all_.dump(1) << '\n');
    if (!written || std::rename(partial.c_str(), path_.c_str()) != 0) std::perror(path_.c_str());
  }

  const std::string path_;
  Json all_ = Json::object();
};

}  // namespace tandem::kernels

#endif  // TANDEM_TESTS_KERNELS_CUDA_TABLE_FIGURES_H_
