#include "tape/public_ways.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <map>

#include "daemon/service_metrics.h"
#include "feed/publisher.h"
#include "serve/api.h"
#include "serve/route_table.h"
#include "store/view/delta_codec.h"
#include "stream/kafka/topic_reader.h"
#include "support/process.h"

namespace tacit::tape {
namespace {

constexpr char kTopic[] = "model";
constexpr LearnerIndex kIt = LearnerIndex(0);

// Public metrics of the machine and its clock: their numbers are of no records, and differ from run
// to run.
constexpr std::string_view kOfTheMachine[] = {"process_", "tacit_http_request_seconds_bucket",
                                              "tacit_http_request_seconds_sum"};

// Questions to the routes that take a body. Each is asked of click models and of models of items.
std::vector<std::string> BodiesOf(std::string_view path) {
  if (path == "/v1/score")
    return {R"({"learner":"it","rows":[{"features":{"n":1,"C":"3","D":"2"}},{"features":{}}]})"};
  if (path == "/v1/score/lines")
    return {R"({"label":0,"user":"u","features":{"n":2,"C":"1","D":"1"}})"
            "\n"};
  if (path == "/v1/recommend")
    return {R"({"learner":"it","sequences":[["item-0"],["item-1","item-2"],[]],"k":6})"};
  if (path == "/v1/lookup") {
    std::string rows;
    for (int bucket = 0; bucket < 40; ++bucket)
      rows += fmt::format(R"({}{{"feature":"C","bucket":{}}})", bucket == 0 ? "" : ",", bucket);
    return {R"({"learner":"it","rows":[)" + rows + "]}"};
  }
  if (path == "/v2/repository/index") return {"{}", R"({"ready":true})"};
  if (path.ends_with("/infer"))
    return {R"({"inputs":[{"name":"n","shape":[1],"datatype":"FP32","data":[1]},)"
            R"({"name":"C","shape":[1,1],"datatype":"BYTES","data":["3"]},)"
            R"({"name":"D","shape":[1,1],"datatype":"BYTES","data":["2"]}]})",
            R"({"inputs":[{"name":"sequence","shape":[2],"datatype":"BYTES",)"
            R"("data":["item-1","item-2"]}]})"};
  ADD_FAILURE() << "no question to the public route " << path;
  return {};
}

struct PublicRoute {
  std::string method, path;
};

std::vector<PublicRoute> ReadRoutes() {
  std::vector<PublicRoute> routes;
  const boost::json::value table = boost::json::parse(serve::RoutesAsJson());
  for (const boost::json::value& route : table.as_array()) {
    const std::string who(route.at("for").as_string());
    if (who == "operators" || who == "the user, operators") continue;
    routes.push_back(
        {std::string(route.at("method").as_string()), std::string(route.at("path").as_string())});
  }
  return routes;
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string WithoutTheMachine(const std::string& page) {
  std::string kept;
  for (size_t at = 0; at < page.size();) {
    const size_t end = std::min(page.find('\n', at), page.size() - 1) + 1;
    const std::string_view line(page.data() + at, end - at);
    if (std::ranges::none_of(kOfTheMachine, [&](auto name) { return line.starts_with(name); }))
      kept += line;
    at = end;
  }
  return kept;
}

// Keys of a full checkpoint that are raw by design ("Formats" in docs/internals/store.md).
bool IsRaw(std::string_view family, std::string_view key) {
  if (family == "allowance" || family == "histories") return true;
  return family == "meta" && (key.starts_with("allocation/") || key.starts_with("forgotten/") ||
                              key == "salt" || key == "user_key" || key == "source");
}

// A delta without the identity of its source, which is raw by design.
std::string WithoutSource(std::string_view key, std::string_view delta) {
  uint64_t seq = 0;
  for (const char byte : key) seq = seq << 8 | static_cast<uint8_t>(byte);
  auto record = store::DecodeDelta(delta, CommitSeq(seq));
  EXPECT_TRUE(record) << record.error().message;
  record->source_identity.clear();
  const store::DeltaBlob blob(*record);
  std::string bytes;
  for (const std::string_view piece : blob.pieces()) bytes += piece;
  return bytes;
}

// Calls each with the family, the key and the value of all there is. RocksDB's files themselves
// have names and times of their own.
using EachKey = std::function<void(const std::string&, std::string_view, std::string_view)>;
void ReadKeys(const std::string& folder, const EachKey& each) {
  std::vector<std::string> families;
  ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, folder, &families).ok());
  std::ranges::sort(families);
  std::vector<rocksdb::ColumnFamilyDescriptor> opened;
  for (const std::string& family : families) {
    rocksdb::ColumnFamilyOptions options;
    if (family.starts_with("rows-"))
      options.cf_paths = {{folder + "/rows/" + family.substr(5), 1 << 30}};
    opened.emplace_back(family, options);
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  std::unique_ptr<rocksdb::DB> db;
  rocksdb::DB* made = nullptr;
  const auto open = rocksdb::DB::OpenForReadOnly({}, folder, opened, &handles, &made);
  ASSERT_TRUE(open.ok()) << open.ToString();
  db.reset(made);
  for (size_t i = 0; i < handles.size(); ++i) {
    const std::unique_ptr<rocksdb::Iterator> all(db->NewIterator({}, handles[i]));
    for (all->SeekToFirst(); all->Valid(); all->Next())
      each(families[i], all->key().ToStringView(), all->value().ToStringView());
    ASSERT_TRUE(all->status().ok());
  }
  for (rocksdb::ColumnFamilyHandle* handle : handles) (void)db->DestroyColumnFamilyHandle(handle);
}

}  // namespace

PublicWays::PublicWays(Plant plant) : plant_(std::move(plant)) { kafka_.Create(kTopic, 2); }

void PublicWays::Ask(const Running& running) {
  AskRoutes(running);
  Publish(running);
  MakeCheckpoints(running);
  RunCommands(running);
  Show("end", running.outcome ? fmt::format("{}", static_cast<int>(*running.outcome))
                              : running.outcome.error().message);
}

void PublicWays::Show(std::string way, std::string bytes) {
  shown_.push_back({std::move(way), std::move(bytes)});
}

void PublicWays::AskRoutes(const Running& running) {
  const wiring::Assembly& assembly = running.subject.assembly();
  serve::Services services{
      .latest = [&] { return running.store.Latest(); },
      .models = wiring::MakeScoringModels(assembly),
      .recommenders = wiring::MakeRecommendModels(assembly),
      .spent = [&](LearnerIndex learner) { return running.learning.trainer().spent(learner); },
      .qualities = wiring::ServedQualities(assembly),
      .breaker = wiring::ServedBreaker(assembly),
      .total_budget = assembly.total_budget,
      .code_version = "tape",
      .metrics = &running.registry};
  auto recommender = std::make_shared<serve::Recommender>(services.recommenders, services.latest);
  recommender->Refresh();
  services.versions = std::make_shared<serve::LiveVersion>(services.latest, recommender);
  if (plant_) plant_(running, &services);
  daemon::ShowServiceMetrics(
      running.registry, {.readiness = services.readiness,
                         .source = [&] { return running.source.health(); },
                         .records_ahead = [&] { return running.learning.intake().records_ahead(); },
                         .engine = [&] { return running.store.engine_stats(); }});
  const auto api = serve::MakeApi(std::move(services))();
  const std::string version = fmt::format("{}", running.store.Latest()->version().value);
  for (const PublicRoute& route : ReadRoutes()) {
    const std::string path =
        Replaced(Replaced(route.path, "{name}", running.subject.plan().id), "{version}", version);
    for (const std::string& body :
         route.method == "GET" ? std::vector<std::string>{""} : BodiesOf(route.path)) {
      http::Reply reply;
      api->Handle({.method = route.method,
                   .path = path,
                   .query = route.path == "/v1/score/lines" ? "learner=it" : "",
                   .body = body},
                  &reply);
      const std::string name = route.method + " " + route.path;
      if (reply.status == 200) answered_.insert(name);
      std::string bytes = fmt::format("{} {}\n", reply.status, reply.content_type);
      for (const auto& [field, value] : reply.headers) bytes += field + ": " + value + "\n";
      Show(name, bytes + WithoutTheMachine(reply.body));
    }
  }
}

void PublicWays::Publish(const Running& running) {
  const stream::KafkaProperties properties{
      {{"bootstrap.servers", kafka_.bootstrap()}, {"linger.ms", "1"}}};
  feed::Publisher publisher(
      running.store, running.clock,
      {.properties = properties, .topic = kTopic, .check_topic = [] { return Status(); }});
  auto published = publisher.Publish();
  while (!published && published.error().code == ErrorCode::kUnavailable)
    published = publisher.Publish();
  ASSERT_TRUE(published) << published.error().message;
  std::vector<std::string> records;  // a partition's in their order
  const Status read = stream::ReadKafkaTail(
      properties, kTopic, 1'000'000, test::kPatience,
      [&](const stream::KafkaTopicRecord& record) -> Status {
        records.push_back(fmt::format("{} {:6} {}={}\n", record.partition, record.offset,
                                      record.key.value_or(""), record.value.value_or("")));
        return {};
      });
  ASSERT_TRUE(read) << read.error().message;
  std::ranges::sort(records);
  Show("feed", fmt::format("{}", fmt::join(records, "")));
}

void PublicWays::MakeCheckpoints(const Running& running) {
  const test::TempDir parent;
  for (const auto kind : {store::CheckpointKind::kRelease, store::CheckpointKind::kFull}) {
    const auto made = running.store.MakeCheckpoint({.kind = kind, .parent = parent.path()});
    ASSERT_TRUE(made) << made.error().message;
    store::CheckpointManifest manifest = made->place.manifest;
    manifest.files.clear();
    const std::string way = fmt::format("{} checkpoint", store::NameOf(kind));
    Show(way, store::EncodeManifest(manifest));
    ReadKeys(made->place.folder, [&](const std::string& family, auto key, auto value) {
      if (kind == store::CheckpointKind::kFull && IsRaw(family, key))
        raw_ += fmt::format("{} {}={}\n", family, key, value);
      else
        Show(fmt::format("{}: {} {}", way, family, testing::PrintToString(std::string(key))),
             family == "deltas" ? WithoutSource(key, value) : std::string(value));
    });
  }
}

void PublicWays::RunCommands(const Running& running) {
  const config::Store& place = running.subject.assembly().config.store;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"privacy", "report"}, {"ledger", "export"}}) {
    std::vector<std::string> command = {TACIT};
    command.insert(command.end(), words.begin(), words.end());
    command.insert(command.end(), {"--store", place.path, "--witness", place.witness});
    const test::Ended ended = test::Run(command);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    Show(words[0] + " " + words[1],
         Replaced(ended.out, std::filesystem::path(place.path).parent_path().string(), "FOLDER"));
  }
}

std::set<std::string> PublicRoutes() {
  std::set<std::string> names;
  for (const PublicRoute& route : ReadRoutes()) names.insert(route.method + " " + route.path);
  return names;
}

std::string FirstDifference(std::span<const Shown> one, std::span<const Shown> other) {
  for (size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    if (one[i].way != other[i].way)
      return fmt::format("the ways {} and {}", one[i].way, other[i].way);
    const std::string &a = one[i].bytes, &b = other[i].bytes;
    if (a == b) continue;
    const size_t at = std::ranges::mismatch(a, b).in1 - a.begin();
    const size_t from = at < 40 ? 0 : at - 40;
    return fmt::format("{} at byte {}: {} and {}", one[i].way, at,
                       testing::PrintToString(a.substr(from, 80)),
                       testing::PrintToString(b.substr(from, 80)));
  }
  return one.size() == other.size() ? "" : fmt::format("{} ways and {}", one.size(), other.size());
}

}  // namespace tacit::tape
