#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "event/avro/schemas.h"
#include "stream/log/record_reader.h"

namespace tacit::stream {

// The first bytes of an object container file of Avro.
inline constexpr std::string_view kContainerMagic = "Obj\x01";

// Object container files of Avro 1.12, with codec null, deflate or zstandard. A record is handed on
// in a frame, as in a topic: a byte of value one and the first 16 bytes of the SHA-256 of the
// file's schema, by which `schemas` then has it.
//
// A block that cannot be unpacked, or does not hold as many records as it says, is one record with
// a fault; what is behind it is read. A block without the file's sync marker ends the file. A file
// that ends within its header or a block is cut. Blocks are held whole, and bounded:
// kBlockBytesMost, packed and unpacked.
class ContainerReader final : public RecordReader {
 public:
  static constexpr size_t kBlockBytesMost = 64 << 20, kHeaderBytesMost = 2 << 20;

  ContainerReader(std::unique_ptr<InputFile> file, size_t max_record_bytes,
                  std::shared_ptr<event::AvroSchemas> schemas);

  // Reads the header. Fails where the file is no container, of a codec that is not read, or of a
  // schema by which no record can be read; the message names the file. Not at a cut.
  Status Open();
  Status Read(size_t records_max, size_t bytes_max, event::RawRecords* records) override;
  Result<uint64_t> Skip(uint64_t records) override;
  Result<bool> AtEnd() override;

  const std::string& cut() const override { return cut_; }
  const std::string& fault() const override { return fault_; }

 private:
  enum class Codec : uint8_t { kNull, kDeflate, kZstandard };

  // Returns false where the file ends, is cut or is damaged before that many bytes are there.
  Result<bool> Have(size_t bytes);
  std::string_view rest() const { return std::string_view(buffer_).substr(begin_); }
  void Take(size_t bytes);
  // The file ends where more was expected.
  void EndsEarly(std::string_view what);
  Status ReadHeader(event::AvroBytes* header);
  // Reads the next block. Returns false at the end, at a cut and at damage.
  Result<bool> NextBlock();
  // Finds the block's records. Returns what is wrong with it.
  std::string Unpack(std::string_view packed, uint64_t count);
  // One record is left: the block, or the file's end, that cannot be read.
  bool FaultPending() const { return !block_fault_.empty() || (!fault_.empty() && !fault_told_); }
  bool HasRecord() const { return next_ < ends_.size() || FaultPending(); }
  // Passes over one record. REQUIRES HasRecord().
  void Append(event::RawRecords* records);

  const std::shared_ptr<event::AvroSchemas> schemas_;
  std::string buffer_;
  size_t begin_ = 0;     // of what is unread in it
  uint64_t offset_ = 0;  // of `begin_`, in the unpacked file
  bool opened_ = false;
  Codec codec_ = Codec::kNull;
  std::string frame_, sync_;
  std::shared_ptr<const event::AvroProgram> skipper_;
  event::AvroProgram::Stack stack_;

  std::string block_;           // unpacked
  std::vector<uint32_t> ends_;  // of its records
  size_t next_ = 0;             // the record that is read next
  std::string block_fault_, cut_, fault_;
  bool fault_told_ = false;
};

}  // namespace tacit::stream
