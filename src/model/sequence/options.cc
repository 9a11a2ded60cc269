#include "model/sequence/options.h"

#include <fmt/format.h>

#include <algorithm>

namespace tacit::model {
namespace {

Status RefuseOptions(std::string why) {
  return Fail(ErrorCode::kInvalidArgument, "sequence model: " + std::move(why));
}

Status CheckNumber(const char* name, uint64_t number, uint64_t most) {
  if (number >= 1 && number <= most) return {};
  return RefuseOptions(fmt::format("{} {} is not in 1 to {}", name, number, most));
}

// About the number of the layout's parameters, of which memory holds several copies.
double Parameters(const SequenceOptions& o) {
  const double width = o.width, inner = std::max(o.feed_forward, o.width);
  return width * (2.0 * o.catalogue + o.length + o.blocks * (8 * width + 2 * inner));
}

}  // namespace

Status CheckOptions(const SequenceOptions& o) {
  const bool transformer = o.encoder == SequenceOptions::Encoder::kTransformer;
  if (o.catalogue < 2 || o.catalogue >= kNoItem / 2)
    return RefuseOptions(fmt::format("catalogue {}: it takes two items or more", o.catalogue));
  TACIT_RETURN_IF_ERROR(CheckNumber("length", o.length, 1'000'000));
  TACIT_RETURN_IF_ERROR(CheckNumber("width", o.width, 1 << 16));
  TACIT_RETURN_IF_ERROR(CheckNumber("blocks", o.blocks, 1 << 10));
  TACIT_RETURN_IF_ERROR(CheckNumber("crops", o.crops, 10'000));
  constexpr double kParametersMost = 0x1p32;
  if (!(Parameters(o) <= kParametersMost))
    return RefuseOptions(
        fmt::format("width {}, blocks {}, feed_forward {}, length {} and a catalogue of "
                    "{} are more than {:.0f} numbers",
                    o.width, o.blocks, o.feed_forward, o.length, o.catalogue, kParametersMost));
  if (transformer && (o.heads == 0 || o.width % o.heads != 0))
    return RefuseOptions(fmt::format("width {} cannot be cut into {} heads", o.width, o.heads));
  if (!(o.dropout >= 0 && o.dropout < 1))
    return RefuseOptions(fmt::format("dropout {} is not in [0, 1)", o.dropout));
  if (!(o.label_smoothing >= 0 && o.label_smoothing < 1))
    return RefuseOptions(fmt::format("label_smoothing {} is not in [0, 1)", o.label_smoothing));
  if (!(o.embedding_scale >= 0 && o.embedding_scale <= 1e6f))
    return RefuseOptions(fmt::format("embedding_scale {} is no scale", o.embedding_scale));
  if (o.negatives >= o.catalogue)
    return RefuseOptions(
        fmt::format("negatives {} of a catalogue of {}", o.negatives, o.catalogue));
  if (o.negatives > 0 && (o.item_bias || o.label_smoothing > 0))
    return RefuseOptions(
        "item_bias and label_smoothing are for a softmax over the whole catalogue");
  if (o.mask_seen && (o.negatives > 0 || o.label_smoothing > 0))
    return RefuseOptions(
        "mask_seen is for a softmax over the whole catalogue, its labels not smoothed");
  if (!(o.re_attention.kappa >= 0 && o.re_attention.kappa <= 1e6f && o.re_attention.most > 0))
    return RefuseOptions(
        fmt::format("re_attention: kappa {} is not in 0 to 1e6, or most {} not above 0",
                    o.re_attention.kappa, o.re_attention.most));
  if (o.re_attention.kappa > 0 && !transformer)
    return RefuseOptions("re_attention is for transformers");
  return {};
}

}  // namespace tacit::model
