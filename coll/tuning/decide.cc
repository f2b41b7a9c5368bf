#include "coll/tuning/decide.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "coll/tuning/candidates.h"

namespace ulc::coll {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

/// For which numbers each point of a grid speaks; open: the ends reach to 0 and for ever.
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

template <typename Field>
[[nodiscard]] std::vector<std::uint64_t> points_of(const std::vector<const Cell*>& cells,
                                                   Field field) {
    std::vector<std::uint64_t> points;
    points.reserve(cells.size());
    for (const Cell* cell : cells)
        points.push_back(field(*cell));
    std::ranges::sort(points);
    points.erase(std::unique(points.begin(), points.end()), points.end());
    return points;
}

/// What an operation takes at one number of ranks: spans of octets with their choices.
using Row = std::vector<std::pair<Span, std::string>>;

/// Neighbours of one choice are one.
void merge(Row& row) {
    Row merged;
    for (auto& [span, choice] : row) {
        if (!merged.empty() && merged.back().second == choice)
            merged.back().first.to = span.to;
        else
            merged.emplace_back(span, choice);
    }
    row = std::move(merged);
}

/// The choice that loses least against the best of each size.
[[nodiscard]] std::string for_any_size(const std::vector<const Cell*>& cells, Op op) {
    std::map<std::string, double> loss;
    std::vector<std::string> order;
    for (const Cell* cell : cells) {
        const auto best =
            std::ranges::min_element(cell->us, {}, [](const auto& one) { return one.second; });
        for (const auto& [choice, us] : cell->us) {
            Choice parsed;
            if (parse_choice(op, choice, parsed) != Err::kOk) continue;
            if (!loss.contains(choice)) order.push_back(choice);
            loss[choice] += std::log(us / best->second);
        }
    }
    // As many times 2 % as there are cells are nothing.
    const double nothing = kEqualShare * static_cast<double>(cells.size());
    double least = std::numeric_limits<double>::max();
    for (const auto& [choice, sum] : loss)
        least = std::min(least, sum);
    for (const std::string& choice : order)
        if (loss[choice] <= least + nothing) return choice;
    return "";
}

class Grid {
public:
    Grid(Reach reach, const Table* shipped, std::vector<Rule>& out)
        : open_(reach == Reach::kEverything), shipped_(shipped), out_(out) {}

    /// Cells of one operation, medium and number of ranks a node; op: what the rules are for.
    void rules(Op op, bool any_size, const std::vector<const Cell*>& cells, const Span& per_node) {
        const auto ranks =
            points_of(cells, [](const Cell& c) { return std::uint64_t{c.at.ranks}; });
        const std::vector<Span> spans = spans_of(ranks, open_);
        std::vector<std::pair<Span, Row>> rows;
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            std::vector<const Cell*> these;
            std::ranges::copy_if(cells, std::back_inserter(these),
                                 [&](const Cell* c) { return c->at.ranks == ranks[i]; });
            Row found = row(op, any_size, these);
            if (!rows.empty() && rows.back().second == found)
                rows.back().first.to = spans[i].to;
            else
                rows.emplace_back(spans[i], std::move(found));
        }
        const Medium medium = cells.front()->at.medium;
        for (const auto& [span, row] : rows)
            for (const auto& [octets, choice] : row)
                out_.push_back({op, medium, per_node, span, octets, choice});
    }

private:
    [[nodiscard]] Row row(Op op, bool any_size, const std::vector<const Cell*>& cells) const {
        if (any_size) return {{Span{}, for_any_size(cells, op)}};
        const auto octets = points_of(cells, [](const Cell& c) { return c.at.octets; });
        const std::vector<Span> spans = spans_of(octets, true);
        Row row;
        for (std::size_t i = 0; i < octets.size(); ++i) {
            const auto cell = std::ranges::find_if(
                cells, [&](const Cell* c) { return c->at.octets == octets[i]; });
            row.emplace_back(spans[i], winner(**cell, incumbent((*cell)->at)));
        }
        merge(row);
        return row;
    }
    [[nodiscard]] std::string_view incumbent(Situation at) const {
        if (shipped_ == nullptr) return "";
        const Rule* rule = nullptr;
        if (shipped_->find(at, &rule) != nullptr) return rule->choice;
        at.medium = Medium::kSwitch;
        return shipped_->find(at, &rule) != nullptr ? std::string_view(rule->choice) : "";
    }

    bool open_;
    const Table* shipped_;
    std::vector<Rule>& out_;
};

}  // namespace

double time_of(const Cell& cell, std::string_view choice) {
    const auto found =
        std::ranges::find_if(cell.us, [&](const auto& one) { return one.first == choice; });
    return found == cell.us.end() ? 0 : found->second;
}

std::string_view winner(const Cell& cell, std::string_view incumbent) {
    double best = std::numeric_limits<double>::max();
    for (const auto& [choice, us] : cell.us)
        best = std::min(best, us);
    const double equal = best * (1 + std::max(kEqualShare, cell.noise));
    const double held = time_of(cell, incumbent);
    if (held > 0 && held <= equal) return incumbent;
    for (const auto& [choice, us] : cell.us)
        if (us <= equal) return choice;
    return "";
}

std::vector<Rule> decide(std::span<const Cell> cells, Reach reach, const Table* shipped) {
    std::vector<Rule> rules;
    Grid grid(reach, shipped, rules);
    for (std::uint8_t m = 0; m < kMedia; ++m) {
        const auto medium = static_cast<Medium>(m);
        std::vector<const Cell*> here;
        for (const Cell& cell : cells)
            if (cell.at.medium == medium) here.push_back(&cell);
        const bool one_node = medium == Medium::kNode;
        const auto per_node =
            one_node ? std::vector<std::uint64_t>{0}
                     : points_of(here, [](const Cell& c) { return std::uint64_t{c.at.per_node}; });
        const std::vector<Span> spans = spans_of(per_node, one_node || reach == Reach::kEverything);
        const auto add = [&](Op op, Op measured, bool any_size) {
            for (std::size_t i = 0; i < per_node.size(); ++i) {
                std::vector<const Cell*> these;
                std::ranges::copy_if(here, std::back_inserter(these), [&](const Cell* c) {
                    return c->at.op == measured && (one_node || c->at.per_node == per_node[i]);
                });
                if (!these.empty()) grid.rules(op, any_size, these, spans[i]);
            }
        };
        for (const Candidates& one : candidates())
            add(one.op, one.op, false);
        for (const Follower& one : followers())
            add(one.op, one.measured, one.any_size);
    }
    return rules;
}

}  // namespace ulc::coll
