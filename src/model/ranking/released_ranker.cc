// The stored form of counts with a ranker, little-endian, sealed by the store. The notation is
// base/bytes.h's.
//     ranked  := "tacit.ranked":string version:u32 counts:string count:u32 parameter:f32*count
//     version := 1
// `counts` is model::transitions::ReleasedModel's form; the parameters are the ranker's.
#include "model/ranking/released_ranker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "model/ranking/ranker.h"

namespace tacit::model::ranking {
namespace {

constexpr std::string_view kRankedName = "tacit.ranked";
constexpr uint32_t kRankedVersion = 1;

}  // namespace

std::string EncodeRanker(const transitions::ReleasedModel& counts,
                         std::span<const float> parameters) {
  TACIT_CHECK(parameters.size() == kRankerParameters);
  ByteWriter writer;
  writer.PutString(kRankedName).Put(kRankedVersion).PutString(counts.Encode());
  writer.Put(static_cast<uint32_t>(parameters.size())).PutArray(parameters);
  return std::move(writer).Take();
}

Result<ReleasedRanker> DecodeRanker(std::string_view bytes,
                                    const transitions::PublicItems& catalogue,
                                    const transitions::Options& options, WorkerPool& workers) {
  const auto damaged = [](std::string why) { return Fail(ErrorCode::kCorruption, std::move(why)); };
  ByteReader reader(bytes);
  const std::string_view name = reader.GetString();
  const auto version = reader.Get<uint32_t>();
  if (!reader.ok() || name != kRankedName) return damaged("these bytes are something else");
  if (version != kRankedVersion) return damaged(fmt::format("version {} is unknown", version));
  const std::string_view counts = reader.GetString();
  std::vector<float> parameters(kRankerParameters);
  const auto count = reader.Get<uint32_t>();
  reader.GetArray(std::span(parameters));
  if (!reader.at_end() || count != kRankerParameters ||
      !std::ranges::all_of(parameters, [](float x) { return std::isfinite(x); }))
    return damaged("the ranker is cut short, or no numbers");
  TACIT_ASSIGN(auto model, transitions::ReleasedModel::Decode(counts, catalogue, options, workers));
  return ReleasedRanker{std::move(model), std::move(parameters)};
}

}  // namespace tacit::model::ranking
