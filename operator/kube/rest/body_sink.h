// The end of cpprestsdk's stream into which it writes a body: hands the bytes to a BodyBuffer, and
// breaks the stream where it wants no more of them.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_BODY_SINK_H_
#define RINGMASTER_OPERATOR_KUBE_REST_BODY_SINK_H_

#include <memory>
#include <stdexcept>
#include <string_view>

#include <cpprest/astreambuf.h>

#include "operator/kube/rest/body_buffer.h"

namespace ringmaster::kube::rest {

class BodySink final : public Concurrency::streams::details::streambuf_state_manager<uint8_t> {
 public:
  explicit BodySink(std::shared_ptr<BodyBuffer> buffer)
      : streambuf_state_manager(std::ios_base::out), buffer_(std::move(buffer)) {}

 private:
  pplx::task<size_t> _putn(const uint8_t* bytes, size_t count) override {
    if (buffer_->Append({reinterpret_cast<const char*>(bytes), count}))
      return pplx::task_from_result(count);
    // Makes the library close the connection.
    return pplx::task_from_exception<size_t>(
        std::make_exception_ptr(std::runtime_error("the rest of the body is not wanted")));
  }

  // What a stream that is only ever written to in blocks has no use for.
  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(size_t, std::ios_base::openmode) override {}
  size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return traits::eof(); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return traits::eof(); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return traits::eof();
  }
  bool acquire(uint8_t*&, size_t&) override { return false; }
  void release(uint8_t*, size_t) override {}
  pplx::task<int_type> _putc(uint8_t c) override {
    return _putn(&c, 1).then([c](size_t) -> int_type { return c; });
  }
  pplx::task<int_type> _bumpc() override { return pplx::task_from_result(traits::eof()); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return pplx::task_from_result(traits::eof()); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return pplx::task_from_result(traits::eof()); }
  pplx::task<int_type> _ungetc() override { return pplx::task_from_result(traits::eof()); }
  pplx::task<size_t> _getn(uint8_t*, size_t) override { return pplx::task_from_result<size_t>(0); }
  size_t _scopy(uint8_t*, size_t) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  uint8_t* _alloc(size_t) override { return nullptr; }
  void _commit(size_t) override {}

  const std::shared_ptr<BodyBuffer> buffer_;
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_BODY_SINK_H_
