#include "inspect/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "event/avro/codec.h"
#include "inspect/topic_records.h"
#include "stream/log/container_reader.h"
#include "stream/log/line_reader.h"

namespace tacit::inspect {
namespace {

// The codec reads the sample again, and at most this many bytes behind it.
constexpr uint64_t kReadAhead = 16 << 20;

class FileLines final : public Records {
 public:
  explicit FileLines(std::vector<std::string> files) : files_(std::move(files)) {}

  const std::vector<std::string>& origins() const override { return files_; }
  const std::vector<std::string>& parts() const override { return files_; }
  bool may_have_headers() const override { return true; }
  bool are_avro() const override { return avro_ != nullptr; }

  Status ForEach(size_t part, const Use& use, double* share_read) const override {
    constexpr size_t kLinesAtOnce = 1024, kBytesAtOnce = 1 << 20;
    const std::string& file = files_[part];
    TACIT_ASSIGN(auto opened, stream::InputFile::Open(file));
    TACIT_ASSIGN(const auto reader, ReaderOf(std::move(opened)));
    event::RawRecords lines;
    Record record{.origin = file, .origin_index = static_cast<uint32_t>(part)};
    uint64_t used = 0;
    bool going = true;
    while (going) {
      lines.Clear();
      if (const Status read = reader->Read(kLinesAtOnce, kBytesAtOnce, &lines); !read) {
        if (reader->file().waiting()) continue;
        if (reader->cut().empty()) return read;
        ++record.number;
        record.text = {};
        record.fault = reader->cut();
        use(record);
        break;
      }
      if (lines.size() == 0) break;
      auto fault = lines.faults.begin();
      for (size_t i = 0; going && i < lines.size(); ++i) {
        const bool faulty = fault != lines.faults.end() && fault->index == i;
        record.text = lines[i];
        record.fault = faulty ? std::string_view(fault->reason) : "";
        std::string json, why;
        if (are_avro() && !faulty) {
          why = AvroToJson(*avro_, lines[i], &json);
          record.text = why.empty() ? std::string_view(json) : std::string_view();
          record.fault = why;
        }
        ++record.number;
        going = use(record);
        if (faulty) ++fault;
        used += lines[i].size() + 1;
      }
    }
    if (share_read == nullptr) return {};
    // A packed file tells how much was unpacked, a plain one where the last line ended.
    const uint64_t read = reader->file().raw_read();
    TACIT_ASSIGN(const uint64_t size, SizeOf(reader.get()));
    const bool plain = read >= used && read <= used + kBytesAtOnce + kRecordBytesMost;
    const auto part_read = static_cast<double>(plain ? used : read);
    *share_read =
        going || size == 0 ? 1 : std::clamp(part_read / static_cast<double>(size), 1e-6, 1.0);
    return {};
  }

 private:
  // The size of a file, and of standard input once it has ended. What is behind the sample is read
  // for that, and not kept.
  Result<std::unique_ptr<stream::RecordReader>> ReaderOf(
      std::unique_ptr<stream::InputFile> file) const {
    std::unique_ptr<stream::RecordReader> reader;
    if (avro_ == nullptr) {
      reader = std::make_unique<stream::LineReader>(std::move(file), kRecordBytesMost);
    } else {
      auto blocks =
          std::make_unique<stream::ContainerReader>(std::move(file), kRecordBytesMost, avro_);
      TACIT_RETURN_IF_ERROR(blocks->Open());
      reader = std::move(blocks);
    }
    return reader;
  }

  // The first file's first bytes tell.
  static std::shared_ptr<event::AvroSchemas> SchemasIfAvro(const std::vector<std::string>& files) {
    char head[4] = {};
    const auto first =
        files.empty() ? nullptr : stream::InputFile::Open(files[0]).value_or(nullptr);
    if (first == nullptr || first->Read(head).value_or(0) < sizeof(head) ||
        std::string_view(head, sizeof(head)) != stream::kContainerMagic)
      return nullptr;
    return event::AvroSchemas::Make("", nullptr).value_or(nullptr);
  }

  Result<uint64_t> SizeOf(stream::RecordReader* reader) const {
    if (!reader->file().is_standard_input()) return reader->file().raw_size();
    stream::StandardInput::Get().KeepNext(kReadAhead);
    for (event::RawRecords lines; !input_size_; lines.Clear()) {
      const Status read = reader->Read(SIZE_MAX, kRecordBytesMost, &lines);
      if (!read && reader->file().waiting()) continue;
      if (!read || lines.size() == 0) input_size_ = reader->file().raw_read();
    }
    return *input_size_;
  }

  const std::vector<std::string> files_;
  const std::shared_ptr<event::AvroSchemas> avro_ = SchemasIfAvro(files_);
  mutable std::optional<uint64_t> input_size_;  // of standard input
};

}  // namespace

std::string AvroToJson(const event::AvroSchemas& schemas, std::string_view framed,
                       std::string* json) {
  const bool by_guid = framed.starts_with('\1') && framed.size() >= event::kGuidFrameBytes;
  const size_t header = by_guid ? event::kGuidFrameBytes : 0;
  event::Unframed unframed;
  if (auto wrong = event::Unframe(framed.substr(header), framed.substr(0, header),
                                  event::PayloadKind::kAvro, &unframed))
    return *std::move(wrong);
  const auto program = schemas.Find(unframed.schema);
  if (program == nullptr) return "its schema is not known";
  const auto bad = event::WriteAsJson(*program, unframed.payload, json);
  return bad ? bad->reason : "";
}

std::string Records::Whence() const {
  return topic() != nullptr           ? fmt::format("topic '{}'", topic()->topic)
         : IsStandardInput(origins()) ? std::string(kStandardInputShown)
                                      : Counted(origins().size(), "file");
}

std::shared_ptr<const Records> RecordsOfFiles(std::vector<std::string> files) {
  // The sample is read once more, as the codec of the proposal reads it.
  if (IsStandardInput(files)) stream::StandardInput::Get().Keep(UINT64_MAX);
  return std::make_shared<FileLines>(std::move(files));
}

}  // namespace tacit::inspect
