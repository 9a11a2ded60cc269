#include <fmt/format.h>

#include <array>
#include <charconv>

#include "config/dump.h"
#include "config/sections.h"

namespace tacit::config {
namespace {

struct TimeUnit {
  std::string_view name;
  uint64_t seconds;
};
constexpr std::array<TimeUnit, 4> kTimeUnits = {{{"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}}};
constexpr uint64_t kMostSeconds = 366 * 86400;

// "90s", "15min", "6h", "1d" in seconds; nothing for another text.
std::optional<uint64_t> SecondsOf(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number == 0 || number > kMostSeconds) return std::nullopt;
  const std::string_view name = text.substr(static_cast<size_t>(end - text.data()));
  for (const TimeUnit& unit : kTimeUnits)
    if (unit.name == name && number * unit.seconds <= kMostSeconds) return number * unit.seconds;
  return std::nullopt;
}

}  // namespace

void DescribeCheckpoints(Fields& fields, Checkpoints& checkpoints) {
  fields.Text(
      {"path",
       "The folder for checkpoints. On the store's own disk they are links, elsewhere copies. A "
       "full one holds raw data, as the store does. Empty: `store.path` + `.checkpoints`."},
      &checkpoints.path);
  fields.Text({"every",
               "The age that the newest checkpoint may reach: a number and `s`, `min`, `h` or `d`. "
               "Empty: only `tacit checkpoint create` makes one.",
               AtReload::kTaken},
              &checkpoints.every);
  fields.Integer({"keep",
                  "The number of newest checkpoints of a kind and lineage that stay when the "
                  "schedule has made one. Older ones are removed.",
                  AtReload::kTaken},
                 &checkpoints.keep, 1, 1'000'000);
  fields.Texts({"kinds",
                "Kinds that the schedule makes.\n`full`: to restore from; it holds all raw data, "
                "and is for the operator.\n`release`: what is served, to hand on; nothing raw.",
                AtReload::kTaken},
               &checkpoints.kinds);
}

Status CheckCheckpoints(const Place& place, const Store& store, Checkpoints* checkpoints) {
  while (checkpoints->path.size() > 1 && checkpoints->path.ends_with('/'))
    checkpoints->path.pop_back();
  if (checkpoints->path.empty()) checkpoints->path = store.path + ".checkpoints";
  if (Inside(checkpoints->path, store.path))
    return place.Key("path").Fail(
        "lies inside store.path: it would be lost together with the store");
  for (const std::string& kind : checkpoints->kinds)
    if (kind != "full" && kind != "release")
      return place.Key("kinds").Fail(fmt::format("must be of full and release, has '{}'", kind));
  checkpoints->every_s = 0;
  if (checkpoints->every.empty()) return {};
  const auto seconds = SecondsOf(checkpoints->every);
  if (!seconds)
    return place.Key("every").Fail(fmt::format(
        "must be a number and s, min, h or d, a year at most, is '{}'", checkpoints->every));
  checkpoints->every_s = *seconds;
  if (checkpoints->kinds.empty())
    return place.Key("kinds").Fail("must not be empty: a schedule needs a kind to make");
  return {};
}

void DescribeAnchors(Fields& fields, Anchors& anchors) {
  fields.Text(
      {"path",
       "A file outside the store, one head a line, each with the digest of the line before. `tacit "
       "ledger verify --anchors` and each start compare it with the ledger. Keep it where a person "
       "who may change the store cannot change it. Empty: there is none."},
      &anchors.path);
  fields.Text({"every",
               "The time between two heads: a number and `s`, `min`, `h` or `d`. A head is added "
               "if there was a commit, and at start and end."},
              &anchors.every);
  fields.Text({"key",
               "A private key of Ed25519 in PEM, closed to others, that signs each head. Empty: "
               "heads are not signed."},
              &anchors.key);
}

Status CheckAnchors(const Place& place, const Store& store, Anchors* anchors) {
  const auto seconds = SecondsOf(anchors->every);
  if (!seconds)
    return place.Key("every").Fail(fmt::format(
        "must be a number and s, min, h or d, a year at most, is '{}'", anchors->every));
  anchors->every_s = *seconds;
  if (anchors->path.empty() && !anchors->key.empty())
    return place.Key("key").Fail("needs a path: without one there is nothing to sign");
  if (!anchors->path.empty() && Inside(anchors->path, store.path))
    return place.Key("path").Fail(
        "lies inside store.path: a copy of the store would bring its anchors along, and they "
        "would prove nothing");
  return {};
}

std::string DumpSchema(const Config& config) {
  std::string yaml;
  Config copy = config;  // descriptions take a mutable reference, to read into it
  Dumper(&yaml, 0, /*compact=*/false).Section({"schema", ""}, [&](Fields& below) {
    below.Sections({"features", ""}, &copy.features, DescribeFeature, /*compact=*/true);
  });
  return yaml;
}

std::string DumpReading(const Config& config) {
  const Source& source = config.source;
  Source reading;
  reading.kind = source.kind;
  reading.kinds = source.kinds;
  reading.format = source.format;
  reading.framing = source.framing;
  reading.max_record_bytes = source.max_record_bytes;
  reading.json = source.json;
  reading.csv = source.csv;
  reading.avro = source.avro;
  std::string yaml;
  Dumper(&yaml, 0, /*compact=*/false).Section({"source", ""}, [&](Fields& below) {
    DescribeSource(below, reading);
  });
  return yaml + DumpSchema(config);
}

// A key that is not named here counts.
std::string DumpSumming(const Config& config) {
  Config summing;
  summing.source = config.source;
  summing.features = config.features;
  summing.learners = config.learners;
  Source& source = summing.source;
  const Source plain;
  source.files.clear();
  source.opt_out.clear();  // its bytes count
  source.mark.clear();
  source.topic.clear();
  source.decode_threads = plain.decode_threads;
  source.round_ms = plain.round_ms;
  source.tick_ms = plain.tick_ms;
  source.schema_wait_ms = plain.schema_wait_ms;
  source.on_period_lost = plain.on_period_lost;
  source.accept_unreadable = plain.accept_unreadable;
  source.halt_above = {};
  // Without one, schemas that are not listed make dead letters.
  if (!source.registry.url.empty()) source.registry.url = "a registry";
  source.registry.username.clear();
  source.registry.password = {};
  source.registry.ca_file.clear();
  source.registry.timeout_ms = plain.registry.timeout_ms;
  return Dump(summing);
}

}  // namespace tacit::config
