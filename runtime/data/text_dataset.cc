#include "runtime/data/text_dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/data_file.h"

namespace ringmaster::data {
namespace {

using training::v1alpha1::TextData;

class TextDataset : public Dataset {
 public:
  // The windows of `tokens`, each of which needs one token after it.
  TextDataset(SampleFormat format, std::vector<int32_t> tokens)
      : Dataset(std::move(format)),
        tokens_(std::move(tokens)),
        window_(static_cast<size_t>(this->format().labels())) {}

  uint32_t size() const override {
    return tokens_.empty() ? 0 : static_cast<uint32_t>((tokens_.size() - 1) / window_);
  }

 private:
  void CopySample(uint32_t row, void* input, int32_t* labels) const override {
    const int32_t* first = tokens_.data() + row * window_;
    std::memcpy(input, first, window_ * sizeof(int32_t));
    std::memcpy(labels, first + 1, window_ * sizeof(int32_t));
  }

  std::vector<int32_t> tokens_;
  size_t window_;
};

struct Tokens {
  std::vector<int32_t> all;
  int32_t vocabulary = 0;
  const char* unit = "";  // for messages
};

Tokens CharactersOf(std::string_view text) {
  std::array<bool, 256> seen{};
  for (const char c : text) seen[static_cast<uint8_t>(c)] = true;
  Tokens tokens{.all = std::vector<int32_t>(text.size()), .unit = "character"};
  std::array<int32_t, 256> token_of{};
  for (size_t byte = 0; byte < seen.size(); ++byte) {
    if (seen[byte]) token_of[byte] = tokens.vocabulary++;
  }
  std::ranges::transform(text, tokens.all.begin(),
                         [&](char c) { return token_of[static_cast<uint8_t>(c)]; });
  return tokens;
}

absl::StatusOr<Tokens> NumbersOf(const DataFile& file, int32_t vocabulary) {
  const size_t width = vocabulary > (1 << 16) ? 4 : 2;
  const size_t bytes = file.content.size();
  if (bytes % width != 0) {
    return file.Error(
        fmt::format("{} bytes are no whole number of tokens of {} bytes each, as a "
                    "vocabulary of {} has them",
                    bytes, width, vocabulary));
  }
  Tokens tokens{
      .all = std::vector<int32_t>(bytes / width), .vocabulary = vocabulary, .unit = "token"};
  const char* at = file.content.data();
  for (size_t i = 0; i < tokens.all.size(); ++i) {
    uint32_t token = 0;
    for (size_t byte = 0; byte < width; ++byte)
      token |= uint32_t{static_cast<uint8_t>(*at++)} << (8 * byte);
    if (token >= static_cast<uint32_t>(vocabulary)) {
      return file.Error(
          fmt::format("token {}, at place {} of the file counted from 0, is not one of a "
                      "vocabulary of {}",
                      token, i, vocabulary));
    }
    tokens.all[i] = static_cast<int32_t>(token);
  }
  return tokens;
}

absl::StatusOr<Tokens> TokensOf(const DataFile& file, const TextData& config) {
  return config.vocabulary ? NumbersOf(file, *config.vocabulary) : CharactersOf(file.content);
}

// How the file was cut.
std::string Settings(const TextData& config) {
  std::string text = fmt::format("text window={} hold-out={}", config.window, config.hold_out);
  if (config.vocabulary) text += fmt::format(" vocabulary={}", *config.vocabulary);
  return text;
}

}  // namespace

absl::StatusOr<Splits> LoadText(const TextData& config, const std::string& workspace) {
  RM_ASSIGN_OR_RETURN(const DataFile file, ReadDataFile(config.path, workspace));
  RM_ASSIGN_OR_RETURN(Tokens tokens, TokensOf(file, config));
  const size_t count = tokens.all.size();
  const auto held = static_cast<size_t>(std::floor(config.hold_out * static_cast<double>(count)));
  const size_t needed = static_cast<size_t>(config.window) + 1;
  for (const size_t part : {count - held, held > 0 ? held : needed}) {
    if (part < needed) {
      return file.Error(fmt::format(
          "{} {}s, of which {} are held out: too few for a window of {} and the {} after it in "
          "each part",
          count, tokens.unit, held, config.window, tokens.unit));
    }
  }
  const tensor::Shape window({config.window});
  const SampleFormat format{
      .input = {window, tensor::DType::kI32}, .label_shape = window, .classes = tokens.vocabulary};
  std::vector<int32_t> held_out(tokens.all.end() - static_cast<ptrdiff_t>(held), tokens.all.end());
  tokens.all.resize(count - held);
  return Splits{.train = std::make_unique<TextDataset>(format, std::move(tokens.all)),
                .held_out = std::make_unique<TextDataset>(format, std::move(held_out)),
                .fingerprint = Fingerprint(file.content, Settings(config))};
}

}  // namespace ringmaster::data
