#include "common/model/read_delta_net.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/gguf/keys.h"
#include "common/gguf/quote.h"

namespace tandem::model {
namespace {

namespace keys = gguf::keys;

constexpr uint32_t kUsualInterval = 4;

// The file's flags, one per block (blocks of draft heads included); without them every layer but
// each interval's last.
absl::StatusOr<std::vector<uint32_t>> RecurrentLayers(const MetadataReader& reader,
                                                      const ModelSpec& spec) {
  std::vector<uint32_t> layers;
  if (reader.Has(keys::kRecurrentLayers)) {
    const uint32_t blocks = spec.num_layers + spec.num_draft_layers;
    TANDEM_ASSIGN_OR_RETURN(const std::vector<bool> flags,
                            reader.FlagPerLayer(keys::kRecurrentLayers, blocks));
    for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
      if (flags[layer]) layers.push_back(layer);
    }
    return layers;
  }
  TANDEM_ASSIGN_OR_RETURN(const uint32_t interval,
                          reader.Size(keys::kFullAttentionInterval, kUsualInterval));
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    if ((layer + 1) % interval != 0) layers.push_back(layer);
  }
  return layers;
}

}  // namespace

absl::StatusOr<std::optional<DeltaNetSpec>> ReadDeltaNet(const MetadataReader& reader,
                                                         const Architecture& architecture,
                                                         const ModelSpec& spec) {
  if (architecture.delta_net == DeltaNetHeads::kNone) return std::nullopt;
  DeltaNetSpec net;
  net.strided_heads = architecture.delta_net == DeltaNetHeads::kStrided;
  TANDEM_ASSIGN_OR_RETURN(net.key_heads, reader.Size(keys::kStateGroupCount));
  TANDEM_ASSIGN_OR_RETURN(net.value_heads, reader.Size(keys::kTimeStepRank));
  TANDEM_ASSIGN_OR_RETURN(net.head_dim, reader.Size(keys::kStateSize));
  TANDEM_ASSIGN_OR_RETURN(net.conv_taps, reader.Size(keys::kConvKernel));
  TANDEM_ASSIGN_OR_RETURN(const uint32_t inner, reader.Size(keys::kStateInnerSize));
  if (inner != uint64_t{net.value_heads} * net.head_dim) {
    return absl::InvalidArgumentError(
        absl::StrCat("key ", gguf::Quoted(reader.Full(keys::kStateInnerSize)), ": needed ",
                     net.value_heads, " value heads of size ", net.head_dim, ", found ", inner));
  }
  TANDEM_ASSIGN_OR_RETURN(net.layers, RecurrentLayers(reader, spec));
  return net;
}

}  // namespace tandem::model
