#include "stream/kafka/schema_registry.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "event/schema_books.h"

namespace tacit::stream {
namespace {

using event::SchemaKey;
using event::SchemaVerdict;
using std::chrono::milliseconds;

constexpr milliseconds kPatience(50);  // for one Look
constexpr milliseconds kFirstPause(500), kLongestPause(5000);
constexpr size_t kAnswerBytesMax = 4 << 20;

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
    TACIT_CHECK(multi_ != nullptr && easy_ != nullptr, "out of memory");
    headers_.reset(curl_slist_append(
        nullptr, "Accept: application/vnd.schemaregistry.v1+json, application/json"));
    SetUp();
  }
  ~SchemaRegistry() override { Drop(); }

  SchemaVerdict Look(const SchemaKey& schema) override;

 private:
  // A schema that is not known: the reason, and when to ask again.
  struct Waiting {
    std::string reason;
    milliseconds pause{0};
    Clock::TimePoint ask_at;
  };

  template <class T>
  void Set(CURLoption option, T value) {
    TACIT_CHECK(curl_easy_setopt(easy_.get(), option, value) == CURLE_OK, "curl lacks an option");
  }
  void SetUp();
  void Ask(const SchemaKey& schema);
  void Drive();
  void Drop();
  SchemaVerdict Verdict(CURLcode outcome);
  void Keep(const SchemaKey& schema, SchemaVerdict verdict);
  static size_t OnBytes(const char* bytes, size_t size, size_t count, void* self);

  const SchemaRegistryOptions options_;
  const Clock& clock_;
  std::unique_ptr<CURLM, MultiDeleter> multi_{curl_multi_init()};
  std::unique_ptr<CURL, EasyDeleter> easy_{curl_easy_init()};
  std::unique_ptr<curl_slist, HeadersDeleter> headers_;
  std::optional<SchemaKey> asked_;  // under way
  std::string answer_;
  char error_[CURL_ERROR_SIZE] = "";
  std::unordered_map<SchemaKey, SchemaVerdict, event::SchemaKeyHash> known_;
  std::unordered_map<SchemaKey, Waiting, event::SchemaKeyHash> waiting_;
};

void SchemaRegistry::SetUp() {
  Set(CURLOPT_PROTOCOLS_STR, "http,https");
  Set(CURLOPT_FOLLOWLOCATION, 0L);
  Set(CURLOPT_NOSIGNAL, 1L);
  Set(CURLOPT_HTTPHEADER, headers_.get());
  Set(CURLOPT_USERAGENT, "tacit");
  Set(CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
  Set(CURLOPT_WRITEFUNCTION, &OnBytes);
  Set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  Set(CURLOPT_ERRORBUFFER, error_);
  if (!options_.ca_file.empty()) Set(CURLOPT_CAINFO, options_.ca_file.c_str());
  if (options_.username.empty()) return;
  Set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
  Set(CURLOPT_USERNAME, options_.username.c_str());
  Set(CURLOPT_PASSWORD, options_.password.c_str());
}

SchemaVerdict SchemaRegistry::Look(const SchemaKey& schema) {
  if (asked_) Drive();
  const auto known = known_.find(schema);
  if (known != known_.end()) return known->second;
  const auto waiting = waiting_.find(schema);
  const bool due = waiting == waiting_.end() || clock_.Now() >= waiting->second.ask_at;
  if (due && !asked_) {
    Ask(schema);
    Drive();
    if (const auto now = known_.find(schema); now != known_.end()) return now->second;
  }
  const auto why = waiting_.find(schema);
  return {SchemaVerdict::Kind::kUnknown,
          why == waiting_.end() ? options_.url + " has been asked" : why->second.reason};
}

void SchemaRegistry::Ask(const SchemaKey& schema) {
  asked_ = schema;
  answer_.clear();
  error_[0] = '\0';
  Set(CURLOPT_URL, (options_.url + PathOf(schema)).c_str());
  TACIT_CHECK(curl_multi_add_handle(multi_.get(), easy_.get()) == CURLM_OK);
}

// Lets the request under way proceed for a moment.
void SchemaRegistry::Drive() {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    int running = 0, left = 0;
    curl_multi_perform(multi_.get(), &running);
    const CURLMsg* done = curl_multi_info_read(multi_.get(), &left);
    if (done != nullptr && done->msg == CURLMSG_DONE) {
      const SchemaKey schema = *asked_;
      SchemaVerdict verdict = Verdict(done->data.result);
      Drop();
      Keep(schema, std::move(verdict));
      return;
    }
    const auto rest =
        std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now());
    if (rest.count() <= 0) return;
    curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(rest.count()), nullptr);
  }
}

void SchemaRegistry::Drop() {
  if (asked_) curl_multi_remove_handle(multi_.get(), easy_.get());
  asked_.reset();
}

SchemaVerdict SchemaRegistry::Verdict(CURLcode outcome) {
  const auto unknown = [&](std::string_view why) {
    return SchemaVerdict{SchemaVerdict::Kind::kUnknown, fmt::format("{}: {}", options_.url, why)};
  };
  if (outcome == CURLE_WRITE_ERROR && answer_.size() >= kAnswerBytesMax)
    return unknown("the answer is too long");
  if (outcome != CURLE_OK) return unknown(error_[0] != '\0' ? error_ : curl_easy_strerror(outcome));
  long status = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status == 404) return unknown("there is no such schema");
  if (status == 401 || status == 403) return unknown(fmt::format("refused us ({})", status));
  if (status != 200) return unknown(fmt::format("answered {}", status));
  return event::JudgeSchema(answer_, options_.kind);
}

void SchemaRegistry::Keep(const SchemaKey& schema, SchemaVerdict verdict) {
  if (verdict.kind != SchemaVerdict::Kind::kUnknown) {
    waiting_.erase(schema);
    known_.emplace(schema, std::move(verdict));
    return;
  }
  Waiting& waiting = waiting_[schema];
  waiting.pause = std::clamp(2 * waiting.pause, kFirstPause, kLongestPause);
  waiting.ask_at = clock_.Now() + waiting.pause;
  waiting.reason = std::move(verdict.reason);
}

size_t SchemaRegistry::OnBytes(const char* bytes, size_t size, size_t count, void* self) {
  std::string& answer = static_cast<SchemaRegistry*>(self)->answer_;
  const size_t taken = std::min(size * count, kAnswerBytesMax - answer.size());
  answer.append(bytes, taken);
  return answer.size() >= kAnswerBytesMax ? CURL_WRITEFUNC_ERROR : taken;
}

}  // namespace

std::unique_ptr<event::SchemaBook> MakeSchemaRegistry(SchemaRegistryOptions options,
                                                      const Clock& clock) {
  return std::make_unique<SchemaRegistry>(std::move(options), clock);
}

}  // namespace tacit::stream
