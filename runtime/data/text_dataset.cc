#include "runtime/data/text_dataset.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
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

// The token of every byte, and how many tokens there are.
struct Vocabulary {
  std::array<int32_t, 256> token{};
  int32_t size = 0;
};

Vocabulary VocabularyOf(std::string_view text) {
  std::array<bool, 256> seen{};
  for (const char c : text) seen[static_cast<uint8_t>(c)] = true;
  Vocabulary vocabulary;
  for (size_t byte = 0; byte < seen.size(); ++byte) {
    if (seen[byte]) vocabulary.token[byte] = vocabulary.size++;
  }
  return vocabulary;
}

std::vector<int32_t> Encode(std::string_view text, const Vocabulary& vocabulary) {
  std::vector<int32_t> tokens(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    tokens[i] = vocabulary.token[static_cast<uint8_t>(text[i])];
  }
  return tokens;
}

}  // namespace

absl::StatusOr<Splits> LoadText(const TextData& config, const std::string& workspace) {
  RM_ASSIGN_OR_RETURN(const DataFile file, ReadDataFile(config.path, workspace));
  const std::string_view text = file.content;
  const auto held =
      static_cast<size_t>(std::floor(config.hold_out * static_cast<double>(text.size())));
  const size_t needed = static_cast<size_t>(config.window) + 1;
  for (const size_t part : {text.size() - held, held > 0 ? held : needed}) {
    if (part < needed) {
      return file.Error(
          fmt::format("{} characters, of which {} are held out: too few for a window of {} and the "
                      "character after it in each part",
                      text.size(), held, config.window));
    }
  }
  const Vocabulary vocabulary = VocabularyOf(text);
  const tensor::Shape window({config.window});
  const SampleFormat format{
      .input = {window, tensor::DType::kI32}, .label_shape = window, .classes = vocabulary.size};
  const size_t split = text.size() - held;
  return Splits{
      .train = std::make_unique<TextDataset>(format, Encode(text.substr(0, split), vocabulary)),
      .held_out = std::make_unique<TextDataset>(format, Encode(text.substr(split), vocabulary)),
      .fingerprint = Fingerprint(
          text, fmt::format("text window={} hold-out={}", config.window, config.hold_out))};
}

}  // namespace ringmaster::data
