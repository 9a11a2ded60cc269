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

#include "base/files/standard_input.h"
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
  if (pattern == kStandardInput) return std::vector{pattern};
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

// Standard input comes once, and alone.
Status CheckStandardInput(const Place& place, const Source& source) {
  if (std::ranges::find(source.files, kStandardInput) == source.files.end()) return {};
  if (source.files.size() > 1)
    return place.Key("files").Fail(
        "'-' is standard input, which stands alone; a file of this name is './-'");
  if (source.passes > 1)
    return place.Key("passes").Fail("standard input (source.files: '-') comes once");
  if (!source.mark.empty())
    return place.Key("mark").Fail("goes with files, and source.files is standard input: '-'");
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

// Reads what is written: an unknown name is in no struct.
Status CheckFormat(const Place& place, const Source& source) {
  const FormatTraits& format = source.format_traits();
  if (place.tree() != nullptr && place.tree()->text != format.name) {
    const std::string& text = place.tree()->text;
    std::vector<std::string_view> names;
    for (const FormatTraits& row : kFormats) names.push_back(row.name);
    return place.Fail(fmt::format("must be one of {}, is '{}'{}", fmt::join(names, ", "), text,
                                  DidYouMean(text, names)));
  }
  if (source.traits().has_lines && !format.is_line && !format.has_containers) {
    return place.Fail(
        "a log file has one record a line, and a Protobuf message may hold a newline; write the "
        "log as json, or read protobuf from a topic");
  }
  if (source.framing == Source::Framing::kConfluent && !format.may_be_framed) {
    return place.Fail(fmt::format(
        "source.framing confluent goes with json, protobuf and avro, is '{}'", format.name));
  }
  return {};
}

void DescribeRegistry(Fields& fields, SchemaRegistry& registry, bool used) {
  fields.Text({"url",
               "The registry's address, `http://HOST:PORT` or `https://HOST:PORT`. Empty: no "
               "registry is asked, and only the schemas of `schemas` are known."},
              &registry.url, UsedIf(used));
  fields.Text({"username", "The name for basic authentication. Empty: there is no authentication."},
              &registry.username, UsedIf(used));
  fields.Hidden({"password", "The password for basic authentication."}, &registry.password,
                UsedIf(used && !registry.username.empty()));
  fields.Text({"ca_file", "Certificates to trust. Empty: those that the system trusts."},
              &registry.ca_file, UsedIf(used));
  fields.Integer({"timeout_ms", "The time of one question to the registry."}, &registry.timeout_ms,
                 10, 60'000, UsedIf(used));
  fields.Verbatim({"schemas",
                   "Schemas by id or GUID, for which the registry is not asked, such as `{7: "
                   "accept, 9: reject}`.\n`accept`: messages of this schema are `source.format` by "
                   "our schema.\n`reject`: they are dead letters."},
                  &registry.schemas, UsedIf(used));
}

Status CheckCsv(const Place& place, const Source& source) {
  const event::CsvShape& csv = source.csv;
  if (csv.separator == csv.set_separator)
    return place.Key("set_separator").Fail("is the same as separator");
  if (csv.columns.empty() && !(source.traits().keys.has("files") && csv.header))
    return place.Key("columns").Fail("is needed where no file's first line names the columns");
  return CheckShape(place, csv);
}

Status CheckAvro(const Place& place, const Source& source) {
  const bool bare = source.traits().keys.has("topic") && source.framing == Source::Framing::kNone;
  if (source.format != Source::Format::kAvro) return CheckShape(place, source.avro);
  if (bare && source.avro.schema_file.empty())
    return place.Key("schema_file")
        .Fail(
            "is needed in a topic without framing: no record says by which schema it was written");
  for (const Property& schema : source.registry.schemas)
    if (schema.value.text == "accept" && source.avro.schema_file.empty())
      return place.Key("schema_file")
          .Fail("is needed where source.registry.schemas accepts schemas: it is what they are");
  return CheckShape(place, source.avro);
}

void DescribeHaltAbove(Fields& fields, HaltAbove& halt, Source::Periods periods) {
  const Range open{.min = 0, .max = 1, .above_min = true, .below_max = true};
  fields.Number({"share",
                 "The share of a window's records that could not be learnt from, above which "
                 "training halts. Required in this section."},
                &halt.share, open);
  const Use use = UsedIf(halt.given());
  fields.Integer({"window",
                  "Offsets of a partition that are counted together. Refused where the noise of "
                  "`epsilon` would decide by itself, and with `periods: topic`, where each period "
                  "is a window and is decided before it is learnt."},
                 &halt.window, 100, 100'000'000,
                 UsedIf(halt.given() && periods == Source::Periods::kPartition));
  fields.Number({"epsilon",
                 "The epsilon that each event pays for being counted, once; an account of its own "
                 "in the ledger. Required in this section."},
                &halt.epsilon, {.min = 0, .max = 1e6, .above_min = true}, use);
  fields.Number(
      {"delta",
       "The delta of that account, which cannot change in a store. Required in this section."},
      &halt.delta, open, use);
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
  if (!source->format_traits().is_named) source->dedupe_window = 0;
  if (source->dedupe_window == 0) return {};
  const std::string unset = UnsetPlace(*source, RecordPart::kEvent);
  if (unset.empty()) return {};
  return place.Key("window").Fail(
      fmt::format("needs {}, the place of an event's id: no two records could be compared", unset));
}

Status CheckOptOut(const Place& place, const Source& source) {
  if (source.opt_out.empty()) return {};
  if (!source.format_traits().is_named)
    return place.Fail(
        "is for sources of formats json, csv, protobuf and avro: other records name no user, and "
        "would "
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
  static constexpr std::array<std::string_view, 2> kPeriods = {"partition", "topic"};
  static constexpr std::array<std::string_view, 2> kOnPeriodLost = {"refuse", "close"};
  fields.Kind({"kind", "`log`: files.\n`generator`: a synthetic stream.\n`kafka`: a topic."},
              &source.kind, source.kinds, Use::kRequired);
  const Keys& keys = source.traits().keys;
  const auto has = [&keys](std::string_view key) { return keys.has(key); };
  std::string format(source.format_traits().name);
  fields.Text({"format",
               "The form of a record, for `log` and `kafka`.\n`criteo_tsv`: label, numbers and "
               "categories between tabs.\n`json`: schemas/interaction.schema.json, or another "
               "shape by `source.json`.\n`csv`: lines of values by `source.csv`.\n`protobuf`: "
               "schemas/interaction.proto, not in logs, for a message may hold a newline.\n`avro`: "
               "records by `source.avro`; a log's are in object container files."},
              &format, UsedIf(has("format")));
  for (const FormatTraits& row : kFormats)
    if (row.name == format) source.format = row.kind;
  const bool named = source.format_traits().is_named;
  fields.Section(
      {"csv",
       "The columns of a record's parts, for format `csv`, each by its name. An empty value is "
       "missing. A value may be in quotes, and holds no line break then either."},
      [&](Fields& below) {
        DescribeCsv(below, source.csv, source.format == Source::Format::kCsv);
      });
  fields.Enum({"missing",
               "`default`: a feature that a record does not name is missing.\n`reject`: such a "
               "record is a dead letter.\nFor formats json, csv, protobuf and avro."},
              &source.missing, kMissing, UsedIf(named));
  fields.Section({"json",
                  "The places of a record's parts, for format `json`, as JSON pointers (RFC 6901). "
                  "A part that is not there, or is null, is missing."},
                 [&](Fields& below) {
                   DescribeJson(below, source.json, source.format == Source::Format::kJson);
                 });
  fields.Section(
      {"avro",
       "The places of a record's parts, for format `avro`, as JSON pointers (RFC 6901) "
       "whose keys are names of fields, keys of maps and places in lists. A part that is "
       "not there, or is null, is missing."},
      [&](Fields& below) {
        DescribeAvro(below, source.avro, source.format == Source::Format::kAvro);
      });
  fields.Files(
      {"files",
       "Files or patterns, in the order of time; each pattern's files are sorted. A pattern "
       "without a match, or a file named twice, is refused. A file packed with gzip or zstd is "
       "unpacked as it is read, which costs about as much as parsing it; tacitd waits for the rest "
       "of one that is cut. Files that have been read stay as they are, and in their order; new "
       "records come in new files behind them, found at the next start. Write a file under a name "
       "that no pattern matches, and rename it when it is whole. `-` alone is standard input, "
       "which tacitd reads as with `--until-end`: docs/using/pipe.md."},
      &source.files, RequiredIf(has("files")));
  fields.Integer({"passes",
                  "The number of times that the files of a log are read. Each pass is a "
                  "participation of every event, and is charged."},
                 &source.passes, 1, 1'000'000, UsedIf(has("passes")));
  fields.Integer({"max_record_bytes",
                  "A longer record is a dead letter. A learner holds up to 4 of them at a time."},
                 &source.max_record_bytes, 64, 256 << 20);
  fields.Integer(
      {"decode_threads",
       "Threads that turn records into examples, each a run of records at a time. Steps and their "
       "order do not depend on it. More help where training waits for records: docs/using/gpu.md."},
      &source.decode_threads, 1, 64);
  fields.Text({"mark",
               "A file beside the input of a log, such as `/var/log/clicks/tacit.mark`: a second "
               "proof of the last commit, which notices a store that was put back together with "
               "its witness. It is written before a commit is published; a start without the file "
               "says so, and makes it. Empty: there is none."},
              &source.mark, UsedIf(has("mark")));
  fields.Text({"topic", "One topic. New partitions are picked up."}, &source.topic,
              RequiredIf(has("topic")));
  fields.Enum({"framing",
               "`confluent`: a schema's id before each value, or its GUID in a header. For `kafka` "
               "with json, protobuf and avro."},
              &source.framing, kFramings, UsedIf(has("framing")));
  const bool framed = has("framing") && source.framing != Source::Framing::kNone;
  fields.Section(
      {"registry",
       "The schema registry, for framing `confluent`. A record whose schema is known neither here "
       "nor by the registry is a dead letter; the registry is asked again 5 s later."},
      [&](Fields& below) { DescribeRegistry(below, source.registry, framed); });
  fields.Integer({"ahead_max_hours",
                  "A record whose own time lies further ahead of Kafka's is a dead letter. For "
                  "`kafka` with json, csv, protobuf and avro."},
                 &source.ahead_max_hours, 1, 1'000'000, UsedIf(has("ahead_max_hours") && named));
  fields.Integer({"round_ms",
                  "The time between two questions to the brokers for what has come. Records that "
                  "came between two questions are learnt in the order of their timestamps, over "
                  "all partitions, and so late; each question costs every broker a request."},
                 &source.round_ms, 10, 60'000, UsedIf(has("round_ms")));
  fields.Integer(
      {"schema_wait_ms",
       "The time for which a registry that does not answer is waited for, once for all records. "
       "Then records whose schema it has not accepted since the start are dead letters until it "
       "answers. A schema that it does not know makes a dead letter at once."},
      &source.schema_wait_ms, 0, 86'400'000, UsedIf(framed));
  fields.Integer(
      {"tick_ms",
       "The interval of a public clock that cuts steps of `once` and closes periods of `poisson`, "
       "of idle partitions too, where each partition ended at that time. 0: there is none."},
      &source.tick_ms, 0, 86'400'000, UsedIf(has("tick_ms")));
  fields.Enum({"periods",
               "The records that come into one period of learners with unit event that add them up "
               "(`linear`).\n`partition`: each is of one partition, and a few of "
               "all partitions are held at a time.\n`topic`: each is `batch` offsets of all "
               "partitions together, the oldest by their timestamps in Kafka, and none is held; a "
               "tick closes all that is there.\nA store goes on where each partition was left if "
               "this changes."},
              &source.periods, kPeriods, UsedIf(has("periods")));
  fields.Enum({"on_period_lost",
               "The action after a crash when Kafka has deleted the beginning of a held period "
               "that must be read again.\n`refuse`: tacitd does not start.\n`close`: it continues "
               "with the next period, and the ledger has the loss."},
              &source.on_period_lost, kOnPeriodLost, UsedIf(has("on_period_lost")));
  fields.Section(
      {"dedupe", "Copies of records, for formats json, csv, protobuf and avro."},
      [&](Fields& below) {
        below.Integer({"window",
                       "Offsets of a partition within which an event id of one user counts once: a "
                       "record is dropped if one of this many offsets before has its id and user. "
                       "Exact; it takes 32 bytes an offset and partition, and as many records are "
                       "read again at every start. Records without an id are taken as they come. "
                       "Refused beside a private learner of unit `event`: without one record, its "
                       "copy would be let in. 0: ids are not compared."},
                      &source.dedupe_window, 0, uint64_t{1} << 28, UsedIf(named));
        below.Integer(
            {"partitions",
             "Partitions whose windows `memory.total_bytes` sets room aside for, with `kafka`. "
             "Further ones are read all the same, and the log says that memory is overdrawn."},
            &source.dedupe_partitions, 1, 100'000, UsedIf(has("dedupe.partitions") && named));
      });
  fields.Text({"opt_out",
               "A file of users who are never learnt from, such as `/etc/tacit/opt-out`: an id a "
               "line in UTF-8, and `#` for comments, also behind an id and a blank. It is read at "
               "the start, and takes 16 bytes an id. Their records are dropped before any learner "
               "sees them. Refused where records name no user."},
              &source.opt_out);
  // Decides nothing about how a record is read: DumpReading has neither files nor topic.
  fields.Flag(
      {"accept_unreadable",
       "`false`: the first start of a store decodes the first 1,000 records, of files or of a "
       "topic, before it learns. If there are 100 or more, and fewer than 1 in 100 of them can be "
       "learnt from, it ends with status 2, and nothing is charged. Epsilon does not cover that it "
       "ended.\n`true`: it learns without this look. With `halt_above` there is no look either."},
      &source.accept_unreadable, UsedIf(!source.files.empty() || !source.topic.empty()));
  fields.Section(
      {"halt_above",
       "Halts training when too many records cannot be learnt from: docs/operating/halt.md. The "
       "count of a window gets noise and is charged to each record in it, once, under the name of "
       "this section. Refused with unit `user`: a record that cannot be read names no user. "
       "`tacitd --past-halt` goes on. Without the section nothing halts."},
      [&](Fields& below) { DescribeHaltAbove(below, source.halt_above, source.periods); });
  fields.Section({"generator", "A drifting synthetic stream in Criteo's shape."}, [&](Fields&
                                                                                          below) {
    Generator& made = source.generator;
    const Use use = UsedIf(has("generator"));
    below.Integer({"days", "Days of the stream, each a file's worth."}, &made.days, 1, 100'000,
                  use);
    below.Integer({"rows_per_day", "Events of a day."}, &made.rows_per_day, 1, 1'000'000'000'000,
                  use);
    below.Integer({"seed", "The same seed makes the same stream."}, &made.seed, 0, UINT64_MAX, use);
  });
}

Status CheckHaltAbove(const Place& place, const Source& source,
                      const std::vector<Learner>& learners) {
  if (place.tree() == nullptr) return {};
  const HaltAbove& halt = source.halt_above;
  for (const auto& [key, value] :
       {std::pair("share", halt.share), {"epsilon", halt.epsilon}, {"delta", halt.delta}})
    if (!value)
      return place.Key(key).Fail("required where a stream can halt training, and has no default");
  if (source.periods == Source::Periods::kTopic && place.Key("window").tree() != nullptr)
    return place.Key("window").Fail(
        "cannot be set with source.periods: topic, where a window is a period: leave it out");
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

std::string Source::LabelName() const {
  if (format == Format::kCriteoTsv) return "click";
  std::string unnamed = "label 1";
  if (shape() == nullptr) return unnamed;
  const event::LabelRule& rule = shape()->label_rule;
  std::string values;
  for (const auto& [value, is_one] : rule.values)
    if (is_one) values += (values.empty() ? "" : " or ") + value;
  if (!values.empty()) return values;
  std::string name = shape()->label;
  if (format == Format::kJson || format == Format::kAvro)
    if (const auto keys = KeysOfPointer(name); keys) name = keys->back();
  if (rule.at_least) return fmt::format("{} of {} or more", name, *rule.at_least);
  return name.empty() || name == "label" ? unnamed : name;
}

std::string UnsetPlace(const Source& source, RecordPart part) {
  const event::RecordShape* const shape = source.shape();
  if (shape == nullptr) return {};
  const auto unless_set = [&](const std::string& place, std::string_view key) {
    return place.empty() ? fmt::format("source.{}.{}", source.format_traits().name, key) : "";
  };
  switch (part) {
    case RecordPart::kUser:
      return unless_set(shape->user, "user");
    case RecordPart::kItem:
      return unless_set(shape->item, "item");
    case RecordPart::kEvent:
      return unless_set(shape->event_id, "event_id");
  }
  return {};
}

Status CheckSource(const Place& place, LogFiles files, Source* source) {
  const Keys& keys = source->traits().keys;
  if (keys.has("format")) TACIT_RETURN_IF_ERROR(CheckFormat(place.Key("format"), *source));
  TACIT_RETURN_IF_ERROR(CheckJsonKeys(place.Key("json")));
  TACIT_RETURN_IF_ERROR(CheckCsvKeys(place.Key("csv")));
  TACIT_RETURN_IF_ERROR(CheckJsonKeys(place.Key("avro")));
  TACIT_RETURN_IF_ERROR(CheckShape(place.Key("json"), source->json));
  TACIT_RETURN_IF_ERROR(CheckAvro(place.Key("avro"), *source));
  if (source->format == Source::Format::kCsv)
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
    TACIT_RETURN_IF_ERROR(CheckStandardInput(place, *source));
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
