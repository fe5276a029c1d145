// SPDX-License-Identifier: Apache-2.0
//
// --time-limit of `plan` and `advise`: the seconds after which the fastest plan so far is the
// answer.
#ifndef STOWAGE_TOOLS_PLANNING_TIME_LIMIT_H_
#define STOWAGE_TOOLS_PLANNING_TIME_LIMIT_H_

#include <chrono>
#include <functional>
#include <memory>

namespace stowage::tools {

class TimeLimit {
 public:
  /// Begins at once. 0 or less: no limit.
  explicit TimeLimit(double seconds);
  void restart();
  /// For passes::PlanStepOptions::isOver; also true of later restarts. Null without a limit.
  std::function<bool()> isOver() const;

 private:
  using Clock = std::chrono::steady_clock;
  /// Of a floating-point number: any number of seconds may be added.
  using Moment = std::chrono::time_point<Clock, std::chrono::duration<double, std::nano>>;
  double seconds_;
  std::shared_ptr<Moment> end_ = std::make_shared<Moment>();
};

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_PLANNING_TIME_LIMIT_H_
