#include "serve/scoring/score_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "http/request_json.h"

namespace tacit::serve {
namespace {

// Lines are copied and decoded in pieces, so that a request takes little memory beside its body.
constexpr size_t kPieceBytes = http::kTextBytesMost;

}  // namespace

Status LineReader::Read(std::string_view body, const ScoringModel& model, event::Batch* batch) {
  if (body.empty()) return http::BadRequest("no line to score");
  model.transform->StartBatch(batch);
  for (size_t line = 1; !body.empty();) {
    records_.Clear();
    records_.origin_line = line;
    while (!body.empty() && records_.bytes.size() < kPieceBytes) {
      const std::string_view record = body.substr(0, body.find('\n'));
      if (line > kLinesMost)
        return http::BadRequest(fmt::format("more than {} lines in one request", kLinesMost));
      if (record.size() > http::kTextBytesMost)
        return http::BadRequest(
            fmt::format("line {}: longer than {} bytes", line, http::kTextBytesMost));
      records_.bytes += record;
      records_.end.push_back(static_cast<uint32_t>(records_.bytes.size()));
      body.remove_prefix(std::min(body.size(), record.size() + 1));
      ++line;
    }
    bad_.clear();
    model.lines->Decode(records_, batch, &bad_);
    if (!bad_.empty())
      return http::BadRequest(fmt::format("line {}: {}", bad_[0].line, bad_[0].reason));
    if (batch->row.size() - batch->slot_end.size() > kValuesMost)
      return http::BadRequest(
          fmt::format("more than {} values of sets in one request", kValuesMost));
  }
  return {};
}

}  // namespace tacit::serve
