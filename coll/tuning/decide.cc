// SPDX-License-Identifier: BSD-3-Clause
// The cells of an operation and medium lie in a grid of ranks a node, ranks and bytes. It is cut
// into slabs of ranks a node, each of these into slabs of ranks and those into spans of bytes, so
// that in each box one choice is near the best of every cell. Among all such cuts, the fewest
// boxes: along each axis by dynamic programming over where the last slab begins.
#include "coll/tuning/decide.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "coll/tuning/candidates.h"

namespace ulc::coll {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
constexpr double kNever = std::numeric_limits<double>::infinity();
/// Maximum weight of one size in a mean over sizes: a choice that was dropped there, or is that
/// number of times slower than the best.
constexpr double kLossCounted = 4;
/// Cost of leaving an incumbent: almost nothing compared with a loss.
constexpr double kChange = 1e-3;
/// Sums of losses that differ by less are equal.
constexpr double kSame = 1e-9;

constexpr std::size_t kAxes = 3;  // ranks a node, ranks, bytes

struct Point {
    std::array<std::uint64_t, kAxes> at;
    std::vector<double> loss;  ///< by choice: logarithm of its share of the best; kNever: too much
};
using Points = std::vector<const Point*>;

/// Numbers for which each point of a grid speaks; open: the ends reach to 0 and to infinity.
[[nodiscard]] std::vector<Span> spans_of(const std::vector<std::uint64_t>& points, bool open) {
    std::vector<Span> spans;
    for (std::size_t i = 0; i < points.size(); ++i) {
        Span span{spans.empty() ? (open ? 0 : points[0]) : spans.back().to + 1, 0};
        if (i + 1 < points.size()) {
            const double mean =
                std::sqrt(static_cast<double>(points[i]) * static_cast<double>(points[i + 1]));
            span.to = std::max(points[i], static_cast<std::uint64_t>(mean));
        } else {
            span.to = open ? kMax : points[i];
        }
        spans.push_back(span);
    }
    return spans;
}

/// The coordinates of the points along an axis, in order.
[[nodiscard]] std::vector<std::uint64_t> coordinates(const std::vector<Point>& points,
                                                     std::size_t axis) {
    std::vector<std::uint64_t> all;
    all.reserve(points.size());
    for (const Point& point : points)
        all.push_back(point.at[axis]);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

struct Box {
    std::array<Span, kAxes> spans;
    std::size_t choice = 0;
};

struct Cover {
    double loss = 0;
    std::vector<Box> boxes;

    [[nodiscard]] bool better_than(const Cover& other) const {
        if (boxes.size() != other.boxes.size()) return boxes.size() < other.boxes.size();
        return loss < other.loss - kSame;
    }
};

class Grid {
public:
    Grid(const std::vector<Point>& points, bool open) {
        for (std::size_t axis = 0; axis < kAxes; ++axis) {
            values_[axis] = coordinates(points, axis);
            spans_[axis] = spans_of(values_[axis], open || axis == kAxes - 1);
        }
    }

    /// False: no choice does for some cell.
    [[nodiscard]] bool cover(const Points& points, Cover& out, std::size_t axis = 0) const {
        if (points.empty()) return false;  // a box speaks for some cell
        if (axis == kAxes) return one_box(points, out);
        const std::vector<std::uint64_t>& values = values_[axis];
        std::vector<Cover> best(values.size() + 1);  // of the first n values
        std::vector<bool> found(values.size() + 1, false);
        found[0] = true;
        for (std::size_t end = 1; end <= values.size(); ++end) {
            for (std::size_t begin = end; begin-- > 0;) {
                Cover slab;
                if (!found[begin] ||
                    !cover(part(points, axis, values[begin], values[end - 1]), slab, axis + 1))
                    continue;
                const Span span{spans_[axis][begin].from, spans_[axis][end - 1].to};
                for (Box& box : slab.boxes)
                    box.spans[axis] = span;
                Cover all = best[begin];
                all.loss += slab.loss;
                all.boxes.insert(all.boxes.end(), slab.boxes.begin(), slab.boxes.end());
                if (found[end] && !all.better_than(best[end])) continue;
                best[end] = std::move(all);
                found[end] = true;
            }
        }
        out = std::move(best.back());
        return found.back();
    }

private:
    [[nodiscard]] static bool one_box(const Points& points, Cover& out) {
        double least = kNever;
        for (std::size_t choice = 0; choice < points[0]->loss.size(); ++choice) {
            double sum = 0;
            for (const Point* point : points)
                sum += point->loss[choice];
            if (!(sum < least - kSame)) continue;
            least = sum;
            out = {sum, {{{}, choice}}};
        }
        return least < kNever;
    }
    [[nodiscard]] static Points part(const Points& points, std::size_t axis, std::uint64_t from,
                                     std::uint64_t to) {
        Points some;
        std::ranges::copy_if(points, std::back_inserter(some), [&](const Point* point) {
            return Span{from, to}.has(point->at[axis]);
        });
        return some;
    }

    std::array<std::vector<std::uint64_t>, kAxes> values_;
    std::array<std::vector<Span>, kAxes> spans_;
};

/// One operation on one medium.
class Ground {
public:
    /// `op`: the operation of the rules. `cells`: those of the operation measured for it.
    Ground(Op op, std::vector<const Cell*> cells, const Table* shipped)
        : op_(op), cells_(std::move(cells)), shipped_(shipped) {
        for (const Cell* cell : cells_)
            for (const auto& [name, us] : cell->us) {
                Choice parsed;
                if (parse_choice(op_, name, parsed) == Err::kOk &&
                    std::ranges::find(choices_, name) == choices_.end())
                    choices_.push_back(name);
            }
    }

    void rules(bool any_size, Reach reach, std::vector<Rule>& out) const {
        if (choices_.empty()) return;
        const std::vector<Point> all = any_size ? columns() : points();
        if (reach == Reach::kEverything || on_one_node()) return add_rules(all, reach, out);
        for (const std::uint64_t per_node : coordinates(all, 0)) {
            std::vector<Point> some;
            std::ranges::copy_if(all, std::back_inserter(some),
                                 [&](const Point& point) { return point.at[0] == per_node; });
            add_rules(some, reach, out);
        }
    }

private:
    [[nodiscard]] Medium medium() const { return cells_.front()->at.medium; }
    [[nodiscard]] bool on_one_node() const { return medium() == Medium::kNode; }
    [[nodiscard]] std::array<std::uint64_t, kAxes> place_of(const Cell& cell) const {
        return {on_one_node() ? 0U : cell.at.per_node, cell.at.ranks, cell.at.octets};
    }

    void add_rules(const std::vector<Point>& points, Reach reach, std::vector<Rule>& out) const {
        Points these;
        for (const Point& point : points)
            these.push_back(&point);
        Cover cover;
        if (!Grid(points, reach == Reach::kEverything).cover(these, cover)) return;
        for (const Box& box : cover.boxes)
            out.push_back({op_, medium(), on_one_node() ? Span{} : box.spans[0], box.spans[1],
                           box.spans[2], choices_[box.choice]});
    }

    [[nodiscard]] std::vector<Point> points() const {
        std::vector<Point> all;
        for (const Cell* cell : cells_) {
            const std::string_view held = incumbent(cell->at);
            const double equal = std::max(kEqualShare, cell->noise);
            const bool holds = loss_of(*cell, held) <= equal;
            Point point{place_of(*cell), {}};
            for (const std::string& choice : choices_) {
                const double loss = loss_of(*cell, choice);
                if (loss > std::max(kLossMax, cell->noise))
                    point.loss.push_back(kNever);
                else
                    point.loss.push_back((loss <= equal ? 0 : std::log1p(loss)) +
                                         (holds && choice != held ? kChange : 0));
            }
            all.push_back(std::move(point));
        }
        return all;
    }

    /// One point for all sizes: means, against the best of the means.
    [[nodiscard]] std::vector<Point> columns() const {
        std::vector<Point> all;
        for (const Cell* cell : cells_) {
            auto place = place_of(*cell);
            place.back() = 0;
            auto column = std::ranges::find(all, place, &Point::at);
            if (column == all.end())
                column = all.insert(all.end(), {place, std::vector<double>(choices_.size())});
            for (std::size_t i = 0; i < choices_.size(); ++i)
                column->loss[i] +=
                    std::log(std::min(kLossCounted, 1 + loss_of(*cell, choices_[i])));
        }
        for (Point& column : all) {
            auto place = column.at;
            const auto sizes = std::ranges::count_if(cells_, [&](const Cell* cell) {
                const auto other = place_of(*cell);
                return other[0] == place[0] && other[1] == place[1];
            });
            const double best = *std::ranges::min_element(column.loss);
            for (double& loss : column.loss) {
                loss = (loss - best) / static_cast<double>(sizes);
                if (loss > std::log1p(kLossMax))
                    loss = kNever;
                else if (loss <= std::log1p(kEqualShare))
                    loss = 0;
            }
        }
        return all;
    }

    [[nodiscard]] std::string_view incumbent(Situation at) const {
        if (shipped_ == nullptr) return "";
        const Rule* rule = nullptr;
        if (shipped_->find(at, &rule) != nullptr) return rule->choice;
        at.medium = Medium::kSwitch;
        return shipped_->find(at, &rule) != nullptr ? std::string_view(rule->choice) : "";
    }

    Op op_;
    std::vector<const Cell*> cells_;
    const Table* shipped_;
    std::vector<std::string> choices_;
};

}  // namespace

double time_of(const Cell& cell, std::string_view choice) {
    const auto found =
        std::ranges::find_if(cell.us, [&](const auto& one) { return one.first == choice; });
    return found == cell.us.end() ? 0 : found->second;
}

double loss_of(const Cell& cell, std::string_view choice) {
    double best = kNever;
    for (const auto& [name, us] : cell.us)
        best = std::min(best, us);
    const double us = time_of(cell, choice);
    return us > 0 ? us / best - 1 : kNever;
}

std::vector<Cell> one_of_each(std::span<const Cell> cells) {
    std::vector<Cell> out;
    for (const Cell& first : cells) {
        if (std::ranges::find(out, first.at, &Cell::at) != out.end()) continue;
        Cell one{.at = first.at, .noise = 0, .us = {}};
        for (const auto& [choice, us] : first.us) {
            double logs = 0;
            unsigned count = 0;
            bool all_have = true;
            for (const Cell& cell : cells) {
                if (!(cell.at == first.at)) continue;
                one.noise = std::max(one.noise, cell.noise);
                const double us_there = time_of(cell, choice);
                all_have = all_have && us_there > 0;
                if (us_there > 0) logs += std::log(us_there);
                ++count;
            }
            if (all_have) one.us.emplace_back(choice, std::exp(logs / count));
        }
        if (!one.us.empty()) out.push_back(std::move(one));
    }
    return out;
}

std::vector<Rule> decide(std::span<const Cell> cells, Reach reach, const Table* shipped) {
    std::vector<Rule> rules;
    for (std::uint8_t m = 0; m < kMedia; ++m) {
        const auto add = [&](Op op, Op measured, bool any_size) {
            std::vector<const Cell*> these;
            for (const Cell& cell : cells)
                if (cell.at.medium == static_cast<Medium>(m) && cell.at.op == measured)
                    these.push_back(&cell);
            if (!these.empty()) Ground(op, std::move(these), shipped).rules(any_size, reach, rules);
        };
        for (const Candidates& one : candidates())
            add(one.op, one.op, false);
        for (const Follower& one : followers())
            add(one.op, one.measured, one.any_size);
    }
    return rules;
}

}  // namespace ulc::coll
