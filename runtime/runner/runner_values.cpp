// SPDX-License-Identifier: Apache-2.0
//
// What storages of the state hold: first values, and between two steps.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <llvm/Support/xxhash.h>

#include <utility>
#include <vector>

#include "runtime/executor/boundary_state.h"
#include "runtime/ranks/shard_bytes.h"
#include "runtime/runner/runner_impl.h"

namespace stowage::runtime {

ir::Error Runner::Impl::putState(ir::StorageId storage, llvm::ArrayRef<uint8_t> bytes) {
  const ir::Storage& info = plan.graph.storage(storage);
  const Bytes whole = ir::wholeBytes(info);
  if (static_cast<int64_t>(bytes.size()) != whole.value()) {
    return ir::makeError(ir::ErrorCode::kInvalidArgument,
                         "state '" + info.name + "' has " + std::to_string(bytes.size()) +
                             " bytes, expected " + std::to_string(whole.value()));
  }
  if (ranks != nullptr && !rankStates[storage.index()]) {
    firstValues = llvm::xxHash64(bytes) + 31 * firstValues;
  }
  const ir::BoundaryEntry* entry = findBoundary(storage);
  if (entry == nullptr) return ir::success();  // nothing of the step touches it
  if (!info.shardOf) return writeState(*device, plan.schedule, *entry, bytes);
  std::vector<uint8_t> shard(static_cast<size_t>(info.bytes.value()));
  cutShard(bytes, ranks->rank(), shard);
  return writeState(*device, plan.schedule, *entry, shard);
}

/// What a storage holds now, as bytes of its own.
ir::Expected<at::Tensor> Runner::Impl::currentValue(ir::StorageId storage) {
  const ir::Storage& info = plan.graph.storage(storage);
  at::Tensor bytes = at::empty({info.bytes.value()}, at::kByte);
  const llvm::MutableArrayRef<uint8_t> into(bytes.data_ptr<uint8_t>(),
                                            static_cast<size_t>(info.bytes.value()));
  const ir::BoundaryEntry* entry = findBoundary(storage);
  // Every step overwrites it before it reads it: between steps it holds nothing.
  if (entry != nullptr && entry->at.empty()) {
    return at::zeros({ir::wholeBytes(info).value()}, at::kByte);
  }
  if (entry == nullptr) {
    return ir::makeError(ir::ErrorCode::kInternal,
                         "state '" + info.name + "' has no place at the step's boundary");
  }
  const ir::Residency& residency = plan.schedule.residency(entry->at.front());
  if (ir::Error error = device->read(residency.space, residency.offset, into)) return error;
  return info.shardOf ? joinedValue(storage, bytes) : bytes;
}

/// What a storage holds that no command of the plan touches: what it held at first.
ir::Expected<at::Tensor> Runner::Impl::firstValueOf(ir::StorageId captured) {
  const std::string& name = this->captured.graph().storage(captured).name;
  const auto fromFile = givenUnused.find(captured);
  if (fromFile != givenUnused.end()) return fromFile->second.clone();
  if (this->captured.firstValue(captured) == FirstValue::kLive) {
    return this->captured.liveValue(captured).clone();
  }
  if (this->captured.firstValue(captured) == FirstValue::kStep) {
    return this->captured.makeState(captured, [&](ir::StorageId id) { return capturedValue(id); });
  }
  at::Tensor made;
  const auto isIt = [&](ir::StorageId id) { return id == captured; };
  const auto keep = [&](ir::StorageId, const at::Tensor& bytes) {
    made = bytes.clone();
    return ir::success();
  };
  if (ir::Error error = this->captured.replayConstruction(isIt, keep)) return error;
  if (made.defined()) return made;
  return ir::makeError(ir::ErrorCode::kInternal, "'" + name + "' has no value in the plan");
}

ir::Expected<at::Tensor> Runner::Impl::capturedValue(ir::StorageId captured) {
  if (shared) {
    ir::Expected<at::Tensor> value = shared->value(captured);
    if (!value || value->defined()) return value;
    return firstValueOf(captured);
  }
  const ir::StorageId planned = match.plannedOf(captured);
  return planned.isValid() ? currentValue(planned) : firstValueOf(captured);
}

ir::Error Runner::Impl::fillState() {
  const auto persistent = [&](ir::StorageId storage, FirstValue from) {
    return storage.isValid() && ir::isState(plan.graph.storage(storage)) &&
           captured.firstValue(match.capturedOf(storage)) == from &&
           !comesFromFile(plan.graph.storage(storage));
  };
  if (ir::Error error = readWeights()) return error;
  for (size_t i = 0; i < plan.graph.storages().size(); ++i) {
    const ir::StorageId storage(i);
    if (!persistent(storage, FirstValue::kLive)) continue;
    const at::Tensor value = captured.liveValue(match.capturedOf(storage));
    if (ir::Error error = putState(storage, bytesOf(value))) return error;
  }
  if (ir::Error error = captured.replayConstruction(
          [&](ir::StorageId id) {
            return persistent(match.plannedOf(id), FirstValue::kConstruction);
          },
          [&](ir::StorageId id, const at::Tensor& bytes) {
            return putState(match.plannedOf(id), bytesOf(bytes));
          })) {
    return error;
  }
  const auto valueOf = [&](ir::StorageId id) { return capturedValue(id); };
  for (size_t i = 0; i < plan.graph.storages().size(); ++i) {
    const ir::StorageId storage(i);
    if (!persistent(storage, FirstValue::kStep)) continue;
    ir::Expected<at::Tensor> value = captured.makeState(match.capturedOf(storage), valueOf);
    if (!value) return value.takeError();
    if (ir::Error error = putState(storage, bytesOf(*value))) return error;
  }
  return ir::success();
}

}  // namespace stowage::runtime
