#pragma once

#include <array>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "http/kept_file.h"
#include "http/server.h"

// Private to this room: the other files see TlsFiles of server.h.
namespace tacit::serve {

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
  using Marks = std::array<FileMark, 3>;
  Marks Look() const;

  mutable std::mutex reading_;  // of files_ and marks_, and so that one thread reads at a time
  TlsFiles files_;
  Marks marks_;
  mutable std::mutex mutex_;
  std::shared_ptr<TlsContext> context_;
  int64_t expires_s_ = 0;
};

}  // namespace tacit::serve
