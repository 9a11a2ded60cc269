// The bytes of a part, in the notation of base/bytes.h and base/varint.h:
//     part    := examples:varint clipped:varint losses:varint predicted:varint
//                bins:varint miss:varint*bins click:varint*bins sums
// `sums` is a part of mechanism/partial_sums.cc. Losses and predictions are in steps of
// PartFigures; misses and clicks are as many as examples.
#include "train/linear/linear_part.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/bytes.h"
#include "base/varint.h"
#include "mechanism/part_reader.h"

namespace tacit::train {
namespace {

namespace linear = model::linear;

constexpr uint64_t kExamplesMost = uint64_t{1} << 30;  // as a period has

// Reads the figures up to the first that is wrong.
class FiguresReader {
 public:
  explicit FiguresReader(std::string_view bytes) : bytes_(bytes), reader_(bytes) {}

  Status Read(uint32_t bins, PartFigures* figures);
  std::string_view rest() const { return bytes_.substr(bytes_.size() - reader_.remaining()); }
  // Names what goes before the bytes of the sums.
  tl::unexpected<Error> Behind(Error error) const {
    return Fail(std::move(error).Context(
        fmt::format("behind {} bytes of figures", bytes_.size() - rest().size())));
  }

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

// An event that is not clipped counts nearly as much in steps as without them: it loses a step to
// rounding, and what brings a vector of full length below the clip.
constexpr double kFullCount = 1 - 1e-5;

tl::unexpected<Error> Beyond(std::string_view place, std::string_view field, double steps,
                             double least, double most) {
  return Fail(ErrorCode::kCorruption,
              fmt::format("{}: {} of {:.0f} steps, and its examples make {:.0f} to {:.0f}", place,
                          field, steps, least, most));
}

// The rows of a column, against the examples that they are of.
class ColumnCheck {
 public:
  ColumnCheck(const LinearQuery& query, size_t column, const PartFigures& figures, double step)
      : table_(query.columns->space().tables()[column]),
        is_set_(query.columns->IsSet(column)),
        examples_(static_cast<double>(figures.examples)),
        sure_(query.weighs ? 0 : static_cast<double>(figures.examples - figures.clipped)),
        unit_(query.weights.count(column) / step),
        count_most_(examples_ * unit_),
        sum_share_(query.update.residual_most / query.update.count_share),
        sum_most_(examples_ * query.sums.clip / step) {}

  Status See(const mechanism::PartRows& rows) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto sum = static_cast<double>(rows.cells[2 * i]);
      const auto count = static_cast<double>(rows.cells[2 * i + 1]);
      // A set's inputs are no ones: there the clip is the bound.
      const double most = is_set_ ? sum_most_ : sum_share_ * (count + examples_);
      counted_ += count;
      if (count >= 0 && count <= count_most_ && std::abs(sum) <= most) continue;
      const std::string place =
          fmt::format("column '{}', row {}", table_.name, rows.rows[i] - table_.first);
      if (count < 0 || count > count_most_) return Beyond(place, "a count", count, 0, count_most_);
      return Beyond(place, "a sum", sum, -most, most);
    }
    return End();
  }

 private:
  Status End() const {
    const double least = is_set_ ? 0 : sure_ * (unit_ * kFullCount - 1);
    const double most = examples_ * (unit_ + 1);
    if (counted_ >= least && counted_ <= most) return {};
    return Beyond(fmt::format("column '{}'", table_.name), "counts", counted_, least, most);
  }

  const RowSpace::Table& table_;
  const bool is_set_;
  const double examples_, sure_;  // all, and those that count in full
  const double unit_;             // an event's count, in steps
  const double count_most_;
  const double sum_share_, sum_most_;
  double counted_ = 0;
};

Status CheckNumbers(const LinearQuery& query, const PartFigures& figures,
                    std::span<const int64_t> numbers, double step) {
  const linear::UpdateOptions& update = query.update;
  const auto examples = static_cast<double>(figures.examples);
  const auto middle = figures.bins.begin() + static_cast<ptrdiff_t>(figures.bins.size() / 2);
  const auto clicks = static_cast<double>(std::accumulate(middle, figures.bins.end(), uint64_t{0}));
  const double move = examples * update.move_share / step;
  const double along =
      move * update.residual_most * std::sqrt(static_cast<double>(query.scales.size()));
  const double click = update.click_share / step;
  const double sure =
      query.weighs ? 0 : std::max(0.0, clicks - static_cast<double>(figures.clipped));
  struct Bound {
    std::string_view name;
    double least, most;
  };
  const std::array<Bound, kLinearNumbers> bounds{
      {{"moves along residuals", -along, along},
       {"squared moves", 0, move},
       {"clicks", sure * (click * kFullCount - 1), clicks * click}}};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto number = static_cast<double>(numbers[i]);
    if (number < bounds[i].least || number > bounds[i].most)
      return Beyond(bounds[i].name, "a sum", number, bounds[i].least, bounds[i].most);
  }
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

Result<PartFigures> LinearPart::AddBytes(std::string_view bytes, uint32_t bins,
                                         mechanism::RowSums* whole) {
  PartFigures its;
  FiguresReader reader(bytes);
  TACIT_RETURN_IF_ERROR(reader.Read(bins, &its));
  if (Status added = sums.AddBytes(reader.rest(), whole); !added)
    return reader.Behind(std::move(added.error()));
  figures.Add(its);
  return its;
}

Result<uint64_t> LinearPart::EventsOf(std::string_view bytes, const LinearQuery& query,
                                      uint32_t bins) {
  PartFigures figures;
  FiguresReader reader(bytes);
  TACIT_RETURN_IF_ERROR(reader.Read(bins, &figures));
  mechanism::PartReader sums(reader.rest(), query.sums, query.tables);
  std::array<int64_t, kLinearNumbers> numbers{};
  if (Status read = sums.ReadHead(numbers); !read) return reader.Behind(std::move(read.error()));
  TACIT_RETURN_IF_ERROR(CheckNumbers(query, figures, numbers, sums.step()));
  mechanism::PartRows rows;
  for (size_t j = 0; j < query.tables.size(); ++j) {
    rows.Clear();
    if (Status read = sums.ReadTable(&rows); !read) return reader.Behind(std::move(read.error()));
    TACIT_RETURN_IF_ERROR(ColumnCheck(query, j, figures, sums.step()).See(rows));
  }
  if (Status read = sums.ReadEnd(); !read) return reader.Behind(std::move(read.error()));
  return figures.examples;
}

}  // namespace tacit::train
