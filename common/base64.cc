#include "common/base64.h"

#include <cstdint>

namespace ringmaster {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int Digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

absl::StatusOr<std::string> DecodeBase64(std::string_view text) {
  while (!text.empty() && (text.back() == '=' || text.back() == '\n' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    const int digit = Digit(c);
    if (digit < 0) return absl::InvalidArgumentError("not base64");
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xff);
    }
  }
  if (count == 6) return absl::InvalidArgumentError("not base64: its end is missing");
  return bytes;
}

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) {
      return i + k < bytes.size()
                 ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i + k]))
                 : 0u;
    };
    const std::uint32_t bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    text += kAlphabet[bits >> 18 & 63];
    text += kAlphabet[bits >> 12 & 63];
    text += i + 1 < bytes.size() ? kAlphabet[bits >> 6 & 63] : '=';
    text += i + 2 < bytes.size() ? kAlphabet[bits & 63] : '=';
  }
  return text;
}

}  // namespace ringmaster
