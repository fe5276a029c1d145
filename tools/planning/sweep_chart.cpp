// SPDX-License-Identifier: Apache-2.0
#include "tools/planning/sweep_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "planner/report/chart.h"

namespace stowage::tools {

namespace {

using planner::Axis;
using planner::ChartUnit;
using planner::Svg;
using planner::unitOfBytes;
using planner::unitOfTime;

// Of the picture, in pixels.
constexpr double kWidth = 720;
constexpr double kHeight = 440;
constexpr double kLeft = 80;
constexpr double kRight = 700;
constexpr double kTop = 60;
constexpr double kBottom = 380;

class Drawing {
 public:
  Drawing(const SweepChart& chart, llvm::raw_ostream& os)
      : chart_(chart),
        points_(sorted(chart.points)),
        os_(os),
        svg_(kWidth, kHeight, os),
        x_(budgets()),
        y_(times()) {}

  void draw() {
    svg_.text({kLeft, 24}, "start", Svg::escape(chart_.title), " font-size=\"15\"");
    drawAxes();
    drawUnlimited();
    drawLine("bound", "#888888", " stroke-dasharray=\"6 4\"",
             [](const SweepPoint::Plan& plan) { return plan.bound; });
    drawLine("plans", "#1f5fa8", "", [](const SweepPoint::Plan& plan) { return plan.stepTime; });
    drawPoints();
    drawLegend();
    svg_.end();
  }

 private:
  static std::vector<SweepPoint> sorted(std::vector<SweepPoint> points) {
    std::stable_sort(points.begin(), points.end(),
                     [](const SweepPoint& a, const SweepPoint& b) { return a.budget < b.budget; });
    return points;
  }

  Axis budgets() {
    double least = static_cast<double>(chart_.unplanned.value());
    double most = least;
    for (const SweepPoint& point : points_) {
      least = std::min(least, static_cast<double>(point.budget.value()));
      most = std::max(most, static_cast<double>(point.budget.value()));
    }
    bytes_ = unitOfBytes(most);
    return Axis(least / bytes_.size, most / bytes_.size, kLeft, kRight);
  }

  /// From zero: how much slower a plan is should be seen for what it is.
  Axis times() {
    double most = 0;
    for (const SweepPoint& point : points_) {
      if (point.plan) most = std::max(most, static_cast<double>(point.plan->stepTime.value()));
    }
    time_ = unitOfTime(most);
    return Axis(0, most / time_.size, kBottom, kTop);
  }

  double xOf(Bytes budget) const {
    return x_.at(static_cast<double>(budget.value()) / bytes_.size);
  }
  double yOf(Nanoseconds time) const {
    return y_.at(static_cast<double>(time.value()) / time_.size);
  }

  void drawAxes() {
    for (const double tick : x_.ticks()) {
      svg_.line({x_.at(tick), kBottom}, {x_.at(tick), kBottom + 5}, "black");
      svg_.text({x_.at(tick), kBottom + 20}, "middle", fmt::format("{:.6g}", tick));
    }
    for (const double tick : y_.ticks()) {
      svg_.line({kLeft, y_.at(tick)}, {kRight, y_.at(tick)}, "#e4e4e4");
      svg_.text({kLeft - 8, y_.at(tick) + 4}, "end", fmt::format("{:.6g}", tick));
    }
    svg_.line({kLeft, kBottom}, {kRight, kBottom}, "black");
    svg_.line({kLeft, kTop}, {kLeft, kBottom}, "black");
    svg_.text({(kLeft + kRight) / 2, kBottom + 44}, "middle",
              fmt::format("device budget ({})", bytes_.name));
    svg_.text({24, (kTop + kBottom) / 2}, "middle", fmt::format("step time ({})", time_.name),
              fmt::format(" transform=\"rotate(-90 24 {:.0f})\"", (kTop + kBottom) / 2));
  }

  void drawUnlimited() {
    svg_.line({xOf(chart_.unplanned), kTop}, {xOf(chart_.unplanned), kBottom}, "#2e8540",
              " stroke-dasharray=\"2 3\"");
    const auto known = std::find_if(points_.begin(), points_.end(),
                                    [](const SweepPoint& point) { return point.plan.has_value(); });
    if (known == points_.end()) return;
    const double y = yOf(known->plan->computeTime);
    svg_.line({kLeft, y}, {kRight, y}, "#2e8540", " stroke-dasharray=\"2 3\"");
  }

  template <typename TimeOf>
  void drawLine(const char* name, const char* colour, const char* more, TimeOf timeOf) {
    os_ << fmt::format("<polyline id=\"{}\" fill=\"none\" stroke=\"{}\"{} points=\"", name, colour,
                       more);
    const char* separator = "";
    for (const SweepPoint& point : points_) {
      if (!point.plan) continue;
      os_ << separator << fmt::format("{:.1f},{:.1f}", xOf(point.budget), yOf(timeOf(*point.plan)));
      separator = " ";
    }
    os_ << "\"/>\n";
  }

  void drawPoints() {
    for (const SweepPoint& point : points_) {
      if (!point.plan) {
        svg_.text({xOf(point.budget), kBottom - 4}, "middle",
                  "<title>" + formatBytes(point.budget) + ": nothing fits</title>&#215;",
                  " fill=\"#b3261e\"");
        continue;
      }
      os_ << fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#1f5fa8\"><title>{}: {} a step, "
          "bound "
          "{}</title></circle>\n",
          xOf(point.budget), yOf(point.plan->stepTime), formatBytes(point.budget),
          formatDuration(point.plan->stepTime), formatDuration(point.plan->bound));
    }
  }

  void drawLegend() {
    const std::array<std::pair<const char*, const char*>, 4> rows = {
        {{"#1f5fa8", "plan (predicted)"},
         {"#888888", "lower bound"},
         {"#2e8540", "unlimited memory"},
         {"#b3261e", "nothing fits"}}};
    double x = kLeft;
    for (const auto& [colour, words] : rows) {
      svg_.line({x, 42}, {x + 18, 42}, colour, " stroke-width=\"2\"");
      svg_.text({x + 24, 46}, "start", words);
      x += 150;
    }
  }

  const SweepChart& chart_;
  std::vector<SweepPoint> points_;
  llvm::raw_ostream& os_;
  Svg svg_;
  ChartUnit bytes_{};
  ChartUnit time_{};
  Axis x_, y_;  // made with the units above
};

}  // namespace

void drawSweep(const SweepChart& chart, llvm::raw_ostream& os) { Drawing(chart, os).draw(); }

}  // namespace stowage::tools
