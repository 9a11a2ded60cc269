#include "cuda/device/stream.h"

#include <fmt/format.h>

#include "cuda/device/device.h"

namespace tacit::cuda {
namespace {

std::string Launching(const char* name, const runtime::LaunchShape& shape) {
  return fmt::format("launching {} with {} x {} x {} blocks of {} x {} x {} threads and {} bytes",
                     name, shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x, shape.block.y,
                     shape.block.z, shape.shared_bytes);
}

}  // namespace

Result<Event> Event::Make(Device& device) {
  device.CheckOwner();
  Event event;
  event.device_ = &device;
  TACIT_RETURN_IF_ERROR(device.Check(runtime::MakeEvent(&event.handle_), "making an event"));
  return event;
}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

Event::~Event() {
  if (handle_ != nullptr) (void)runtime::DropEvent(handle_);
}

Status Event::Synchronize() {
  device_->CheckOwner();
  TACIT_RETURN_IF_ERROR(device_->Health());
  return device_->Check(runtime::SynchronizeEvent(handle_), "waiting for an event");
}

Result<Stream> Stream::Make(Device& device) {
  device.CheckOwner();
  Stream stream;
  stream.device_ = &device;
  TACIT_RETURN_IF_ERROR(device.Check(runtime::MakeStream(&stream.handle_), "making a stream"));
  return stream;
}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(list_, other.list_);
  return *this;
}

Stream::~Stream() {
  if (handle_ != nullptr) (void)runtime::DropStream(handle_);
}

Status Stream::Copy(void* to, const void* from, size_t bytes) {
  device_->CheckOwner();
  TACIT_RETURN_IF_ERROR(device_->Health());
  if (bytes == 0) return {};
  if (list_ != nullptr) return List('c', handle_, to, from, bytes), Status();
  const runtime::Code code = runtime::Copy(to, from, bytes, handle_);
  if (code == runtime::kSuccess) return {};
  return device_->Check(code, fmt::format("copying {} bytes", bytes));
}

Status Stream::FillBytes(void* memory, uint8_t value, size_t bytes) {
  device_->CheckOwner();
  TACIT_RETURN_IF_ERROR(device_->Health());
  if (bytes == 0) return {};
  if (list_ != nullptr) return List('f', handle_, memory, value, bytes), Status();
  const runtime::Code code = runtime::Fill(memory, value, bytes, handle_);
  if (code == runtime::kSuccess) return {};
  return device_->Check(code, fmt::format("filling {} bytes", bytes));
}

Status Stream::Record(Event& event) {
  device_->CheckOwner();
  TACIT_RETURN_IF_ERROR(device_->Health());
  if (list_ != nullptr) return List('r', handle_, event.handle_), Status();
  return device_->Check(runtime::Record(event.handle_, handle_), "recording an event");
}

Status Stream::Wait(const Event& event) {
  device_->CheckOwner();
  TACIT_RETURN_IF_ERROR(device_->Health());
  if (list_ != nullptr) return List('w', handle_, event.handle_), Status();
  return device_->Check(runtime::Wait(handle_, event.handle_), "waiting for another stream");
}

Status Stream::Synchronize() {
  device_->CheckOwner();
  TACIT_RETURN_IF_ERROR(device_->Health());
  TACIT_CHECK(list_ == nullptr, "work that is listed is not waited for");
  return device_->Check(runtime::Synchronize(handle_), "waiting for what was launched");
}

Status LaunchKernel(Stream& stream, const char* name, const void* kernel,
                    const runtime::LaunchShape& shape, void** arguments) {
  stream.device().CheckOwner();
  TACIT_RETURN_IF_ERROR(stream.device().Health());
  const runtime::Code code = runtime::LaunchKernel(kernel, shape, arguments, stream.handle());
  if (code == runtime::kSuccess) return {};
  return stream.device().Check(code, Launching(name, shape));
}

Status LaunchEmulated(Stream& stream, const char* name, const runtime::LaunchShape& shape,
                      std::function<void()> body) {
  stream.device().CheckOwner();
  TACIT_RETURN_IF_ERROR(stream.device().Health());
  return stream.device().Check(
      runtime::LaunchEmulated(name, shape, std::move(body), stream.handle()),
      Launching(name, shape));
}

}  // namespace tacit::cuda
