// Writes what the fuzzers begin with: one of everything that the product's own writers write.
//     fuzz_seeds FOLDER CONFIGURATIONS
#include <archive.h>
#include <archive_entry.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>

#include "base/bytes.h"
#include "base/hash.h"
#include "feed/record.h"
#include "feed/version_end.h"
#include "privacy/anchor.h"
#include "privacy/ledger.h"
#include "store/checkpoint/checkpoint.h"
#include "store/disk/seal.h"
#include "store/types/learner_record.h"
#include "store/view/delta_codec.h"
#include "store/witness/witness_record.h"
#include "support/part_query.h"
#include "unit/store/script.h"
#include "workers/records.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;

class Seeds {
 public:
  explicit Seeds(std::string folder) : folder_(std::move(folder)) {}
  void Add(const std::string& fuzzer, std::string_view bytes) {
    const std::string parent = folder_ + "/" + fuzzer;
    fs::create_directories(parent);
    std::ofstream(parent + "/seed" + std::to_string(++written_[fuzzer]), std::ios::binary) << bytes;
  }
  // Behind the byte that chooses the reader.
  void Add(const std::string& fuzzer, char choice, std::string_view bytes) {
    Add(fuzzer, std::string(1, choice) + std::string(bytes));
  }

 private:
  const std::string folder_;
  std::map<std::string, int> written_;
};

std::string BytesOf(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The tar file that a checkpoint's archive has inside.
std::string TarOf(const std::string& folder) {
  std::string tar(16 << 20, '\0');
  size_t used = 0;
  archive* const out = archive_write_new();
  archive_write_set_format_pax_restricted(out);
  archive_write_open_memory(out, tar.data(), tar.size(), &used);
  std::vector<fs::path> files = {fs::path(folder) / store::kCheckpointManifestName};
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path() != files[0]) files.push_back(entry.path());
  for (const fs::path& file : files) {
    const std::string bytes = BytesOf(file);
    archive_entry* const entry = archive_entry_new();
    const fs::path name = fs::path(folder).filename() / file.lexically_relative(folder);
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0600);
    archive_write_header(out, entry);
    archive_write_data(out, bytes.data(), bytes.size());
    archive_entry_free(entry);
  }
  archive_write_close(out);
  archive_write_free(out);
  tar.resize(used);
  return tar;
}

void AddStore(Seeds& seeds) {
  const store::TestFolder folder;
  const auto store = store::MustOpen(store::TestOptions(folder));
  for (int i = 0; i < 4; ++i) TACIT_CHECK(store::Script::Step(*store).has_value());
  for (const auto kind : {store::CheckpointKind::kFull, store::CheckpointKind::kRelease}) {
    const auto made =
        store->MakeCheckpoint({.kind = kind, .parent = folder.root() + "/checkpoints"});
    TACIT_CHECK(made.has_value());
    seeds.Add("checkpoint", 0, store::EncodeManifest(made->place.manifest));
    seeds.Add("checkpoint", 1, TarOf(made->place.folder));
  }
  const auto entries = store->Latest()->LedgerEntries(0, 100);
  TACIT_CHECK(entries.has_value());
  for (const std::string& entry : *entries) seeds.Add("ledger", 0, entry);

  store::CommitTip tip{CommitSeq(7), {}, 3, store->Latest()->learners(), store->Latest()->total()};
  seeds.Add("checkpoint", 3, store::EncodeTip(tip));
  seeds.Add("feed", 1,
            feed::EncodeVersionEnd({.partitions = 2, .tip = tip, .learners = {{.key = 1}}}));
  store::DenseState dense{.parameters = {1, 2, 3}, .optimizer = {4, 5}};
  seeds.Add("checkpoint", 5, store::EncodeDenseBase(CommitSeq(7), dense));
  store::DeltaRecord delta;
  delta.previous = delta.tip = tip;
  delta.entries = delta.previous_entries = *entries;
  delta.source_identity = "source";
  delta.learners.resize(1);
  delta.learners[0].second.dense = std::make_shared<store::DenseState>(dense);
  const store::DeltaBlob blob(delta);
  std::string sealed;
  for (const std::string_view piece : blob.pieces()) sealed += piece;
  seeds.Add("checkpoint", 2, sealed.substr(sizeof(uint64_t)));
}

void AddLedgerState(Seeds& seeds) {
  privacy::Ledger ledger;
  for (const store::LearnerLayout& learner : store::TestLearners())
    TACIT_CHECK(ledger.Declare(learner.promise).has_value());
  seeds.Add("ledger", 1, ledger.EncodeState());
}

void AddFeed(Seeds& seeds) {
  for (const auto kind :
       {feed::RecordKind::kRow, feed::RecordKind::kBlock, feed::RecordKind::kDense,
        feed::RecordKind::kReleased, feed::RecordKind::kLedger}) {
    const feed::RecordPlace place{.kind = kind, .learner = 1, .table = 2, .number = 3};
    std::string value;
    feed::AppendValue(place, {.version = CommitSeq(9), .model = 5}, "payload", &value);
    value.resize(value.size() - sizeof(uint32_t));  // the checksum
    const std::string key = feed::EncodeKey(place);
    seeds.Add("feed", 0, std::string(1, static_cast<char>(key.size())) + key + value);
  }
}

void AddFiles(Seeds& seeds) {
  const std::string digest(64, 'a');
  seeds.Add("files", 0, "# callers\nquery shop sha256:" + digest + "\n");
  seeds.Add("files", 0,
            "user ann sha256:" + digest +
                " user=a%20b\noperator me sha256:" + std::string(64, 'b') + "\n");
  seeds.Add("files", 1, "a\r\nb\n\nc\n");
  seeds.Add("files", 1,
            "1::Toy Story (1995)::Animation|Children\n2::Story of Toys (1996)::Children\n"
            "3::The Toy::\n");
  store::WitnessCopy copy{.write = 3, .distance = 4096};
  copy.record = {.lineage = std::string(32, '7'), .seq = CommitSeq(5)};
  const store::WitnessedLearner::Charged charged{};
  copy.record.learners = {{.name = "ctr", .steps = 9, .charged = charged, .position = "position"}};
  copy.record.learners[0].prices = {{{.charged = charged, .steps = 9}}};
  const std::string bytes = store::EncodeCopy(copy);
  const auto payload = store::Unseal(std::string_view(bytes).substr(sizeof(uint32_t)), "a copy");
  TACIT_CHECK(payload.has_value());
  seeds.Add("files", 2, *payload);
  privacy::Anchor first{.lineage = std::string(32, '7'), .commit = 5, .charged = 4, .entries = 2};
  privacy::Anchor second = first;
  second.number = 1;
  second.previous = Sha256().Update(first.Line()).Finish();
  seeds.Add("files", 3, first.Line() + '\n' + second.Line() + '\n');
  seeds.Add("sums", testing::SmallPart().Encode());
  seeds.Add(
      "schema", 0,
      "syntax = \"proto3\";\nmessage M { string user = 2; int32 outcome = 5; oneof o { group G = "
      "30 { } }\n map<string, double> features = 6; option (o) = { a: [1] }; message N {} }");
  seeds.Add("schema", 1, R"({"type":"object","properties":{"label":{"type":["integer","null"]}}})");
  seeds.Add("schema", 2, R"({"schemaType":"PROTOBUF","schema":"message M { int32 a = 5; }"})");
  const std::string avro =
      R"({"type":"record","name":"R","fields":[{"name":"label","type":"int"},{"name":"user","type":
          ["null","string"]},{"name":"f","type":{"type":"map","values":"double"}},{"name":"tags","type":
          {"type":"array","items":{"type":"enum","name":"E","symbols":["a","b"]}}}]})";
  const std::string record("\2\2\2u\0\4\0\2\0", 9);
  seeds.Add("avro", 0, avro + '\0' + avro + '\0' + record);
  seeds.Add("avro", 0, avro + std::string(2, '\0') + record);
  const std::string head("Obj\1\2\26avro.schema", 17);
  std::string size;
  for (size_t rest = 2 * avro.size(); rest > 0; rest >>= 7)
    size += static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
  const std::string sync = "0123456789abcdef";
  seeds.Add("avro", 1, head + size + avro + '\0' + sync + "\2\22" + record + sync);
  seeds.Add("schema", 3, R"({"schemaType":"JSON","schema":"{\"type\":\"object\"}","id":7})");
}

void AddWorkers(Seeds& seeds) {
  const workers::Plan plan{.head = {1},
                           .build = {2},
                           .version = 3,
                           .time_ms = 4,
                           .learners = {{.key = 1, .step = 9}},
                           .slices = {{"w", {{0, 0, 10}, {1, 5, 9}}}, {"", {{0, 10, 20}}}}};
  const std::string marked = workers::EncodePlan({}, plan);
  seeds.Add("workers", 0, marked.substr(0, marked.size() - sizeof(Digest)));
  const stream::LastRecord last{.offset = 19, .timestamp_ms = 1, .hash = 2};
  const std::string body = workers::EncodeBody(
      {.ranges = {{.range = {0, 0, 20}, .before = {}, .last = last, .dead = {1}}}, .sums = "sums"});
  seeds.Add("workers", 1, body);
  const workers::Hello hello{.origin = {"w", {}, {}}, .version = 3, .trouble = "trouble"};
  const auto chunks = workers::SealBody({1}, {"w", {}, {}}, body);
  for (const workers::KafkaRecord& record : {chunks[0], workers::SealHello({1}, hello)})
    seeds.Add("workers", 2,
              std::string(1, static_cast<char>(record.key.size())) + record.key + record.value);
  constexpr size_t kNumbers = 8 + 2 + 8 + 8 + 8 + 1 + 4;  // version to the length of trouble
  seeds.Add("workers", 3, std::string(kNumbers, '\0'));
  seeds.Add("workers", 4, std::string(1, static_cast<char>(body.size())) + body);
}

void AddTexts(Seeds& seeds, const std::string& configs) {
  for (const fs::directory_entry& entry : fs::directory_iterator(configs))
    if (entry.path().extension() == ".yaml" && entry.path().filename() != "alerts.yaml")
      seeds.Add("config", 0, BytesOf(entry.path()));
  // Keys, by what they may be and a little more; the byte before them chooses what they change.
  static constexpr std::string_view kOverrides[] = {
      "learners.0.model.kind=pctr\nlearners.0.mechanism.kind=adafest",
      "learners.0.mechanism.threshold=0\nlearners.0.mechanism.sigma_ratio=1e-9",
      "learners.0.mechanism.gradient_clip=1e30\nlearners.0.optimizer.learning_rate=1e30",
      "learners.0.mechanism.kind=fest\nlearners.0.mechanism.kind=none",
      "learners.0.participation.mode=poisson\nlearners.0.participation.sampling_rate=0.01",
      "learners.0.participation.mode=allocate\nlearners.0.participation.blocks=2",
      "learners.0.participation.steps_per_period=1000000\nlearners.0.participation.period=1",
      "learners.0.participation.batch=1\nlearners.0.participation.max_participations=4000000000",
      "learners.0.privacy.unit=user\nlearners.0.privacy.epsilon=1e-6",
      "learners.0.privacy.delta=1e-300\nlearners.0.privacy.epsilon=1000000",
      "learners.0.model.hidden=[1]\nlearners.0.model.compute=bf16",
      "learners.0.model.kind=linear\nlearners.0.mechanism.kind=sums",
      "learners.0.model.kind=transitions\nlearners.0.mechanism.kind=counts",
      "learners.0.model.kind=sequence\nlearners.0.model.encoder=lstm\nlearners.0.model.width=7",
      "learners.0.model.heads=3\nlearners.0.model.length=1\nlearners.0.model.negatives=1",
      "learners.0.quality.delta=1e-9\nlearners.0.quality.epsilon=1",
      "source.kind=generator\nsource.generator.days=1\nsource.generator.rows_per_day=1",
      "source.kind=kafka\nsource.topic=t\nkafka.bootstrap.servers=h:1\nsource.framing=confluent",
      "source.format=csv\nsource.csv.columns=[label,user]\nsource.csv.separator=|",
      "source.format=json\nsource.json.user=/u\nsource.json.weight=/w\nsource.json.weight_most=1e9",
      "source.halt_above.share=0.5\nsource.halt_above.epsilon=1\nsource.halt_above.delta=1e-9",
      "source.dedupe.window=268435456\nsource.dedupe.partitions=100000",
      "catalogue.file=shop/items.dat\nbudget.epsilon=1\nbudget.delta=0.1",
      "memory.total_bytes=1\nmemory.total_bytes=100GiB\nstore.shards=1",
      "schema.features.0.buckets=68719476736\nschema.features.0.dim=4096",
      "schema.features.0.kind=dense\nschema.features.0.transform=identity",
      "serve.listen=unix:/x\nserve.threads=1\nserve.max_connections=1",
      "gpu.serve_rows=1\nfeed.topic=f\nstore.commit_interval_ms=1"};
  for (char base = 1; base <= 8; ++base)
    for (const std::string_view overrides : kOverrides) seeds.Add("config", base, overrides);
  std::mt19937 random(1);
  for (int command = 0; command < 64; ++command) {
    std::string bytes(1, static_cast<char>(command));
    for (int i = 0; i < 40; ++i) bytes += static_cast<char>(random());
    seeds.Add("arguments", bytes);
  }
  seeds.Add("records", 0, "1\t5\t\t68fd1e64\t80e26c9b\tfb936136\n0\t-1\t9\t\t\t");
  seeds.Add("records", 1,
            R"({"label":1,"event_id":"e","user":"u","item":"i","timestamp_ms":5,"features":)"
            R"({"I1":1.5,"I2":null,"C1":"a","C2":7,"tags":["x","y"]}})");
  seeds.Add("records", 2,
            std::string_view("\x0a\x01\x65\x12\x01\x75\x1a\x01\x69\x20\x05\x28\x02", 13));
  seeds.Add("records", 3,
            R"({"what":"buy","who":{"id":3},"at":"2026-11-25T03:22:06.5+01:00","paid":2.5,)"
            R"("list":[4,5],"a/b":{"tags":["x"]},"f":{"I2":1,"C1":true,"C2":"z"}})");
  seeds.Add("records", 4, "1,\"a \"\"b\"\"\",17,1.5,,x,y,p|q,3\n0,,,,,,,,");
  seeds.Add("records", 7, std::string_view("\0\0\0\0\7\0{}", 8));
  seeds.Add("records", 7, R"({"file":"f","line":3,"partition":1,"offset":20,"reason":"no label"})");
  seeds.Add("json", 0,
            R"({"learner":"ctr","rows":[{"I1":1,"C1":"a","tags":["x","y"]},{"I2":2.5}]})");
  seeds.Add("json", 0, R"({"instances":[{"features":{"I1":1,"C1":"a"}}]})");
  seeds.Add("json", 1, "{\"features\":{\"I1\":1}}\n{\"features\":{\"C2\":\"b\"}}\n");
  seeds.Add("json", 2, R"({"learner":"ctr","table":"C1","keys":["a","b"]})");
  seeds.Add("json", 3, R"({"history":["a","b"],"k":5})");
  seeds.Add("tensors",
            R"({"id":"1","inputs":[{"name":"I1","shape":[2],"datatype":"FP32","data":[1,2.5]},)"
            R"({"name":"C1","shape":[2,1],"datatype":"BYTES","data":["a","b"]}]})");
  std::string binary =
      R"({"inputs":[{"name":"I1","shape":[1],"datatype":"FP32","parameters":{"binary_data_size":4}},)"
      R"({"name":"tags","shape":[1,2],"datatype":"BYTES","parameters":{"binary_data_size":10}}]})"
      "\n";
  binary += std::string_view("\0\0\x80\x3f\1\0\0\0x\1\0\0\0y", 14);
  seeds.Add("tensors", binary);
  seeds.Add("http", "GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n");
  seeds.Add("http",
            "POST /v2/a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.0\r\n\r\n");
  seeds.Add(
      "http",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
      "3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n");
}

}  // namespace
}  // namespace tacit

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: fuzz_seeds FOLDER CONFIGURATIONS\n";
    return 2;
  }
  tacit::Seeds seeds(argv[1]);
  tacit::AddStore(seeds);
  tacit::AddLedgerState(seeds);
  tacit::AddFeed(seeds);
  tacit::AddFiles(seeds);
  tacit::AddWorkers(seeds);
  tacit::AddTexts(seeds, argv[2]);
}
