// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/launcher.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/executor/run_accesses.h"
#include "runtime/torch/result_check.h"
#include "runtime/torch/torch_boundary.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {

ir::Expected<std::unique_ptr<Launcher>> Launcher::make(const ProgramSource& source,
                                                       ir::Stream stream, c10::Device device,
                                                       ArenaBases bases,
                                                       std::unique_ptr<RngKeeper> rng) {
  auto tensors = BoundTensors::make(source.graph, device);
  if (!tensors) return tensors.takeError();
  std::unique_ptr<Launcher> launcher(
      new Launcher(source, bases, std::move(*tensors), std::move(rng)));
  if (ir::Error error = launcher->prepare(stream)) return error;
  return launcher;
}

Launcher::Launcher(const ProgramSource& source, ArenaBases bases, BoundTensors tensors,
                   std::unique_ptr<RngKeeper> rng)
    : source_(source),
      bases_(bases),
      tensors_(std::move(tensors)),
      rng_(std::move(rng)),
      callOfNode_(source.graph.nodes().size(), {-1, -1}),
      launches_(source.schedule.commands.size()) {}

// What an op of a GPU leaves on the host it writes when it is launched, not when it runs. No wait
// of the schedule is about that moment, so these bytes are not those of the host arena, where a
// copy may still read: they have memory of their own.
void Launcher::makeHostSlots() {
  const ir::Schedule& schedule = source_.schedule;
  hostSlots_.resize(schedule.residencies.size());
  for (size_t i = 0; i < schedule.residencies.size(); ++i) {
    const ir::Residency& residency = schedule.residencies[i];
    const ir::Storage& storage = source_.graph.storage(residency.storage);
    if (residency.space != ir::Space::kHost || storage.home != ir::Space::kHost) continue;
    if (storage.persistent || storage.role == ir::Role::kInput) continue;
    hostSlots_[i].resize(static_cast<size_t>(storage.bytes.value()));
  }
}

ir::Error Launcher::prepare(ir::Stream stream) {
  makeHostSlots();
  for (size_t i = 0; i < source_.schedule.commands.size(); ++i) {
    const ir::Command& command = source_.schedule.commands[i];
    if (command.kind != ir::CommandKind::kRun || command.stream != stream) continue;
    if (ir::Error error = prepareLaunch(ir::CommandId(i))) return error;
  }
  return ir::success();
}

ir::Error Launcher::prepareLaunch(ir::CommandId id) {
  const ir::Command& command = source_.schedule.command(id);
  PreparedLaunch& prepared = launches_[id.index()];
  auto call = findCall(command);
  if (!call) return call.takeError();
  prepared.call = *call;
  prepared.placement.tempOffset = std::max<int64_t>(command.temp.offset, 0);
  prepared.placement.tempBytes = command.temp.bytes;
  bindOperands(command, prepared);
  return placeResults(command, prepared);
}

// The original and the recomputes of a node share one prepared call.
ir::Expected<int32_t> Launcher::findCall(const ir::Command& command) {
  const bool replay = runsInReplayForm(source_.graph, command);
  int32_t& call = callOfNode_[command.node.index()][replay ? 1 : 0];
  if (call >= 0) return call;
  auto made =
      prepareCall(source_.graph, command.node, replay ? CallForm::kReplay : CallForm::kAsCaptured,
                  [&](ir::ValueId value) { return tensors_.tensor(value); });
  if (!made) return made.takeError();
  calls_.push_back(std::move(*made));
  call = static_cast<int32_t>(calls_.size() - 1);
  return call;
}

uint8_t* Launcher::address(ir::ResidencyId residency) {
  const ir::Residency& place = source_.schedule.residency(residency);
  std::vector<uint8_t>& slot = hostSlots_[residency.index()];
  if (!slot.empty()) return slot.data();
  return (place.space == ir::Space::kHost ? bases_.host : bases_.device) + place.offset;
}

// A storage that is written is bound to where it is written: in place, or overwritten elsewhere.
void Launcher::bindOperands(const ir::Command& command, PreparedLaunch& prepared) {
  const std::vector<ir::StorageId> fresh = freshDeviceResults(source_.graph, command.node);
  size_t nextIn = 0;
  size_t nextOut = 0;
  for (const ir::Access& access : accessesOf(source_.graph, command)) {
    ir::ResidencyId residency;
    if (access.reads()) residency = command.in[nextIn++];
    if (access.writes()) residency = command.out[nextOut++];
    prepared.binds.emplace_back(access.storage, residency.isValid() ? address(residency) : nullptr);
    const bool isFresh = llvm::is_contained(fresh, access.storage);
    if (residency.isValid() && !isFresh) noteOperand(residency, prepared.placement);
  }
}

void Launcher::noteOperand(ir::ResidencyId residency, LaunchPlacement& placement) const {
  const ir::Residency& operand = source_.schedule.residency(residency);
  if (operand.space != ir::Space::kDevice) return;
  const int64_t end = operand.offset + residencyBytes(source_, residency).value();
  placement.operandsEnd = std::max(placement.operandsEnd, end);
}

ir::Error Launcher::placeResults(const ir::Command& command, PreparedLaunch& prepared) {
  const ir::Graph& graph = source_.graph;
  const auto placeOf = [&](ir::StorageId storage) -> uint8_t* {
    for (const auto& [bound, place] : prepared.binds) {
      if (bound == storage) return place;
    }
    return nullptr;
  };
  for (const ir::ValueId value : graph.node(command.node).results) {
    prepared.results.push_back({value});
    if (!value.isValid()) continue;
    const ir::TensorType& type = graph.value(value).type;
    prepared.results.back().address =
        placeOf(graph.value(value).storage) + type.offset * ir::elementBytes(type.dtype);
    const ir::Storage& storage = graph.storage(graph.value(value).storage);
    prepared.results.back().onHost =
        source_.target.device == ir::DeviceKind::kCuda && storage.home == ir::Space::kHost;
  }
  const std::vector<ir::StorageId> fresh = freshDeviceResults(graph, command.node);
  const std::vector<int32_t> ordinals = findOrdinals(command.node, fresh.size());
  if (ordinals.size() != fresh.size()) {
    return ir::makeError(ir::ErrorCode::kPlanMismatch,
                         graph.describeNode(command.node) + " makes " +
                             std::to_string(fresh.size()) + " results, its costs know " +
                             std::to_string(ordinals.size()));
  }
  for (size_t k = 0; k < fresh.size(); ++k) {
    prepared.placement.results.push_back(
        {ordinals[k], placeOf(fresh[k]) - bases_.device, graph.storage(fresh[k]).bytes});
  }
  return ir::success();
}

// Without measurement the results are taken to be the first allocations: true of most ops, and
// checked by every launch.
std::vector<int32_t> Launcher::findOrdinals(ir::NodeId node, size_t results) const {
  if (source_.costs != nullptr && source_.costs->nodes[node.index()].allocations >= 0) {
    return source_.costs->nodes[node.index()].resultOrdinals;
  }
  std::vector<int32_t> ordinals;
  for (size_t k = 0; k < results; ++k) ordinals.push_back(static_cast<int32_t>(k));
  return ordinals;
}

ir::Error Launcher::launch(ir::CommandId id, llvm::ArrayRef<ScalarValue> scalars,
                           StepAllocator& allocator, AllocationSource& allocations) {
  const ir::Command& command = source_.schedule.command(id);
  const PreparedLaunch& prepared = launches_[id.index()];
  for (const auto& [storage, place] : prepared.binds) tensors_.bind(storage, place);
  rng_->before(command);
  std::vector<c10::IValue> stack;
  allocator.beginLaunch(prepared.placement, source_.graph.describeNode(command.node));
  allocations.serving.store(&allocator, std::memory_order_release);
  ir::Error called = callOp(prepared, scalars, stack);
  ir::Error checked = called ? ir::success() : checkResults(command.node, prepared, stack);
  // The results' handles go before the count of what is still allocated.
  stack.clear();
  allocations.serving.store(nullptr, std::memory_order_release);
  ir::Error served = allocator.endLaunch();
  rng_->after(command);
  // A refused allocation is the cause of a call that failed; a wrong place the cause of the rest.
  if (served) {
    llvm::consumeError(std::move(called));
    llvm::consumeError(std::move(checked));
    return served;
  }
  if (called) {
    llvm::consumeError(std::move(checked));
    return called;
  }
  return checked;
}

ir::Error Launcher::callOp(const PreparedLaunch& prepared, llvm::ArrayRef<ScalarValue> scalars,
                           std::vector<c10::IValue>& stack) {
  const OpCall& call = calls_[static_cast<size_t>(prepared.call)];
  if (!call.scalars.empty() && scalars.empty()) {
    return ir::makeError(ir::ErrorCode::kInternal,
                         call.op.operator_name().name + " runs before its step scalars are known");
  }
  return callTorch(call.op.operator_name().name, [&] {
    const at::AutoDispatchBelowADInplaceOrView below;
    stack = makeStack(call, scalars);
    call.op.callBoxed(stack);
  });
}

ir::Error Launcher::checkResults(ir::NodeId node, const PreparedLaunch& prepared,
                                 const std::vector<c10::IValue>& stack) {
  size_t next = 0;
  std::string wrong;
  forEachResult(stack, [&](const at::Tensor& result) {
    const size_t k = next++;
    if (!wrong.empty() || k >= prepared.results.size() || !prepared.results[k].value.isValid())
      return;
    const ir::Value& value = source_.graph.value(prepared.results[k].value);
    const ExpectedResult& expected = prepared.results[k];
    const bool onHost = expected.onHost && result.defined() && result.device().is_cpu();
    wrong = findDifference(result, value.type, onHost ? result.data_ptr() : expected.address);
    // Nobody served it: it is taken to where its readers look.
    if (onHost && wrong.empty()) {
      std::memcpy(expected.address, result.const_data_ptr(), result.nbytes());
    }
    if (!wrong.empty()) wrong = "result " + std::to_string(k) + " " + wrong;
  });
  if (wrong.empty() && next < prepared.results.size()) {
    wrong = "left " + std::to_string(next) + " results, expected " +
            std::to_string(prepared.results.size());
  }
  if (wrong.empty()) return ir::success();
  return ir::makeError(ir::ErrorCode::kPlanMismatch,
                       source_.graph.describeNode(node) + ": " + wrong);
}

}  // namespace stowage::runtime
