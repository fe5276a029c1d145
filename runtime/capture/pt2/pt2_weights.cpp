// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/pt2/pt2_weights.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/xxhash.h>

#include <optional>
#include <utility>

#include "ir/base/affix.h"
#include "runtime/capture/pt2/pt2_codes.h"
#include "runtime/capture/pt2/pt2_json.h"
#include "runtime/capture/pt2/pt2_json_fields.h"
#include "runtime/capture/pt2/pt2_zip.h"
#include "runtime/files/input_file.h"

namespace stowage::runtime {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxRank = 64;

/// What the index of weights or constants says of one tensor.
struct IndexRow {
  std::string name;
  std::string file;  // beside the index
  bool pickled = false;
  ir::TensorType type;
};

class IndexReader {
 public:
  explicit IndexReader(const std::string& file) : fields_(file) {}

  ir::Expected<std::vector<IndexRow>> read(const Json& document) {
    std::vector<IndexRow> rows;
    for (const auto& [name, meta] : fields_.object(document, "config").items()) {
      fields_.setPlace("tensor '" + name + "'");
      IndexRow row{.name = name, .file = fields_.text(meta, "path_name")};
      row.pickled = fields_.asBool(fields_.get(meta, "use_pickle"), "use_pickle");
      // Other things than tensors (opaque objects) have none.
      const Json* tensor = fields_.find(meta, "tensor_meta");
      if (tensor != nullptr && !tensor->is_null()) row.type = readType(*tensor);
      if (row.file.find('/') != std::string::npos) fields_.fail("found a path, expected a name");
      rows.push_back(std::move(row));
    }
    if (ir::Error error = fields_.takeError()) return error;
    return rows;
  }

 private:
  ir::TensorType readType(const Json& meta) {
    ir::TensorType type;
    const int64_t code = fields_.integer(meta, "dtype");
    const Pt2Code* known = nullptr;
    for (const Pt2Code& row : kScalarTypes) known = row.code == code ? &row : known;
    if (known == nullptr) {
      fields_.fail("element type " + std::to_string(code) + " has no counterpart here",
                   ir::ErrorCode::kUnsupported);
      return type;
    }
    type.dtype = *ir::findDType(known->name);
    type.sizes = readNumbers(fields_.array(meta, "sizes"));
    type.strides = readNumbers(fields_.array(meta, "strides"));
    type.offset = fields_.integer(fields_.get(meta, "storage_offset"), "as_int");
    if (type.offset < 0 || !type.findExtentBytes()) {
      fields_.fail("found sizes, strides and an offset that no tensor has");
      return {};
    }
    return type;
  }

  llvm::SmallVector<int64_t, 4> readNumbers(const Json& list) {
    llvm::SmallVector<int64_t, 4> numbers;
    if (list.size() > kMaxRank) fields_.fail("found too many dimensions");
    for (const Json& number : list) {
      if (fields_.failed()) break;
      numbers.push_back(fields_.integer(number, "as_int"));
    }
    return numbers;
  }

  JsonFields<Json> fields_;
};

bool isIndex(llvm::StringRef entry) {
  llvm::SmallVector<llvm::StringRef, 4> parts;
  entry.split(parts, '/');
  if (parts.size() < 3) return false;
  const llvm::StringRef data = parts[parts.size() - 3];
  const llvm::StringRef kind = parts[parts.size() - 2];
  return data == "data" &&
         ((kind == "weights" && ir::endsWith(parts.back(), "_weights_config.json")) ||
          (kind == "constants" && ir::endsWith(parts.back(), "_constants_config.json")));
}

}  // namespace

ArchiveWeights::ArchiveWeights(std::string path, std::unique_ptr<ZipArchive> archive)
    : path_(std::move(path)), archive_(std::move(archive)) {}
ArchiveWeights::ArchiveWeights(ArchiveWeights&&) noexcept = default;
ArchiveWeights& ArchiveWeights::operator=(ArchiveWeights&&) noexcept = default;
ArchiveWeights::~ArchiveWeights() = default;

ir::Error ArchiveWeights::bad(ir::ErrorCode code, const std::string& what) const {
  return ir::makeError(ir::PlanError(code, what).at({.file = path_}));
}

ir::Expected<ArchiveWeights> ArchiveWeights::open(const std::string& path) {
  ir::Expected<ZipArchive> archive = ZipArchive::open(path);
  if (!archive) return archive.takeError();
  ArchiveWeights weights(path, std::make_unique<ZipArchive>(std::move(*archive)));
  if (ir::Error error = weights.readIndexes()) return error;
  return weights;
}

ir::Error ArchiveWeights::readIndexes() {
  for (const ZipEntry& entry : archive_->entries()) {
    if (!isIndex(entry.name)) continue;
    if (ir::Error error = readIndex(entry.name)) return error;
  }
  return ir::success();
}

ir::Error ArchiveWeights::readIndex(llvm::StringRef entry) {
  ir::Expected<llvm::StringRef> text = archive_->read(entry);
  if (!text) return text.takeError();
  const std::string place = path_ + ":" + entry.str();
  ir::Expected<Json> document = parseJson<Json>(*text, place);
  if (!document) return document.takeError();
  ir::Expected<std::vector<IndexRow>> rows = IndexReader(place).read(*document);
  if (!rows) return rows.takeError();
  const std::string folder = entry.substr(0, entry.rfind('/') + 1).str();
  for (IndexRow& row : *rows) {
    Entry made{.file = folder + row.file, .pickled = row.pickled, .type = std::move(row.type)};
    tensors_.emplace(std::move(row.name), std::move(made));
  }
  return ir::success();
}

ir::Expected<llvm::StringRef> ArchiveWeights::read(const std::string& name,
                                                   const ir::TensorType& type) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return bad(ir::ErrorCode::kPlanMismatch, "holds no tensor '" + name + "'");
  }
  const Entry& entry = found->second;
  if (entry.pickled) {
    return bad(ir::ErrorCode::kUnsupported,
               "tensor '" + name + "' is kept as a pickle, expected plain bytes");
  }
  if (entry.type.dtype != type.dtype || entry.type.sizes != type.sizes ||
      entry.type.strides != type.strides) {
    return bad(ir::ErrorCode::kPlanMismatch,
               "tensor '" + name + "' has another element type, shape or strides than the step's");
  }
  ir::Expected<llvm::StringRef> bytes = archive_->read(entry.file);
  if (!bytes) return bytes.takeError();
  const auto extent = static_cast<size_t>(entry.type.extentBytes().value());
  const auto first = static_cast<size_t>(entry.type.offset * ir::elementBytes(type.dtype));
  if (extent == 0) return llvm::StringRef();
  if (bytes->size() < extent) {
    return bad(ir::ErrorCode::kParse, "entry '" + entry.file + "' has " +
                                          std::to_string(bytes->size()) + " bytes, tensor '" +
                                          name + "' needs " + std::to_string(extent));
  }
  return bytes->slice(first, extent);
}

ir::Expected<std::string> archiveFingerprint(const std::string& path) {
  ir::Expected<std::unique_ptr<llvm::MemoryBuffer>> buffer = mapInput(path);
  if (!buffer) return buffer.takeError();
  std::string digits = llvm::utohexstr(llvm::xxHash64((*buffer)->getBuffer()), /*LowerCase=*/true);
  return "xxh64:" + std::string(16 - digits.size(), '0') + digits;
}

}  // namespace stowage::runtime
