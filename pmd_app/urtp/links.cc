// Peers of a member that is open for links: they come and go one by one (docs/PROTOCOL.md §4).
// Each end names the other by a slot. A frame carries the name
// that its receiver has for its sender, so nothing is looked up by address.
#include "urtp/impl.h"

namespace ulc::urtp {

Err Member::Impl::link(Rank slot, const Peer& peer, const LinkEnds& ends) {
    const bool unicast = (peer.mac.octets[0] & 1U) == 0 && peer.mac != Mac{};
    if (!for_links() || slot >= roster_.size() || ends.self == kNoRank || !unicast ||
        peer.handle == 0 || is_group(peer.handle))
        return Err::kInvalid;
    if (!is_vacant(slot)) return Err::kMismatch;
    roster_[slot] = peer;
    ends_[slot] = ends;
    return Err::kOk;
}

/// The peer is gone, so its streams have ended: what is left are empty rings and places in lists.
Err Member::Impl::unlink(Rank slot) noexcept {
    if (!for_links() || slot >= roster_.size() || is_vacant(slot)) return Err::kInvalid;
    std::unique_ptr<Session>& session = sessions_[slot];
    if (session != nullptr) {
        if (!session->gone || news_.holds(*session) || session->ready_head != nullptr)
            return Err::kAgain;
        ULC_CHECK(session->held == 0 && session->unicast.sibling == nullptr);
        if (TxStream* tx = session->tx.get(); tx != nullptr) {
            let_go(*tx);
            ULC_CHECK(!tx->active() && tx->repairs == 0);
            active_unicast_.remove(*tx);
            probes_.remove(*tx);
            repairing_.remove(*tx);
            timers_.remove(tx->timer);
            timers_.resign();
            if (draft_.stream == tx) draft_.stream = nullptr;
        }
        timers_.remove(session->unicast.timer);
        timers_.resign();
        timers_.remove(session->expect_timer);
        timers_.resign();
        ready_.remove(*session);
        control_.remove(*session);
        starved_.remove(*session);
        awaited_.remove(*session);
        session.reset();
    }
    roster_[slot] = {};
    ends_[slot] = {};
    return Err::kOk;
}

}  // namespace ulc::urtp
