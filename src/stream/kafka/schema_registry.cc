#include "stream/kafka/schema_registry.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "event/schema_books.h"

namespace tacit::stream {
namespace {

using event::SchemaKey;
using event::SchemaVerdict;
using std::chrono::milliseconds;
using Kind = SchemaVerdict::Kind;
using TimePoint = Clock::TimePoint;

constexpr size_t kUnderWayMost = 64;
constexpr milliseconds kDenialLasts(5000);
// A denial lasts at least this long after its answer, so that the record that waits can take it.
constexpr milliseconds kDenialLastsAfter(1000);
constexpr milliseconds kFirstPause(500), kLongestPause(5000);
constexpr int kFailuresAlone = 3;

struct MultiDeleter {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct EasyDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct HeadersDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// Returns "/schemas/ids/7" or "/schemas/guids/5f0c9e00-...".
std::string PathOf(const SchemaKey& schema) {
  const std::string text = event::Text(schema);  // "id 7", "guid 5f0c..."
  const size_t space = text.find(' ');
  return fmt::format("/schemas/{}s/{}", text.substr(0, space), text.substr(space + 1));
}

class SchemaRegistry final : public event::SchemaBook {
 public:
  SchemaRegistry(SchemaRegistryOptions options, const Clock& clock)
      : options_(std::move(options)), clock_(clock) {
    TACIT_CHECK(multi_ != nullptr, "out of memory");
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(kUnderWayMost));
    headers_.reset(curl_slist_append(
        nullptr, "Accept: application/vnd.schemaregistry.v1+json, application/json"));
  }
  ~SchemaRegistry() override {
    for (auto& question : open_) Drop(&question.second);
  }

  SchemaVerdict Look(const SchemaKey& schema) override;
  bool LookAhead(const SchemaKey& schema) override;
  void Await(const SchemaKey& schema, milliseconds patience) override;
  std::string Trouble() override;

 private:
  struct Denial {
    std::string reason;
    TimePoint until;  // a record that is read then needs another answer
  };
  struct Question {
    std::unique_ptr<CURL, EasyDeleter> request;  // while it is under way
    std::string answer;
    char error[CURL_ERROR_SIZE] = "";
    TimePoint asked_at;
    uint64_t number = 0;     // of the last time it was asked, from 1
    uint64_t failed_at = 0;  // asked_ when it failed last
    int failed_alone = 0;  // failures that an answer to a later question has followed, and the last
  };
  using Questions = std::unordered_map<SchemaKey, Question, event::SchemaKeyHash>;

  std::optional<SchemaVerdict> Known(const SchemaKey& schema) const;
  void Proceed();
  void AskNext();
  void Ask(Questions::value_type* question);
  void Drop(Question* question);
  void Finish(Questions::value_type* question, CURLcode outcome);
  SchemaVerdict Judge(const Questions::value_type& asked, CURLcode outcome, bool* lasts) const;
  void Settle(SchemaKey schema, SchemaVerdict verdict, TimePoint until);
  void TakeFailure(Questions::value_type* question, std::string reason);
  std::string TroubleText() const;
  static size_t OnBytes(const char* bytes, size_t size, size_t count, void* question);

  const SchemaRegistryOptions options_;
  const Clock& clock_;
  std::unique_ptr<CURLM, MultiDeleter> multi_{curl_multi_init()};
  std::unique_ptr<curl_slist, HeadersDeleter> headers_;
  std::unordered_set<SchemaKey, event::SchemaKeyHash> accepted_;
  std::unordered_map<SchemaKey, Denial, event::SchemaKeyHash> denied_;
  Questions open_;
  size_t under_way_ = 0;
  uint64_t asked_ = 0;             // questions so far
  uint64_t answered_ = 0;          // the last of them that was answered
  std::optional<SchemaKey> told_;  // the schema of the last answer

  // The registry's failures in a row, each of a question that was asked after the one before.
  int failures_ = 0;
  uint64_t failed_at_ = 0;  // asked_ at the last of them
  TimePoint first_failure_{}, ask_at_{};
  std::string failure_;
  bool given_up_ = false;
};

std::optional<SchemaVerdict> SchemaRegistry::Known(const SchemaKey& schema) const {
  if (accepted_.contains(schema)) return SchemaVerdict{Kind::kAccept};
  const auto denied = denied_.find(schema);
  if (denied == denied_.end() || clock_.Now() >= denied->second.until) return std::nullopt;
  return SchemaVerdict{Kind::kReject, denied->second.reason};
}

SchemaVerdict SchemaRegistry::Look(const SchemaKey& schema) {
  if (auto known = Known(schema)) return *std::move(known);
  if (!given_up_ || open_.size() < kUnderWayMost) open_.try_emplace(schema);
  Proceed();
  if (auto known = Known(schema)) return *std::move(known);
  std::string trouble = TroubleText();
  if (given_up_) return {Kind::kReject, std::move(trouble)};
  return {Kind::kWait, trouble.empty() ? options_.url + " has been asked" : std::move(trouble)};
}

bool SchemaRegistry::LookAhead(const SchemaKey& schema) {
  if (open_.contains(schema) || Known(schema)) return true;
  if (open_.size() >= kUnderWayMost) return false;
  open_.try_emplace(schema);
  return true;
}

void SchemaRegistry::Await(const SchemaKey& schema, milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (true) {
    Proceed();
    const auto rest = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
    if (!open_.contains(schema) || given_up_ || rest.count() <= 0) return;
    // A pause between two questions ends by `clock_`.
    const auto pause = failures_ == 0 ? rest : std::min(rest, milliseconds(50));
    curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(pause.count()), nullptr);
  }
}

std::string SchemaRegistry::Trouble() {
  Proceed();
  return TroubleText();
}

std::string SchemaRegistry::TroubleText() const {
  // After one failure it is not known whether it is the registry's.
  if (failures_ < 2) return "";
  if (!given_up_)
    return fmt::format("{}: {}; records whose schema it has not told yet wait for it", options_.url,
                       failure_);
  return fmt::format(
      "{}: {}; it has not answered for {:g} s (source.schema_wait_ms): until it does, records "
      "whose "
      "schema it has not told yet are dead letters",
      options_.url, failure_, Seconds(*options_.wait));
}

// Takes in what has been answered, and asks what can be asked. Does not block.
void SchemaRegistry::Proceed() {
  if (open_.empty()) return;
  int running = 0, left = 0;
  curl_multi_perform(multi_.get(), &running);
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    char* question = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &question);
    Finish(reinterpret_cast<Questions::value_type*>(question), message->data.result);
  }
  AskNext();
}

void SchemaRegistry::AskNext() {
  if (failures_ == 0) {
    for (auto& question : open_)
      if (!question.second.request && under_way_ < kUnderWayMost) Ask(&question);
    return;
  }
  // The one that was asked least recently tells whether the registry is back.
  Questions::value_type* next = nullptr;
  for (auto& question : open_) {
    if (question.second.request && question.second.number > failed_at_) return;
    if (question.second.request) continue;
    if (next == nullptr || question.second.number < next->second.number) next = &question;
  }
  if (next != nullptr && clock_.Now() >= ask_at_) Ask(next);
}

void SchemaRegistry::Ask(Questions::value_type* asked) {
  Question& question = asked->second;
  question.request.reset(curl_easy_init());
  TACIT_CHECK(question.request != nullptr, "out of memory");
  question.answer.clear();
  question.error[0] = '\0';
  question.asked_at = clock_.Now();
  question.number = ++asked_;
  const auto set = [&](CURLoption option, auto value) {
    TACIT_CHECK(curl_easy_setopt(question.request.get(), option, value) == CURLE_OK,
                "curl lacks an option");
  };
  set(CURLOPT_URL, (options_.url + PathOf(asked->first)).c_str());
  set(CURLOPT_PRIVATE, static_cast<void*>(asked));
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_HTTPHEADER, headers_.get());
  set(CURLOPT_USERAGENT, "tacit");
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
  set(CURLOPT_WRITEFUNCTION, &OnBytes);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&question));
  set(CURLOPT_ERRORBUFFER, question.error);
  if (!options_.ca_file.empty()) set(CURLOPT_CAINFO, options_.ca_file.c_str());
  if (!options_.username.empty()) {
    set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    set(CURLOPT_USERNAME, options_.username.c_str());
    set(CURLOPT_PASSWORD, options_.password.c_str());
  }
  TACIT_CHECK(curl_multi_add_handle(multi_.get(), question.request.get()) == CURLM_OK);
  ++under_way_;
}

void SchemaRegistry::Drop(Question* question) {
  if (!question->request) return;
  curl_multi_remove_handle(multi_.get(), question->request.get());
  question->request.reset();
  --under_way_;
}

void SchemaRegistry::Finish(Questions::value_type* finished, CURLcode outcome) {
  Question& question = finished->second;
  bool lasts = false;
  SchemaVerdict verdict = Judge(*finished, outcome, &lasts);
  Drop(&question);
  if (verdict.kind == Kind::kWait) {
    TakeFailure(finished, std::move(verdict.reason));
    return;
  }
  answered_ = std::max(answered_, question.number);
  told_ = finished->first;
  if (question.number > failed_at_) {
    failures_ = 0;
    given_up_ = false;
  }
  Settle(finished->first, std::move(verdict),
         lasts ? TimePoint::max()
               : std::max(question.asked_at + kDenialLasts, clock_.Now() + kDenialLastsAfter));
}

// Returns kWait if that is no answer. `*lasts`: no later one will be another.
SchemaVerdict SchemaRegistry::Judge(const Questions::value_type& asked, CURLcode outcome,
                                    bool* lasts) const {
  const Question& question = asked.second;
  const bool too_long = question.answer.size() >= event::kSchemaAnswerBytesMax;
  if (outcome != CURLE_OK && !(outcome == CURLE_WRITE_ERROR && too_long))
    return {Kind::kWait, question.error[0] != '\0' ? question.error : curl_easy_strerror(outcome)};
  long status = 0;
  curl_easy_getinfo(question.request.get(), CURLINFO_RESPONSE_CODE, &status);
  *lasts = status == 200;
  if (status == 200)
    return event::JudgeSchema(question.answer, options_.kind, asked.first, options_.avro.get());
  if (status == 401 || status == 403) return {Kind::kWait, fmt::format("refused us ({})", status)};
  const bool of_question = status >= 400 && status < 500 && status != 408 && status != 429;
  std::string said = status == 404 ? "there is no such schema" : fmt::format("answered {}", status);
  if (!of_question) return {Kind::kWait, std::move(said)};
  return {Kind::kReject, fmt::format("{}: {}", options_.url, said)};
}

void SchemaRegistry::Settle(SchemaKey schema, SchemaVerdict verdict, TimePoint until) {
  if (verdict.kind == Kind::kAccept) {
    accepted_.insert(schema);
    denied_.erase(schema);
  } else if (!accepted_.contains(schema)) {
    // A forgotten denial is asked for again.
    if (denied_.size() >= options_.denied_most) denied_.clear();
    denied_.insert_or_assign(schema, Denial{std::move(verdict.reason), until});
  }
  open_.erase(schema);
}

void SchemaRegistry::TakeFailure(Questions::value_type* failed, std::string reason) {
  Question& question = failed->second;
  const TimePoint now = clock_.Now();
  if (answered_ > question.failed_at) ++question.failed_alone;
  question.failed_at = asked_;
  if (question.failed_alone == kFailuresAlone) {
    reason = fmt::format("{}: {}, while it answers for others", options_.url, reason);
    Settle(failed->first, {Kind::kReject, std::move(reason)}, now + kDenialLasts);
    return;
  }
  // It was under way when the registry failed: that is no further failure.
  if (question.number <= failed_at_) return;
  failed_at_ = asked_;
  failure_ = std::move(reason);
  if (failures_++ == 0) first_failure_ = now;
  const TimePoint last_try = options_.wait ? first_failure_ + *options_.wait : TimePoint::max();
  given_up_ = given_up_ || (failures_ > 1 && question.asked_at >= last_try);
  const milliseconds pause =
      failures_ == 1 ? milliseconds(0)
                     : std::min(kLongestPause, kFirstPause * (1 << std::min(failures_ - 2, 8)));
  ask_at_ = given_up_ ? now + pause : std::min(now + pause, std::max(now, last_try));
  if (told_) open_.try_emplace(*told_);
}

size_t SchemaRegistry::OnBytes(const char* bytes, size_t size, size_t count, void* question) {
  std::string& answer = static_cast<Question*>(question)->answer;
  const size_t taken = std::min(size * count, event::kSchemaAnswerBytesMax - answer.size());
  answer.append(bytes, taken);
  return answer.size() >= event::kSchemaAnswerBytesMax ? CURL_WRITEFUNC_ERROR : taken;
}

}  // namespace

std::unique_ptr<event::SchemaBook> MakeSchemaRegistry(SchemaRegistryOptions options,
                                                      const Clock& clock) {
  return std::make_unique<SchemaRegistry>(std::move(options), clock);
}

}  // namespace tacit::stream
