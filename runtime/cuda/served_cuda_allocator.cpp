// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/served_cuda_allocator.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/memory/arena_registry.h"
#include "this_torch/cuda_allocator_extras.h"

namespace stowage::runtime {

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

thread_local AllocationSource* servedFrom = nullptr;

ArenaRegistry& arenas() {
  static ArenaRegistry registry;
  return registry;
}

/// Forwards all that is not about getting and giving back memory.
class ServedCudaAllocator final : public CudaAllocatorExtras {
 public:
  explicit ServedCudaAllocator(caching::CUDAAllocator* inner) : CudaAllocatorExtras(inner) {}

  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(c10::DeviceType::CUDA, c10::cuda::current_device());
    void* address = take(bytes, [&] { return inner_->raw_alloc(bytes); });
    return {address, address, &releaseAny, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &releaseAny; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    inner_->copy_data(to, from, bytes);
  }

  void* raw_alloc(size_t bytes) override {
    return take(bytes, [&] { return inner_->raw_alloc(bytes); });
  }
  void* raw_alloc_with_stream(size_t bytes, cudaStream_t stream) override {
    return take(bytes, [&] { return inner_->raw_alloc_with_stream(bytes, stream); });
  }
  void raw_delete(void* address) override { releaseAny(address); }

  // Served blocks are ordered by the plan; libtorch's own keep their streams.
  void recordStream(const c10::DataPtr& block, c10::cuda::CUDAStream stream) override {
    if (arenas().findOwner(block.get()) == nullptr) inner_->recordStream(block, stream);
  }

  bool initialized() override { return inner_->initialized(); }
  void emptyCache(c10::MempoolId_t pool) override { inner_->emptyCache(pool); }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return inner_->getDeviceStats(device);
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    inner_->resetAccumulatedStats(device);
  }
  void resetPeakStats(c10::DeviceIndex device) override { inner_->resetPeakStats(device); }
  void init(int devices) override { inner_->init(devices); }
  double getMemoryFraction(c10::DeviceIndex device) override {
    return inner_->getMemoryFraction(device);
  }
  void setMemoryFraction(double fraction, c10::DeviceIndex device) override {
    inner_->setMemoryFraction(fraction, device);
  }
  std::vector<caching::StreamSegmentSize> getExpandableSegmentSizes(
      c10::DeviceIndex device) override {
    return inner_->getExpandableSegmentSizes(device);
  }
  void enable(bool value) override { inner_->enable(value); }
  bool isEnabled() const override { return inner_->isEnabled(); }
  void cacheInfo(c10::DeviceIndex device, size_t* largest) override {
    inner_->cacheInfo(device, largest);
  }
  void* getBaseAllocation(void* address, size_t* size) override {
    return inner_->getBaseAllocation(address, size);
  }
  caching::SnapshotInfo snapshot(c10::MempoolId_t pool, bool traces) override {
    return inner_->snapshot(pool, traces);
  }
  void beginAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                           std::function<bool(cudaStream_t)> filter) override {
    inner_->beginAllocateToPool(device, pool, std::move(filter));
  }
  void endAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    inner_->endAllocateToPool(device, pool);
  }
  void releasePool(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    inner_->releasePool(device, pool);
  }
  int getPoolUseCount(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    return inner_->getPoolUseCount(device, pool);
  }
  void createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                          std::shared_ptr<caching::CUDAAllocator> allocator) override {
    inner_->createOrIncrefPool(device, pool, std::move(allocator));
  }
  void setUseOnOOM(c10::DeviceIndex device, c10::MempoolId_t pool, bool use) override {
    inner_->setUseOnOOM(device, pool, use);
  }
  void setNoSplit(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    inner_->setNoSplit(device, pool);
  }
  bool checkPoolLiveAllocations(c10::DeviceIndex device, c10::MempoolId_t pool,
                                const std::unordered_set<void*>& expected) override {
    return inner_->checkPoolLiveAllocations(device, pool, expected);
  }
  caching::ShareableHandle shareIpcHandle(void* address) override {
    return inner_->shareIpcHandle(address);
  }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override {
    return inner_->getIpcDevPtr(std::move(handle));
  }
  bool isHistoryEnabled() override { return inner_->isHistoryEnabled(); }
  void recordHistory(bool enabled, c10::CachingDeviceAllocator::CreateContextFn recorder,
                     size_t entries, c10::CachingDeviceAllocator::RecordContext when, bool clear,
                     const std::vector<std::string>& skip) override {
    inner_->recordHistory(enabled, recorder, entries, when, clear, skip);
  }
  void recordAnnotation(
      const std::vector<std::pair<std::string, std::string>>& annotation) override {
    inner_->recordAnnotation(annotation);
  }
  void pushCompileContext(std::string& context) override { inner_->pushCompileContext(context); }
  void popCompileContext() override { inner_->popCompileContext(); }
  void setUserMetadata(const std::string& metadata) override { inner_->setUserMetadata(metadata); }
  std::string getUserMetadata() override { return inner_->getUserMetadata(); }
  void attachOutOfMemoryObserver(caching::OutOfMemoryObserver observer) override {
    inner_->attachOutOfMemoryObserver(std::move(observer));
  }
  void attachAllocatorTraceTracker(caching::AllocatorTraceTracker tracker) override {
    inner_->attachAllocatorTraceTracker(std::move(tracker));
  }
  void enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex other) override {
    inner_->enablePeerAccess(device, other);
  }
  cudaError_t memcpyAsync(void* to, int toDevice, const void* from, int fromDevice, size_t bytes,
                          cudaStream_t stream, bool peer) override {
    return inner_->memcpyAsync(to, toDevice, from, fromDevice, bytes, stream, peer);
  }
  std::shared_ptr<caching::AllocatorState> getCheckpointState(c10::DeviceIndex device,
                                                              c10::MempoolId_t pool) override {
    return inner_->getCheckpointState(device, pool);
  }
  caching::CheckpointDelta setCheckpointPoolState(
      c10::DeviceIndex device, std::shared_ptr<caching::AllocatorState> state) override {
    return inner_->setCheckpointPoolState(device, std::move(state));
  }
  std::string name() override { return inner_->name(); }

 private:
  template <typename PassOn>
  void* take(size_t bytes, PassOn passOn) {
    AllocationSource* source = servedFrom;
    if (source == nullptr || bytes == 0) return passOn();
    const Bytes size(static_cast<int64_t>(bytes));
    if (StepAllocator* step = source->serving.load(std::memory_order_acquire)) {
      uint8_t* address = step->allocate(size, AllocatingThread::kMain);
      if (address == nullptr) {
        C10_THROW_ERROR(OutOfMemoryError,
                        "the plan has no place for " + std::to_string(bytes) + " bytes");
      }
      return address;
    }
    void* address = passOn();
    if (AllocationLog* log = source->logging.load(std::memory_order_acquire)) {
      log->addAllocation(address, size, AllocatingThread::kMain);
    } else {
      source->passedOn.fetch_add(1, std::memory_order_relaxed);
    }
    return address;
  }

  static void releaseAny(void* address);
};

// Never destroyed: blocks may be released after the end of main.
std::atomic<caching::CUDAAllocator*> innerAllocator{nullptr};

void ServedCudaAllocator::releaseAny(void* address) {
  if (address == nullptr) return;
  if (StepAllocator* owner = arenas().findOwner(address)) {
    owner->release(static_cast<uint8_t*>(address));
    return;
  }
  if (servedFrom != nullptr) {
    AllocationLog* log = servedFrom->logging.load(std::memory_order_acquire);
    if (log != nullptr) log->addRelease(address);
  }
  innerAllocator.load()->raw_delete(address);
}

}  // namespace

void installServedCudaAllocator() {
  static const bool kInstalled = [] {
    caching::CUDAAllocator* inner = caching::allocator.load();
    innerAllocator = inner;
    auto* served = new ServedCudaAllocator(inner);
    caching::allocator.store(served);
    // Storages that grow ask c10 for the allocator of their device.
    c10::SetAllocator(c10::DeviceType::CUDA, served, /*priority=*/100);
    return true;
  }();
  (void)kInstalled;
}

ServedThread::ServedThread(AllocationSource& source)
    : before_(std::exchange(servedFrom, &source)) {}
ServedThread::~ServedThread() { servedFrom = before_; }

ir::Error CudaArenaRegistration::add(StepAllocator& allocator) { return arenas().add(allocator); }
void CudaArenaRegistration::remove(StepAllocator& allocator) { arenas().remove(allocator); }

}  // namespace stowage::runtime
