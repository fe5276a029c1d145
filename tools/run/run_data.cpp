// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_data.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/xxhash.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "ir/base/affix.h"
#include "runtime/files/safetensors.h"
#include "tools/run/text_batches.h"

namespace stowage::tools {

namespace {

using Input = TrainingStep::Input;
using runtime::SafetensorsEntry;
using runtime::SafetensorsReader;

ir::Error badData(const std::string& file, std::string what) {
  return ir::makeError(ir::PlanError(ir::ErrorCode::kParse, std::move(what)).at({.file = file}));
}

int64_t countOf(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

std::optional<c10::ScalarType> scalarTypeOf(const SafetensorsEntry& entry) {
  if (!entry.dtype) return std::nullopt;
  switch (*entry.dtype) {
    case ir::DType::kF32:
      return c10::kFloat;
    case ir::DType::kF64:
      return c10::kDouble;
    case ir::DType::kF16:
      return c10::kHalf;
    case ir::DType::kBF16:
      return c10::kBFloat16;
    case ir::DType::kI64:
      return c10::kLong;
    case ir::DType::kI32:
      return c10::kInt;
    case ir::DType::kI16:
      return c10::kShort;
    case ir::DType::kU8:
      return c10::kByte;
    case ir::DType::kBool:
      return c10::kBool;
    default:
      return std::nullopt;
  }
}

int64_t scalarTypeBytes(const SafetensorsEntry& entry) {
  return static_cast<int64_t>(c10::elementSize(*scalarTypeOf(entry)));
}

std::string hashText(llvm::StringRef text) {
  return "xxh64:" + llvm::utohexstr(llvm::xxHash64(text), /*LowerCase=*/true);
}

/// Integers may be stored narrower than the step reads them; other types must be the step's.
bool mayBecome(c10::ScalarType stored, const Input& input) {
  return stored == input.dtype || (c10::isIntegralType(stored, /*includeBool=*/false) &&
                                   c10::isIntegralType(input.dtype, /*includeBool=*/false));
}

/// The first value that the step cannot look up, by its place in `values`.
ir::Error checkRange(const std::string& file, const std::string& tensor, int64_t firstPlace,
                     const at::Tensor& values, const Input& input) {
  if (input.upperBound <= 0) return ir::success();
  const at::Tensor flat = values.reshape({-1});
  const auto* numbers = flat.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if (numbers[i] >= 0 && numbers[i] < input.upperBound) continue;
    return badData(file, "value " + std::to_string(firstPlace + i) + " of '" + tensor + "' is " +
                             std::to_string(numbers[i]) + ", expected one from 0 to " +
                             std::to_string(input.upperBound - 1));
  }
  return ir::success();
}

class StoredData : public RunData {
 public:
  StoredData(SafetensorsReader file, const std::vector<Input>& inputs)
      : file_(std::move(file)), inputs_(inputs) {}

  ir::Error open() {
    const SafetensorsEntry* tokens = file_.find("tokens");
    const bool isRow = tokens != nullptr && tokens->sizes.size() == 1 && readsTokens();
    if (ir::Error error = isRow ? openRow(*tokens) : openStacked()) return error;
    return takeFingerprint();
  }

  ir::Expected<runtime::Batch> at(int64_t position) override {
    return row_ != nullptr ? windowAt(position % batches_) : rowAt(position % batches_);
  }

  std::string describe() const override {
    return file_.path() + ", " + std::to_string(batches_) + " batches";
  }
  std::string identity() const override {
    return std::to_string(batches_) + " batches, " + fingerprint_;
  }

 private:
  /// Of the tensors that are read: names, types, sizes, first and last bytes.
  ir::Error takeFingerprint() {
    constexpr int64_t kEnd = int64_t{1} << 20;
    std::string text;
    const auto add = [&](const SafetensorsEntry& entry) -> ir::Error {
      text += entry.name + " " + entry.dtypeText + " " + ir::listText(entry.sizes) + "\n";
      const int64_t bytes = countOf(entry.sizes) * scalarTypeBytes(entry);
      const int64_t length = std::min(bytes, kEnd);
      for (const int64_t offset : {int64_t{0}, bytes - length}) {
        std::vector<uint8_t> part(static_cast<size_t>(length));
        if (ir::Error error = file_.readPart(entry, offset, part)) return error;
        text.append(part.begin(), part.end());
      }
      return ir::success();
    };
    if (row_ != nullptr) {
      if (ir::Error error = add(*row_)) return error;
    } else {
      for (const Input& input : inputs_) {
        if (ir::Error error = add(*file_.find(input.name))) return error;
      }
    }
    fingerprint_ = hashText(text);
    return ir::success();
  }

  /// Two inputs of equal shape: tokens, and the tokens after them.
  bool readsTokens() const {
    return inputs_.size() == 2 && inputs_[0].sizes.size() == 2 &&
           inputs_[0].sizes == inputs_[1].sizes && inputs_[0].dtype == c10::kLong &&
           inputs_[1].dtype == c10::kLong;
  }

  ir::Error openRow(const SafetensorsEntry& tokens) {
    const std::optional<c10::ScalarType> type = scalarTypeOf(tokens);
    if (!type || !mayBecome(*type, inputs_[0])) {
      return badData(file_.path(), "'tokens' is " + tokens.dtypeText + ", expected integers");
    }
    batches_ = (tokens.sizes[0] - 1) / countOf(inputs_[0].sizes);
    if (batches_ < 1) {
      return badData(file_.path(), "'tokens' has " + std::to_string(tokens.sizes[0]) +
                                       " values, expected at least " +
                                       std::to_string(countOf(inputs_[0].sizes) + 1) +
                                       " for one batch");
    }
    row_ = &tokens;
    return ir::success();
  }

  ir::Error openStacked() {
    ir::PlanError problems(ir::ErrorCode::kParse, "the file does not hold this step's inputs");
    problems.at({.file = file_.path()});
    for (const Input& input : inputs_) checkStacked(input, problems);
    return problems.notes().empty() ? ir::success() : ir::makeError(std::move(problems));
  }

  void checkStacked(const Input& input, ir::PlanError& problems) {
    const SafetensorsEntry* entry = file_.find(input.name);
    if (entry == nullptr) {
      problems.note("missing: '" + input.name + "'");
      return;
    }
    const std::vector<int64_t> sizes(entry->sizes.begin() + !entry->sizes.empty(),
                                     entry->sizes.end());
    const std::optional<c10::ScalarType> type = scalarTypeOf(*entry);
    const bool hasRows = !entry->sizes.empty() && entry->sizes[0] > 0;
    if (!hasRows || sizes != input.sizes || !type || !mayBecome(*type, input)) {
      problems.note("'" + input.name + "' is " + entry->dtypeText + " " +
                    ir::listText(entry->sizes) + ", expected " + c10::toString(input.dtype) +
                    " [steps," + ir::listText(input.sizes).substr(1));
      return;
    }
    if (batches_ > 0 && batches_ != entry->sizes[0]) {
      problems.note("'" + input.name + "' has " + std::to_string(entry->sizes[0]) +
                    " steps, the input before it " + std::to_string(batches_));
    }
    batches_ = entry->sizes[0];
  }

  /// `count` values of an entry from number `first` on, as the input's type.
  ir::Expected<at::Tensor> read(const SafetensorsEntry& entry, int64_t first, int64_t count,
                                const Input& input) const {
    const at::Tensor stored =
        at::empty({count}, at::TensorOptions().dtype(*scalarTypeOf(entry)).device(at::kCPU));
    const auto element = static_cast<int64_t>(stored.element_size());
    if (ir::Error error =
            file_.readPart(entry, first * element,
                           {static_cast<uint8_t*>(stored.mutable_data_ptr()), stored.nbytes()})) {
      return error;
    }
    at::Tensor values = stored.to(input.dtype);
    if (ir::Error error = checkRange(file_.path(), entry.name, first, values, input)) return error;
    return values;
  }

  ir::Expected<runtime::Batch> rowAt(int64_t row) const {
    runtime::Batch batch;
    for (const Input& input : inputs_) {
      const int64_t count = countOf(input.sizes);
      ir::Expected<at::Tensor> values = read(*file_.find(input.name), row * count, count, input);
      if (!values) return values.takeError();
      batch.push_back(values->view(input.sizes));
    }
    return batch;
  }

  ir::Expected<runtime::Batch> windowAt(int64_t window) const {
    const Input& input = inputs_[0];
    const int64_t count = countOf(input.sizes);
    ir::Expected<at::Tensor> values = read(*row_, window * count, count + 1, input);
    if (!values) return values.takeError();
    return runtime::Batch{values->narrow(0, 0, count).view(input.sizes).clone(),
                          values->narrow(0, 1, count).reshape(input.sizes).clone()};
  }

  SafetensorsReader file_;
  const std::vector<Input>& inputs_;
  const SafetensorsEntry* row_ = nullptr;  // of tokens; else stacked
  int64_t batches_ = 0;
  std::string fingerprint_;
};

class TextData : public RunData {
 public:
  TextData(TextBatches text, std::vector<int64_t> sizes)
      : text_(std::move(text)), sizes_(std::move(sizes)) {}
  ir::Expected<runtime::Batch> at(int64_t position) override {
    text_.seek(position);
    const TextBatch batch = text_.next();
    return runtime::Batch{at::tensor(batch.tokens).view(sizes_),
                          at::tensor(batch.targets).view(sizes_)};
  }
  std::string describe() const override {
    return std::to_string(text_.textBytes()) + " bytes of text";
  }
  std::string identity() const override { return describe() + ", " + hashText(text_.text()); }

 private:
  TextBatches text_;
  std::vector<int64_t> sizes_;
};

class RandomData : public RunData {
 public:
  RandomData(const std::vector<Input>& inputs, uint64_t seed) : inputs_(inputs), seed_(seed) {}
  ir::Expected<runtime::Batch> at(int64_t position) override {
    return makeInputs(inputs_, seed_ * 1'000'003 + static_cast<uint64_t>(position));
  }
  std::string describe() const override { return "random numbers"; }
  std::string identity() const override { return describe(); }

 private:
  const std::vector<Input>& inputs_;
  uint64_t seed_;
};

ir::Expected<std::unique_ptr<RunData>> openText(const std::vector<std::string>& files,
                                                const std::vector<Input>& inputs, uint64_t seed) {
  constexpr int64_t kByteValues = 256;
  const Input& input = inputs.front();
  const bool readsBytes = inputs.size() == 2 && input.sizes.size() == 2 &&
                          input.dtype == c10::kLong && input.upperBound >= kByteValues;
  if (!readsBytes) {
    return badData(files.front(),
                   "a text, expected safetensors with this step's inputs: it does not read tokens "
                   "of at least 256 kinds");
  }
  ir::Expected<TextBatches> text = TextBatches::open(files, input.sizes[0], input.sizes[1], seed);
  if (!text) {
    const ir::PlanError error = ir::takePayload(text.takeError());
    if (error.code() == ir::ErrorCode::kIo) return ir::makeError(error);
    return badData(files.front(), error.text());
  }
  if (text->text().find('\0') != std::string::npos) {
    return badData(files.front(),
                   "a zero byte, which no text holds, expected text; safetensors are known by a "
                   "name that ends with .safetensors");
  }
  return std::make_unique<TextData>(std::move(*text), input.sizes);
}

}  // namespace

ir::Expected<std::unique_ptr<RunData>> openRunData(const std::vector<std::string>& files,
                                                   const std::vector<Input>& inputs,
                                                   uint64_t seed) {
  if (files.empty()) return std::make_unique<RandomData>(inputs, seed);
  if (!ir::endsWith(files.front(), ".safetensors")) return openText(files, inputs, seed);
  if (files.size() > 1) {
    return badData(files[1], "a second data file, expected one file of safetensors");
  }
  ir::Expected<SafetensorsReader> file = SafetensorsReader::open(files.front());
  if (!file) return file.takeError();
  auto data = std::make_unique<StoredData>(std::move(*file), inputs);
  if (ir::Error error = data->open()) return error;
  return data;
}

}  // namespace stowage::tools
