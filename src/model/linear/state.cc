// The stored form of State, little-endian. The notation is base/bytes.h's.
//     state   := "tacit.linear":string version:u32 rows:u64 columns:u32 periods:u64 bias:f64
//                rate:f64 (sum:f64 weight:f64)*columns
//     version := 1
// `rows` and `columns` are those of the model that the state belongs to. `sum` over `weight` is the
// prior variance of a column's weights.
#include "model/linear/state.h"

#include <fmt/format.h>

#include <cmath>

#include "base/bytes.h"

namespace tacit::model::linear {
namespace {

constexpr std::string_view kName = "tacit.linear";
constexpr uint32_t kVersion = 1;

tl::unexpected<Error> Damaged(std::string_view what) {
  return Fail(ErrorCode::kCorruption, fmt::format("a linear model's state: {}", what));
}

}  // namespace

std::string State::Encode(const Columns& columns) const {
  ByteWriter writer;
  writer.PutString(kName).Put(kVersion);
  writer.Put(columns.space().rows()).Put(static_cast<uint32_t>(columns.size()));
  writer.Put(periods).Put(bias).Put(rate);
  for (const Prior& prior : priors) writer.Put(prior.sum).Put(prior.weight);
  return std::move(writer).Take();
}

Result<State> State::Decode(std::string_view bytes, const Columns& columns) {
  return Decode(bytes, columns.space().rows(), columns.size());
}

Result<State> State::Decode(std::string_view bytes, uint64_t values, size_t columns) {
  ByteReader reader(bytes);
  if (reader.GetString() != kName || reader.Get<uint32_t>() != kVersion)
    return Damaged("it is not one, or of an unknown version");
  const auto rows = reader.Get<uint64_t>();
  const auto count = reader.Get<uint32_t>();
  if (rows != values || count != columns)
    return Damaged(fmt::format("it has {} columns of {} values, and {} of {} are configured", count,
                               rows, columns, values));
  State state;
  state.periods = reader.Get<uint64_t>();
  state.bias = reader.Get<double>();
  state.rate = reader.Get<double>();
  state.priors.resize(count);
  bool finite = std::isfinite(state.bias) && std::isfinite(state.rate) && state.rate >= 0;
  for (Prior& prior : state.priors) {
    prior.sum = reader.Get<double>();
    prior.weight = reader.Get<double>();
    finite = finite && std::isfinite(prior.sum) && std::isfinite(prior.weight);
  }
  if (!reader.at_end()) return Damaged("its length is wrong");
  if (!finite) return Damaged("a number is not finite");
  return state;
}

}  // namespace tacit::model::linear
