// SPDX-License-Identifier: Apache-2.0
//
// A device that records segments as CUDA graphs do: the first step is enqueued one by one, the
// second is recorded, later ones are launched from the record as long as their numbers are its
// numbers, so that whatever the executor says about a later step's segment is not heard. Around a
// record all streams meet. The work itself is a FakeDevice's.
#ifndef STOWAGE_TESTS_SUPPORT_RECORDING_DEVICE_H_
#define STOWAGE_TESTS_SUPPORT_RECORDING_DEVICE_H_

#include <memory>

#include "runtime/fake/fake_device.h"

namespace stowage::tests {

class RecordingDevice : public runtime::Device {
 public:
  /// `inner` outlives it.
  explicit RecordingDevice(runtime::FakeDevice& inner) : inner_(inner) {}

  Bytes arenaBytes(ir::Space space) const override { return inner_.arenaBytes(space); }
  ir::Expected<std::unique_ptr<runtime::Program>> load(
      const runtime::ProgramSource& source) override;
  ir::Error write(ir::Space space, int64_t offset, llvm::ArrayRef<uint8_t> bytes) override {
    return inner_.write(space, offset, bytes);
  }
  ir::Error read(ir::Space space, int64_t offset, llvm::MutableArrayRef<uint8_t> bytes) override {
    return inner_.read(space, offset, bytes);
  }
  ir::Error synchronize() override { return inner_.synchronize(); }

  /// Segments that were launched from a record.
  int64_t launches() const { return launches_; }
  int64_t records() const { return records_; }

 private:
  runtime::FakeDevice& inner_;
  int64_t launches_ = 0;
  int64_t records_ = 0;
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_SUPPORT_RECORDING_DEVICE_H_
