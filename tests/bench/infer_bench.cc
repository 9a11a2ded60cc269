// Measures the rows a second that one core answers from requests of 1,024 rows of Criteo's 39
// features: /v1/score, and the Open Inference Protocol in JSON and in binary tensors, by a linear
// model and by a model that costs nothing. Best of several runs of processor time, in one process;
// sockets are left out. Prints JSON lines: the rates, and for both forms of the protocol where the
// time of a row goes, in nanoseconds.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "serve/api.h"
#include "serve/inference/infer_answer.h"
#include "serve/inference/tensor_rows.h"
#include "serve/scoring/linear_scorer.h"
#include "support/criteo_schema.h"

namespace tacit::serve {
namespace {

constexpr size_t kRows = 1024, kDense = 13, kCategories = 26;
constexpr int kRuns = 7, kRequests = 20;

double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// A commit whose weights are a function of their rows.
class BenchSnapshot final : public store::Snapshot {
 public:
  explicit BenchSnapshot(std::shared_ptr<const std::string> released)
      : released_(std::move(released)) {}
  CommitSeq version() const override { return CommitSeq(5); }
  const Digest& head() const override { return head_; }
  std::string lineage() const override { return "line-1"; }
  const std::vector<privacy::LedgerTotal>& learners() const override { return learners_; }
  const privacy::LedgerTotal& total() const override { return total_; }
  uint64_t ledger_entries() const override { return 0; }
  Result<std::vector<std::string>> LedgerEntries(uint64_t, uint64_t) const override { return {}; }
  std::shared_ptr<const store::DenseState> Dense(LearnerIndex) const override { return nullptr; }
  std::shared_ptr<const std::string> Released(LearnerIndex) const override { return released_; }
  Status Rows(LearnerIndex, std::span<const uint64_t> rows, std::span<float> out) const override {
    for (size_t i = 0; i < rows.size(); ++i) out[i] = static_cast<float>(rows[i] % 97) / 500;
    return {};
  }

 private:
  const std::shared_ptr<const std::string> released_;
  const Digest head_{};
  const std::vector<privacy::LedgerTotal> learners_;
  const privacy::LedgerTotal total_;
};

// A model that reads every number and row once.
class SumModel final : public RowModel {
  class Scorer final : public RowScorer {
    Status Score(const store::Snapshot&, const event::Batch& batch,
                 std::span<float> scores) override {
      for (size_t i = 0; i < scores.size(); ++i) {
        float sum = 0;
        for (size_t d = 0; d < batch.dense_width; ++d)
          sum += batch.dense[i * batch.dense_width + d];
        for (size_t s = 0; s < batch.slots; ++s) sum += static_cast<float>(batch.Slot(i, s)[0] % 7);
        scores[i] = Sigmoid(sum / 100);
      }
      return {};
    }
  };
  std::unique_ptr<RowScorer> MakeScorer() const override { return std::make_unique<Scorer>(); }
};

class Fields final : public http::HeaderFields {
 public:
  explicit Fields(std::string length) : length_(std::move(length)) {}
  std::string_view Find(std::string_view name) const override {
    return name == "Inference-Header-Content-Length" ? std::string_view(length_) : "";
  }

 private:
  const std::string length_;
};

struct Form {
  std::string path, body, length;
};

double NumberOf(size_t row, size_t column) {
  return static_cast<double>((row * 7 + column) % 1000);
}
std::string TextOf(size_t row, size_t column) {
  return fmt::format("{:08x}", (row * 31 + column * 7) % 4999 * 2654435761u);
}

std::string ScoreBody() {
  std::string body = R"({"rows":[)";
  for (size_t r = 0; r < kRows; ++r) {
    body += r == 0 ? R"({"dense":[)" : R"(,{"dense":[)";
    for (size_t d = 0; d < kDense; ++d)
      body += fmt::format("{}{}", d == 0 ? "" : ",", NumberOf(r, d));
    body += R"(],"categorical":[)";
    for (size_t c = 0; c < kCategories; ++c)
      body += fmt::format("{}\"{}\"", c == 0 ? "" : ",", TextOf(r, c));
    body += "]}";
  }
  return body + "]}";
}

Form InferForm(bool binary) {
  std::string head = R"({"inputs":[)", tensors;
  for (size_t column = 0; column < kDense + kCategories; ++column) {
    const bool is_number = column < kDense;
    const size_t of = is_number ? column : column - kDense;
    head +=
        fmt::format(R"({}{{"name":"{}{}","shape":[{}],"datatype":"{}",)", column == 0 ? "" : ",",
                    is_number ? 'I' : 'C', of + 1, kRows, is_number ? "FP32" : "BYTES");
    std::string data, bytes;
    for (size_t r = 0; r < kRows; ++r) {
      const auto number = static_cast<float>(NumberOf(r, of));
      const std::string text = TextOf(r, of);
      const auto length = static_cast<uint32_t>(text.size());
      data += r == 0 ? "" : ",";
      data += is_number ? fmt::format("{}", number) : '"' + text + '"';
      if (is_number) {
        bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
      } else {
        bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
        bytes += text;
      }
    }
    if (binary) {
      head += fmt::format(R"("parameters":{{"binary_data_size":{}}}}})", bytes.size());
      tensors += bytes;
    } else {
      head += fmt::format(R"("data":[{}]}})", data);
    }
  }
  head += R"(],"outputs":[{"name":"probability","parameters":{"binary_data":)";
  head += binary ? "true}}]}" : "false}}]}";
  std::string length = binary ? std::to_string(head.size()) : "";
  return {"/v2/models/ctr/infer", head + tensors, std::move(length)};
}

// Rows a second of one core.
double Measure(http::Handler& handler, const Form& form) {
  const Fields fields(form.length);
  http::Request request;
  request.method = "POST";
  request.path = form.path;
  request.body = form.body;
  request.fields = &fields;
  double best = 1e30;
  for (int run = 0; run < kRuns; ++run) {
    const double start = ThreadSeconds();
    for (int i = 0; i < kRequests; ++i) {
      http::Reply reply;
      handler.Handle(request, &reply);
      TACIT_CHECK(reply.status == 200, reply.body.substr(0, 200));
    }
    best = std::min(best, ThreadSeconds() - start);
  }
  return kRows * kRequests / best;
}

// The best time of `work`, in nanoseconds a row.
template <class Work>
double NanosecondsARow(const Work& work) {
  double best = 1e30;
  for (int run = 0; run < kRuns; ++run) {
    const double start = ThreadSeconds();
    for (int i = 0; i < kRequests; ++i) work();
    best = std::min(best, ThreadSeconds() - start);
  }
  return 1e9 * best / (kRows * kRequests);
}

// The steps of an answer, one after the other, each repeated by itself.
void PrintPhases(std::string_view kind, const ScoringModel& model,
                 const store::Snapshot& snapshot) {
  for (const bool binary : {false, true}) {
    const Form form = InferForm(binary);
    TensorRows rows("ctr", *model.transform);
    InferRequest request;
    event::Batch batch;
    const double parse = NanosecondsARow(
        [&] { TACIT_CHECK(ReadInferRequest(form.body, form.length, rows, &request).has_value()); });
    const double assemble =
        NanosecondsARow([&] { TACIT_CHECK(rows.Read(request.inputs, &batch).has_value()); });
    const auto scorer = model.model->MakeScorer();
    std::vector<float> scores(kRows);
    const double score =
        NanosecondsARow([&] { TACIT_CHECK(scorer->Score(snapshot, batch, scores).has_value()); });
    const double write = NanosecondsARow([&] {
      const OutputTensor output{
          .name = "probability", .shape = {kRows}, .numbers = scores, .texts = {}};
      http::Reply reply;
      WriteInferAnswer(request, {"ctr", 5, ""}, std::span(&output, 1), &reply);
    });
    fmt::print(
        "{{\"model\":\"{}\",\"form\":\"{}\",\"parse_ns\":{:.0f},\"assemble_ns\":{:.0f},"
        "\"score_ns\":{:.0f},\"write_ns\":{:.0f}}}\n",
        kind, binary ? "binary" : "json", parse, assemble, score, write);
  }
}

void RunInferBench() {
  namespace linear = model::linear;
  const std::vector<uint64_t> buckets(kCategories, 1000);
  const auto transform =
      std::make_shared<const event::FeatureTransform>(event::CriteoSchema(kDense, buckets));
  std::vector<linear::CategoryColumn> categories;
  for (const auto& feature : transform->schema().categorical)
    categories.push_back({feature.name, feature.buckets, false});
  std::vector<linear::NumberColumn> numbers;
  for (const auto& feature : transform->schema().dense) numbers.push_back({feature.name, false});
  const auto columns = std::make_shared<const linear::Columns>(categories, numbers, linear::Bins(),
                                                               std::vector<linear::CrossColumn>{});
  linear::State state;
  state.periods = 2;
  state.priors.resize(columns->size());
  const auto snapshot = std::make_shared<const BenchSnapshot>(
      std::make_shared<const std::string>(state.Encode(*columns)));
  const std::map<std::string, std::shared_ptr<const RowModel>> models = {
      {"linear", MakeLinearModel(LearnerIndex(0), "ctr", transform, columns)},
      {"reading", std::make_shared<const SumModel>()}};
  for (const auto& [kind, model] : models) {
    metrics::Registry registry;
    Services services;
    ScoringModel scoring;
    scoring.promise.learner = "ctr";
    scoring.transform = transform;
    scoring.model = model;
    services.models = {scoring};
    services.latest = [&snapshot] { return snapshot; };
    services.metrics = &registry;
    const auto handler = MakeApi(services)();
    const double score = Measure(*handler, {"/v1/score", ScoreBody(), ""});
    const double json = Measure(*handler, InferForm(false));
    const double binary = Measure(*handler, InferForm(true));
    fmt::print(
        "{{\"model\":\"{}\",\"score_rows_per_s\":{:.0f},\"infer_json_rows_per_s\":{:.0f},"
        "\"infer_binary_rows_per_s\":{:.0f},\"binary_of_json\":{:.2f}}}\n",
        kind, score, json, binary, binary / json);
    PrintPhases(kind, scoring, *snapshot);
  }
}

}  // namespace
}  // namespace tacit::serve

int main() { tacit::serve::RunInferBench(); }
