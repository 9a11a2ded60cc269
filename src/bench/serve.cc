// Measures the requests per second of one server thread and their latency, next to a bare Beast
// server that sends as many bytes and does nothing. One client asks both in turn, round after
// round, so that a machine that changes its speed changes it for both. Callers are known by their
// tokens. Runs with and without training on the same machine.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/siphash.h"
#include "bench/bare_server.h"
#include "bench/bench_data.h"
#include "bench/hostile_load.h"
#include "bench/http_load.h"
#include "bench/suite.h"
#include "bench/training_rig.h"
#include "http/callers.h"
#include "http/client.h"
#include "http/server.h"
#include "http/token.h"
#include "model/sequence/layout.h"
#include "serve/api.h"

namespace tacit::bench {
namespace {

constexpr size_t kServeSteps = 16;
constexpr size_t kConnections = 4;
constexpr uint32_t kItems = 3416;  // of MovieLens-1M, as next_item models have them
constexpr LearnerIndex kNext(1);
constexpr size_t kHostile = 1000;
constexpr size_t kLargestRows = 4096;
constexpr size_t kInferRows = 1024;
constexpr size_t kClickNumbers = 13, kClickCategories = 26;  // of the click model
// The goals for latency and for the binary form.
constexpr double kTailMost = 5;              // p99 over p50
constexpr double kTailWhileTraining = 2;     // p99 over that without training, saturated
constexpr double kPacedWhileTraining = 1.5;  // the same at kPace
constexpr double kPace = 2000;               // requests a second
constexpr double kBinaryOverJson = 3;        // rows a second
constexpr double kOperatorMsMost = 50;       // what we ask of the operator's listener

// A request that is sent over and over.
struct Question {
  std::string name, path, body;
  size_t rows = 0;
  http::FieldList fields = {};

  std::string FieldLines() const {
    std::string lines;
    for (const auto& [field, value] : fields) lines += fmt::format("{}: {}\r\n", field, value);
    return lines;
  }
};

std::string ScoreBody(size_t rows) {
  std::string body = R"({"learner":"ctr","rows":[)";
  for (size_t r = 0; r < rows; ++r) {
    body += r == 0 ? "" : ",";
    body += R"({"dense":[1,2,null,4,5,6,7,8,9,10,11,12,13],"categorical":[)";
    for (size_t c = 0; c < 26; ++c)
      body += fmt::format("{}\"{:08x}\"", c == 0 ? "" : ",", (r * 31 + c) % 997);
    body += "]}";
  }
  return body + "]}";
}

std::string LookupBody(size_t rows) {
  std::string body = R"({"learner":"ctr","rows":[)";
  for (size_t r = 0; r < rows; ++r)
    body += fmt::format(R"({}{{"feature":"C{}","value":"{:08x}"}})", r == 0 ? "" : ",",
                        1 + r % kClickCategories, r * 31 % 997);
  return body + "]}";
}

template <class T>
void AppendBytes(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The same rows of the Open Inference Protocol, a tensor a feature, in one of its two forms.
Question InferQuestion(bool binary) {
  std::string head = R"({"inputs":[)", tensors;
  for (size_t column = 0; column < kClickNumbers + kClickCategories; ++column) {
    const bool is_number = column < kClickNumbers;
    const size_t of = is_number ? column : column - kClickNumbers;
    head +=
        fmt::format(R"({}{{"name":"{}{}","shape":[{}],"datatype":"{}",)", column == 0 ? "" : ",",
                    is_number ? 'I' : 'C', of + 1, kInferRows, is_number ? "FP32" : "BYTES");
    std::string data, bytes;
    for (size_t r = 0; r < kInferRows; ++r) {
      const size_t number = (r * 7 + of) % 1000;
      const std::string text = fmt::format("{:08x}", (r * 31 + of) % 997);
      data += r == 0 ? "" : ",";
      data += is_number ? fmt::format("{}", number) : fmt::format("\"{}\"", text);
      if (is_number) {
        AppendBytes(static_cast<float>(number), &bytes);
      } else {
        AppendBytes(static_cast<uint32_t>(text.size()), &bytes);
        bytes += text;
      }
    }
    head += binary ? fmt::format(R"("parameters":{{"binary_data_size":{}}}}})", bytes.size())
                   : fmt::format(R"("data":[{}]}})", data);
    if (binary) tensors += bytes;
  }
  head += fmt::format(R"(],"parameters":{{"binary_data_output":{}}}}})", binary);
  Question question{binary ? "infer-binary" : "infer-json", "/v2/models/ctr/infer", head + tensors,
                    kInferRows};
  if (binary) question.fields = {{"Inference-Header-Content-Length", std::to_string(head.size())}};
  return question;
}

std::string RecommendBody() {
  std::string body = R"({"learner":"next","k":10,"sequence":[)";
  for (uint32_t i = 0; i < 20; ++i)
    body += fmt::format("{}\"{}\"", i == 0 ? "" : ",", i * 97 % kItems);
  return body + "]}";
}

std::vector<Question> Questions() {
  return {{"health", "/healthz", "", 0},
          {"score-1", "/v1/score", ScoreBody(1), 1},
          {"score-32", "/v1/score", ScoreBody(32), 32},
          {"lookup-64", "/v1/lookup", LookupBody(64), 64},
          {"recommend", "/v1/recommend", RecommendBody(), 0},
          InferQuestion(/*binary=*/false),
          InferQuestion(/*binary=*/true)};
}

// The callers of the benchmark, as serve.callers has them.
class Tokens {
 public:
  std::string of_query = http::NewToken(), of_operator = http::NewToken();

  Result<std::shared_ptr<const http::Callers>> Callers() const {
    const auto line = [](std::string_view role, const std::string& token) {
      return http::CallerLine(role, role, http::DigestOfToken(token), "") + "\n";
    };
    TACIT_ASSIGN(auto table,
                 http::CallerTable::Parse(line("query", of_query) + line("operator", of_operator),
                                          "bench", {0, 0, 0}));
    return http::Callers::Fixed(std::move(table));
  }
};

// A user with a history in the bench's store; nobody else has one.
constexpr const char* kKnown = "known";

std::string ByUserBody(std::string_view user) {
  return fmt::format(R"({{"learner":"next","k":10,"user":"{}"}})", user);
}

// The learner that recommends: a transformer with its initial parameters.
model::SequenceOptions NextItem() {
  model::SequenceOptions options;
  options.catalogue = kItems;
  return options;
}

privacy::Promise NextPromise() {
  privacy::Promise promise;
  promise.learner = "next";
  promise.epsilon = 1e9;
  promise.delta = 1e-6;
  return promise;
}

Result<std::shared_ptr<const event::ItemCatalogue>> MakeItems() {
  std::string lines;
  for (uint32_t i = 0; i < kItems; ++i) lines += fmt::format("{}\n", i);
  TACIT_ASSIGN(auto items, event::ItemCatalogue::Parse(std::move(lines), "bench"));
  return std::make_shared<const event::ItemCatalogue>(std::move(items));
}

// The items that a user is scored after, as many as stand in for a history that is not there.
store::HistoryCommit HistoryOfKnown(const store::Store& store) {
  store::UserHistory history{.user = SipHash(store.user_key())(kKnown), .items = {}};
  for (uint32_t i = 0; i < 20; ++i)
    history.items.push_back({.item = i * 97 % kItems, .timestamp_ms = i});
  store::HistoryCommit commit{.step = 1, .appended = {}, .items_most = 50};
  commit.appended.push_back(std::move(history));
  return commit;
}

// A store in which both learners have a commit, ready for further steps.
Result<std::unique_ptr<TrainingRig>> MakeRig() {
  TACIT_ASSIGN(BenchSetup setup, MakeBenchSetup({.steps = kServeSteps}));
  const privacy::Charge charge = setup.assembly.learners[0].charge;
  store::LearnerLayout next;
  next.name = "next";
  next.promise = NextPromise();
  TrainingRig::Options options{.name = "serve", .idle_priority = true, .more_learners = {next}};
  auto rig = std::make_unique<TrainingRig>(std::move(setup), std::move(options));
  TACIT_RETURN_IF_ERROR(rig->Open());
  uint64_t examples = 0;
  TACIT_RETURN_IF_ERROR(rig->Step(&examples));
  TACIT_RETURN_IF_ERROR(rig->Commit());
  auto dense = std::make_shared<store::DenseState>();
  dense->parameters = model::SequenceLayout(NextItem()).Initial(1);
  store::CommitRequest request;
  request.learners.push_back({.learner = kNext,
                              .rows = std::make_shared<const store::RowDelta>(),
                              .dense = std::move(dense),
                              .position = "",
                              .charges = {{.learner = "next",
                                           .charge = charge,
                                           .steps = 1,
                                           .topic = "bench",
                                           .ranges = {{0, 0, 1}}}},
                              .histories = HistoryOfKnown(rig->store())});
  TACIT_RETURN_IF_ERROR(rig->store().Commit(std::move(request), [](const Status&) {}));
  TACIT_RETURN_IF_ERROR(rig->store().Flush());
  return rig;
}

Result<serve::Services> MakeServices(TrainingRig& rig, metrics::Registry& registry) {
  TACIT_ASSIGN(const auto items, MakeItems());
  serve::Services services;
  services.latest = [&rig] { return rig.store().Latest(); };
  services.models = wiring::MakeScoringModels(rig.assembly());
  services.recommenders = {{.index = kNext,
                            .promise = NextPromise(),
                            .items = items,
                            .model = serve::MakeSequenceItems(kNext, NextItem()),
                            .serve_users = true}};
  services.user_hash = [hash = SipHash(rig.store().user_key())](std::string_view user) {
    return hash(user);
  };
  services.metrics = &registry;
  return services;
}

// Takes steps and commits once a second, at the priority that the daemon gives them.
class Training {
 public:
  explicit Training(TrainingRig& rig) : thread_([this, &rig] { done_ = Run(rig); }) {}
  Status Stop() {
    stop_ = true;
    thread_.join();
    return done_;
  }

 private:
  Status Run(TrainingRig& rig) {
    SetIdlePriority();
    const SystemClock clock;
    auto last_commit = clock.Now();
    uint64_t examples = 0;
    while (!stop_) {
      TACIT_RETURN_IF_ERROR(rig.Step(&examples));
      if (clock.Now() - last_commit < std::chrono::seconds(1)) continue;
      last_commit = clock.Now();
      TACIT_RETURN_IF_ERROR(rig.Commit());
    }
    return rig.Commit();
  }

  std::atomic<bool> stop_ = false;
  Status done_;
  std::thread thread_;
};

// As many threads as training has, at its priority, that do nothing but use their cores. Answers
// that are late beside them are late by the scheduler alone.
class IdleSpinners {
 public:
  IdleSpinners() {
    for (std::thread& thread : threads_) thread = std::thread([this] { Spin(); });
  }
  ~IdleSpinners() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Spin() const {
    SetIdlePriority();
    while (!stop_.load(std::memory_order_relaxed)) {
    }
  }

  std::atomic<bool> stop_ = false;
  std::array<std::thread, 2> threads_;
};

uint16_t PortOf(const std::string& address) {
  return static_cast<uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
}

// All turns of one question.
struct Turns {
  std::vector<double> rate, bare, share, p50, p99, cpu;

  void Add(const HttpLoad& ours, const HttpLoad& limit) {
    rate.push_back(static_cast<double>(ours.requests) / ours.seconds);
    bare.push_back(static_cast<double>(limit.requests) / limit.seconds);
    share.push_back(rate.back() / bare.back());
    p50.push_back(ours.p50_us);
    p99.push_back(ours.p99_us);
    cpu.push_back(ours.server_cpu_us);
  }

  BenchRow Row(const Question& question, bool training) const {
    boost::json::object more{
        {"connections", kConnections},
        {"rows", question.rows},
        {"training", training},
        {"p50_us", Median(p50)},
        {"p99_us", Median(p99)},
        {"share_of_each_round", boost::json::array(share.begin(), share.end())}};
    std::string note = fmt::format("(p50 {:.0f}, p99 {:.0f} us", Median(p50), Median(p99));
    // Training uses CPU time of the same process.
    more["cpu_us"] = training ? boost::json::value(nullptr) : boost::json::value(Median(cpu));
    if (!training) note += fmt::format("; {:.1f} CPU us a request", Median(cpu));
    return {.name = fmt::format("serve-{}{}", question.name, training ? "-training" : ""),
            .value = Median(rate),
            .unit = "requests/s",
            .limit = Median(bare),
            .more = std::move(more),
            .note = note + ")"};
  }
};

// Turns at a steady pace. `seen` is p99 as the client saw it, with its own waits for a core.
struct PacedTurns {
  std::vector<double> p99, seen;

  BenchRow Row(std::string name, const PacedTurns& alone) const {
    return {.name = std::move(name),
            .value = Median(p99) / Median(alone.p99),
            .unit = "p99 over that alone, at most",
            .limit = kPacedWhileTraining,
            .more = {{"compares", true},
                     {"requests_per_s", kPace},
                     {"p99_us", Median(p99)},
                     {"p99_us_alone", Median(alone.p99)},
                     {"seen_p99_us", Median(seen)},
                     {"seen_p99_us_alone", Median(alone.seen)}},
            .note = fmt::format("(p99 {:.0f} and {:.0f} us; the client saw {:.0f} and {:.0f})",
                                Median(p99), Median(alone.p99), Median(seen), Median(alone.seen))};
  }
};

// The product's server and, for each question, a bare one that sends as many bytes.
class ServeBench {
 public:
  Status Start() {
    TACIT_ASSIGN(rig_, MakeRig());
    TACIT_ASSIGN(serve::Services services, MakeServices(*rig_, registry_));
    http::ServerOptions options;
    options.listeners = {{"127.0.0.1:0", http::Role::kPublic},
                         {"127.0.0.1:0", http::Role::kOperator}};
    TACIT_ASSIGN(options.callers, tokens_.Callers());
    TACIT_ASSIGN(server_, http::Server::Start(std::move(options),
                                              serve::MakeApi(std::move(services)), registry_));
    port_ = PortOf(server_->addresses()[0]);
    operator_port_ = PortOf(server_->addresses()[1]);
    for (const Question& question : questions_) {
      TACIT_ASSIGN(const std::string answer, Answer(question));
      TACIT_ASSIGN(bare_[question.name], BareServer::Start(answer));
    }
    return {};
  }

  Status Rounds(bool training, int rounds, double seconds, std::vector<BenchRow>* rows) {
    std::map<std::string, Turns>& turns = turns_[training];
    turns.clear();
    for (int round = 0; round < rounds; ++round) {
      std::optional<Training> beside;
      if (training) beside.emplace(*rig_);
      const Status asked = Round(seconds, &turns);
      if (beside) TACIT_RETURN_IF_ERROR(beside->Stop());
      TACIT_RETURN_IF_ERROR(asked);
    }
    for (const Question& question : questions_)
      rows->push_back(turns[question.name].Row(question, training));
    return {};
  }

  // Compares the rounds with training and without: the tails, and the two forms.
  void Compare(std::vector<BenchRow>* rows) {
    const auto add = [&](std::string name, double value, double limit, std::string unit) {
      rows->push_back({.name = "serve-" + std::move(name),
                       .value = value,
                       .unit = std::move(unit),
                       .limit = limit,
                       .more = {{"compares", true}}});
    };
    for (const char* name : {"score-32", "lookup-64"}) {
      const Turns& turns = turns_[false][name];
      add(fmt::format("tail-{}", name), Median(turns.p99) / Median(turns.p50), kTailMost,
          "p99 over p50, at most");
    }
    for (const Question& question : questions_)
      add(fmt::format("tail-{}-training", question.name),
          Median(turns_[true][question.name].p99) / Median(turns_[false][question.name].p99),
          kTailWhileTraining, "p99 over that without training, at most");
    const Turns &json = turns_[false]["infer-json"], &binary = turns_[false]["infer-binary"];
    std::vector<double> ratios;
    for (size_t i = 0; i < json.rate.size(); ++i) ratios.push_back(binary.rate[i] / json.rate[i]);
    add("infer-binary-over-json", Median(ratios), kBinaryOverJson, "times the rows/s, at least");
  }

  // Asks for the score of one row at a steady pace: alone, beside training, and beside threads that
  // only spin at training's priority, in turn.
  Status Paced(int rounds, double seconds, std::vector<BenchRow>* rows) {
    const std::string request = HttpRequest("/v1/score", ScoreBody(1), tokens_.of_query);
    PacedTurns alone, training, spinning;
    for (int round = 0; round < rounds; ++round) {
      TACIT_RETURN_IF_ERROR(PacedTurn(request, seconds, &alone));
      {
        Training beside(*rig_);
        const Status asked = PacedTurn(request, seconds, &training);
        TACIT_RETURN_IF_ERROR(beside.Stop());
        TACIT_RETURN_IF_ERROR(asked);
      }
      const IdleSpinners beside;
      TACIT_RETURN_IF_ERROR(PacedTurn(request, seconds, &spinning));
    }
    rows->push_back(training.Row("serve-paced-score-1-training", alone));
    rows->push_back(spinning.Row("serve-paced-score-1-spinning", alone));
    return {};
  }

  // Measures how soon the operator is answered while hostile clients load the public listener.
  Status UnderAttack(double seconds, std::vector<BenchRow>* rows) {
    HostileLoad hostile;
    TACIT_RETURN_IF_ERROR(hostile.Start(
        port_, kHostile, HttpRequest("/v1/score", ScoreBody(kLargestRows), tokens_.of_query)));
    TACIT_ASSIGN(
        const HttpLoad load,
        DriveHttp(operator_port_, HttpRequest("/readyz", "", tokens_.of_operator), 1, seconds));
    rows->push_back({.name = "serve-operator-under-attack",
                     .value = load.p99_us / 1000,
                     .unit = "ms, the 99th percentile",
                     .limit = kOperatorMsMost,
                     .more = {{"hostile_connections", hostile.connections()},
                              {"p50_us", load.p50_us},
                              {"p99_us", load.p99_us},
                              {"requests", load.requests}},
                     .note = fmt::format("(with {} hostile connections)", hostile.connections())});
    return {};
  }

  // Measures whether the time of an answer tells if a user is known. The two are asked in turn.
  Status KnownOrUnknown(int rounds, double seconds, std::vector<BenchRow>* rows) {
    std::vector<double> known, unknown;
    uint64_t requests = 0;
    for (int round = 0; round < rounds; ++round) {
      for (const bool is_known : {round % 2 == 0, round % 2 != 0}) {
        const std::string body = ByUserBody(is_known ? kKnown : "other");
        TACIT_ASSIGN(
            const HttpLoad load,
            DriveHttp(operator_port_, HttpRequest("/v1/recommend", body, tokens_.of_operator), 1,
                      seconds));
        (is_known ? known : unknown).push_back(load.p50_us);
        if (is_known) requests += load.requests;
      }
    }
    const double ratio = Median(unknown) / Median(known);
    rows->push_back({.name = "serve-user-unknown",
                     .value = Median(unknown),
                     .unit = "us, the median",
                     .limit = Median(known),
                     .more = {{"requests_of_known", requests}, {"ratio", ratio}},
                     .note = fmt::format("(a known user's beside it; ratio {:.3f})", ratio)});
    return {};
  }

 private:
  // Fetches the server's answer, waiting until it has one: recommendations are built after a
  // commit.
  Result<std::string> Answer(const Question& question) {
    const std::string url = http::JoinUrl("http://" + server_->addresses()[0], question.path);
    const std::string method = question.body.empty() ? "GET" : "POST";
    for (int attempt = 0; attempt < 600; ++attempt) {
      http::FieldList fields = question.fields;
      fields.emplace_back("Authorization", "Bearer " + tokens_.of_query);
      TACIT_ASSIGN(http::Response response,
                   http::Fetch(url, method, question.body, std::chrono::seconds(30), fields));
      if (response.status == 200) return std::move(response.body);
      if (response.status != 503) return Fail(ErrorCode::kInternal, std::move(response.body));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return Fail(ErrorCode::kInternal, question.path + " is not answered");
  }

  Status PacedTurn(const std::string& request, double seconds, PacedTurns* turns) const {
    TACIT_ASSIGN(const HttpLoad load, DriveHttpAt(port_, request, kPace, seconds));
    turns->p99.push_back(load.p99_us);
    turns->seen.push_back(load.seen_p99_us);
    return {};
  }

  Status Round(double seconds, std::map<std::string, Turns>* turns) {
    for (const Question& question : questions_) {
      const std::string request =
          HttpRequest(question.path, question.body, tokens_.of_query, question.FieldLines());
      TACIT_ASSIGN(const HttpLoad bare,
                   DriveHttp(bare_[question.name]->port(), request, kConnections, seconds));
      TACIT_ASSIGN(const HttpLoad ours, DriveHttp(port_, request, kConnections, seconds));
      (*turns)[question.name].Add(ours, bare);
    }
    return {};
  }

  const std::vector<Question> questions_ = Questions();
  std::map<bool, std::map<std::string, Turns>> turns_;  // of the last rounds; true: with training
  const Tokens tokens_;
  metrics::Registry registry_;
  std::unique_ptr<TrainingRig> rig_;
  std::unique_ptr<http::Server> server_;
  uint16_t port_ = 0, operator_port_ = 0;
  std::map<std::string, std::unique_ptr<BareServer>> bare_;
};

}  // namespace

Result<std::vector<BenchRow>> BenchServe(const BenchRequest& request) {
  const int rounds = request.quick ? 1 : 7;
  const double seconds = request.quick ? 0.05 : 0.5;
  ServeBench bench;
  TACIT_RETURN_IF_ERROR(bench.Start());
  std::vector<BenchRow> rows, warm_up;
  TACIT_RETURN_IF_ERROR(bench.Rounds(false, 1, seconds / 2, &warm_up));
  TACIT_RETURN_IF_ERROR(bench.Rounds(false, rounds, seconds, &rows));
  TACIT_RETURN_IF_ERROR(bench.Rounds(true, rounds, seconds, &rows));
  bench.Compare(&rows);
  TACIT_RETURN_IF_ERROR(bench.Paced(rounds, 4 * seconds, &rows));
  TACIT_RETURN_IF_ERROR(bench.KnownOrUnknown(3 * rounds, seconds / 2, &rows));
  TACIT_RETURN_IF_ERROR(bench.UnderAttack(6 * seconds, &rows));
  return rows;
}

}  // namespace tacit::bench
