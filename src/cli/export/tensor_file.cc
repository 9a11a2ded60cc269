#include "cli/export/tensor_file.h"

#include <fmt/format.h>

#include <bit>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <utility>

namespace tacit::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr size_t kHeaderAlignment = 8, kNpyAlignment = 64, kBlobAlignment = 4096;

uint64_t Aligned(uint64_t at) {
  return (at + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment;
}

Status Failed(const std::string& path) {
  return Fail(ErrorCode::kIo, fmt::format("writing {} failed", path));
}

Result<std::ofstream> Create(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  if (!file) return Fail(ErrorCode::kIo, fmt::format("{} cannot be created", path));
  return file;
}

Status Append(std::ofstream& file, const std::string& path, std::span<const float> numbers) {
  file.write(reinterpret_cast<const char*>(numbers.data()),
             static_cast<std::streamsize>(numbers.size_bytes()));
  return file ? Status() : Failed(path);
}

// RFC 4180: a field with a comma, a quote or a line's end is in quotes, and its quotes are doubled.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') quoted += c;
  }
  return quoted + '"';
}

Status WriteRowNames(const std::string& folder, const Tensor& tensor) {
  if (tensor.rows.empty()) return {};
  return WriteWhole(fmt::format("{}/{}.rows.json", folder, tensor.name),
                    json::serialize(json::value_from(tensor.rows)) + "\n");
}

// One file that has all tensors.
class SafetensorsSink final : public TensorSink {
 public:
  static Result<std::unique_ptr<TensorSink>> Make(const std::string& folder,
                                                  const std::vector<Tensor>& tensors,
                                                  const std::map<std::string, std::string>& facts) {
    std::unique_ptr<SafetensorsSink> sink(new SafetensorsSink);
    sink->folder_ = folder;
    sink->path_ = folder + "/model.safetensors";
    TACIT_ASSIGN(sink->file_, Create(sink->path_));
    std::string header = HeaderOf(tensors, facts);
    header.resize((header.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment,
                  ' ');
    const uint64_t length = header.size();
    sink->file_.write(reinterpret_cast<const char*>(&length), sizeof(length));
    sink->file_ << header;
    return std::unique_ptr<TensorSink>(std::move(sink));
  }
  Status Begin(const Tensor& tensor) override { return WriteRowNames(folder_, tensor); }
  Status Write(std::span<const float> numbers) override { return Append(file_, path_, numbers); }
  Status Finish() override {
    file_.close();
    return file_ ? Status() : Failed(path_);
  }

 private:
  static std::string HeaderOf(const std::vector<Tensor>& tensors,
                              const std::map<std::string, std::string>& facts) {
    json::object header, metadata;
    for (const auto& [name, value] : facts) metadata[name] = value;
    header["__metadata__"] = std::move(metadata);
    uint64_t at = 0;
    for (const Tensor& tensor : tensors) {
      const uint64_t end = at + sizeof(float) * tensor.size();
      header[tensor.name] = json::object{{"dtype", "F32"},
                                         {"shape", json::value_from(tensor.shape)},
                                         {"data_offsets", json::array{at, end}}};
      at = end;
    }
    return json::serialize(header);
  }

  std::string folder_, path_;
  std::ofstream file_;
};

// A file for each tensor.
class FilesSink final : public TensorSink {
 public:
  FilesSink(TensorFormat format, std::string folder)
      : format_(format), folder_(std::move(folder)) {}

  Status Begin(const Tensor& tensor) override {
    TACIT_RETURN_IF_ERROR(Finish());
    path_ = folder_ + "/" + tensor.name + (format_ == TensorFormat::kNpy ? ".npy" : ".csv");
    TACIT_ASSIGN(file_, Create(path_));
    width_ = tensor.shape.size() > 1 ? tensor.shape.back() : 1;
    row_ = 0;
    names_ = tensor.rows;
    if (format_ == TensorFormat::kCsv) {
      WriteCsvHeader(tensor);
      return file_ ? Status() : Failed(path_);
    }
    WriteNpyHeader(tensor);
    return file_ ? WriteRowNames(folder_, tensor) : Failed(path_);
  }
  Status Write(std::span<const float> numbers) override {
    if (format_ == TensorFormat::kNpy) return Append(file_, path_, numbers);
    for (; !numbers.empty(); numbers = numbers.subspan(width_)) {
      std::string line = names_.empty() ? std::to_string(row_) : CsvField(names_[row_]);
      ++row_;
      // As many digits as give the same float back.
      for (const float number : numbers.first(width_))
        fmt::format_to(std::back_inserter(line), ",{}", number);
      file_ << line << '\n';
    }
    return file_ ? Status() : Failed(path_);
  }
  Status Finish() override {
    if (!file_.is_open()) return {};
    file_.close();
    return file_ ? Status() : Failed(path_);
  }

 private:
  void WriteCsvHeader(const Tensor& tensor) {
    std::string line = tensor.rows.empty() ? "row" : "name";
    for (size_t i = 0; i < width_; ++i)
      line += "," + (tensor.columns.empty() ? std::to_string(i) : CsvField(tensor.columns[i]));
    file_ << line << '\n';
  }
  // NEP 1: magic, version, the header's length as u16, a Python literal, spaces and a newline, so
  // that the numbers begin at a multiple of 64.
  void WriteNpyHeader(const Tensor& tensor) {
    std::string shape;
    for (const uint64_t length : tensor.shape) shape += fmt::format("{}, ", length);
    if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
    if (tensor.shape.size() == 1) shape.pop_back();  // "(N,)"
    std::string header =
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape);
    constexpr size_t kBefore = 10;
    const size_t whole =
        (kBefore + header.size() + 1 + kNpyAlignment - 1) / kNpyAlignment * kNpyAlignment;
    header.resize(whole - kBefore - 1, ' ');
    header += '\n';
    const auto length = static_cast<uint16_t>(header.size());
    file_.write("\x93NUMPY\x01\x00", 8);
    file_.write(reinterpret_cast<const char*>(&length), sizeof(length));
    file_ << header;
  }

  const TensorFormat format_;
  const std::string folder_;
  std::string path_;
  std::ofstream file_;
  std::vector<std::string> names_;
  uint64_t width_ = 1, row_ = 0;
};

class BlobSink final : public TensorSink {
 public:
  BlobSink(std::string path, std::ofstream file) : path_(std::move(path)), file_(std::move(file)) {}

  Status Begin(const Tensor&) override {
    const std::string gap(Aligned(at_) - at_, '\0');
    file_ << gap;
    at_ += gap.size();
    return file_ ? Status() : Failed(path_);
  }
  Status Write(std::span<const float> numbers) override {
    at_ += numbers.size_bytes();
    return Append(file_, path_, numbers);
  }
  Status Finish() override {
    file_.close();
    return file_ ? Status() : Failed(path_);
  }

 private:
  const std::string path_;
  std::ofstream file_;
  uint64_t at_ = 0;
};

}  // namespace

Result<TensorFormat> TensorFormatOf(std::string_view name) {
  if (name == "safetensors") return TensorFormat::kSafetensors;
  if (name == "npy") return TensorFormat::kNpy;
  if (name == "csv") return TensorFormat::kCsv;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("format '{}': it is safetensors, npy, csv or onnx", name));
}

Status CheckNew(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return {};
  return Fail(ErrorCode::kInvalidArgument, fmt::format("{} is there already", folder));
}

Result<std::unique_ptr<TensorSink>> MakeTensorSink(
    TensorFormat format, const std::string& folder, const std::vector<Tensor>& tensors,
    const std::map<std::string, std::string>& facts) {
  TACIT_RETURN_IF_ERROR(CheckNew(folder));
  if (format == TensorFormat::kSafetensors) return SafetensorsSink::Make(folder, tensors, facts);
  return std::unique_ptr<TensorSink>(std::make_unique<FilesSink>(format, folder));
}

Result<std::unique_ptr<TensorSink>> MakeBlobSink(const std::string& path) {
  TACIT_ASSIGN(auto file, Create(path));
  return std::unique_ptr<TensorSink>(std::make_unique<BlobSink>(path, std::move(file)));
}

std::vector<uint64_t> BlobOffsets(const std::vector<Tensor>& tensors) {
  std::vector<uint64_t> offsets;
  uint64_t at = 0;
  for (const Tensor& tensor : tensors) {
    offsets.push_back(Aligned(at));
    at = offsets.back() + sizeof(float) * tensor.size();
  }
  return offsets;
}

Status WriteWhole(const std::string& path, std::string_view bytes) {
  TACIT_ASSIGN(auto file, Create(path));
  file << bytes;
  file.close();
  return file ? Status() : Failed(path);
}

}  // namespace tacit::cli
