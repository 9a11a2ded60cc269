#include "cli/query/query_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files/byte_order_mark.h"
#include "base/text.h"
#include "base/threads/worker_pool.h"
#include "cli/parts/ask_daemon.h"
#include "console/atomic_file.h"
#include "console/exit_code.h"
#include "console/stop_signals.h"
#include "console/terminal_line.h"
#include "metrics/registry.h"
#include "serve/api.h"
#include "store/store.h"
#include "wiring/assembly.h"
#include "wiring/plans/witness_place.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

constexpr size_t kLineBytesMost = 64 << 10;    // as /v1/score/lines has it
constexpr size_t kBlockLinesMost = 1024;       // of one request, and a quarter of what it may have
constexpr size_t kBlockBytesMost = 512 << 10;  // below the least of serve.max_body_bytes in use
constexpr size_t kBadLinesTold = 10;           // each by its number; the others by their count
constexpr int kPatientTries = 30;              // of a daemon that is busy, a second apart

// A line of the input, and what came of it.
struct FileLine {
  uint64_t number = 0;  // from 1
  std::string text;
  std::string error;  // why it is not answered; if empty, it is
  std::string answer;
};
using FileBlock = std::vector<FileLine>;

// The lines of a file, plain or gzip, read as they are needed.
class LineFile {
 public:
  static Result<std::unique_ptr<LineFile>> Open(const std::string& path) {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    const gzFile file = error ? nullptr : gzopen(path.c_str(), "rb");
    if (file == nullptr)
      return Fail(ErrorCode::kInvalidArgument, fmt::format("--input: cannot read {}", path));
    gzbuffer(file, 1 << 17);
    return std::unique_ptr<LineFile>(new LineFile(path, size, file));
  }
  ~LineFile() { gzclose(file_); }
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Returns false at the end. A line that is too long has an error, and no text.
  Result<bool> Next(FileLine* line) {
    *line = {};
    bool any = false, too_long = false;
    while (true) {
      if (at_ == buffer_.size()) {
        TACIT_RETURN_IF_ERROR(Fill());
        if (at_ == buffer_.size()) break;
      }
      any = true;
      const size_t end = buffer_.find('\n', at_);
      const std::string_view part =
          std::string_view(buffer_).substr(at_, end == buffer_.npos ? end : end - at_);
      too_long = too_long || line->text.size() + part.size() > kLineBytesMost;
      if (!too_long) line->text += part;
      at_ = end == buffer_.npos ? buffer_.size() : end + 1;
      if (end != buffer_.npos) break;
    }
    if (!any) return false;
    line->number = ++lines_;
    if (too_long) {
      line->text.clear();
      line->error = fmt::format("longer than {} bytes", kLineBytesMost);
    }
    return true;
  }
  // The share of the file that has been read.
  double share() const {
    return size_ == 0
               ? 1
               : std::min(1.0, static_cast<double>(gzoffset(file_)) / static_cast<double>(size_));
  }

 private:
  LineFile(std::string path, uint64_t size, gzFile file)
      : path_(std::move(path)), size_(size), file_(file) {}
  Status Fill() {
    buffer_.resize(1 << 16);
    at_ = 0;
    const int read = gzread(file_, buffer_.data(), static_cast<unsigned>(buffer_.size()));
    int error = Z_OK;
    const char* const message = gzerror(file_, &error);
    // A gzip file that was cut off ends with Z_BUF_ERROR, after all that could be read.
    if (read < 0 || (read == 0 && error != Z_OK && error != Z_STREAM_END))
      return Fail(ErrorCode::kIo, fmt::format("{}: {}, behind line {}", path_, message, lines_));
    buffer_.resize(static_cast<size_t>(read));
    // Such a mark at the beginning is no part of the first line, as in logs.
    if (!std::exchange(begun_, true) && buffer_.starts_with(kByteOrderMark))
      at_ = kByteOrderMark.size();
    return {};
  }

  const std::string path_;
  const uint64_t size_;
  const gzFile file_;
  std::string buffer_;
  size_t at_ = 0;
  uint64_t lines_ = 0;
  bool begun_ = false;
};

// Answers requests of the routes of /v1, from several threads at once.
class Asker {
 public:
  virtual ~Asker() = default;
  virtual Result<http::Response> Ask(size_t worker, std::string_view target,
                                     std::string_view body) = 0;
};

class DaemonAsker final : public Asker {
 public:
  explicit DaemonAsker(std::string url) : url_(std::move(url)) {}
  Result<http::Response> Ask(size_t, std::string_view target, std::string_view body) override {
    for (int tries = 1;; ++tries) {
      auto response = AskDaemon(url_, target, "POST", body);
      const bool is_busy = response && (response->status == 503 || response->status == 429);
      if (!is_busy || tries == kPatientTries) return response;
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }

 private:
  const std::string url_;
};

// The same routes out of a directory, without a server.
class CheckpointAsker final : public Asker {
 public:
  static Result<std::unique_ptr<Asker>> Open(const QueryFileModel& model, size_t workers) {
    if (model.config.empty())
      return BadUsage("--checkpoint needs --config: the schema says how a line is read");
    TACIT_ASSIGN(config::Config config, config::Load(model.config, {}, config::LogFiles::kUnread));
    std::unique_ptr<CheckpointAsker> asker(new CheckpointAsker());
    TACIT_ASSIGN(asker->assembly_, wiring::Assemble(std::move(config)));
    TACIT_ASSIGN(const std::string witness, wiring::WitnessFor(model.checkpoint, model.witness));
    if (witness.empty() && !store::IsCheckpoint(model.checkpoint))
      wiring::TellOfNoWitness(model.checkpoint);
    TACIT_ASSIGN(auto store, store::OpenReadOnly(model.checkpoint, witness,
                                                 wiring::MakeLayouts(asker->assembly_)));
    asker->Serve(std::move(store.snapshot), workers);
    return std::unique_ptr<Asker>(std::move(asker));
  }

  Result<http::Response> Ask(size_t worker, std::string_view target,
                             std::string_view body) override {
    http::Request request;
    request.method = "POST";
    request.path = target.substr(0, target.find('?'));
    request.query = target.substr(std::min(target.size(), request.path.size() + 1));
    request.body = body;
    http::Reply reply;
    handlers_[worker]->Handle(request, &reply);
    return http::Response{.status = reply.status, .body = std::move(reply.body), .headers = {}};
  }

 private:
  CheckpointAsker() = default;
  void Serve(const std::shared_ptr<const store::Snapshot>& snapshot, size_t workers) {
    serve::Services services;
    services.latest = [snapshot] { return snapshot; };
    services.models = wiring::MakeScoringModels(assembly_);
    services.recommenders = wiring::MakeRecommendModels(assembly_);
    // States to recommend from are made here, once, before anything is asked.
    serve::VersionTable::Contents contents{.open = {}, .serving = snapshot->version().value};
    contents.open.push_back(
        std::make_shared<const serve::ServedVersion>(snapshot, services.recommenders, registry_));
    services.versions = std::make_shared<const serve::VersionTable>(std::move(contents));
    services.metrics = &registry_;
    const http::HandlerFactory make = serve::MakeApi(std::move(services));
    for (size_t i = 0; i < workers; ++i) handlers_.push_back(make());
  }

  wiring::Assembly assembly_;
  metrics::Registry registry_;
  std::vector<std::unique_ptr<http::Handler>> handlers_;  // one per worker
};

// An answer other than 200 that is not about one line ends the run.
Error RunFailure(const http::Response& response) {
  return {response.status < 500 ? ErrorCode::kInvalidArgument : ErrorCode::kIo,
          fmt::format("answered {}: {}", response.status, MessageOf(response))};
}

// Answers blocks of lines in place. Each worker calls it alone.
class FileTask {
 public:
  FileTask(Asker* asker, std::string learner, bool is_csv)
      : asker_(*asker), learner_(std::move(learner)), is_csv_(is_csv) {}
  virtual ~FileTask() = default;
  virtual std::string_view csv_header() const = 0;
  virtual Status Answer(size_t worker, FileBlock* block) const = 0;

 protected:
  Asker& asker_;
  const std::string learner_;
  const bool is_csv_;
};

class ScoreTask final : public FileTask {
 public:
  using FileTask::FileTask;
  std::string_view csv_header() const override { return "line,probability,version,error\n"; }
  Status Answer(size_t worker, FileBlock* block) const override {
    std::vector<FileLine*> lines;
    for (FileLine& line : *block)
      if (line.error.empty()) lines.push_back(&line);
    return AnswerRun(worker, lines);
  }

 private:
  // A refusal names the first bad line: those before it are good, and are asked again without it,
  // and so is the rest.
  Status AnswerRun(size_t worker, std::span<FileLine* const> lines) const {
    while (!lines.empty()) {
      TACIT_ASSIGN(const std::optional<size_t> bad, Try(worker, lines));
      if (!bad) return {};
      if (*bad > 0) TACIT_RETURN_IF_ERROR(AnswerRun(worker, lines.first(*bad)));
      lines = lines.subspan(*bad + 1);
    }
    return {};
  }
  // Returns the place of the first bad line, if there is one; then none has an answer.
  Result<std::optional<size_t>> Try(size_t worker, std::span<FileLine* const> lines) const {
    std::string body;
    for (const FileLine* line : lines) body += line->text + '\n';
    TACIT_ASSIGN(const http::Response response,
                 asker_.Ask(worker, "/v1/score/lines?learner=" + learner_, body));
    if (response.status == 400) {
      auto bad = FindRefusedLine(MessageOf(response));
      if (bad && bad->number <= lines.size()) {
        lines[bad->number - 1]->error = std::move(bad->reason);
        return std::optional<size_t>(bad->number - 1);
      }
    }
    if (response.status != 200) return Fail(RunFailure(response));
    TACIT_RETURN_IF_ERROR(Take(response.body, lines));
    return std::optional<size_t>();
  }
  Status Take(const std::string& body, std::span<FileLine* const> lines) const {
    try {
      const json::value answer = json::parse(body);
      const json::array& scores = answer.at("scores").as_array();
      const auto version = answer.at("model").at("version").to_number<uint64_t>();
      if (scores.size() != lines.size()) throw std::length_error("scores");
      for (size_t i = 0; i < lines.size(); ++i)
        lines[i]->answer =
            is_csv_ ? fmt::format("{},{},{},\n", lines[i]->number, scores[i].to_number<float>(),
                                  version)
                    : fmt::format("{{\"line\":{},\"probability\":{},\"version\":{}}}\n",
                                  lines[i]->number, scores[i].to_number<float>(), version);
      return {};
    } catch (const std::exception&) {  // JSON of another shape
      return Fail(ErrorCode::kIo, "an answer is not as tacitd gives it");
    }
  }
};

class RecommendTask final : public FileTask {
 public:
  using FileTask::FileTask;
  std::string_view csv_header() const override { return "line,place,item,score,version,error\n"; }
  Status Answer(size_t worker, FileBlock* block) const override {
    for (FileLine& line : *block)
      if (line.error.empty()) TACIT_RETURN_IF_ERROR(AnswerLine(worker, &line));
    return {};
  }

 private:
  Status AnswerLine(size_t worker, FileLine* line) const {
    std::string body = line->text;
    if (!learner_.empty()) {
      json::error_code error;
      json::value value = json::parse(body, error);
      if (!error && value.is_object() && !value.get_object().contains("learner")) {
        value.get_object()["learner"] = learner_;
        body = json::serialize(value);
      }
    }
    TACIT_ASSIGN(const http::Response response, asker_.Ask(worker, "/v1/recommend", body));
    if (response.status == 400 || response.status == 403) {
      line->error = MessageOf(response);
      return {};
    }
    if (response.status != 200) return Fail(RunFailure(response));
    try {
      Take(json::parse(response.body), line);
      return {};
    } catch (const std::exception&) {  // JSON of another shape
      return Fail(ErrorCode::kIo, "an answer is not as tacitd gives it");
    }
  }
  void Take(const json::value& answer, FileLine* line) const {
    const auto version = answer.at("model").at("version").to_number<uint64_t>();
    const json::value& items = answer.at("items");
    if (!is_csv_) {
      line->answer = fmt::format("{{\"line\":{},\"items\":{},\"version\":{}}}\n", line->number,
                                 json::serialize(items), version);
      return;
    }
    size_t place = 0;
    for (const json::value& item : items.as_array())
      line->answer += fmt::format("{},{},{},{},{},\n", line->number, ++place,
                                  QuotedCsv(std::string_view(item.at("id").as_string())),
                                  item.at("score").to_number<float>(), version);
  }

 public:
  static std::string QuotedCsv(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + '"';
  }
};

// The output's line of an input line that is not answered.
std::string BadLineText(const FileLine& line, bool is_csv, std::string_view header) {
  if (!is_csv)
    return fmt::format("{{\"line\":{},\"error\":{}}}\n", line.number,
                       json::serialize(json::value(line.error)));
  const auto between = std::ranges::count(header, ',');
  return fmt::format("{}{}{}\n", line.number, std::string(static_cast<size_t>(between), ','),
                     RecommendTask::QuotedCsv(line.error));
}

// Reads a block; an empty one is the end.
Result<FileBlock> ReadBlock(LineFile* input) {
  FileBlock block;
  size_t bytes = 0;
  FileLine line;
  while (block.size() < kBlockLinesMost && bytes < kBlockBytesMost) {
    TACIT_ASSIGN(const bool more, input->Next(&line));
    if (!more) break;
    bytes += line.text.size();
    block.push_back(std::move(line));
  }
  return block;
}

// The run over a file: blocks are read and written in order, and answered side by side.
class FileRun {
 public:
  FileRun(const QueryFileOptions& options, const FileTask& task, console::StopSignals* signals)
      : options_(options), task_(task), signals_(*signals), pool_({.workers = options.jobs}) {}

  Result<int> Run() {
    TACIT_ASSIGN(const auto input, LineFile::Open(options_.input));
    TACIT_ASSIGN(const auto output, console::AtomicFile::Create(options_.output));
    const bool is_csv = options_.format == "csv";
    if (is_csv) TACIT_RETURN_IF_ERROR(output->Write(task_.csv_header()));
    if (options_.skip_header) {
      FileLine header;
      TACIT_ASSIGN(const bool has_header, input->Next(&header));
      if (!has_header) return BadUsage(options_.input + " has no header");
    }
    const SystemClock clock;
    console::TerminalLine progress(clock);
    while (true) {
      if (signals_.WaitFor(std::chrono::milliseconds(0)))
        return Fail(ErrorCode::kIo,
                    fmt::format("stopped by a signal: {} is not written", options_.output));
      TACIT_ASSIGN(std::vector<FileBlock> blocks, ReadBlocks(input.get()));
      if (blocks.empty()) break;
      TACIT_RETURN_IF_ERROR(AnswerBlocks(&blocks));
      for (const FileBlock& block : blocks)
        TACIT_RETURN_IF_ERROR(output->Write(TextOf(block, is_csv)));
      if (progress.is_terminal() && progress.due())
        progress.Draw(fmt::format("{} {:3.0f} %  {} lines", console::ProgressBar(input->share()),
                                  100 * input->share(), WithThousands(lines_)));
    }
    if (progress.is_terminal()) progress.End();
    TACIT_RETURN_IF_ERROR(output->Commit());
    if (bad_ > kBadLinesTold)
      fmt::print(stderr, "... and {} more, each with its reason in {}\n",
                 WithThousands(bad_ - kBadLinesTold), options_.output);
    fmt::print("{} answered, {} bad, to {}\n", Counted(lines_ - bad_, "line"), WithThousands(bad_),
               options_.output);
    return int{console::kExitDone};
  }

 private:
  Result<std::vector<FileBlock>> ReadBlocks(LineFile* input) const {
    std::vector<FileBlock> blocks;
    while (blocks.size() < pool_.workers()) {
      TACIT_ASSIGN(FileBlock block, ReadBlock(input));
      if (block.empty()) break;
      blocks.push_back(std::move(block));
    }
    return blocks;
  }
  Status AnswerBlocks(std::vector<FileBlock>* blocks) {
    std::vector<Status> done(blocks->size());
    pool_.Run(blocks->size(), [&](size_t begin, size_t end, size_t worker) {
      for (size_t i = begin; i < end; ++i) done[i] = task_.Answer(worker, &(*blocks)[i]);
    });
    for (size_t i = 0; i < done.size(); ++i)
      if (!done[i])
        return Fail(std::move(done[i].error())
                        .Context(fmt::format("lines {} to {}", blocks->at(i).front().number,
                                             blocks->at(i).back().number)));
    return {};
  }
  // The output of a block; counts, and tells of what is bad.
  std::string TextOf(const FileBlock& block, bool is_csv) {
    std::string text;
    for (const FileLine& line : block) {
      ++lines_;
      if (line.error.empty()) {
        text += line.answer;
        continue;
      }
      if (++bad_ <= kBadLinesTold)
        fmt::print(stderr, "{} line {}: {}\n", options_.input, line.number, line.error);
      text += BadLineText(line, is_csv, task_.csv_header());
    }
    return text;
  }

  const QueryFileOptions& options_;
  const FileTask& task_;
  console::StopSignals& signals_;
  WorkerPool pool_;
  uint64_t lines_ = 0, bad_ = 0;
};

template <class Task>
Result<int> RunFile(const QueryFileModel& model, const QueryFileOptions& options) {
  if (options.input.empty() || options.output.empty())
    return BadUsage("--input and --output go together");
  std::error_code ignored;
  if (std::filesystem::equivalent(options.input, options.output, ignored))
    return BadUsage("--input and --output are the same file");
  console::StopSignals signals;  // before any thread
  std::unique_ptr<Asker> asker;
  if (!model.url.empty()) {
    asker = std::make_unique<DaemonAsker>(model.url);
  } else {
    TACIT_ASSIGN(asker, CheckpointAsker::Open(model, options.jobs));
  }
  const Task task(asker.get(), model.learner, options.format == "csv");
  return FileRun(options, task, &signals).Run();
}

}  // namespace

void AddQueryFileOptions(CLI::App* command, QueryFileOptions* options) {
  command->add_option("--input", options->input,
                      "A whole file to answer, line by line, plain or gzip");
  command->add_option("--output", options->output,
                      "The answers to --input, in its order; written whole or not at all");
  command->add_option("--format", options->format, "Of --output: jsonl or csv")
      ->capture_default_str()
      ->check(CLI::IsMember({"jsonl", "csv"}));
  command->add_option("--jobs", options->jobs, "Requests at once, for --input")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  command->add_flag("--skip-header", options->skip_header,
                    "The first line of --input is a header, and passed over");
}

Result<int> ScoreFile(const QueryFileModel& model, const QueryFileOptions& options) {
  return RunFile<ScoreTask>(model, options);
}

Result<int> RecommendFile(const QueryFileModel& model, const QueryFileOptions& options) {
  return RunFile<RecommendTask>(model, options);
}

}  // namespace tacit::cli
