#include "cli/privacy/privacy_events.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <fstream>
#include <set>

namespace tacit::cli {
namespace {

using privacy::CountedEvent;
using privacy::Event;
using privacy::EventKind;

std::set<std::string_view> FieldsOf(EventKind kind) {
  switch (kind) {
    case EventKind::kGaussian:
      return {"noise_multiplier"};
    case EventKind::kPoissonGaussian:
    case EventKind::kKnownCoin:
      return {"noise_multiplier", "sampling_rate"};
    case EventKind::kAllocation:
      return {"noise_multiplier", "steps"};
    case EventKind::kZcdp:
      return {"rho"};
    case EventKind::kLaplace:
    case EventKind::kPureDp:
    case EventKind::kExponential:
      return {"epsilon"};
  }
  return {};
}

Status ReadCount(const boost::json::object& object, uint64_t* count) {
  const boost::json::value* value = object.if_contains("count");
  if (value == nullptr) return {};
  boost::system::error_code error;
  *count = value->to_number<uint64_t>(error);
  if (error || *count == 0)
    return Fail(ErrorCode::kInvalidArgument, "count must be a whole number of at least 1");
  return {};
}

// boost::json keeps the last of two equal keys, and does not tell. REQUIRES a valid object.
Status CheckKeysStandOnce(std::string_view object) {
  std::set<std::string> keys;
  for (size_t at = object.find('"'); at != std::string_view::npos; at = object.find('"', at)) {
    const size_t begin = at++;
    while (object[at] != '"') at += object[at] == '\\' ? 2 : 1;
    ++at;
    if (object[object.find_first_not_of(" \t\r", at)] != ':') continue;  // it is a value
    const auto key =
        boost::json::value_to<std::string>(boost::json::parse(object.substr(begin, at - begin)));
    if (!keys.insert(key).second)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is there twice", key));
  }
  return {};
}

Result<CountedEvent> ParseEvent(std::string_view line) {
  boost::system::error_code error;
  const boost::json::value parsed = boost::json::parse(line, error);
  if (error || !parsed.is_object()) return Fail(ErrorCode::kInvalidArgument, "not a JSON object");
  const boost::json::object& object = parsed.get_object();
  const boost::json::value* type = object.if_contains("type");
  if (type == nullptr || !type->is_string())
    return Fail(ErrorCode::kInvalidArgument, "no \"type\"");
  CountedEvent result;
  TACIT_ASSIGN(result.event.kind, privacy::ParseEventKind(std::string_view(type->get_string())));
  TACIT_RETURN_IF_ERROR(ReadCount(object, &result.count));
  const std::set<std::string_view> fields = FieldsOf(result.event.kind);
  for (const auto& [key, value] : object) {
    const std::string_view name(key);
    if (name == "type" || name == "count") continue;
    if (!fields.contains(name))
      return Fail(ErrorCode::kInvalidArgument, fmt::format("an event of type {} has no \"{}\"",
                                                           privacy::Name(result.event.kind), name));
    if (name == "steps") {
      result.event.steps = value.to_number<uint64_t>(error);
      if (error) return Fail(ErrorCode::kInvalidArgument, "steps must be a whole number");
      continue;
    }
    const double number = value.to_number<double>(error);
    if (error)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not a number", name));
    if (name == "noise_multiplier") result.event.noise_multiplier = number;
    if (name == "sampling_rate") result.event.sampling_rate = number;
    if (name == "epsilon") result.event.epsilon = number;
    if (name == "rho") result.event.rho = number;
  }
  for (const std::string_view name : fields)
    if (!object.contains(name))
      return Fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is missing", name));
  TACIT_RETURN_IF_ERROR(CheckKeysStandOnce(line));
  TACIT_RETURN_IF_ERROR(result.event.Validate());
  return result;
}

}  // namespace

Result<std::vector<CountedEvent>> ReadEvents(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Fail(ErrorCode::kNotFound, fmt::format("cannot read {}", path));
  std::vector<CountedEvent> events;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto event = ParseEvent(line);
    if (!event) return Fail(std::move(event.error()).Context(fmt::format("{}:{}", path, number)));
    events.push_back(*event);
  }
  if (events.empty())
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{} holds no event", path));
  return events;
}

}  // namespace tacit::cli
