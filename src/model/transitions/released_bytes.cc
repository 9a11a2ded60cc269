// The stored form of ReleasedModel, little-endian, sealed by the store. The notation is
// that of base/bytes.h and base/varint.h.
//     model   := "tacit.transitions":string version:u32 items:u32 catalogue:digest
//                constants:string periods:u64 [released]
//     version := 1
//     released := signal:f64 popularity:table tables:u32 (table factor:f32*size)*tables
//                noiseless:u8 kappa:f64 cells:u32 row*items mean:f32*cells precision:f32*cells
//     table   := deviation:f64 size:u32 sum:f32*size         deviation: of its noise
//     row     := columns:varint distance:varint*columns
// `catalogue` is PublicItems::Fingerprint, `constants` Options::Text.
// `released` is there once there were periods. `popularity` is of every item, as it was released.
// There are 1 or 4 `tables`; each has the prior's factor for each of its buckets. The cells (a, b)
// lie row by row, a from 0: the first distance of a row is b, any other b - (the one before) - 1.
// `mean` and `precision` are in the order of the cells; a precision of 0: not measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/varint.h"
#include "model/transitions/released_model.h"

namespace tacit::model::transitions {
namespace {

constexpr std::string_view kName = "tacit.transitions";
constexpr uint32_t kVersion = 1;

void PutTable(const ReleasedTable& table, ByteWriter* writer) {
  writer->Put(table.deviation)
      .Put(static_cast<uint32_t>(table.sums.size()))
      .PutArray(std::span(table.sums));
}

// Writes per row the number of columns, then each column's distance from the one before it.
void PutCells(const Cells& cells, ByteWriter* writer) {
  writer->Put(static_cast<uint32_t>(cells.size()));
  for (uint32_t a = 0; a < cells.items(); ++a) {
    const auto row = cells.Row(a);
    PutVarint(row.size(), writer);
    for (uint32_t next = 0; const uint32_t b : row) {
      PutVarint(b - next, writer);
      next = b + 1;
    }
  }
}

tl::unexpected<Error> Damaged(std::string_view what) {
  return Fail(ErrorCode::kCorruption, fmt::format("released counts: {}", what));
}

// The largest number accepted: sums of such numbers stay finite; no release comes near.
constexpr double kMost = 1e30;
bool AllFinite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::abs(value) <= kMost; });
}
bool NoneBelowZero(std::span<const float> values) {
  return AllFinite(values) && std::ranges::all_of(values, [](float value) { return value >= 0; });
}
bool IsDeviation(double value) { return value >= 0 && value <= kMost; }

// Sets aside no memory for more numbers than there are bytes.
bool GetFloats(ByteReader* reader, uint64_t count, std::vector<float>* values) {
  if (!reader->ok() || count > reader->remaining() / sizeof(float)) return false;
  values->resize(count);
  reader->GetArray(std::span(*values));
  return true;
}

bool GetTable(ByteReader* reader, uint32_t size, ReleasedTable* table) {
  table->deviation = reader->Get<double>();
  return reader->Get<uint32_t>() == size && GetFloats(reader, size, &table->sums) &&
         IsDeviation(table->deviation) && AllFinite(table->sums);
}

bool GetCells(ByteReader* reader, uint32_t items, Cells* cells) {
  const auto size = reader->Get<uint32_t>();
  if (!reader->ok() || size > reader->remaining() || items > reader->remaining()) return false;
  cells->row_end.reserve(items);
  cells->column.reserve(size);
  for (uint32_t a = 0; a < items; ++a) {
    uint64_t count = 0, distance = 0;
    if (!GetVarint(reader, &count) || count > size - cells->column.size()) return false;
    for (uint64_t next = 0; count > 0; --count) {
      if (!GetVarint(reader, &distance) || distance >= items - next || next + distance == a)
        return false;
      cells->column.push_back(static_cast<uint32_t>(next + distance));
      next += distance + 1;
    }
    cells->row_end.push_back(cells->column.size());
  }
  return cells->column.size() == size;
}

// Checks what was released, and how it was made: refuses other versions, catalogues and constants.
Status CheckHead(ByteReader* reader, const PublicItems& catalogue, const Options& options) {
  const auto other = [](std::string what) {
    return Fail(ErrorCode::kInvalidArgument, "released counts: " + std::move(what));
  };
  const std::string_view name = reader->GetString();
  const auto version = reader->Get<uint32_t>();
  if (!reader->ok() || name != kName) return Damaged("these bytes are something else");
  if (version != kVersion)
    return other(
        fmt::format("version {} is unknown, this program reads version {}", version, kVersion));
  const auto items = reader->Get<uint32_t>();
  Digest fingerprint{};
  reader->GetArray(std::span<uint8_t>(fingerprint));
  const std::string_view constants = reader->GetString();
  if (!reader->ok()) return Damaged("the head is cut short");
  if (items != catalogue.items())
    return other(
        fmt::format("made for a catalogue of {} items, this one has {}", items, catalogue.items()));
  if (fingerprint != catalogue.Fingerprint())
    return other("made for a catalogue that describes its items differently");
  if (constants != options.Text())
    return other(
        fmt::format("made with other constants:\n  {}\nand not\n  {}", constants, options.Text()));
  return {};
}

}  // namespace

std::string ReleasedModel::Encode() const {
  TACIT_CHECK(next_ == nullptr, "a period is under way");
  ByteWriter writer;
  writer.PutString(kName).Put(kVersion).Put(catalogue_->items());
  writer.PutArray(std::span<const uint8_t>(catalogue_->Fingerprint())).PutString(options_.Text());
  writer.Put(periods_);
  if (periods_ == 0) return std::move(writer).Take();
  const Measured& measured = estimate_->measured();
  const size_t cells = measured.cells.size();
  writer.Reserve(popularity_.sums.size() * sizeof(float) + catalogue_->items() + cells * 10);
  writer.Put(signal_);
  PutTable(popularity_, &writer);
  writer.Put(static_cast<uint32_t>(tables_.size()));
  for (size_t table = 0; table < tables_.size(); ++table) {
    PutTable(tables_[table], &writer);
    writer.PutArray(fitted_->prior.factors(table));
  }
  writer.Put(static_cast<uint8_t>(measured.noiseless)).Put(measured.kappa);
  PutCells(measured.cells, &writer);
  writer.PutArray(std::span(measured.mean)).PutArray(std::span(measured.precision));
  return std::move(writer).Take();
}

Result<ReleasedModel> ReleasedModel::Decode(std::string_view bytes, const PublicItems& catalogue,
                                            const Options& options, WorkerPool& workers) {
  ByteReader reader(bytes);
  TACIT_RETURN_IF_ERROR(CheckHead(&reader, catalogue, options));
  ReleasedModel model(catalogue, options, workers);
  model.periods_ = reader.Get<uint64_t>();
  if (model.periods_ == 0) {
    if (!reader.at_end()) return Damaged("nothing was released, and more follows");
    return model;
  }
  model.signal_ = reader.Get<double>();
  if (!reader.ok() || !IsDeviation(model.signal_)) return Damaged("the signal is no number");
  if (!GetTable(&reader, catalogue.items(), &model.popularity_))
    return Damaged("the popularity is cut short or no numbers");
  std::vector<double> popularity = model.Popularity();
  const Buckets buckets(catalogue, popularity, options.rank_bins);
  if (reader.Get<uint32_t>() != buckets.tables()) return Damaged("another number of tables");
  model.tables_.resize(buckets.tables());
  std::vector<std::vector<float>> factors(buckets.tables());
  for (size_t table = 0; table < factors.size(); ++table)
    if (!GetTable(&reader, buckets.size(table), &model.tables_[table]) ||
        !GetFloats(&reader, buckets.size(table), &factors[table]) || !NoneBelowZero(factors[table]))
      return Damaged(fmt::format("table {} is cut short or no numbers", table));
  Measured measured;
  const auto noiseless = reader.Get<uint8_t>();
  measured.noiseless = noiseless == 1;
  measured.kappa = reader.Get<double>();
  if (!reader.ok() || noiseless > 1 || !IsDeviation(measured.kappa))
    return Damaged("kappa is no number");
  if (!GetCells(&reader, catalogue.items(), &measured.cells))
    return Damaged("the cells are cut short or out of order");
  if (!GetFloats(&reader, measured.cells.size(), &measured.mean) ||
      !GetFloats(&reader, measured.cells.size(), &measured.precision) || !reader.at_end() ||
      !AllFinite(measured.mean) || !NoneBelowZero(measured.precision))
    return Damaged("the measurements are cut short, too many, or no numbers");
  model.fitted_ = std::make_unique<Fitted>(catalogue, std::move(popularity), options.rank_bins,
                                           std::move(factors));
  model.estimate_ =
      std::make_unique<Estimate>(model.fitted_->prior, std::move(measured), options, workers);
  return model;
}

}  // namespace tacit::model::transitions
