#include "common/model/read_groups.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/gguf/keys.h"
#include "common/gguf/quote.h"

namespace tandem::model {
namespace {

namespace keys = gguf::keys;

// What a layer's group is chosen by.
struct LayerKind {
  uint32_t window_tokens = 0;
  HeadSizes heads;
};

// By layer, whether it has a window. What the file says counts more than the table: a flag per
// layer, or one period.
absl::StatusOr<std::vector<bool>> ReadPattern(const MetadataReader& reader,
                                              const Architecture& architecture, uint32_t layers) {
  uint32_t period = architecture.window_period;
  const bool stated = period > 1 && reader.Has(keys::kSlidingWindowPattern);
  if (architecture.listed_windows || (stated && reader.IsList(keys::kSlidingWindowPattern))) {
    return reader.FlagPerLayer(keys::kSlidingWindowPattern, layers);
  }
  if (stated) {
    TANDEM_ASSIGN_OR_RETURN(period, reader.Size(keys::kSlidingWindowPattern));
  }
  std::vector<bool> has_window(layers);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    // A table's 1 means every layer; a file's 1, as in (layer + 1) % 1, none.
    has_window[layer] = (period == 1 && !stated) || (layer + 1) % period != 0;
  }
  return has_window;
}

// By layer, the window; 0 with full attention.
absl::StatusOr<std::vector<uint32_t>> ReadWindows(const MetadataReader& reader,
                                                  const Architecture& architecture,
                                                  const SpecOptions& options,
                                                  const ModelSpec& spec) {
  std::vector<uint32_t> windows(spec.num_layers, 0);
  if (architecture.window_period == 0 && !architecture.listed_windows) return windows;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<bool> has_window,
                          ReadPattern(reader, architecture, spec.num_layers));
  TANDEM_ASSIGN_OR_RETURN(uint32_t window,
                          architecture.default_window == 0
                              ? reader.Count(keys::kSlidingWindow)
                              : reader.Size(keys::kSlidingWindow, architecture.default_window));
  const bool any = std::find(has_window.begin(), has_window.end(), true) != has_window.end();
  if (architecture.listed_windows && any) {
    TANDEM_ASSIGN_OR_RETURN(window, reader.Size(keys::kSlidingWindow));
  }
  // A context no longer than the window, however far the server extends it, is full attention,
  // unless the window's layers differ from the others in more than the window.
  const double reach = double{std::max(options.rope_scale, 1.0f)} * spec.context_length;
  if (window >= reach && architecture.window_rope_base == 0.0f) window = 0;
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    if (has_window[layer]) windows[layer] = window;
  }
  return windows;
}

absl::StatusOr<std::vector<LayerKind>> ReadKinds(const MetadataReader& reader,
                                                 const Architecture& architecture,
                                                 const SpecOptions& options,
                                                 const ModelSpec& spec) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<uint32_t> windows,
                          ReadWindows(reader, architecture, options, spec));
  std::vector<uint32_t> kv_heads(spec.num_layers, spec.num_kv_heads);
  HeadSizes heads{spec.num_kv_heads, spec.head_dim, spec.value_dim};
  HeadSizes windowed = heads;
  if (!spec.mla.has_value()) {
    if (reader.Has(keys::kHeadCountKv)) {
      TANDEM_ASSIGN_OR_RETURN(kv_heads, reader.SizePerLayer(keys::kHeadCountKv, spec.num_layers));
    }
    TANDEM_ASSIGN_OR_RETURN(windowed.head_dim, reader.Size(keys::kKeyLengthSwa, heads.head_dim));
    TANDEM_ASSIGN_OR_RETURN(windowed.value_dim,
                            reader.Size(keys::kValueLengthSwa, heads.value_dim));
  }
  std::vector<LayerKind> kinds;
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    kinds.push_back({windows[layer], windows[layer] == 0 ? heads : windowed});
    kinds.back().heads.num_kv_heads = kv_heads[layer];
  }
  return kinds;
}

// The last `readers` layers read the cache of the last layer of their kind before them.
absl::Status AddReaders(const MetadataReader& reader, const std::vector<LayerKind>& kinds,
                        uint32_t readers, std::vector<KvGroupSpec>& groups) {
  const auto layers = static_cast<uint32_t>(kinds.size());
  for (uint32_t layer = layers - readers; layer < layers; ++layer) {
    const bool windowed = kinds[layer].window_tokens != 0;
    const uint32_t source = layers - readers - (windowed ? 2 : 1);
    const LayerKind& kind = kinds[source];
    if ((kind.window_tokens != 0) != windowed || kind.heads != kinds[layer].heads) {
      return absl::InvalidArgumentError(
          absl::StrCat("key ", gguf::Quoted(reader.Full(keys::kSharedKvLayers)), ": layer ", layer,
                       " would read the cache of layer ", source, ", which has another window or ",
                       "other heads"));
    }
    for (KvGroupSpec& group : groups) {
      const bool has =
          std::find(group.layers.begin(), group.layers.end(), source) != group.layers.end();
      if (has) group.readers.push_back({layer, source});
    }
  }
  return absl::OkStatus();
}

// Adds the layers with or without a window to the groups of their kinds; recurrent ones to none.
void AddLayers(const Architecture& architecture, const ModelSpec& spec,
               const std::vector<LayerKind>& kinds, uint32_t count, bool windowed,
               std::vector<KvGroupSpec>& groups) {
  for (uint32_t layer = 0; layer < count; ++layer) {
    const LayerKind& kind = kinds[layer];
    if ((kind.window_tokens != 0) != windowed || spec.IsRecurrent(layer)) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const KvGroupSpec& known) {
      return known.window_tokens == kind.window_tokens && known.heads == kind.heads;
    });
    if (group == groups.end()) {
      groups.push_back({.window_tokens = kind.window_tokens, .layers = {}, .heads = kind.heads});
      groups.back().chunked = windowed && architecture.chunked_windows;
      group = groups.end() - 1;
    }
    group->layers.push_back(layer);
  }
}

// The draft head has a cache like the layers with full attention, in their group.
absl::Status AddDraftHead(uint32_t layer, std::vector<KvGroupSpec>& groups) {
  for (KvGroupSpec& group : groups) {
    if (group.window_tokens != 0) continue;
    group.layers.push_back(layer);
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      "draft heads of models without a layer of full attention are not supported");
}

}  // namespace

absl::Status ReadGroups(const MetadataReader& reader, const Architecture& architecture,
                        const SpecOptions& options, ModelSpec& spec) {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<LayerKind> kinds,
                          ReadKinds(reader, architecture, options, spec));
  TANDEM_ASSIGN_OR_RETURN(const uint32_t readers, reader.Count(keys::kSharedKvLayers));
  if (readers != 0 && (spec.num_layers < 3 || readers > spec.num_layers - 2)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key ", gguf::Quoted(reader.Full(keys::kSharedKvLayers)), ": needed at least 2 of the ",
        spec.num_layers, " layers to have a cache, found ", readers, " without one"));
  }
  if (readers != 0 && (spec.mla.has_value() || spec.joint_qk_norm)) {
    return absl::UnimplementedError(absl::StrCat(
        "key ", gguf::Quoted(reader.Full(keys::kSharedKvLayers)), ": layers without a cache are ",
        "not supported with ", spec.mla.has_value() ? "latent attention" : "norms over all heads"));
  }
  std::vector<KvGroupSpec> groups;
  AddLayers(architecture, spec, kinds, spec.num_layers - readers, /*windowed=*/false, groups);
  AddLayers(architecture, spec, kinds, spec.num_layers - readers, /*windowed=*/true, groups);
  if (groups.empty()) return absl::OkStatus();  // which ValidateGroups refuses
  TANDEM_RETURN_IF_ERROR(AddReaders(reader, kinds, readers, groups));
  if (spec.has_draft_head) TANDEM_RETURN_IF_ERROR(AddDraftHead(spec.num_layers, groups));
  const HeadSizes model = *groups.front().heads;
  spec.num_kv_heads = model.num_kv_heads;
  spec.head_dim = model.head_dim;
  spec.value_dim = model.value_dim;
  for (KvGroupSpec& group : groups) {
    if (*group.heads == model) group.heads.reset();
  }
  spec.kv_groups = std::move(groups);
  return absl::OkStatus();
}

}  // namespace tandem::model
