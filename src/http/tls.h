#pragma once

#include <array>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/threads/mutex.h"
#include "http/kept_file.h"
#include "http/server.h"

// Private to this room: the other files see TlsFiles of server.h.
namespace tacit::http {

using TlsContext = boost::asio::ssl::context;

// The server's side of TLS 1.2 and 1.3 from files, which are read again while connections go on: a
// connection keeps the context that it began with.
class TlsFromFiles final : public Tls {
 public:
  explicit TlsFromFiles(TlsFiles files) : files_(std::move(files)) {}

  Status Reload() override;
  Result<bool> ReloadIfChanged() override;
  void TakeOver(const Tls& other) override;
  int64_t expires_s() const override;
  std::shared_ptr<TlsContext> context() const;

 private:
  // The files, in the order of their names here.
  using Stamps = std::array<FileStamp, 3>;
  Stamps Look() const TACIT_REQUIRES(reading_);

  mutable Mutex reading_;  // one thread reads at a time
  TlsFiles files_ TACIT_GUARDED_BY(reading_);
  Stamps stamps_ TACIT_GUARDED_BY(reading_);
  mutable Mutex mutex_;
  std::shared_ptr<TlsContext> context_ TACIT_GUARDED_BY(mutex_);
  int64_t expires_s_ TACIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacit::http
