// Measures how fast one core makes up, reads and decodes a click log: generated rows, lines out of
// plain and gzip files, events with 13 numbers and 26 bucket hashes each. Beside them the parts
// they stand on: zlib alone on the same bytes, the bucket hashes alone. Best of several runs;
// prints JSON lines.
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "event/codec.h"
#include "stream/generator/criteo_generator.h"
#include "stream/log/log_source.h"
#include "support/criteo_schema.h"

namespace tacit {
namespace {

constexpr uint64_t kRows = 100000;
constexpr int kRuns = 5;

// Measures processor time, because the machine may be shared.
double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double BestSeconds(const std::function<void()>& work) {
  double best = 1e30;
  for (int run = 0; run < kRuns; ++run) {
    const double start = ThreadSeconds();
    work();
    best = std::min(best, ThreadSeconds() - start);
  }
  return best;
}

void Print(const char* name, double value, const char* unit) {
  fmt::print("{{\"name\":\"{}\",\"value\":{:.3f},\"unit\":\"{}\"}}\n", name, value, unit);
  std::fflush(stdout);
}

void WriteGzip(const std::string& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb6");
  TACIT_CHECK(file != nullptr);
  TACIT_CHECK(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) ==
              static_cast<int>(text.size()));
  TACIT_CHECK(gzclose(file) == Z_OK);
}

std::vector<event::RawRecords> ReadLog(const std::string& path) {
  auto source = stream::OpenLogSource({.files = {path}});
  TACIT_CHECK(source.has_value());
  std::vector<event::RawRecords> frames(1);
  while (*(*source)->Poll(std::chrono::milliseconds(0), &frames.back()) ==
         stream::PollOutcome::kRecords)
    frames.emplace_back();
  frames.pop_back();
  return frames;
}

void DrainLog(const std::string& path) {
  auto source = stream::OpenLogSource({.files = {path}});
  TACIT_CHECK(source.has_value());
  event::RawRecords frame;
  uint64_t records = 0;
  while (*(*source)->Poll(std::chrono::milliseconds(0), &frame) == stream::PollOutcome::kRecords)
    records += frame.size();
  TACIT_CHECK(records == kRows);
}

void DrainZlib(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  TACIT_CHECK(file != nullptr);
  std::vector<char> buffer(256 << 10);
  while (gzread(file, buffer.data(), static_cast<unsigned>(buffer.size())) > 0) {
  }
  gzclose(file);
}

event::FeatureTransform MakeTransform() {
  std::vector<uint64_t> buckets;
  for (const uint32_t v : stream::CriteoVocabulary()) buckets.push_back(v + 1);
  return event::FeatureTransform(event::CriteoSchema(13, buckets));
}

void BenchDecode(const std::vector<event::RawRecords>& frames) {
  const event::FeatureTransform transform = MakeTransform();
  const auto codec = event::MakeCriteoTsvCodec(transform);
  event::Batch batch;
  std::vector<event::DeadLetter> dead;
  uint64_t sum = 0;
  const double decode = BestSeconds([&] {
    for (const event::RawRecords& frame : frames) {
      transform.StartBatch(&batch);
      codec->Decode(frame, &batch, &dead);
      sum += batch.row.back();
    }
  });
  TACIT_CHECK(dead.empty() && sum > 0);
  Print("decode", kRows / decode / 1e6, "M events/s");
  const double hashes = BestSeconds([&] {
    for (uint64_t i = 0; i < kRows * 26; ++i) sum += BucketOf("68fd1e64", i, 1473);
  });
  TACIT_CHECK(sum > 0);
  Print("bucket_hashes_alone", kRows / hashes / 1e6, "M events/s");
}

int Main() {
  const stream::CriteoGenerator generator({.days = 2, .rows_per_day = kRows, .seed = 1});
  std::string text;
  const double generate = BestSeconds([&] {
    text.clear();
    generator.Generate(0, 0, kRows, &text, nullptr);
  });
  Print("generate", kRows / generate / 1e6, "M rows/s");

  const std::filesystem::path directory = std::filesystem::temp_directory_path();
  const std::string plain = (directory / fmt::format("decode_bench_{}.tsv", ::getpid())).string();
  const std::string packed = plain + ".gz";
  std::ofstream(plain, std::ios::binary) << text;
  WriteGzip(packed, text);
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  Print("read_plain", megabytes / BestSeconds([&] { DrainLog(plain); }), "MB/s");
  Print("read_gzip", megabytes / BestSeconds([&] { DrainLog(packed); }), "MB/s");
  Print("zlib_alone", megabytes / BestSeconds([&] { DrainZlib(packed); }), "MB/s");
  BenchDecode(ReadLog(plain));
  std::filesystem::remove(plain);
  std::filesystem::remove(packed);
  return 0;
}

}  // namespace
}  // namespace tacit

int main() { return tacit::Main(); }
