// SPDX-License-Identifier: Apache-2.0
#include "tools/planning/sweep_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

namespace stowage::tools {

namespace {

// Of the picture, in pixels.
constexpr double kWidth = 720;
constexpr double kHeight = 440;
constexpr double kLeft = 80;
constexpr double kRight = 700;
constexpr double kTop = 60;
constexpr double kBottom = 380;
constexpr int kTicks = 5;  // about so many along an axis

struct Place {
  double x, y;
};

struct Unit {
  const char* name;
  double size;
};
constexpr std::array<Unit, 5> kByteUnits = {{{"B", 1},
                                             {"KiB", 1024.0},
                                             {"MiB", 1048576.0},
                                             {"GiB", 1073741824.0},
                                             {"TiB", 1099511627776.0}}};
constexpr std::array<Unit, 4> kTimeUnits = {{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};

/// The largest unit of which `most` is at least one.
template <size_t N>
Unit unitFor(const std::array<Unit, N>& units, double most) {
  Unit found = units.front();
  for (const Unit& unit : units) {
    if (most >= unit.size) found = unit;
  }
  return found;
}

/// 1, 2 or 5 times a power of ten, about `span` / kTicks.
double tickDistance(double span) {
  const double rough = span / kTicks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

/// From numbers to places along one side of the picture.
class Axis {
 public:
  /// Covers the numbers from `least` to `most` and begins at a tick.
  Axis(double least, double most, double from, double to)
      : distance_(tickDistance(most > least ? most - least : std::max(most, 1.0))),
        first_(std::floor(least / distance_) * distance_),
        last_(std::max(std::ceil(most / distance_) * distance_, first_ + distance_)),
        from_(from),
        to_(to) {}
  double at(double number) const {
    return from_ + (number - first_) / (last_ - first_) * (to_ - from_);
  }
  std::vector<double> ticks() const {
    std::vector<double> all;
    const auto count = static_cast<int>(std::lround((last_ - first_) / distance_));
    for (int i = 0; i <= count; ++i) all.push_back(first_ + i * distance_);
    return all;
  }

 private:
  double distance_, first_, last_, from_, to_;
};

std::string escape(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '>') {
      safe += "&gt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

class Drawing {
 public:
  Drawing(const SweepChart& chart, llvm::raw_ostream& os)
      : chart_(chart), points_(sorted(chart.points)), os_(os), x_(budgets()), y_(times()) {}

  void draw() {
    os_ << fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n",
        kWidth, kHeight);
    os_ << fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"white\"/>\n", kWidth, kHeight);
    text({kLeft, 24}, "start", escape(chart_.title), " font-size=\"15\"");
    drawAxes();
    drawUnlimited();
    drawLine("bound", "#888888", " stroke-dasharray=\"6 4\"",
             [](const SweepPoint::Plan& plan) { return plan.bound; });
    drawLine("plans", "#1f5fa8", "", [](const SweepPoint::Plan& plan) { return plan.stepTime; });
    drawPoints();
    drawLegend();
    os_ << "</svg>\n";
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
    bytes_ = unitFor(kByteUnits, most);
    return Axis(least / bytes_.size, most / bytes_.size, kLeft, kRight);
  }

  /// From zero: how much slower a plan is should be seen for what it is.
  Axis times() {
    double most = 0;
    for (const SweepPoint& point : points_) {
      if (point.plan) most = std::max(most, static_cast<double>(point.plan->stepTime.value()));
    }
    time_ = unitFor(kTimeUnits, most);
    return Axis(0, most / time_.size, kBottom, kTop);
  }

  double xOf(Bytes budget) const {
    return x_.at(static_cast<double>(budget.value()) / bytes_.size);
  }
  double yOf(Nanoseconds time) const {
    return y_.at(static_cast<double>(time.value()) / time_.size);
  }

  void text(Place at, const char* anchor, const std::string& words, const std::string& more = "") {
    os_ << fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", at.x,
                       at.y, anchor, more, words);
  }
  void line(Place from, Place to, const char* colour, const char* more = "") {
    os_ << fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n", from.x,
        from.y, to.x, to.y, colour, more);
  }

  void drawAxes() {
    for (const double tick : x_.ticks()) {
      line({x_.at(tick), kBottom}, {x_.at(tick), kBottom + 5}, "black");
      text({x_.at(tick), kBottom + 20}, "middle", fmt::format("{:.6g}", tick));
    }
    for (const double tick : y_.ticks()) {
      line({kLeft, y_.at(tick)}, {kRight, y_.at(tick)}, "#e4e4e4");
      text({kLeft - 8, y_.at(tick) + 4}, "end", fmt::format("{:.6g}", tick));
    }
    line({kLeft, kBottom}, {kRight, kBottom}, "black");
    line({kLeft, kTop}, {kLeft, kBottom}, "black");
    text({(kLeft + kRight) / 2, kBottom + 44}, "middle",
         fmt::format("device budget ({})", bytes_.name));
    text({24, (kTop + kBottom) / 2}, "middle", fmt::format("step time ({})", time_.name),
         fmt::format(" transform=\"rotate(-90 24 {:.0f})\"", (kTop + kBottom) / 2));
  }

  void drawUnlimited() {
    line({xOf(chart_.unplanned), kTop}, {xOf(chart_.unplanned), kBottom}, "#2e8540",
         " stroke-dasharray=\"2 3\"");
    const auto known = std::find_if(points_.begin(), points_.end(),
                                    [](const SweepPoint& point) { return point.plan.has_value(); });
    if (known == points_.end()) return;
    const double y = yOf(known->plan->computeTime);
    line({kLeft, y}, {kRight, y}, "#2e8540", " stroke-dasharray=\"2 3\"");
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
        text({xOf(point.budget), kBottom - 4}, "middle",
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
      line({x, 42}, {x + 18, 42}, colour, " stroke-width=\"2\"");
      text({x + 24, 46}, "start", words);
      x += 150;
    }
  }

  const SweepChart& chart_;
  std::vector<SweepPoint> points_;
  llvm::raw_ostream& os_;
  Unit bytes_ = kByteUnits.front();
  Unit time_ = kTimeUnits.front();
  Axis x_, y_;  // made with the units above
};

}  // namespace

void drawSweep(const SweepChart& chart, llvm::raw_ostream& os) { Drawing(chart, os).draw(); }

}  // namespace stowage::tools
