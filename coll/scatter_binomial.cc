// Scatter down a binomial tree of unicasts (coll/tree.h), the reference: each member passes on the blocks of its subtree as they
// arrive.
#include "coll/algorithm.h"
#include "coll/tree.h"

namespace ulc::coll {
namespace {

class Member {
public:
    Member(const Call& call, Plan& plan)
        : call_(call),
          plan_(plan),
          position_(position_of(call.rank, call.root, call.ranks)),
          place_(place_in(Shape::kBinomial, position_, call.ranks)),
          segments_(segments_of(call, call.octets)) {}

    void run() {
        const Range own{abi::BufferId::kOutput, 0, call_.octets};
        if (position_ != 0) {
            for (std::uint32_t i = 0; i < segments_.count(); ++i)
                static_cast<void>(take(segments_.of(own, i)));
        } else if (!call_.in_place) {
            plan_.copy(own, call_.in.range(call_.rank, abi::BufferId::kInput));
        }
        for (std::size_t child = 0; child < place_.children.size(); ++child) {
            for (std::uint32_t position = place_.children[child];
                 position < place_.child_end(child); ++position)
                pass_on(place_.children[child], position);
        }
    }

private:
    [[nodiscard]] std::uint32_t take(Range segment) {
        plan_.after(receives_.leaving());
        return receives_.push(
            plan_.receive(rank_at(place_.parent, call_.root, call_.ranks), segment));
    }
    /// The block of a position below, to the child that leads there.
    void pass_on(std::uint32_t child, std::uint32_t position) {
        const std::uint16_t to = rank_at(child, call_.root, call_.ranks);
        const std::uint16_t of = rank_at(position, call_.root, call_.ranks);
        const Range block = position_ == 0 ? call_.in.range(of, abi::BufferId::kInput)
                                           : plan_.scratch(call_.octets);
        for (std::uint32_t i = 0; i < segments_.count(); ++i) {
            const Range segment = segments_.of(block, i);
            const std::uint32_t ready = position_ == 0 ? kNoStep : take(segment);
            plan_.after(ready).after(sends_.leaving());
            sends_.push(plan_.send(to, segment));
        }
    }

    const Call& call_;
    Plan& plan_;
    std::uint32_t position_;
    Place place_;
    Segments segments_;
    Window receives_;
    Window sends_;
};

}  // namespace

void scatter_binomial(const Call& call, Plan& plan) { Member(call, plan).run(); }

}  // namespace ulc::coll
