// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_activity.h"

#include <cupti.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace stowage::runtime {

namespace {

constexpr size_t kBufferBytes = size_t{4} << 20;
constexpr size_t kBufferAlignment = 8;

constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
    // Records of numbers come with those of the calls that they are pushed around.
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_DRIVER};

struct Record {
  uint32_t correlation = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// What CUPTI reported so far; it calls back without an argument, from a thread of its own.
struct Collected {
  std::mutex mutex;
  std::vector<Record> work;
  std::unordered_map<uint32_t, uint64_t> numbers;  // by correlation
  uint64_t unreadable = 0;
};

Collected& collected() {
  static Collected all;
  return all;
}

ir::Error check(CUptiResult status, const char* what) {
  if (status == CUPTI_SUCCESS) return ir::success();
  const char* text = nullptr;
  (void)cuptiGetResultString(status, &text);
  return ir::makeError(ir::ErrorCode::kEnvironment,
                       std::string(what) + ": CUPTI says " + (text != nullptr ? text : "nothing"));
}

void CUPTIAPI giveBuffer(uint8_t** buffer, size_t* bytes, size_t* records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *records = 0;
}

template <typename Activity>
Record toRecord(const CUpti_Activity* activity) {
  const auto* own = reinterpret_cast<const Activity*>(activity);
  return {own->correlationId, own->start, own->end};
}

void keep(Collected& all, const CUpti_Activity* activity) {
  switch (activity->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      all.work.push_back(toRecord<CUpti_ActivityKernel10>(activity));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      all.work.push_back(toRecord<CUpti_ActivityMemcpy6>(activity));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:  // between two GPUs
      all.work.push_back(toRecord<CUpti_ActivityMemcpyPtoP4>(activity));
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      all.work.push_back(toRecord<CUpti_ActivityMemset4>(activity));
      break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto* own = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(activity);
      all.numbers[own->correlationId] = own->externalId;
      break;
    }
    default:
      break;
  }
}

void CUPTIAPI takeBuffer(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer,
                         size_t /*bytes*/, size_t valid) {
  Collected& all = collected();
  const std::lock_guard<std::mutex> lock(all.mutex);
  CUpti_Activity* activity = nullptr;
  CUptiResult status = CUPTI_SUCCESS;
  while (valid > 0) {
    status = cuptiActivityGetNextRecord(buffer, valid, &activity);
    if (status != CUPTI_SUCCESS) break;
    keep(all, activity);
  }
  if (status != CUPTI_SUCCESS && status != CUPTI_ERROR_MAX_LIMIT_REACHED) ++all.unreadable;
  std::free(buffer);
}

void disableAll() {
  for (const CUpti_ActivityKind kind : kKinds) (void)cuptiActivityDisable(kind);
}

}  // namespace

ir::Expected<std::unique_ptr<ActivityTrace>> ActivityTrace::start() {
  {
    Collected& all = collected();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.work.clear();
    all.numbers.clear();
    all.unreadable = 0;
  }
  if (ir::Error error =
          check(cuptiActivityRegisterCallbacks(giveBuffer, takeBuffer), "tracing the GPU")) {
    return error;
  }
  for (const CUpti_ActivityKind kind : kKinds) {
    if (ir::Error error = check(cuptiActivityEnable(kind), "tracing the GPU")) {
      disableAll();
      return error;
    }
  }
  return std::unique_ptr<ActivityTrace>(new ActivityTrace());
}

ActivityTrace::~ActivityTrace() { disableAll(); }

void ActivityTrace::beginWork(uint64_t number) {
  (void)cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, number);
}

void ActivityTrace::endWork() {
  uint64_t last = 0;
  (void)cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
}

ActivityTrace::ClockPair ActivityTrace::ClockPair::now() {
  const auto machine = std::chrono::steady_clock::now().time_since_epoch();
  return {ActivityTrace::now(),
          Nanoseconds(std::chrono::duration_cast<std::chrono::nanoseconds>(machine).count())};
}

Nanoseconds ActivityTrace::sinceBegin(Nanoseconds driverTime) const {
  const auto passed = static_cast<double>((driverTime - begin_.driver).value());
  return Nanoseconds(std::llround(passed * speed_));
}

Nanoseconds ActivityTrace::now() {
  uint64_t time = 0;
  (void)cuptiGetTimestamp(&time);
  return Nanoseconds(static_cast<int64_t>(time));
}

ir::Expected<std::map<uint64_t, ActivitySpan>> ActivityTrace::finish() {
  if (ir::Error error = check(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
                              "reading the trace of the GPU")) {
    return error;
  }
  disableAll();
  const ClockPair end = ClockPair::now();
  if (end.driver > begin_.driver) {
    speed_ = static_cast<double>((end.machine - begin_.machine).value()) /
             static_cast<double>((end.driver - begin_.driver).value());
  }
  size_t dropped = 0;
  (void)cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
  Collected& all = collected();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (dropped > 0 || all.unreadable > 0) {
    return ir::makeError(ir::ErrorCode::kEnvironment,
                         "reading the trace of the GPU: CUPTI lost " + std::to_string(dropped) +
                             " records and " + std::to_string(all.unreadable) +
                             " buffers were unreadable");
  }
  std::map<uint64_t, ActivitySpan> spans;
  for (const Record& record : all.work) {
    const auto number = all.numbers.find(record.correlation);
    if (number == all.numbers.end()) continue;
    const Nanoseconds begin(static_cast<int64_t>(record.begin));
    const Nanoseconds end(static_cast<int64_t>(record.end));
    const auto [span, isNew] = spans.try_emplace(number->second, ActivitySpan{begin, end});
    if (isNew) continue;
    span->second.begin = std::min(span->second.begin, begin);
    span->second.end = std::max(span->second.end, end);
  }
  return spans;
}

}  // namespace stowage::runtime
