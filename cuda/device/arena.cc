#include "cuda/device/arena.h"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/device/device.h"
#include "cuda/device/runtime.h"

namespace tacit::cuda {
namespace {

double Mebibytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

size_t ArenaPlan::AddBytes(std::string name, size_t bytes) {
  const size_t taken = bytes + runtime::PieceGapBytes();
  pieces_.push_back({std::move(name), bytes, bytes_});
  bytes_ += (taken + kAlignment - 1) / kAlignment * kAlignment;
  return pieces_.size() - 1;
}

std::string ArenaPlan::Describe() const {
  std::vector<Piece> by_size = pieces_;
  std::ranges::stable_sort(by_size, std::ranges::greater{}, &Piece::bytes);
  std::string text;
  for (const Piece& piece : by_size)
    text += fmt::format("{:>12.1f} MiB  {}\n", Mebibytes(piece.bytes), piece.name);
  return text + fmt::format("{:>12.1f} MiB  in all\n", Mebibytes(bytes_));
}

Result<Arena> Arena::Make(Device& device, ArenaPlan plan) {
  device.CheckOwner();
  size_t free = 0, total = 0;
  TACIT_RETURN_IF_ERROR(
      device.Check(runtime::MemoryFree(&free, &total), "asking for its free memory"));
  if (plan.bytes() > free) {
    const auto largest = std::ranges::max_element(plan.pieces(), {}, &ArenaPlan::Piece::bytes);
    return Fail(ErrorCode::kUnavailable,
                fmt::format("GPU {} has {:.1f} MiB of {:.1f} free, and {:.1f} are asked for, most "
                            "of them ({:.1f}) for {}; lower gpu.memory or the batch, or end what "
                            "else uses the device",
                            device.facts().ordinal, Mebibytes(free), Mebibytes(total),
                            Mebibytes(plan.bytes()), Mebibytes(largest->bytes), largest->name));
  }
  TACIT_ASSIGN(RawBuffer memory, RawBuffer::Make(device, RawBuffer::Place::kDevice, plan.bytes()));
  Arena arena(std::move(plan), std::move(memory));
  if (arena.memory_.data() == nullptr) return arena;
  runtime::MarkUsable(arena.memory_.data(), arena.plan_.bytes(), false);
  for (size_t i = 0; i < arena.plan_.pieces().size(); ++i) {
    const auto piece = arena.Piece<unsigned char>(i);
    runtime::MarkUsable(piece.data, piece.size, true);
  }
  return arena;
}

Arena::~Arena() {
  // The call that frees the memory may touch all of it.
  if (memory_.data() != nullptr) runtime::MarkUsable(memory_.data(), plan_.bytes(), true);
}

Status Arena::Wipe(Stream& stream) const {
  for (size_t i = 0; i < plan_.pieces().size(); ++i)
    TACIT_RETURN_IF_ERROR(stream.Fill(Piece<unsigned char>(i), 0));
  return {};
}

}  // namespace tacit::cuda
