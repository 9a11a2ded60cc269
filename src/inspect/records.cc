#include "inspect/records.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "inspect/topic_records.h"
#include "stream/log/line_reader.h"

namespace tacit::inspect {
namespace {

class FileLines final : public Records {
 public:
  explicit FileLines(std::vector<std::string> files) : files_(std::move(files)) {}

  const std::vector<std::string>& origins() const override { return files_; }
  const std::vector<std::string>& parts() const override { return files_; }
  bool may_have_headers() const override { return true; }

  Status ForEach(size_t part, const Use& use, double* share_read) const override {
    constexpr size_t kLinesAtOnce = 1024, kBytesAtOnce = 1 << 20;
    const std::string& file = files_[part];
    TACIT_ASSIGN(auto opened, stream::InputFile::Open(file));
    stream::LineReader reader(std::move(opened), kRecordBytesMost);
    event::RawRecords lines;
    Record record{.origin = file, .origin_index = static_cast<uint32_t>(part)};
    uint64_t used = 0;
    bool going = true;
    while (going) {
      lines.Clear();
      if (const Status read = reader.Read(kLinesAtOnce, kBytesAtOnce, &lines); !read) {
        if (reader.file().cut().empty()) return read;
        ++record.number;
        record.text = {};
        record.fault = reader.file().cut();
        use(record);
        break;
      }
      if (lines.size() == 0) break;
      auto fault = lines.faults.begin();
      for (size_t i = 0; going && i < lines.size(); ++i) {
        const bool faulty = fault != lines.faults.end() && fault->index == i;
        record.text = lines[i];
        record.fault = faulty ? std::string_view(fault->reason) : "";
        ++record.number;
        going = use(record);
        if (faulty) ++fault;
        used += lines[i].size() + 1;
      }
    }
    if (share_read == nullptr) return {};
    // A packed file tells how much was unpacked, a plain one where the last line ended.
    const uint64_t size = reader.file().raw_size(), read = reader.file().raw_read();
    const bool plain = read >= used && read <= used + kBytesAtOnce + kRecordBytesMost;
    const auto part_read = static_cast<double>(plain ? used : read);
    *share_read =
        going || size == 0 ? 1 : std::clamp(part_read / static_cast<double>(size), 1e-6, 1.0);
    return {};
  }

 private:
  const std::vector<std::string> files_;
};

}  // namespace

std::string Records::Whence() const {
  return topic() != nullptr ? fmt::format("topic '{}'", topic()->topic)
                            : Counted(origins().size(), "file");
}

std::shared_ptr<const Records> RecordsOfFiles(std::vector<std::string> files) {
  return std::make_shared<FileLines>(std::move(files));
}

}  // namespace tacit::inspect
