// SPDX-License-Identifier: BSD-3-Clause
// The links of this node, and when it announces them (docs/protocol/NODES.md §8.6). Used by
// NodeAddresses.
//
//   set() ──▶ due: at once, after greet(), every kRepeat ──▶ announce()
//
// Invariant: a node with one link that never had more announces nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bounded.h"
#include "base/units.h"
#include "wire/job.h"
#include "wire/node_address.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::jobs {

using AddressList = FixedVector<NodeAddress, kNodeLinksMax>;

class OwnLinks {
public:
    static constexpr Nanos kRepeat = kSecond;
    static constexpr Nanos kGreetGap = 10 * kMillisecond;

    explicit OwnLinks(const Mac& mac) noexcept : mac_(mac) {}

    /// Takes the links, the first with the node's address; announces them if they changed.
    void set(std::span<const NodeAddress> links, Nanos now);
    /// Announces them for a node that may not know them, unless that was done just now.
    void greet(Nanos now) noexcept;

    [[nodiscard]] bool has(const Mac& mac) const noexcept;
    /// Returns whether this is a node of a mesh: a row and a column.
    [[nodiscard]] bool is_meshed() const noexcept {
        return links_.size() == 2 && links_[0].segment != 0;
    }
    /// True if this node has that place in its mesh.
    [[nodiscard]] bool is_at(std::uint16_t row, std::uint16_t column) const noexcept {
        return is_meshed() && row == links_[0].segment && column == links_[1].segment;
    }

    [[nodiscard]] bool is_due() const noexcept { return due_; }
    /// Writes the body of a LINKS frame with that head. Requires is_due().
    [[nodiscard]] std::size_t announce(std::byte* body, wire::NodeBody head, Nanos now);
    /// Writes the body of a LINKS_REPLY frame with that head.
    [[nodiscard]] std::size_t put_reply(std::byte* body, const wire::NodeBody& head) const;
    [[nodiscard]] Nanos next_timer() const noexcept { return repeat_at_; }
    void on_timer(Nanos now) noexcept;

    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    Mac mac_;  ///< address of the first link
    AddressList links_;
    std::uint64_t number_ = 0;  ///< the last announcement's
    bool due_ = false;
    Nanos sent_at_ = -kNever / 2;
    Nanos repeat_at_ = kNever;
};

}  // namespace ulc::jobs
