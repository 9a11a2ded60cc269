#pragma once

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stream/log/log_source.h"
#include "support/temp_dir.h"

namespace tacit::stream {

// A test with a directory of its own for log files.
class LogFilesTest : public ::testing::Test {
 protected:
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }
  std::string Write(const std::string& name, std::string_view content) const {
    std::ofstream(PathOf(name), std::ios::binary) << content;
    return PathOf(name);
  }
  static std::string Gzip(std::string_view content) {
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string packed(deflateBound(&stream, content.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    stream.avail_in = static_cast<uInt>(content.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
  }
  // One frame, with the checksum that the zstd program writes.
  static std::string Zstd(std::string_view content) {
    const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(),
                                                                     ZSTD_freeCCtx);
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
    std::string packed(ZSTD_compressBound(content.size()), '\0');
    const size_t size =
        ZSTD_compress2(context.get(), packed.data(), packed.size(), content.data(), content.size());
    EXPECT_FALSE(ZSTD_isError(size));
    packed.resize(size);
    return packed;
  }

  // Lines [first, first + n), each its number and some filling.
  static std::string Lines(uint64_t first, uint64_t n) {
    std::string text;
    for (uint64_t i = first; i < first + n; ++i)
      text += std::to_string(i) + std::string(i * 7919 % 97, 'x') + "\n";
    return text;
  }

  static std::unique_ptr<Source> Open(const std::vector<std::string>& files,
                                      size_t records_per_poll = 4096,
                                      size_t max_record_bytes = 1 << 20) {
    auto source = OpenLogSource({files, max_record_bytes, records_per_poll});
    EXPECT_TRUE(source) << (source ? "" : source.error().message);
    return source ? std::move(*source) : nullptr;
  }

  const test::TempDir folder_;
  const std::string directory_ = folder_.path();
};

// All that a source delivers from where it stands, to its end or to where it waits.
struct Delivered {
  std::vector<std::string> records;  // a fault: "FAULT " and its reason
  std::vector<std::string> cuts;     // "name@offset"
  std::vector<std::string> places;   // "origin:line" of each record
  uint64_t first_offset = UINT64_MAX;
  std::string error;

  void KeepFirst(size_t n) {
    records.resize(n);
    places.resize(n);
  }
};

inline Delivered ReadAll(Source& source, size_t records_max = SIZE_MAX) {
  Delivered all;
  event::RawRecords frame;
  uint64_t next = UINT64_MAX;
  while (all.records.size() < records_max) {
    const auto outcome = source.Poll(std::chrono::milliseconds(0), &frame);
    if (!outcome) {
      all.error = outcome.error().message;
      break;
    }
    if (*outcome != PollOutcome::kRecords) break;
    EXPECT_TRUE(frame.size() > 0 || !frame.cuts.empty());
    if (next == UINT64_MAX) all.first_offset = next = frame.first_offset;
    EXPECT_EQ(frame.first_offset, next) << "offsets have a gap";
    next = frame.end_offset();
    auto fault = frame.faults.begin();
    for (size_t i = 0; i < frame.size(); ++i) {
      if (fault != frame.faults.end() && fault->index == i) {
        EXPECT_TRUE(frame[i].empty());
        all.records.push_back("FAULT " + (fault++)->reason);
      } else {
        all.records.emplace_back(frame[i]);
      }
      all.places.push_back(std::filesystem::path(frame.origin).filename().string() + ":" +
                           std::to_string(frame.origin_line + i));
    }
    for (const event::PublicCut& cut : frame.cuts)
      all.cuts.push_back(cut.name + "@" + std::to_string(cut.offset));
  }
  return all;
}

inline Status SeekTo(Source& source, uint64_t offset) {
  const PartitionOffset position{.partition = 0, .offset = offset};
  return source.Seek({&position, 1});
}

}  // namespace tacit::stream
