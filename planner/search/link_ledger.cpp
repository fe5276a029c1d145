// SPDX-License-Identifier: Apache-2.0
#include "planner/search/link_ledger.h"

#include <algorithm>

#include "planner/evaluate/copy_schedule.h"

namespace stowage::planner {

namespace {

std::vector<int64_t> nodeTimes(const GapTable& table) {
  std::vector<int64_t> times;
  for (size_t i = 0; i < table.nodeCount(); ++i) times.push_back(table.nodeTime(i));
  return times;
}

}  // namespace

IdleTime::IdleTime(const std::vector<int64_t>& byNode)
    : period_(static_cast<int64_t>(byNode.size())), idle_(byNode), sums_(byNode.size() + 1, 0) {
  for (size_t i = 1; i < sums_.size(); ++i) {
    sums_[i] += idle_[i - 1];
    const size_t up = i + (i & (~i + 1));
    if (up < sums_.size()) sums_[up] += sums_[i];
  }
}

void IdleTime::add(int64_t position, int64_t time) {
  const int64_t at = wrap(position);
  idle_[static_cast<size_t>(at)] += time;
  for (auto i = static_cast<size_t>(at + 1); i < sums_.size(); i += i & (~i + 1)) sums_[i] += time;
}

int64_t IdleTime::before(int64_t position) const {
  int64_t sum = 0;
  for (auto i = static_cast<size_t>(position); i > 0; i &= i - 1) sum += sums_[i];
  return sum;
}

int64_t IdleTime::findPast(int64_t time) const {
  size_t found = 0;
  size_t stride = 1;
  while (stride * 2 < sums_.size()) stride *= 2;
  for (; stride > 0; stride /= 2) {
    if (found + stride >= sums_.size() || sums_[found + stride] > time) continue;
    found += stride;
    time -= sums_[found];
  }
  return static_cast<int64_t>(found);
}

int64_t IdleTime::between(int64_t begin, int64_t end) const {
  if (begin >= end) return 0;
  const int64_t from = wrap(begin);
  const int64_t to = from + end - begin;
  const int64_t inside = before(std::min(to, period_)) - before(from);
  return to > period_ ? inside + before(to - period_) : inside;
}

void IdleTime::takeEarliest(int64_t begin, int64_t end, int64_t time) {
  if (begin >= end) return;
  const int64_t from = wrap(begin);
  const int64_t to = from + end - begin;
  takeEarliestPart(from, std::min(to, period_), time);
  if (to > period_) takeEarliestPart(0, to - period_, time);
}

void IdleTime::takeLatest(int64_t begin, int64_t end, int64_t time) {
  if (begin >= end) return;
  const int64_t from = wrap(begin);
  const int64_t to = from + end - begin;
  if (to > period_) takeLatestPart(0, to - period_, time);
  takeLatestPart(from, std::min(to, period_), time);
}

void IdleTime::takeEarliestPart(int64_t begin, int64_t end, int64_t& time) {
  while (time > 0) {
    const int64_t at = findPast(before(begin));
    if (at >= end) return;
    const int64_t taken = std::min(time, idle_[static_cast<size_t>(at)]);
    add(at, -taken);
    time -= taken;
  }
}

void IdleTime::takeLatestPart(int64_t begin, int64_t end, int64_t& time) {
  while (time > 0) {
    const int64_t upTo = before(end);
    if (upTo == 0) return;
    const int64_t at = findPast(upTo - 1);
    if (at < begin) return;
    const int64_t taken = std::min(time, idle_[static_cast<size_t>(at)]);
    add(at, -taken);
    time -= taken;
  }
}

LinkLedger::LinkLedger(const GapTable& table)
    : table_(table),
      nodes_(static_cast<int64_t>(table.nodeCount())),
      out_(nodeTimes(table)),
      in_(nodeTimes(table)),
      writes_(findLastWrites(table)),
      held_(table.gaps().size(), false) {}

// Position of the last write before a gap that is open at `position`; in the step before if
// negative.
int64_t LinkLedger::writtenAt(size_t gap, int64_t position) const {
  const int64_t begin = table_.gaps()[gap].begin;
  return (begin < position ? begin : begin - nodes_) - writes_[gap].before;
}

LinkLedger::Origin LinkLedger::origin(size_t gap, int64_t position) const {
  if (writes_[gap].version < 0) return Origin::kHost;
  return writtenAt(gap, position) < 0 ? Origin::kStepBefore : Origin::kThisStep;
}

LinkLedger::Need LinkLedger::needOf(size_t gap, int64_t position) const {
  const ir::LinkModel& links = table_.problem().costs.links;
  const int64_t bytes = table_.bytes(table_.gaps()[gap].storage);
  Need need{.in = copyTime(links.hostToDevice, bytes)};
  const int64_t version = writes_[gap].version;
  if (version < 0 || held_[static_cast<size_t>(version)]) return need;
  need.outBegin = std::max(writtenAt(gap, position) + 1, position - nodes_);
  need.out = copyTime(links.deviceToHost, bytes);
  return need;
}

int64_t LinkLedger::wait(size_t gap, int64_t position, int64_t end) const {
  const Need need = needOf(gap, position);
  int64_t wait = 0;
  if (need.out > 0) wait += std::max<int64_t>(0, need.out - out_.between(need.outBegin, position));
  return wait + std::max<int64_t>(0, need.in - in_.between(position + 1, end));
}

void LinkLedger::book(size_t gap, int64_t position, int64_t end) {
  const Need need = needOf(gap, position);
  if (need.out > 0) {
    const int64_t idle = out_.between(need.outBegin, position);
    out_.takeEarliest(need.outBegin, position, need.out);
    if (need.out > idle) in_.add(position, need.out - idle);
    held_[static_cast<size_t>(writes_[gap].version)] = true;
  }
  const int64_t idle = in_.between(position + 1, end);
  in_.takeLatest(position + 1, end, need.in);
  if (need.in > idle) out_.add(end, need.in - idle);
}

void LinkLedger::lengthen(int64_t position, int64_t time) {
  out_.add(position, time);
  in_.add(position, time);
}

}  // namespace stowage::planner
