#include "common/model/group_text.h"

#include "absl/strings/str_cat.h"

namespace tandem::model {

std::string LayersText(const std::vector<uint32_t>& layers) {
  std::string text;
  for (size_t first = 0; first < layers.size();) {
    size_t end = first + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    const bool run = end - first > 2;
    absl::StrAppend(&text, text.empty() ? "" : ", ", layers[first]);
    if (run) absl::StrAppend(&text, " to ", layers[end - 1]);
    first = run ? end : first + 1;
  }
  return absl::StrCat(layers.size() == 1 ? "layer " : "layers ", text);
}

std::string WindowText(const KvGroupSpec& group) {
  if (group.window_tokens == 0) return "full attention";
  return absl::StrCat(group.chunked ? "chunks of " : "the last ", group.window_tokens,
                      group.window_tokens == 1 ? " token" : " tokens");
}

std::string GroupLayersText(const KvGroupSpec& group) {
  std::string text = LayersText(group.layers);
  if (group.readers.empty()) return text;
  std::vector<uint32_t> readers;
  for (const CacheReader& reader : group.readers) readers.push_back(reader.layer);
  return absl::StrCat(text, ", read by ", LayersText(readers), " too");
}

std::string HeadsText(const ModelSpec& spec) {
  const auto plain = [](const HeadSizes& heads, const char* noun) {
    return absl::StrCat(heads.num_kv_heads, noun, " of size ", heads.head_dim);
  };
  std::string text;
  bool differ = false;
  for (const KvGroupSpec& group : spec.kv_groups) {
    const HeadSizes heads = spec.HeadsOf(group);
    differ |= heads != spec.HeadsOf(spec.kv_groups.front());
    absl::StrAppend(&text, text.empty() ? "" : ", ", plain(heads, text.empty() ? " KV heads" : ""),
                    group.window_tokens == 0 ? " with full attention" : " with a window");
  }
  return differ ? text : plain(spec.HeadsOf(spec.kv_groups.front()), " KV heads");
}

}  // namespace tandem::model
