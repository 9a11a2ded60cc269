#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <memory>
#include <set>

#include "base/json_pointer.h"
#include "base/text.h"
#include "config/sections.h"

namespace tacit::config {
namespace {

struct GlobDeleter {
  void operator()(glob_t* found) const {
    globfree(found);
    delete found;
  }
};

// Returns the files that match a pattern, sorted. A backslash escapes the next character.
Result<std::vector<std::string>> Expand(const Place& place, const std::string& pattern) {
  std::unique_ptr<glob_t, GlobDeleter> found(new glob_t{});
  const int outcome = glob(pattern.c_str(), 0, nullptr, found.get());
  if (outcome == GLOB_NOMATCH) return place.Fail(fmt::format("no file matches '{}'", pattern));
  if (outcome != 0) return place.Fail(fmt::format("cannot look for '{}'", pattern));
  return std::vector<std::string>(found->gl_pathv, found->gl_pathv + found->gl_pathc);
}

// Compares the mark's name with the patterns, since the file may not exist yet. REQUIRES files that
// are not expanded.
Status CheckMarkIsNoInput(const Place& place, const Source& source) {
  const std::string mark = std::filesystem::path(source.mark).lexically_normal().string();
  for (const std::string& pattern : source.files)
    // The mark is first written as `mark`.new and then moved into place.
    for (const std::string& name : {mark, mark + ".new"})
      if (!mark.empty() && fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME) == 0)
        return place.Fail(
            fmt::format("would be read as one of source.files: '{}' matches '{}'", pattern, name));
  return {};
}

Status ExpandFiles(const Place& files, Source* source) {
  std::vector<std::string> expanded;
  std::set<std::string> seen;
  for (size_t i = 0; i < source->files.size(); ++i) {
    const bool list = files.tree() != nullptr && files.tree()->kind == Tree::Kind::kList;
    const Place item = list ? files.Item(i) : files;
    TACIT_ASSIGN(const std::vector<std::string> found, Expand(item, source->files[i]));
    for (const std::string& file : found) {
      // Its records would be learnt from twice but charged as different records.
      if (!seen.insert(file).second) return item.Fail(fmt::format("names '{}' again", file));
      expanded.push_back(file);
    }
  }
  source->files = std::move(expanded);
  return {};
}

Status CheckFormat(const Place& place, const Source& source) {
  static constexpr std::array<std::string_view, 4> kFormats = {"criteo_tsv", "json", "csv",
                                                               "protobuf"};
  if (source.format == "avro") {
    return place.Fail(
        "Avro is not read; send JSON (schemas/interaction.schema.json) or Protobuf "
        "(schemas/interaction.proto), or let ksqlDB or Kafka Connect write the topic anew as one "
        "of them");
  }
  if (std::ranges::find(kFormats, source.format) == kFormats.end()) {
    return place.Fail(fmt::format("must be one of {}, is '{}'{}", fmt::join(kFormats, ", "),
                                  source.format, DidYouMean(source.format, kFormats)));
  }
  if (source.traits().has_lines && source.format == "protobuf") {
    return place.Fail(
        "a log file has one record a line, and a Protobuf message may hold a newline; write the "
        "log as json, or read protobuf from a topic");
  }
  const bool may_be_framed = source.is_named() && source.format != "csv";
  if (source.framing == Source::Framing::kConfluent && !may_be_framed) {
    return place.Fail(fmt::format("source.framing confluent goes with json and protobuf, is '{}'",
                                  source.format));
  }
  return {};
}

void DescribeRegistry(Fields& fields, SchemaRegistry& registry, bool used) {
  fields.Text("url", &registry.url, UsedIf(used));
  fields.Text("username", &registry.username, UsedIf(used));
  fields.Hidden("password", &registry.password, UsedIf(used && !registry.username.empty()));
  fields.Text("ca_file", &registry.ca_file, UsedIf(used));
  fields.Integer("timeout_ms", &registry.timeout_ms, 10, 60'000, UsedIf(used));
  fields.Verbatim("schemas", &registry.schemas, UsedIf(used));
}

// Describes the keys that JSON and lines of values have in common.
template <class Places>
void DescribePlaces(Fields& fields, Places& places, Use use) {
  static constexpr std::array<std::string_view, 5> kUnits = {"ms", "s", "us", "ns", "rfc3339"};
  fields.Text("label", &places.label, use);
  fields.OwnNames("label_values", &places.label_values, use);
  fields.Number("label_at_least", &places.label_at_least, {}, use);
  fields.Text("user", &places.user, use);
  fields.Text("item", &places.item, use);
  fields.Text("event_id", &places.event_id, use);
  fields.Text("timestamp", &places.timestamp, use);
  fields.Enum("timestamp_unit", &places.timestamp_unit, kUnits, use);
  fields.Text("weight", &places.weight, use);
  fields.Number("weight_most", &places.weight_most, {.min = 0, .max = 1e9, .above_min = true}, use);
  fields.OwnNames("features", &places.features, use);
  fields.OwnNames("constants", &places.constants, use);
}

void DescribeJson(Fields& fields, JsonPlaces& places, bool used) {
  DescribePlaces(fields, places, UsedIf(used));
  fields.Text("features_at", &places.features_at, UsedIf(used));
}

void DescribeCsv(Fields& fields, CsvPlaces& places, bool used) {
  const Use use = UsedIf(used);
  fields.Texts("columns", &places.columns, use);
  fields.Text("separator", &places.separator, use);
  fields.Text("set_separator", &places.set_separator, use);
  fields.Flag("header", &places.header, use);
  DescribePlaces(fields, places, use);
}

// Checks the rules of several keys. The places themselves are checked where the schema is known.
template <class Places>
Status CheckTogether(const Place& place, const Places& places) {
  if (!places.label_values.empty() && places.label_at_least)
    return place.Key("label_at_least").Fail("label_values says already what the label is");
  for (const auto& [name, value] : places.constants)
    for (const auto& [other, where] : places.features)
      if (name == other)
        return place.Key("constants").Key(name).Fail("features says already where it is read");
  return {};
}

// The rules of one key hold for what is written, whether its format is the chosen one or not. So
// they read the tree: an unused value is in no struct.
Status CheckLabelValues(const Place& values) {
  if (values.tree() == nullptr) return {};
  for (const Tree& label : values.tree()->children)
    if (label.text != "0" && label.text != "1") return values.Key(label.key).Fail("must be 0 or 1");
  return {};
}

Status CheckPointer(const Place& place) {
  if (place.tree() == nullptr || place.tree()->text.empty()) return {};
  const auto keys = KeysOfPointer(place.tree()->text);
  if (keys) return {};
  return place.Fail(fmt::format("'{}' {}", place.tree()->text, keys.error().message));
}

Status CheckJsonKeys(const Place& json) {
  TACIT_RETURN_IF_ERROR(CheckLabelValues(json.Key("label_values")));
  for (const char* key :
       {"label", "user", "item", "event_id", "timestamp", "weight", "features_at"})
    TACIT_RETURN_IF_ERROR(CheckPointer(json.Key(key)));
  const Place features = json.Key("features");
  if (features.tree() == nullptr) return {};
  for (const Tree& feature : features.tree()->children)
    TACIT_RETURN_IF_ERROR(CheckPointer(features.Key(feature.key)));
  return {};
}

Status CheckCsvKeys(const Place& csv) {
  TACIT_RETURN_IF_ERROR(CheckLabelValues(csv.Key("label_values")));
  for (const char* key : {"separator", "set_separator"}) {
    const Place at = csv.Key(key);
    if (at.tree() == nullptr) continue;
    const std::string& text = at.tree()->text;
    if (text.size() != 1 || text.find_first_of("\"\r\n") != std::string::npos)
      return at.Fail(fmt::format(
          "must be one character of one byte, and neither a quote nor a line's end, is '{}'",
          text));
  }
  return {};
}

Status CheckCsv(const Place& place, const Source& source) {
  const CsvPlaces& csv = source.csv;
  if (csv.separator == csv.set_separator)
    return place.Key("set_separator").Fail("is the same as separator");
  if (csv.columns.empty() && !(source.traits().keys.has("files") && csv.header))
    return place.Key("columns").Fail("is needed where no file's first line names the columns");
  return CheckTogether(place, csv);
}

void DescribeHaltAbove(Fields& fields, HaltAbove& halt) {
  const Range open{.min = 0, .max = 1, .above_min = true, .below_max = true};
  fields.Number("share", &halt.share, open);
  const Use use = UsedIf(halt.given());
  fields.Integer("window", &halt.window, 100, 100'000'000, use);
  fields.Number("epsilon", &halt.epsilon, {.min = 0, .max = 1e6, .above_min = true}, use);
  fields.Number("delta", &halt.delta, open, use);
}

// Accepts an id, as in framed values, or a GUID, as in headers.
bool GoodSchemaKey(std::string_view key) {
  int32_t id = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error == std::errc() && end == key.data() + key.size()) return true;
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  return std::ranges::equal(key, kForm, [](char c, char form) {
    return form == 'x' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == form;
  });
}

Status CheckRegistry(const Place& place, SchemaRegistry* registry) {
  std::string& url = registry->url;
  if (url.empty() && registry->schemas.empty()) {
    return place.Fail(
        "no schema could ever be found: give url, or list the schemas (schemas: {7: accept})");
  }
  if (!url.empty() && !url.starts_with("http://") && !url.starts_with("https://")) {
    return place.Key("url").Fail("must begin with http:// or https://");
  }
  if (url.find('@') != std::string::npos) {
    return place.Key("url").Fail("names a user; give username and password, which are not shown");
  }
  while (url.ends_with('/')) url.pop_back();
  for (const Property& schema : registry->schemas) {
    const Place at = place.Key("schemas").Key(schema.name);
    if (!GoodSchemaKey(schema.name)) {
      return at.Fail("is neither a schema's id nor its GUID");
    }
    const std::string& verdict = schema.value.text;
    if (schema.value.kind != Secret::Kind::kText || (verdict != "accept" && verdict != "reject")) {
      return at.Fail(
          "must be accept (its messages are source.format by our schema) or reject (they are dead "
          "letters)");
    }
  }
  return {};
}

// Records without ids cannot be compared, so no window may be claimed for them.
Status CheckDedupe(const Place& place, Source* source) {
  if (!source->is_named()) source->dedupe_window = 0;
  if (source->dedupe_window == 0) return {};
  const std::string unset = UnsetPlace(*source, RecordPart::kEvent);
  if (unset.empty()) return {};
  return place.Key("window").Fail(
      fmt::format("needs {}, the place of an event's id: no two records could be compared", unset));
}

Status CheckOptOut(const Place& place, const Source& source) {
  if (source.opt_out.empty()) return {};
  if (!source.traits().keys.has("format") || !source.is_named())
    return place.Fail(
        "is for sources of formats json, csv and protobuf: other records name no user, and would "
        "be learnt from");
  const std::string unset = UnsetPlace(source, RecordPart::kUser);
  if (unset.empty()) return {};
  return place.Fail(fmt::format(
      "needs {}, the place of a record's user: nobody would be known, and all would be learnt from",
      unset));
}

}  // namespace

void DescribeSource(Fields& fields, Source& source) {
  static constexpr std::array<std::string_view, 2> kFramings = {"none", "confluent"};
  static constexpr std::array<std::string_view, 2> kMissing = {"default", "reject"};
  static constexpr std::array<std::string_view, 2> kOnPeriodLost = {"refuse", "close"};
  fields.Kind("kind", &source.kind, source.kinds, Use::kRequired);
  const Keys& keys = source.traits().keys;
  const auto has = [&keys](std::string_view key) { return keys.has(key); };
  fields.Text("format", &source.format, UsedIf(has("format")));
  const bool named = has("format") && source.is_named();
  fields.Section("csv", [&](Fields& below) {
    DescribeCsv(below, source.csv, has("format") && source.format == "csv");
  });
  fields.Enum("missing", &source.missing, kMissing, UsedIf(named));
  fields.Section("json", [&](Fields& below) {
    DescribeJson(below, source.json, has("format") && source.format == "json");
  });
  fields.Files("files", &source.files, RequiredIf(has("files")));
  fields.Integer("passes", &source.passes, 1, 1'000'000, UsedIf(has("passes")));
  fields.Integer("max_record_bytes", &source.max_record_bytes, 64, 256 << 20);
  fields.Integer("decode_threads", &source.decode_threads, 1, 64);
  fields.Text("mark", &source.mark, UsedIf(has("mark")));
  fields.Text("topic", &source.topic, RequiredIf(has("topic")));
  fields.Enum("framing", &source.framing, kFramings, UsedIf(has("framing")));
  const bool framed = has("framing") && source.framing != Source::Framing::kNone;
  fields.Section("registry",
                 [&](Fields& below) { DescribeRegistry(below, source.registry, framed); });
  fields.Integer("ahead_max_hours", &source.ahead_max_hours, 1, 1'000'000,
                 UsedIf(has("ahead_max_hours") && named));
  fields.Integer("round_ms", &source.round_ms, 10, 60'000, UsedIf(has("round_ms")));
  fields.Integer("schema_wait_ms", &source.schema_wait_ms, 0, 86'400'000, UsedIf(framed));
  fields.Integer("tick_ms", &source.tick_ms, 0, 86'400'000, UsedIf(has("tick_ms")));
  fields.Enum("on_period_lost", &source.on_period_lost, kOnPeriodLost,
              UsedIf(has("on_period_lost")));
  fields.Section("dedupe", [&](Fields& below) {
    below.Integer("window", &source.dedupe_window, 0, uint64_t{1} << 28, UsedIf(named));
    below.Integer("partitions", &source.dedupe_partitions, 1, 100'000,
                  UsedIf(has("dedupe.partitions") && named));
  });
  fields.Text("opt_out", &source.opt_out);
  fields.Section("halt_above", [&](Fields& below) { DescribeHaltAbove(below, source.halt_above); });
  fields.Section("generator", [&](Fields& below) {
    Generator& made = source.generator;
    const Use use = UsedIf(has("generator"));
    below.Integer("days", &made.days, 1, 100'000, use);
    below.Integer("rows_per_day", &made.rows_per_day, 1, 1'000'000'000'000, use);
    below.Integer("seed", &made.seed, 0, UINT64_MAX, use);
  });
}

Status CheckHaltAbove(const Place& place, const HaltAbove& halt,
                      const std::vector<Learner>& learners) {
  if (place.tree() == nullptr) return {};
  for (const auto& [key, value] :
       {std::pair("share", halt.share), {"epsilon", halt.epsilon}, {"delta", halt.delta}})
    if (!value)
      return place.Key(key).Fail("required where a stream can halt training, and has no default");
  for (const Learner& learner : learners)
    if (learner.privacy.of_users())
      return place.Fail(fmt::format(
          "is for unit event, and learner '{}' promises to users: a record that cannot be read "
          "names no user, so that one of them may have written any number of a window's, and no "
          "noise would cover that. Leave it out, and let an alert on tacit_dead_letters_total stop "
          "the daemon",
          learner.id));
  return {};
}

std::string UnsetPlace(const Source& source, RecordPart part) {
  const bool is_json = source.format == "json";
  if (!is_json && source.format != "csv") return {};
  const auto unset = [&](const auto& places) -> const char* {
    switch (part) {
      case RecordPart::kUser:
        return places.user.empty() ? "user" : nullptr;
      case RecordPart::kItem:
        return places.item.empty() ? "item" : nullptr;
      case RecordPart::kEvent:
        return places.event_id.empty() ? "event_id" : nullptr;
    }
    return nullptr;
  };
  const char* const key = is_json ? unset(source.json) : unset(source.csv);
  return key == nullptr ? std::string() : fmt::format("source.{}.{}", source.format, key);
}

Status CheckSource(const Place& place, LogFiles files, Source* source) {
  const Keys& keys = source->traits().keys;
  TACIT_RETURN_IF_ERROR(CheckFormat(place.Key("format"), *source));
  TACIT_RETURN_IF_ERROR(CheckJsonKeys(place.Key("json")));
  TACIT_RETURN_IF_ERROR(CheckCsvKeys(place.Key("csv")));
  TACIT_RETURN_IF_ERROR(CheckTogether(place.Key("json"), source->json));
  if (keys.has("format") && source->format == "csv")
    TACIT_RETURN_IF_ERROR(CheckCsv(place.Key("csv"), *source));
  TACIT_RETURN_IF_ERROR(CheckDedupe(place.Key("dedupe"), source));
  TACIT_RETURN_IF_ERROR(CheckOptOut(place.Key("opt_out"), *source));
  if (keys.has("topic")) {
    if (!GoodTopic(source->topic)) {
      return place.Key("topic").Fail(fmt::format("'{}' is no topic's name", source->topic));
    }
  }
  if (source->framing == Source::Framing::kConfluent) {
    TACIT_RETURN_IF_ERROR(CheckRegistry(place.Key("registry"), &source->registry));
  }
  if (keys.has("files")) {
    TACIT_RETURN_IF_ERROR(CheckMarkIsNoInput(place.Key("mark"), *source));
    if (files == LogFiles::kUnread) return {};
    TACIT_RETURN_IF_ERROR(ExpandFiles(place.Key("files"), source));
    source->files_found = true;
    return {};
  }
  source->files.clear();
  source->mark.clear();  // other kinds keep their own mark, or have nowhere to keep one
  return {};
}

}  // namespace tacit::config
