#include "store/disk/format.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/first_format.h"
#include "store/disk/rocks.h"
#include "store/disk/seal.h"

namespace tacit::store {
namespace {

Result<std::optional<uint32_t>> StoredFormat(const Rocks& rocks) {
  TACIT_ASSIGN(const auto format, rocks.Get(Family::kMeta, meta::kFormat));
  if (format) return std::optional(ByteReader(*format).Get<uint32_t>());
  TACIT_ASSIGN(const auto before, rocks.Get(Family::kMeta, meta::kFormatBeforeFirst));
  if (!before) return std::optional<uint32_t>();
  return WrittenBeforeFirst("store " + rocks.path(),
                            "give this one another place, or use the program that wrote it");
}

}  // namespace

Result<bool> CheckStoreFormat(const Rocks& rocks) {
  TACIT_ASSIGN(const auto format, StoredFormat(rocks));
  if (!format || *format == kStoreFormat) return format.has_value();
  return Fail(ErrorCode::kRefused, fmt::format("store {} has format {}, this program reads {}",
                                               rocks.path(), *format, kStoreFormat));
}

Status BringUp(const Rocks& rocks, std::span<const FormatStep> steps) {
  TACIT_ASSIGN(auto format, StoredFormat(rocks));
  while (format && *format < kStoreFormat) {
    const auto step = std::ranges::find(steps, *format, &FormatStep::from);
    if (step == steps.end()) break;
    rocksdb::WriteBatch batch;
    TACIT_RETURN_IF_ERROR(step->put(rocks, &batch));
    *format += 1;
    batch.Put(rocks.family(Family::kMeta), AsSlice(meta::kFormat),
              Seal(ByteWriter().Put(*format).bytes()));
    TACIT_RETURN_IF_ERROR(rocks.WriteSynced(batch));
  }
  return {};
}

}  // namespace tacit::store
