#include "system/kafka/answers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "http/client.h"

namespace tacit::test {
namespace {

// A daemon that was killed answers at once that it is not there, and one that is killed while it
// answers never does.
constexpr std::chrono::seconds kAnswerPatience(20);

// The most that anybody can tell of a unit: the trainer's ledger knows it from its state, others
// bound it by the entries alone, never below.
std::string WithoutBounds(std::string answer) {
  for (size_t at; (at = answer.find(",\"at_most\":{")) != std::string::npos;)
    answer.erase(at, answer.find('}', at) + 1 - at);
  return answer;
}

}  // namespace

std::optional<uint64_t> VersionIn(const std::string& answer) {
  constexpr std::string_view kName = "\"version\":";
  const size_t at = answer.find(kName);
  if (at == std::string::npos) return std::nullopt;
  return std::stoull(answer.substr(at + kName.size(), 20));
}

bool Answers::Note(uint64_t version, size_t question, std::string body) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = answers_.try_emplace({version, question}, body);
  if (is_new) ++counts_[version];
  return at->second == body;
}

std::map<Answers::Key, std::string> Answers::all() const {
  const std::lock_guard lock(mutex_);
  return answers_;
}

bool Answers::IsWhole(uint64_t version, size_t questions) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(version);
  return found != counts_.end() && found->second == questions;
}

Comparison Compare(const std::string& name, const std::map<Answers::Key, std::string>& is,
                   const std::map<Answers::Key, std::string>& oracle,
                   const std::vector<Question>& questions) {
  constexpr size_t kTold = 10;
  Comparison found;
  std::set<uint64_t> versions;
  for (const auto& [key, answer] : is) {
    const auto expected = oracle.find(key);
    if (expected == oracle.end()) {
      ++found.unasked;
      continue;
    }
    ++found.compared;
    versions.insert(key.first);
    if (answer == expected->second || found.differences.size() >= kTold) continue;
    found.differences.push_back(fmt::format(
        "{} answers {} {} at version {} with\n{}\nand not\n{}", name, questions[key.second].path,
        questions[key.second].body, key.first, answer, expected->second));
  }
  found.versions = versions.size();
  return found;
}

Witness::Witness(Options options, const std::vector<Question>& questions)
    : options_(std::move(options)), questions_(questions), thread_([this] { Run(); }) {}

void Witness::Stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

std::string Witness::Ask(size_t question) {
  const Question& asked = questions_[question];
  const std::lock_guard lock(mutex_);
  const uint64_t last = version_;
  std::string path = asked.path;
  if (asked.names_no_version) path += fmt::format("?version={}", last);
  const auto answer = http::Fetch(options_.url + (asked.operators ? "-operators:" : ":") + path,
                                  asked.method, asked.body, kAnswerPatience);
  if (!answer || answer->status != 200) {
    refusal_ = path + ": " + (answer ? answer->body : answer.error().message);
    return "";
  }
  const auto version = asked.names_no_version ? std::optional(last) : VersionIn(answer->body);
  if (!version) {
    ADD_FAILURE() << options_.name << ": an answer without a version: " << answer->body;
    return "";
  }
  EXPECT_GE(*version, last) << options_.name << ": a version that was answered with is lost";
  version_ = *version;
  std::string body = WithoutBounds(answer->body);
  EXPECT_TRUE(answers_.Note(*version, question, body))
      << options_.name << " has answered otherwise before at version " << *version << ": " << path
      << " " << asked.body << "\n"
      << body;
  return body;
}

std::string Witness::refusal() const {
  const std::lock_guard lock(mutex_);
  return refusal_;
}

void Witness::Run() {
  std::mt19937_64 random(options_.seed);
  for (size_t next = 0; !stopping_; ++next) {
    const size_t question = (options_.random ? random() : next) % questions_.size();
    const bool answered = !Ask(question).empty();
    std::this_thread::sleep_for(answered ? options_.pause : std::chrono::milliseconds(5));
  }
}

}  // namespace tacit::test
