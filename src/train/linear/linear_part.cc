// The bytes of a part, in the notation of base/bytes.h and base/varint.h:
//     part    := examples:varint clipped:varint losses:varint predicted:varint
//                bins:varint miss:varint*bins click:varint*bins sums
// `sums` is a part of mechanism/partial_sums.cc. Losses and predictions are in steps of
// PartFigures; misses and clicks are as many as examples.
#include "train/linear/linear_part.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "base/bytes.h"
#include "base/varint.h"

namespace tacit::train {
namespace {

constexpr uint64_t kExamplesMost = uint64_t{1} << 30;  // as a period has

// Reads the figures up to the first that is wrong.
class FiguresReader {
 public:
  explicit FiguresReader(std::string_view bytes) : bytes_(bytes), reader_(bytes) {}

  Status Read(uint32_t bins, PartFigures* figures);
  std::string_view rest() const { return bytes_.substr(bytes_.size() - reader_.remaining()); }

 private:
  // Reads a number up to `most`.
  Result<uint64_t> Number(std::string_view field, double most) {
    const size_t at = bytes_.size() - reader_.remaining();
    uint64_t number = 0;
    if (!GetVarint(&reader_, &number))
      return Wrong(field, at,
                   reader_.ok() ? "a number is not in its shortest form" : "the bytes end");
    if (static_cast<double>(number) > most)
      return Wrong(field, at, fmt::format("{}; {} is the most", number, most));
    return number;
  }
  static tl::unexpected<Error> Wrong(std::string_view field, size_t at, std::string_view why,
                                     ErrorCode code = ErrorCode::kCorruption) {
    return Fail(code, fmt::format("figures of a part, {} at byte {}: {}", field, at, why));
  }

  const std::string_view bytes_;
  ByteReader reader_;
};

Status FiguresReader::Read(uint32_t bins, PartFigures* figures) {
  TACIT_ASSIGN(figures->examples, Number("examples", kExamplesMost));
  const auto examples = static_cast<double>(figures->examples);
  TACIT_ASSIGN(figures->clipped, Number("clipped", examples));
  TACIT_ASSIGN(figures->losses, Number("losses", examples * kLossMost / PartFigures::kStep));
  TACIT_ASSIGN(figures->predicted, Number("predicted", examples / PartFigures::kStep));
  const size_t at = bytes_.size() - reader_.remaining();
  TACIT_ASSIGN(const uint64_t its_bins, Number("bins", UINT32_MAX));
  if (its_bins != bins)
    return Wrong("bins", at, fmt::format("{}; this learner has {}", its_bins, bins),
                 ErrorCode::kInvalidArgument);
  figures->bins.resize(size_t{2} * bins);
  for (uint64_t& count : figures->bins) {
    TACIT_ASSIGN(count, Number("a bin", examples));
  }
  const uint64_t in_bins = std::accumulate(figures->bins.begin(), figures->bins.end(), uint64_t{0});
  if (in_bins != figures->examples)
    return Wrong("bins", at, fmt::format("they have {} of {} examples", in_bins, examples));
  return {};
}

}  // namespace

void LinearPart::Add(const LinearPart& other) {
  sums.Add(other.sums);
  figures.Add(other.figures);
}

std::string LinearPart::Encode() const {
  ByteWriter writer;
  for (const uint64_t number : {figures.examples, figures.clipped, figures.losses,
                                figures.predicted, uint64_t{figures.bins.size() / 2}})
    PutVarint(number, &writer);
  for (const uint64_t count : figures.bins) PutVarint(count, &writer);
  return std::move(writer).Take() + sums.Encode();
}

Result<LinearPart> LinearPart::Decode(std::string_view bytes, const LinearQuery& query,
                                      uint32_t bins) {
  PartFigures figures;
  FiguresReader reader(bytes);
  TACIT_RETURN_IF_ERROR(reader.Read(bins, &figures));
  auto sums = mechanism::PartialSums::Decode(reader.rest(), query.sums, query.tables);
  if (!sums)
    return Fail(std::move(sums.error())
                    .Context(fmt::format("behind {} bytes of figures",
                                         bytes.size() - reader.rest().size())));
  return LinearPart{*std::move(sums), std::move(figures)};
}

}  // namespace tacit::train
