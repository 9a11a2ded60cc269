#include "http/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace tacit::http {
namespace {

constexpr int kGzipAlone = MAX_WBITS + 16;  // neither zlib's own wrapping nor none
constexpr size_t kUnpackedPiece = 16 << 10;
constexpr int kMemoryLevel = 8;
constexpr size_t kPackedLeast = 1024;  // shorter answers are not worth packing
constexpr size_t kGzipWrapping = 32;   // head and tail of a member

std::string LoweredCoding(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return lower;
}

// Takes the part before `separator` off a list, without the blanks around it.
std::string_view TakeItem(char separator, std::string_view* list) {
  std::string_view item = list->substr(0, list->find(separator));
  list->remove_prefix(std::min(list->size(), item.size() + 1));
  while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
  while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
  return item;
}

bool IsGzip(std::string_view coding) { return coding == "gzip" || coding == "x-gzip"; }

// Returns true for a parameter "q=0", "q=0.", "q=0.0" and so on: the coding is not wanted.
bool IsNoWeight(std::string_view parameter) {
  const std::string_view name = TakeItem('=', &parameter);
  if (name != "q") return false;
  const std::string_view value = TakeItem(';', &parameter);
  return !value.empty() && value.find_first_not_of("0.") == value.npos;
}

class Inflater {
 public:
  Inflater() : ok_(inflateInit2(&stream_, kGzipAlone) == Z_OK) {}
  ~Inflater() {
    if (ok_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool ok() const { return ok_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  const bool ok_;
};

}  // namespace

BodyCoding CodingOf(std::string_view content_encoding) {
  const std::string coding = LoweredCoding(TakeItem('\n', &content_encoding));
  if (coding.empty() || coding == "identity") return BodyCoding::kNone;
  return IsGzip(coding) ? BodyCoding::kGzip : BodyCoding::kUnknown;
}

Unpacked Unpack(std::string_view packed, uint64_t most, const std::function<bool(uint64_t)>& room,
                BodyBuffer* out) {
  Inflater inflater;
  if (!inflater.ok()) return Unpacked::kNoRoom;
  z_stream& stream = inflater.stream();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::array<char, kUnpackedPiece> piece;
  while (true) {
    // One byte more than may come shows that there is more.
    const uint64_t wanted = std::min<uint64_t>(piece.size(), most - out->size() + 1);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(wanted);
    const int code = inflate(&stream, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR) return Unpacked::kNoRoom;
    if (code != Z_OK && code != Z_STREAM_END) return Unpacked::kNotGzip;  // cut off, too
    const size_t made = wanted - stream.avail_out;
    if (out->size() + made > most) return Unpacked::kTooLong;
    if (made > 0 && (!room(out->size() + made) || !out->Append(piece.data(), made)))
      return Unpacked::kNoRoom;
    if (code == Z_OK) continue;
    if (stream.avail_in == 0) return Unpacked::kWhole;
    if (inflateReset(&stream) != Z_OK) return Unpacked::kNotGzip;  // another member follows
  }
}

std::string Pack(std::string_view text) {
  std::string packed(deflateBound(nullptr, text.size()) + kGzipWrapping, '\0');
  z_stream stream{};
  // The fastest level: an answer is packed on the thread that answers.
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipAlone, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    return {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int code = deflate(&stream, Z_FINISH);
  packed.resize(code == Z_STREAM_END ? packed.size() - stream.avail_out : 0);
  deflateEnd(&stream);
  return packed;
}

bool AcceptsGzip(std::string_view accept_encoding) {
  std::optional<bool> named, any;
  while (!accept_encoding.empty()) {
    std::string item = LoweredCoding(TakeItem(',', &accept_encoding));
    std::string_view rest = item;
    const std::string_view coding = TakeItem(';', &rest);
    bool wanted = true;
    while (!rest.empty()) wanted = wanted && !IsNoWeight(TakeItem(';', &rest));
    if (IsGzip(coding)) named = named.value_or(false) || wanted;
    if (coding == "*") any = wanted;
  }
  return named.value_or(any.value_or(false));
}

void PackAnswer(std::string_view accept_encoding, Reply* reply) {
  if (reply->status != 200) return;
  reply->headers.emplace_back("Vary", "Accept-Encoding");
  if (reply->body.size() < kPackedLeast || !AcceptsGzip(accept_encoding)) return;
  std::string packed = Pack(reply->body);
  if (packed.empty()) return;
  reply->body = std::move(packed);
  reply->headers.emplace_back("Content-Encoding", "gzip");
}

}  // namespace tacit::http
