#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "event/codec.h"
#include "event/dead_letters.h"
#include "event/feature_transform.h"

// All that an intake needs beside its source: lines "label TAB number" become examples.
namespace tacit::train {

class ListSink final : public event::DeadLetterSink {
 public:
  Status Write(std::span<const event::DeadLetter> letters) override {
    if (fails) return Fail(ErrorCode::kIo, "dead letters cannot be kept");
    if (waits) {
      writing = true;
      interrupted.wait(false);
      return Fail(ErrorCode::kUnavailable, "interrupted");
    }
    for (const auto& letter : letters) offsets.push_back(letter.offset);
    return {};
  }
  void Interrupt() override {
    interrupted = true;
    interrupted.notify_all();
  }
  std::vector<uint64_t> offsets;
  bool fails = false, waits = false;
  std::atomic<bool> writing = false, interrupted = false;
};

struct Bench {
  event::FeatureTransform transform{
      {.dense = {{.name = "n", .transform = event::DenseTransform::kIdentity}}, .categorical = {}}};
  std::unique_ptr<event::Codec> codec = event::MakeCriteoTsvCodec(transform);
  ListSink sink;
};

}  // namespace tacit::train
