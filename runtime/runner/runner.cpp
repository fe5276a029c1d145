// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner/runner.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ir/graph/op_table.h"
#include "runtime/checkpoint/rank_states.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/disk/disk_place.h"
#include "runtime/executor/boundary_state.h"
#include "runtime/executor/host_state.h"
#include "runtime/gpu/gpu_library.h"
#include "runtime/machine/host_need.h"
#include "runtime/memory/canary.h"
#include "runtime/runner/runner_impl.h"
#include "runtime/torch/deterministic_mode.h"
#include "runtime/torch/rng_keeper.h"
#include "runtime/torch/torch_types.h"

namespace stowage::runtime {

namespace {

DiskPlace diskPlace(const ir::Schedule& schedule, const RunnerOptions& options) {
  const Bytes bytes = std::max(schedule.arenaBytes(ir::Space::kDisk), options.mostDiskBytes);
  return {options.diskFolder, bytes, options.verifyDisk};
}

bool mayDraw(const ir::Graph& graph) {
  return llvm::any_of(graph.nodes(), [](const ir::Node& node) {
    const ir::OpInfo& info = ir::lookUpOp(node.op);
    return info.random || !info.known;
  });
}

}  // namespace

ir::Error Runner::Impl::overError() const {
  return ir::makeError(ir::ErrorCode::kInvalidArgument, "the state was given back to the module");
}

ir::Error Runner::Impl::openDevice(const RunnerOptions& options) {
  const HostNeed need = hostNeedOf(plan.schedule, plan.target.device);
  if (ir::Error error = checkHostMemory(need)) return error;
  setDeterministicMode(plan.target.deterministic);
  const bool isCuda = plan.target.device == ir::DeviceKind::kCuda;
  ir::Expected<std::unique_ptr<Device>> opened = isCuda ? openGpu(options) : openCpu(options);
  if (!opened) return opened.takeError();
  device = std::move(*opened);
  for (const ir::Space space : {ir::Space::kDevice, ir::Space::kHost}) {
    if (ir::Error error = device->fill(space, canaryPattern())) return error;
  }
  return ir::success();
}

ir::Expected<std::unique_ptr<Device>> Runner::Impl::openCpu(const RunnerOptions& options) const {
  CpuDeviceOptions cpu;
  cpu.deviceBytes = plan.schedule.arenaBytes(ir::Space::kDevice);
  cpu.hostBytes = plan.schedule.arenaBytes(ir::Space::kHost);
  cpu.mostHostBytes = options.mostHostBytes;
  cpu.disk = diskPlace(plan.schedule, options);
  cpu.intraOpThreads = plan.target.intraOpThreads;
  cpu.alignBytes = plan.target.alignBytes;
  cpu.links = options.links;
  if (options.ranks != nullptr) cpu.ranks = &options.ranks->inSteps;
  return CpuDevice::open(cpu);
}

ir::Expected<std::unique_ptr<Device>> Runner::Impl::openGpu(const RunnerOptions& options) const {
  ir::Expected<GpuLibrary*> library = loadGpuLibrary();
  if (!library) return library.takeError();
  return (*library)->open({.deviceBytes = plan.schedule.arenaBytes(ir::Space::kDevice),
                           .hostBytes = plan.schedule.arenaBytes(ir::Space::kHost),
                           .mostHostBytes = options.mostHostBytes,
                           .outside = plan.target.outside,
                           .disk = diskPlace(plan.schedule, options),
                           .alignBytes = plan.target.alignBytes,
                           .pinning = options.pinning,
                           .ranks = options.ranks});
}

ir::Error Runner::Impl::open(const RunnerOptions& options) {
  ir::Expected<StepMatch> found = StepMatch::make(captured.graph(), plan.graph);
  if (!found) return found.takeError();
  match = std::move(*found);
  if (ir::Error error = checkHostState(plan.graph)) return error;
  ranks = options.ranks;
  if (ir::Error error = checkRanks(options)) return error;
  rankStates = findRankStates(plan.graph);
  notes = options.notes;
  advance = options.advance;
  stop = options.stop;
  drawsOnCpu = plan.target.device == ir::DeviceKind::kCpu && mayDraw(plan.graph);
  weightsMayLack = options.weightsMayLack;
  if (ir::Error error = openWeights(options.weights)) return error;
  if (options.main != nullptr) {
    if (ir::Error error = join(*options.main->impl_)) return error;
  } else if (ir::Error error = openDevice(options)) {
    return error;
  }
  if (options.feed == nullptr) {
    ownFeed = std::make_unique<RetraceFeed>(captured, match, checkedSteps(options));
  }
  ScalarFeed* feed = options.feed ? options.feed : ownFeed.get();
  if (ranks != nullptr) {
    agreedFeed = std::make_unique<AgreedFeed>(*feed, ranks->between);
    feed = agreedFeed.get();
  }
  ir::Expected<std::unique_ptr<Executor>> made =
      Executor::create(*device, {.graph = plan.graph,
                                 .schedule = plan.schedule,
                                 .target = plan.target,
                                 .costs = plan.costs,
                                 .feed = feed});
  if (!made) return made.takeError();
  executor = std::move(*made);
  if (ir::Error error = checkReads()) return error;
  if (main != nullptr) return share();
  ir::Error error = fillState();
  weights.reset();
  if (error || ranks == nullptr) return error;
  return ranks->between.agree("a digest of the first values (from the seed, or from the weights)",
                              firstValues);
}

CheckedSteps Runner::Impl::checkedSteps(const RunnerOptions& options) const {
  CheckedSteps checked;
  if (options.checkEvery) checked.every = std::max<int64_t>(*options.checkEvery, 0);
  return checked;
}

/// A step whose loss reads values is compared with its code before its updates, or not run.
ir::Error Runner::Impl::checkReads() const {
  if (!ownFeed || !ownFeed->checksReads()) return ir::success();
  for (const ir::ValueId value : captured.valuesRead()) {
    const ir::StorageId read = captured.graph().value(value).storage;
    const ir::StorageId planned = match.plannedOf(read);
    if (planned.isValid() && executor->comesBeforeUpdates(planned)) continue;
    return ir::makeError(
        ir::ErrorCode::kUnsupported,
        "`loss` reads '" + captured.graph().storage(read).name +
            "' with item(), and this plan has it on the host only after updates began, so that "
            "nothing could tell whether the step decides by it: return the value from `loss` and "
            "read it after the step, plan for more memory and without CUDA graphs or updates on "
            "the host, or run without comparing steps with their code (checkEvery = 0)");
  }
  return ir::success();
}

ir::Expected<std::optional<std::vector<uint8_t>>> Runner::Impl::generatorBefore() {
  if (!ownFeed) return std::nullopt;
  // Draws of the step before move it until they are done.
  if (drawsOnCpu) {
    if (ir::Error error = executor->wait()) return error;
  }
  return readGeneratorState(generatorDevice());
}

const ir::BoundaryEntry* Runner::Impl::findBoundary(ir::StorageId storage) const {
  const auto& entries = plan.schedule.boundary;
  const auto found = std::lower_bound(
      entries.begin(), entries.end(), storage,
      [](const ir::BoundaryEntry& entry, ir::StorageId id) { return entry.storage < id; });
  return found != entries.end() && found->storage == storage ? &*found : nullptr;
}

/// Before the first step, or a checkpoint instead of it.
ir::Error Runner::Impl::begin() {
  if (begun) return ir::success();
  if (ir::Error error = captured.beginSteps()) return error;
  begun = true;
  return ir::success();
}

ir::Expected<at::Tensor> Runner::Impl::report(int64_t step, ir::ValueId id) {
  const ir::Value& value = captured.graph().value(id);
  const std::string& name = captured.graph().storage(value.storage).name;
  const ir::StorageId storage = match.plannedOf(value.storage);
  if (!storage.isValid()) {
    return ir::makeError(ir::ErrorCode::kPlanMismatch, "the plan does not report '" + name + "'");
  }
  ir::Expected<llvm::ArrayRef<uint8_t>> bytes = executor->output(step, storage);
  if (!bytes) return bytes.takeError();
  at::Tensor tensor = at::empty({value.type.numElements()}, toScalarType(value.type.dtype));
  const size_t first = static_cast<size_t>(value.type.offset * ir::elementBytes(value.type.dtype));
  if (!value.type.isContiguous() || first + tensor.nbytes() > bytes->size()) {
    return ir::makeError(ir::ErrorCode::kUnsupported,
                         "the step reports '" + name + "' as a strided view; make it contiguous");
  }
  std::memcpy(tensor.data_ptr(), bytes->data() + first, tensor.nbytes());
  return tensor.reshape(c10::IntArrayRef(value.type.sizes.data(), value.type.sizes.size()));
}

Runner::Runner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Runner::~Runner() {
  // Whatever is still under way must not outlive the arenas.
  if (impl_->executor) llvm::consumeError(impl_->executor->wait());
  impl_->part();
}

ir::Expected<std::unique_ptr<Runner>> Runner::create(RunnableStep& captured,
                                                     const RunnablePlan& plan,
                                                     RunnerOptions options) {
  auto impl = std::unique_ptr<Impl>(new Impl{.captured = captured, .plan = plan});
  if (ir::Error error = impl->open(options)) return error;
  return std::unique_ptr<Runner>(new Runner(std::move(impl)));
}

ir::Expected<std::vector<at::Tensor>> Runner::step(llvm::ArrayRef<at::Tensor> inputs) {
  ir::Expected<int64_t> enqueued = enqueue(inputs);
  if (!enqueued) return enqueued.takeError();
  ir::Expected<std::vector<at::Tensor>> values = reports(*enqueued);
  if (!values || !impl_->drawsOnCpu) return values;
  if (ir::Error error = finish()) return error;
  return values;
}

ir::Expected<int64_t> Runner::enqueue(llvm::ArrayRef<at::Tensor> inputs) {
  if (ir::Error error = impl_->checkOpen()) return error;
  if (ir::Error error = impl_->home().checkOpen()) return error;
  if (ir::Error error = impl_->checkInputs(inputs)) return error;
  if (ir::Error error = impl_->enter()) return error;
  if (ir::Error error = impl_->captured.checkUnchanged()) return error;
  if (ir::Error error = impl_->begin()) return error;
  std::vector<at::Tensor> held;
  std::vector<InputBytes> bound;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::ValueId value = impl_->captured.inputs()[i];
    const ir::StorageId storage =
        impl_->match.plannedOf(impl_->captured.graph().value(value).storage);
    const ir::Value& place = impl_->captured.graph().value(value);
    const bool areBytes = !inputs[i].is_conj() && !inputs[i].is_neg();
    const bool asIs = impl_->captured.keepsLayouts() && areBytes;
    held.push_back(asIs ? inputs[i] : layOutAs(place.type, inputs[i]));
    if (!storage.isValid()) continue;
    bound.push_back({.storage = storage, .bytes = impl_->inputBytes(place, held[i])});
  }
  ir::Expected<std::optional<std::vector<uint8_t>>> generator = impl_->generatorBefore();
  if (!generator) return generator.takeError();
  if (impl_->ownFeed) {
    const bool asked = std::exchange(impl_->comparesFirst, false);
    impl_->ownFeed->traceFirst(asked || impl_->captured.inputsDiffer());
  }
  ir::Expected<int64_t> enqueued = impl_->executor->enqueueStep(bound);
  if (!enqueued && *generator && impl_->executor->stateIsWhole()) {
    if (ir::Error error = writeGeneratorState(impl_->generatorDevice(), **generator)) {
      llvm::consumeError(enqueued.takeError());
      return error;
    }
  }
  return enqueued;
}

void Runner::compareFirst() { impl_->comparesFirst = true; }

bool Runner::isStopped() const { return impl_->executor->isStopped(); }

bool Runner::isLost() const {
  const bool anyOther = llvm::any_of(
      impl_->furthers, [](const Impl* further) { return !further->executor->stateIsWhole(); });
  return anyOther || impl_->notPutBack || !impl_->executor->stateIsWhole();
}

ir::Expected<std::vector<at::Tensor>> Runner::reports(int64_t step) {
  std::vector<at::Tensor> reports;
  for (const ir::ValueId id : impl_->captured.reports()) {
    ir::Expected<at::Tensor> value = impl_->report(step, id);
    if (!value) return value.takeError();
    reports.push_back(std::move(*value));
  }
  return reports;
}

ir::Error Runner::finish() { return impl_->executor->wait(); }

ir::Error Runner::visitState(StateVisitor visit) {
  if (ir::Error error = impl_->enter()) return error;
  if (ir::Error error = impl_->executor->finish()) return error;
  const ir::Graph& graph = impl_->plan.graph;
  for (size_t i = 0; i < graph.storages().size(); ++i) {
    const ir::StorageId storage(i);
    if (!ir::isState(graph.storage(storage))) continue;
    if (impl_->findBoundary(storage) == nullptr) continue;  // no step touches it
    ir::Expected<at::Tensor> value = impl_->currentValue(storage);
    if (!value) return value.takeError();
    if (ir::Error error = visit(graph.storage(storage), bytesOf(*value))) return error;
  }
  return ir::success();
}

ir::Error Runner::storeTo() {
  if (ir::Error error = impl_->checkNotRead()) return error;
  if (ir::Error error = impl_->enter()) return error;
  if (ir::Error error = impl_->executor->finish()) return error;
  impl_->over = true;
  return impl_->captured.storeTo(
      [&](ir::StorageId captured) { return impl_->capturedValue(captured); });
}

int64_t Runner::stepsDone() const {
  int64_t steps = impl_->stepsBefore + impl_->executor->stepsEnqueued();
  for (const Impl* further : impl_->furthers) steps += further->stepsTrained();
  return steps;
}
Bytes Runner::arenaBytes() const { return impl_->device->arenaBytes(ir::Space::kDevice); }

}  // namespace stowage::runtime
