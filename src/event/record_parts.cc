#include "event/record_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "event/run_codec.h"

namespace tacit::event {

MaybeBad AppendExample(const RawRecords& records, size_t i, const RecordParts& parts,
                       const ExampleBuilder& example, const InteractionOptions& options,
                       std::string_view place, Batch* batch) {
  if (!parts.label && options.label == LabelUse::kLearnt)
    return BadRecord(
        place.empty() ? "label is missing" : fmt::format("label ({}) is missing", place),
        BadPart::kLabel);
  const int64_t taken = records.TimeOf(i), timestamp = parts.timestamp_ms.value_or(taken);
  if (MaybeBad reason = TooFarAhead(timestamp, taken, options)) return reason;
  if (MaybeBad reason = example.AppendTo(batch)) return reason;
  batch->label.push_back(parts.label.value_or(0));
  batch->timestamp_ms.push_back(timestamp);
  if (options.weight_most > 0)
    batch->weight.push_back(
        static_cast<float>(std::min(parts.weight, options.weight_most) / options.weight_most));
  if (options.items) batch->item.push_back(parts.item);
  batch->user.Append(parts.user);
  batch->event_id.Append(parts.event_id.empty() ? records.EventIdOf(i) : parts.event_id);
  return std::nullopt;
}

}  // namespace tacit::event
