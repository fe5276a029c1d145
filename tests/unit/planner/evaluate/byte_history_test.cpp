// SPDX-License-Identifier: Apache-2.0
//
// Which commands an access of bytes has to wait for.
#include "planner/evaluate/byte_history.h"

#include <gtest/gtest.h>

#include <map>

namespace stowage::planner {
namespace {

using enum ir::Stream;
/// By stream the latest command to wait for; streams without one are left out.
using Waits = std::map<ir::Stream, GlobalCommand>;

class ByteHistoryTest : public testing::Test {
 protected:
  Waits read(int64_t begin, int64_t end, GlobalCommand command, ir::Stream stream) {
    StreamClock clock = none();
    history_.read({.begin = begin, .end = end}, command, stream, clock);
    return waits(clock);
  }
  Waits write(int64_t begin, int64_t end, GlobalCommand command, ir::Stream stream) {
    StreamClock clock = none();
    history_.write({.begin = begin, .end = end}, command, stream, clock);
    return waits(clock);
  }

 private:
  static StreamClock none() {
    StreamClock clock;
    clock.fill(-1);
    return clock;
  }
  static Waits waits(const StreamClock& clock) {
    Waits found;
    for (size_t s = 0; s < clock.size(); ++s) {
      if (clock[s] >= 0) found[static_cast<ir::Stream>(s)] = clock[s];
    }
    return found;
  }
  ByteHistory history_;
};

// Bytes 0 to 8 of the worked step, by its commands: 0 make, 1 offload, 2 read, 3 wide, 4 prefetch,
// 6 last. A write waits for the readers since the last write, a read for the writer alone.
TEST_F(ByteHistoryTest, WideWaitsForTheOffloadAndThePrefetchForWide) {
  EXPECT_EQ(write(0, 8, 0, kCompute), Waits());
  EXPECT_EQ(read(0, 8, 1, kDeviceToHost), (Waits{{kCompute, 0}}));
  EXPECT_EQ(read(0, 8, 2, kCompute), (Waits{{kCompute, 0}}));
  EXPECT_EQ(write(0, 8, 3, kCompute), (Waits{{kCompute, 2}, {kDeviceToHost, 1}}));
  EXPECT_EQ(write(0, 8, 4, kHostToDevice), (Waits{{kCompute, 3}}));
  EXPECT_EQ(read(0, 8, 6, kCompute), (Waits{{kHostToDevice, 4}}));
}

TEST_F(ByteHistoryTest, OnlyBytesThatAreSharedCount) {
  write(0, 8, 0, kCompute);
  write(4, 12, 1, kHostToDevice);
  EXPECT_EQ(read(0, 4, 2, kDeviceToHost), (Waits{{kCompute, 0}}));
  EXPECT_EQ(read(3, 5, 3, kDeviceToHost), (Waits{{kCompute, 0}, {kHostToDevice, 1}}));
  EXPECT_EQ(read(8, 20, 4, kCompute), (Waits{{kHostToDevice, 1}}));
  EXPECT_EQ(read(12, 20, 5, kCompute), Waits()) << "never written";
  EXPECT_EQ(write(5, 5, 6, kCompute), Waits()) << "no bytes";
}

// A read and a write in the middle of bytes that one command wrote.
TEST_F(ByteHistoryTest, PartsOfBytesGetAHistoryOfTheirOwn) {
  write(0, 10, 0, kCompute);
  EXPECT_EQ(read(2, 4, 1, kDeviceToHost), (Waits{{kCompute, 0}}));
  EXPECT_EQ(write(4, 6, 2, kHostToDevice), (Waits{{kCompute, 0}})) << "not the reader before it";
  EXPECT_EQ(write(3, 5, 3, kCompute),
            (Waits{{kCompute, 0}, {kDeviceToHost, 1}, {kHostToDevice, 2}}));
  EXPECT_EQ(read(2, 3, 4, kCompute), (Waits{{kCompute, 0}}));
  EXPECT_EQ(write(2, 3, 5, kHostToDevice), (Waits{{kCompute, 4}, {kDeviceToHost, 1}}));
  EXPECT_EQ(read(5, 7, 6, kDeviceToHost), (Waits{{kCompute, 0}, {kHostToDevice, 2}}));
}

}  // namespace
}  // namespace stowage::planner
