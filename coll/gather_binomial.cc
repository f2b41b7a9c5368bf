// Gather up a binomial tree of unicasts (coll/tree.h), the reference: each member passes on the blocks of its subtree, in order,
// as they arrive. Every block crosses the wire once for each level above it.
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
        if (position_ == 0) {
            copy_own_block(call_, plan_);
        } else {
            for (std::uint32_t i = 0; i < segments_.count(); ++i)
                pass_on(segments_.of(given(call_), i), kNoStep);
        }
        for (std::size_t child = 0; child < place_.children.size(); ++child) {
            for (std::uint32_t position = place_.children[child];
                 position < place_.child_end(child); ++position)
                take(place_.children[child], position);
        }
    }

private:
    /// The block of a position below, from the child that it comes through.
    void take(std::uint32_t child, std::uint32_t position) {
        const std::uint16_t from = rank_at(child, call_.root, call_.ranks);
        const std::uint16_t of = rank_at(position, call_.root, call_.ranks);
        const Range block = position_ == 0 ? call_.out.range(of, abi::BufferId::kOutput)
                                           : plan_.scratch(call_.octets);
        for (std::uint32_t i = 0; i < segments_.count(); ++i) {
            const Range segment = segments_.of(block, i);
            plan_.after(receives_.leaving());
            const std::uint32_t received = receives_.push(plan_.receive(from, segment));
            if (position_ != 0) pass_on(segment, received);
        }
    }
    void pass_on(Range segment, std::uint32_t ready) {
        plan_.after(ready).after(sends_.leaving());
        sends_.push(plan_.send(rank_at(place_.parent, call_.root, call_.ranks), segment));
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

void gather_binomial(const Call& call, Plan& plan) { Member(call, plan).run(); }

}  // namespace ulc::coll
