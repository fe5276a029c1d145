// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/state_io.h"

#include <llvm/Support/xxhash.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "runtime/executor/boundary_state.h"

namespace stowage::runtime {

namespace {

bool isRowMajor(const StateTensor& tensor) {
  const auto strides = ir::contiguousStrides(tensor.sizes);
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] != 1 && tensor.strides[i] != strides[i]) return false;
  }
  return true;
}

// Copies between a tensor's own order and row-major order.
class Reorder {
 public:
  explicit Reorder(const StateTensor& tensor)
      : tensor_(tensor), element_(static_cast<size_t>(ir::elementBytes(tensor.dtype))) {}

  void toFile(llvm::ArrayRef<uint8_t> own, llvm::MutableArrayRef<uint8_t> file) const {
    forEach([&](size_t ownAt, size_t fileAt) {
      std::memcpy(file.data() + fileAt, own.data() + ownAt, element_);
    });
  }
  void fromFile(llvm::ArrayRef<uint8_t> file, llvm::MutableArrayRef<uint8_t> own) const {
    forEach([&](size_t ownAt, size_t fileAt) {
      std::memcpy(own.data() + ownAt, file.data() + fileAt, element_);
    });
  }

 private:
  template <typename Visit>
  void forEach(Visit visit) const {
    std::vector<int64_t> index(tensor_.sizes.size(), 0);
    const auto count = std::accumulate(tensor_.sizes.begin(), tensor_.sizes.end(), int64_t{1},
                                       std::multiplies<>());
    for (int64_t i = 0; i < count; ++i) {
      int64_t own = 0;
      for (size_t d = 0; d < index.size(); ++d) own += index[d] * tensor_.strides[d];
      visit(static_cast<size_t>(own) * element_, static_cast<size_t>(i) * element_);
      for (size_t d = index.size(); d-- > 0;) {
        if (++index[d] < tensor_.sizes[d]) break;
        index[d] = 0;
      }
    }
  }

  const StateTensor& tensor_;
  size_t element_;
};

const std::string& fileName(const ir::Storage& storage, const StateFileOptions& options) {
  const auto found = options.names.find(storage.name);
  return found == options.names.end() ? storage.name : found->second;
}

bool isWanted(const ir::Storage& storage, const StateFileOptions& options) {
  if (!ir::isState(storage)) return false;
  return !options.wants || options.wants(storage);
}

}  // namespace

StateTensor describeState(const ir::Graph& graph, ir::StorageId storage) {
  const auto stateOf = [](const ir::TensorType& type) {
    return StateTensor{type.dtype,
                       {type.sizes.begin(), type.sizes.end()},
                       {type.strides.begin(), type.strides.end()}};
  };
  const Bytes bytes = ir::wholeBytes(graph.storage(storage));
  if (const std::optional<ir::TensorType>& whole = graph.storage(storage).shardOf) {
    if (safetensorsTypeName(whole->dtype)) return stateOf(*whole);
    return {ir::DType::kU8, {bytes.value()}, {1}};
  }
  for (const ir::Value& value : graph.values()) {
    if (value.storage != storage) continue;
    const ir::TensorType& type = value.type;
    if (!type.covers(bytes) || !safetensorsTypeName(type.dtype)) break;
    return stateOf(type);
  }
  return {ir::DType::kU8, {bytes.value()}, {1}};
}

ir::Expected<StateFiles> StateFiles::open(llvm::ArrayRef<std::string> paths) {
  StateFiles opened;
  for (const std::string& path : paths) {
    auto file = SafetensorsReader::open(path);
    if (!file) return file.takeError();
    for (const SafetensorsEntry& entry : file->header().entries) {
      if (opened.fileOf_.try_emplace(entry.name, opened.files_.size()).second) continue;
      return ir::makeError(ir::ErrorCode::kPlanMismatch,
                           "tensor '" + entry.name + "' is in '" + path + "' and in '" +
                               opened.files_[opened.fileOf_[entry.name]].path() + "'");
    }
    opened.metadata_.insert(file->header().metadata.begin(), file->header().metadata.end());
    opened.files_.push_back(std::move(*file));
  }
  return opened;
}

ir::Error StateFiles::check(const ir::Graph& graph, const StateFileOptions& options) const {
  ir::PlanError problems(ir::ErrorCode::kPlanMismatch, "the files do not hold this state");
  std::set<std::string> wanted;
  for (size_t i = 0; i < graph.storages().size(); ++i) {
    if (!isWanted(graph.storages()[i], options)) continue;
    const std::string& name = fileName(graph.storages()[i], options);
    wanted.insert(name);
    const SafetensorsEntry* entry = find(name);
    if (entry == nullptr) {
      problems.note("missing: '" + name + "'");
      continue;
    }
    const StateTensor expected = describeState(graph, ir::StorageId(i));
    if (entry->dtype == expected.dtype && entry->sizes == expected.sizes) continue;
    problems.note("'" + name + "' is " + entry->dtypeText + " " + ir::listText(entry->sizes) +
                  ", expected " + *safetensorsTypeName(expected.dtype) + " " +
                  ir::listText(expected.sizes));
  }
  for (const auto& [name, file] : fileOf_) {
    if (options.allowExtra || wanted.count(name) > 0 || options.known.count(name) > 0) continue;
    problems.note("extra: '" + name + "'");
  }
  return problems.notes().empty() ? ir::success() : ir::makeError(std::move(problems));
}

ir::Error StateFiles::read(const ir::Graph& graph, ir::StorageId storage,
                           const StateFileOptions& options,
                           llvm::MutableArrayRef<uint8_t> bytes) const {
  const std::string& name = fileName(graph.storage(storage), options);
  const SafetensorsEntry* entry = find(name);
  if (entry == nullptr) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument, "no file has tensor '" + name + "'");
  }
  const StateTensor tensor = describeState(graph, storage);
  if (isRowMajor(tensor)) return readEntry(*entry, bytes);
  std::vector<uint8_t> rowMajor(bytes.size());
  if (ir::Error error = readEntry(*entry, rowMajor)) return error;
  Reorder(tensor).fromFile(rowMajor, bytes);
  return ir::success();
}

uint64_t StateFiles::digest() const {
  std::string text;
  for (const SafetensorsReader& file : files_) {
    for (const auto& [key, value] : file.header().metadata) text += key + '=' + value + '\n';
  }
  return llvm::xxHash64(text);
}

std::vector<std::string> StateFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : fileOf_) names.push_back(name);
  return names;
}

const SafetensorsReader* StateFiles::owner(const std::string& name) const {
  const auto found = fileOf_.find(name);
  return found == fileOf_.end() ? nullptr : &files_[found->second];
}

const SafetensorsEntry* StateFiles::find(const std::string& name) const {
  const SafetensorsReader* file = owner(name);
  return file == nullptr ? nullptr : file->find(name);
}

ir::Error StateFiles::readEntry(const SafetensorsEntry& entry,
                                llvm::MutableArrayRef<uint8_t> bytes) const {
  return owner(entry.name)->read(entry, bytes);
}

std::vector<ir::StorageId> findSavedStorages(const PlanSource& source) {
  std::vector<ir::StorageId> saved;
  for (const ir::BoundaryEntry& entry : source.schedule.boundary) {
    if (isWanted(source.graph.storage(entry.storage), {}) && !entry.at.empty()) {
      saved.push_back(entry.storage);
    }
  }
  std::sort(saved.begin(), saved.end());
  return saved;
}

StateFileWriter::StateFileWriter(const ir::Graph& graph, StateFileLayout layout,
                                 SafetensorsWriter file)
    : graph_(&graph), layout_(std::move(layout)), file_(std::move(file)) {}

ir::Expected<StateFileWriter> StateFileWriter::create(const ir::Graph& graph,
                                                      StateFileLayout layout) {
  SafetensorsHeader header{{}, layout.metadata};
  for (const ir::StorageId storage : layout.storages) {
    StateTensor tensor = describeState(graph, storage);
    const auto found = layout.names.find(graph.storage(storage).name);
    const std::string& name =
        found == layout.names.end() ? graph.storage(storage).name : found->second;
    header.entries.push_back({name, "", tensor.dtype, std::move(tensor.sizes), {}});
  }
  for (const ExtraState& more : layout.extra) {
    std::vector<int64_t> sizes =
        more.sizes ? *more.sizes : std::vector<int64_t>{static_cast<int64_t>(more.bytes.size())};
    header.entries.push_back({more.name, "", more.dtype, std::move(sizes), {}});
  }
  auto file = SafetensorsWriter::create(layout.path, std::move(header));
  if (!file) return file.takeError();
  return StateFileWriter(graph, std::move(layout), std::move(*file));
}

bool StateFileWriter::holds(ir::StorageId storage) const {
  return std::binary_search(layout_.storages.begin(), layout_.storages.end(), storage);
}

ir::Error StateFileWriter::append(ir::StorageId storage, llvm::ArrayRef<uint8_t> bytes) {
  const StateTensor tensor = describeState(*graph_, storage);
  if (isRowMajor(tensor)) return file_.append(bytes);
  std::vector<uint8_t> rowMajor(bytes.size());
  Reorder(tensor).toFile(bytes, rowMajor);
  return file_.append(rowMajor);
}

void StateFileWriter::putExtra(const std::string& name, std::vector<uint8_t> bytes) {
  for (ExtraState& more : layout_.extra) {
    if (more.name == name) more.bytes = std::move(bytes);
  }
}

ir::Error StateFileWriter::commit() {
  for (const ExtraState& more : layout_.extra) {
    if (ir::Error error = file_.append(more.bytes)) return error;
  }
  return file_.commit();
}

ir::Error saveState(Executor& executor, const std::string& path,
                    const std::map<std::string, std::string>& metadata,
                    llvm::ArrayRef<ExtraState> extra) {
  auto writer = StateFileWriter::create(executor.source().graph,
                                        {.path = path,
                                         .storages = findSavedStorages(executor.source()),
                                         .names = {},
                                         .metadata = metadata,
                                         .extra = extra.vec()});
  if (!writer) return writer.takeError();
  const auto put = [&](ir::StorageId storage, llvm::ArrayRef<uint8_t> bytes) {
    return writer->append(storage, bytes);
  };
  if (ir::Error error = drainState(executor, put)) return error;
  return writer->commit();
}

}  // namespace stowage::runtime
