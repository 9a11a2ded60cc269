#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

// The answers of daemons, by the version that they name.
namespace tacit::test {

struct Question {
  std::string method, path, body = "";
  bool operators = false;         // it is for their listener
  bool names_no_version = false;  // its answer does not: it is asked of a version
};

// The version that an answer names; nothing where it names none.
std::optional<uint64_t> VersionIn(const std::string& answer);

// Answers of one daemon, over all its lives. Thread-safe.
class Answers {
 public:
  using Key = std::pair<uint64_t, size_t>;  // version, number of the question

  // Notes an answer. Returns false if the daemon has answered otherwise before.
  bool Note(uint64_t version, size_t question, std::string body);
  std::map<Key, std::string> all() const;
  // True if each of this many questions was answered at that version.
  bool IsWhole(uint64_t version, size_t questions) const;

 private:
  mutable std::mutex mutex_;
  std::map<Key, std::string> answers_;
  std::map<uint64_t, size_t> counts_;
};

struct Comparison {
  size_t compared = 0;  // answers at versions at which the oracle was asked the same
  size_t unasked = 0;   // those at which it was not
  size_t versions = 0;  // distinct ones that were compared
  std::vector<std::string> differences;  // in words, at most ten
};
// Compares what a daemon has answered with what the oracle has, bit for bit.
Comparison Compare(const std::string& name, const std::map<Answers::Key, std::string>& is,
                   const std::map<Answers::Key, std::string>& oracle,
                   const std::vector<Question>& questions);

// Asks a daemon all the time, from a thread of its own, and notes the answers: the questions in
// turn, or in random order. A daemon that does not answer is asked again: it may have been killed.
// Its version must never go back. Failures are the test's.
class Witness {
 public:
  struct Options {
    std::string name, url;
    bool random = false;
    uint64_t seed = 0;
    std::chrono::microseconds pause{0};  // after each answer
  };
  Witness(Options options, const std::vector<Question>& questions);
  ~Witness() { Stop(); }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  void Stop();
  const Answers& answers() const { return answers_; }
  const std::string& name() const { return options_.name; }
  uint64_t version() const { return version_; }  // the newest that it has answered with
  std::string refusal() const;                   // the last answer that was none
  // Asks once, now; notes the answer. Empty if there was none.
  std::string Ask(size_t question);

 private:
  void Run();

  const Options options_;
  const std::vector<Question>& questions_;
  Answers answers_;
  mutable std::mutex mutex_;  // of asking: versions are held against the one before
  std::string refusal_;
  std::atomic<uint64_t> version_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace tacit::test
