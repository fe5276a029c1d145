// SPDX-License-Identifier: Apache-2.0
#include "runtime/torch/served_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <omp.h>

#include <string>

#include "runtime/memory/arena_registry.h"

namespace stowage::runtime {

namespace {

struct ThreadRole {
  AllocationSource* source = nullptr;
  AllocatingThread thread = AllocatingThread::kMain;
};
thread_local ThreadRole role;

ArenaRegistry& arenas() {
  static ArenaRegistry registry;
  return registry;
}

class ServedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    AllocationSource* source = role.source;
    if (source == nullptr || bytes == 0) return passOn(bytes);
    const Bytes size(static_cast<int64_t>(bytes));
    if (StepAllocator* step = source->serving.load(std::memory_order_acquire)) {
      uint8_t* address = step->allocate(size, role.thread);
      if (address == nullptr) {
        C10_THROW_ERROR(OutOfMemoryError,
                        "the plan has no place for " + std::to_string(bytes) + " bytes");
      }
      return {address, address, &releaseAny, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DataPtr block = passOn(bytes);
    if (AllocationLog* log = source->logging.load(std::memory_order_acquire)) {
      log->addAllocation(block.get(), size, role.thread);
    } else {
      source->passedOn.fetch_add(1, std::memory_order_relaxed);
    }
    return block;
  }

  // Every block is released the same way, so that libtorch may use raw pointers.
  c10::DeleterFnPtr raw_deleter() const override { return &releaseAny; }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  void install() {
    inner_ = c10::GetAllocator(c10::DeviceType::CPU);
    c10::SetAllocator(c10::DeviceType::CPU, this, /*priority=*/100);
  }

  static ServedAllocator& instance() {
    // Never destroyed: blocks may be released after the end of main.
    static auto* allocator = new ServedAllocator();
    return *allocator;
  }

 private:
  c10::DataPtr passOn(size_t bytes) {
    void* address = inner_->raw_allocate(bytes);
    return {address, address, &releaseAny, c10::Device(c10::DeviceType::CPU)};
  }

  static void releaseAny(void* address) {
    if (address == nullptr) return;
    // Threads that serve different streams have allocators of their own on one arena.
    StepAllocator* own =
        role.source == nullptr ? nullptr : role.source->serving.load(std::memory_order_acquire);
    if (own != nullptr && own->owns(address)) {
      own->release(static_cast<uint8_t*>(address));
      return;
    }
    if (StepAllocator* owner = arenas().findOwner(address)) {
      owner->release(static_cast<uint8_t*>(address));
      return;
    }
    if (role.source != nullptr) {
      AllocationLog* log = role.source->logging.load(std::memory_order_acquire);
      if (log != nullptr) log->addRelease(address);
    }
    instance().inner_->raw_deallocate(address);
  }

  c10::Allocator* inner_ = nullptr;
};

}  // namespace

void installServedAllocator() {
  static const bool installed = [] {
    ServedAllocator::instance().install();
    return true;
  }();
  (void)installed;
}

void registerAllocatingThreads(AllocationSource* source) {
#pragma omp parallel
  role = {source, omp_get_thread_num() == 0 ? AllocatingThread::kMain : AllocatingThread::kOther};
}

bool isAllocatingThread() { return role.source != nullptr; }

ir::Error ArenaRegistration::add(StepAllocator& allocator) { return arenas().add(allocator); }
void ArenaRegistration::remove(StepAllocator& allocator) { arenas().remove(allocator); }

}  // namespace stowage::runtime
