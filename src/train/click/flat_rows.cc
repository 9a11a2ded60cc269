#include "train/click/flat_rows.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "base/check.h"
#include "base/files/huge_pages.h"
#include "base/hash.h"

namespace tacit::train {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

}  // namespace

void FlatRows::Unmap::operator()(float* floats) const { munmap(floats, bytes); }

uint64_t FlatRows::BytesNeeded(const store::RowLayout& layout) {
  uint64_t bytes = 0;
  const auto tables = layout.space.tables();
  for (uint32_t t = 0; t < tables.size(); ++t)
    bytes += tables[t].rows * layout.RowFloats(t) * sizeof(float);
  return bytes;
}

Result<std::unique_ptr<FlatRows>> FlatRows::Make(store::RowLayout layout, uint64_t bytes_max,
                                                 WorkerPool& workers) {
  const uint64_t bytes = BytesNeeded(layout);
  if (bytes == 0) return Fail(ErrorCode::kInvalidArgument, "an id space without rows");
  const std::string need = fmt::format("{} rows held in memory take {:.2f} GiB",
                                       layout.space.rows(), static_cast<double>(bytes) / kGiB);
  if (bytes > bytes_max)
    return Fail(ErrorCode::kRefused, fmt::format("{}, and {:.2f} GiB may be used", need,
                                                 static_cast<double>(bytes_max) / kGiB));
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{}, which the system does not give: {}", need, std::strerror(errno)));
  AdviseHugePages(pages, bytes);
  auto rows = std::unique_ptr<FlatRows>(
      new FlatRows(std::move(layout), Pages(static_cast<float*>(pages), Unmap{bytes})));
  rows->Fill(workers);
  return rows;
}

FlatRows::FlatRows(store::RowLayout layout, Pages pages)
    : layout_(std::move(layout)), pages_(std::move(pages)) {
  float* next = pages_.get();
  const auto tables = layout_.space.tables();
  for (uint32_t t = 0; t < tables.size(); ++t) {
    table_.push_back(next);
    next += tables[t].rows * layout_.RowFloats(t);
  }
}

void FlatRows::Fill(WorkerPool& workers) {
  const auto tables = layout_.space.tables();
  for (uint32_t t = 0; t < tables.size(); ++t) {
    const RowSpace::Table& table = tables[t];
    const size_t stride = layout_.RowFloats(t);
    workers.Run(table.rows, [&](size_t begin, size_t end, size_t) {
      for (size_t i = begin; i < end; ++i)
        InitialRow(layout_.seed, table.first + i, layout_.initial_scale[t],
                   {table_[t] + i * stride, table.dim});
    });
  }
}

Status FlatRows::Gather(std::span<const uint64_t> rows, std::span<float*> out) {
  TACIT_CHECK(rows.size() == out.size());
  const auto tables = layout_.space.tables();
  size_t i = 0;
  while (i < rows.size()) {  // rows ascend: one run a table
    const uint32_t t = layout_.space.TableOf(rows[i]);
    const uint64_t first = tables[t].first, end = first + tables[t].rows;
    const size_t stride = layout_.RowFloats(t);
    for (; i < rows.size() && rows[i] < end; ++i) {
      TACIT_CHECK(rows[i] >= first, "rows ascend");
      out[i] = table_[t] + (rows[i] - first) * stride;
    }
  }
  return {};
}

std::shared_ptr<const store::RowDelta> FlatRows::TakeDelta() {
  return std::make_shared<const store::RowDelta>();
}

store::WorkingRows::Stats FlatRows::stats() const {
  return {.hits = 0,
          .misses = 0,
          .evictions = 0,
          .bytes = pages_.get_deleter().bytes,
          .pinned_rows = 0};
}

uint64_t AvailableMemory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kib) == 1) return kib * 1024;
  }
  return 0;
}

}  // namespace tacit::train
