#include "model/sequence/options.h"

#include <fmt/format.h>

namespace tacit::model {
namespace {

Status Refuse(std::string why) {
  return Fail(ErrorCode::kInvalidArgument, "sequence model: " + std::move(why));
}

}  // namespace

Status CheckOptions(const SequenceOptions& o) {
  const bool transformer = o.encoder == SequenceOptions::Encoder::kTransformer;
  if (o.catalogue < 2 || o.catalogue >= kNoItem / 2)
    return Refuse(fmt::format("catalogue {}: it takes two items or more", o.catalogue));
  if (o.length == 0 || o.width == 0 || o.blocks == 0 || o.crops == 0)
    return Refuse("length, width, blocks and crops are at least 1");
  if (transformer && (o.heads == 0 || o.width % o.heads != 0))
    return Refuse(fmt::format("width {} cannot be cut into {} heads", o.width, o.heads));
  if (!(o.dropout >= 0 && o.dropout < 1))
    return Refuse(fmt::format("dropout {} is not in [0, 1)", o.dropout));
  if (!(o.label_smoothing >= 0 && o.label_smoothing < 1))
    return Refuse(fmt::format("label_smoothing {} is not in [0, 1)", o.label_smoothing));
  if (!(o.embedding_scale >= 0 && o.embedding_scale <= 1e6f))
    return Refuse(fmt::format("embedding_scale {} is no scale", o.embedding_scale));
  if (o.negatives >= o.catalogue)
    return Refuse(fmt::format("negatives {} of a catalogue of {}", o.negatives, o.catalogue));
  if (o.negatives > 0 && (o.item_bias || o.label_smoothing > 0))
    return Refuse("item_bias and label_smoothing are for a softmax over the whole catalogue");
  if (o.mask_seen && (o.negatives > 0 || o.label_smoothing > 0))
    return Refuse("mask_seen is for a softmax over the whole catalogue, its labels not smoothed");
  if (!(o.re_attention.kappa >= 0 && o.re_attention.most > 0))
    return Refuse("re_attention: kappa is 0 or more, most is above 0");
  if (o.re_attention.kappa > 0 && !transformer) return Refuse("re_attention is for transformers");
  return {};
}

}  // namespace tacit::model
