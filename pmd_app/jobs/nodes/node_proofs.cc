// SPDX-License-Identifier: BSD-3-Clause
// Questions to nodes about their addresses, and what replies prove (node_addresses.h).
//
//   want() ─▶ begin_round(): fresh tokens ─▶ send_questions() ─┬─ reply ─▶ on_reply() ─▶ settle()
//                                   ▲                          └─ no reply, doubling ─▶ go_on()
//                                   └────────────────────────────────────────────────────┘
//
// Tokens are of one round: a reply to an earlier round proves nothing.
#include <algorithm>

#include "jobs/node_addresses.h"

namespace ulc::jobs {

// ---- questions ----------------------------------------------------------------------------------

/// Asks the node now, or as soon as it may be asked again.
void NodeAddresses::want(Known& known, Nanos now) {
    if (now - known.asked >= kAskGap && !known.asking) return begin_round(known, now);
    known.wanted = true;
    const Nanos at = std::max(now, known.asked + kAskGap);
    ask_at(known, known.asking ? std::min(known.next, at) : at);
}

void NodeAddresses::ask_at(Known& known, Nanos at) {
    known.next = at;
    ask_at_ = std::min(ask_at_, at);
    if (known.asking) return;
    known.asking = true;
    known.place = static_cast<std::uint32_t>(asking_.size());
    asking_.push_back(slot_of(known));
}

void NodeAddresses::ask_no_more(Known& known) noexcept {
    if (!known.asking) return;
    known.asking = false;
    asking_[known.place] = asking_.back();
    known_[asking_.back()].place = known.place;
    asking_.pop_back();
}

bool NodeAddresses::add_question(Known& known, const Mac& to) {
    return known.questions.push_back(Question{to, tokens_.next(), true});
}

/// Asks at each address that counts, and each further one that is up and does not count yet. Where
/// nothing counts that is the first address, and the claimed ones too if it is silent. A node of a
/// mesh has one name, and its port finds the way.
void NodeAddresses::begin_round(Known& known, Nanos now) {
    known.questions.clear();
    known.tries = 0;
    known.wanted = false;
    known.asked = now;
    if (known.first_asked == kNever) known.first_asked = now;
    if (own_.is_meshed() || known.addresses.empty()) (void)add_question(known, known.node);
    const bool watched = liveness_.find(known.node) != kNoNode;
    const bool silent = now - known.first_asked >= kSilence;
    if (known.incarnation == 0 && !own_.is_meshed() && !watched && silent) {
        for (std::size_t n = 1; n < known.claimed.size(); ++n)
            if (known.claimed[n].megabits != 0) (void)add_question(known, known.claimed[n].mac);
        known.tries = kStrangerTries - 1;
    }
    for (const Address& address : known.addresses)
        if (!own_.is_meshed() && (address.counts || address.link.megabits != 0))
            (void)add_question(known, address.link.mac);
    send_questions(known, now);
}

void NodeAddresses::send_questions(Known& known, Nanos now) {
    // Those that find no space are asked again.
    for (const Question& question : known.questions)
        if (question.open && probes_.size() < 2 * kStrangersBurst)
            probes_.push_back({question.to, question.token});
    // In a mesh a node that does not know this one drops its questions.
    if (known.tries > 0 && own_.is_meshed()) own_.greet(now);
    const Nanos wait = std::min(kAskWait << std::min<unsigned>(known.tries, 8), kAskWaitMax);
    ++known.tries;
    ask_at(known, now + (known.provisional ? kAskWaitMax : wait));
}

bool NodeAddresses::Known::is_answered() const noexcept {
    return std::ranges::any_of(questions, [this](const Question& question) {
        return !question.open && question.to != node;
    });
}

/// Asks once more. The question says that the address counts, so the node sends from there.
void NodeAddresses::ask_once_more(Known& known, const Mac& mac) {
    if (probes_.size() >= 2 * kStrangersBurst || !add_question(known, mac)) return;
    Question& question = known.questions[known.questions.size() - 1];
    question.open = false;  // nothing waits for the reply
    probes_.push_back({mac, question.token});
}

/// Repeats the questions, begins the next round, or ends this one.
void NodeAddresses::go_on(Known& known, Nanos now) {
    if (known.wanted && now - known.asked >= kAskGap) return begin_round(known, now);
    // A provisional list lasts while it is confirmed in each round.
    if (known.provisional && known.is_answered()) return begin_round(known, now);
    const bool watched = liveness_.find(known.node) != kNoNode;
    if (known.tries < (watched ? kTries : kStrangerTries)) return send_questions(known, now);
    if (known.provisional) return release(known);
    known.questions.clear();
    settle(known);
}

/// Ends the round if no question is open. all: also those at addresses that do not count yet.
void NodeAddresses::close(Known& known, bool all) noexcept {
    for (Question& question : known.questions) {
        const Address* address = known.address_of(question.to);
        if (all || address == nullptr || address->counts) question.open = false;
    }
    settle(known);
}

void NodeAddresses::settle(Known& known) noexcept {
    const bool open = std::ranges::any_of(known.questions, &Question::open);
    if (!open && !known.wanted && !known.provisional) ask_no_more(known);
}

// ---- what comes ---------------------------------------------------------------------------------

void NodeAddresses::on_links(const wire::NodeView& view, const Mac& source, Nanos now) {
    if (!is_possible(view, source)) return;
    const std::uint32_t watched = liveness_.incarnation_of(source);
    if (watched != 0 && watched != view.incarnation) {
        counters_.add(Counter::drop_unproven);
        return;
    }
    Known* known = find(source);
    if (known == nullptr) return on_stranger(view, source, now);
    if (known->incarnation == 0) return claim(*known, view, now);
    const bool same_life = known->incarnation == view.incarnation;
    if (!same_life) own_.greet(now);
    if (!same_life || view.number > known->number) want(*known, now);
}

void NodeAddresses::on_stranger(const wire::NodeView& view, const Mac& source, Nanos now) {
    const bool free = by_address_.find(number_of(source)) == KeyedIndex::kNone;
    Known* known = free ? add(source) : nullptr;
    if (known == nullptr) {
        counters_.add(Counter::drop_links_address);
        return;
    }
    if (sweep_at_ == kNever) sweep_at_ = now + kRepeat;
    claim(*known, view, now);
    if (!known->asking) return release(*known);
    own_.greet(now);
}

/// Notes what a node that has confirmed nothing announces, and asks it.
void NodeAddresses::claim(Known& known, const wire::NodeView& view, Nanos now) {
    if (now - known.asked < kAskGap) return;
    AddressList claimed;
    for (const wire::LinkEntry& entry : view.links)
        (void)claimed.push_back({entry.mac, entry.megabits, entry.segment});
    // The first address is asked whatever was announced, so a round goes on. In a mesh another
    // announcement takes the place of the first one, which had time for a reply.
    if (known.asking && (!own_.is_meshed() || std::ranges::equal(claimed, known.claimed))) return;
    const bool watched = liveness_.find(known.node) != kNoNode;
    if (!watched && !strangers_.take(now, kStrangersPerSecond, kStrangersBurst)) {
        counters_.add(Counter::answers_limited);
        return;
    }
    known.claimed = claimed;
    if (own_.is_meshed()) {
        known.given = claimed;
        known.tentative = true;
        changes_.push_back({known.node, claimed, false});
    }
    begin_round(known, now);
}

void NodeAddresses::on_request(const wire::NodeView& view, const Mac& source, Nanos now) {
    if ((source.octets[0] & 1U) != 0) return;
    const bool known =
        liveness_.find(source) != kNoNode || by_node_.find(number_of(source)) != KeyedIndex::kNone;
    if ((!known && !replies_limit_.take(now, kStrangersPerSecond, kRepliesMax)) ||
        !replies_.push_back({source, view.token}))
        counters_.add(Counter::answers_limited);
}

NodeAddresses::Question* NodeAddresses::Known::asked_with(std::uint64_t token) noexcept {
    const auto at = std::ranges::find(questions, token, &Question::token);
    return at == questions.end() ? nullptr : &*at;
}

NodeAddresses::Address* NodeAddresses::Known::address_of(const Mac& mac) noexcept {
    const auto at = std::ranges::find_if(
        addresses, [&](const Address& address) { return address.link.mac == mac; });
    return at == addresses.end() ? nullptr : &*at;
}

void NodeAddresses::on_reply(const wire::NodeView& view, const Mac& source, Nanos now) {
    Known* known = find(source);
    Question* question = known == nullptr ? nullptr : known->asked_with(view.token);
    const std::uint32_t watched = liveness_.incarnation_of(source);
    if (question == nullptr || (watched != 0 && watched != view.incarnation)) {
        counters_.add(Counter::drop_unproven);
        return;
    }
    if (!is_possible(view, source)) return;
    question->open = false;
    const Mac asked = question->to;
    const Address* address = known->address_of(asked);
    const bool at_first = asked == known->node;
    // While the node is believed provisionally, only its first address proves more.
    if (at_first || (address != nullptr && address->counts && !known->provisional)) {
        if (known->provisional) known->incarnation = 0;  // the provisional list is dropped
        known->provisional = false;
        return confirm(*known, view, now);
    }
    confirm_address(*known, view, asked, now);
}

/// Takes the list of a node from an address that counts.
void NodeAddresses::confirm(Known& known, const wire::NodeView& view, Nanos now) {
    const bool same_life = known.incarnation == view.incarnation;
    if (same_life && view.number < known.number) return;  // overtaken by a newer one
    if (view.links.size() == 1) return release(known);
    if (!may_claim(view, known)) {
        counters_.add(Counter::drop_links_address);
        if (known.incarnation == 0) return release(known);
        return close(known, true);
    }
    withdraw(known);
    const auto before = known.addresses;
    known.addresses.clear();
    for (const wire::LinkEntry& entry : view.links) {
        const auto old = std::ranges::find_if(
            before, [&](const Address& address) { return address.link.mac == entry.mac; });
        const bool counted = same_life && old != before.end() && old->counts;
        const bool counts = counted || entry.mac == known.node || own_.is_meshed();
        (void)known.addresses.push_back({{entry.mac, entry.megabits, entry.segment}, counts});
    }
    enter(known);
    known.incarnation = view.incarnation;
    known.number = view.number;
    known.proved = now;
    known.first_asked = kNever;
    known.claimed.clear();
    give(known);
    // The addresses that do not count yet are asked in the same round.
    bool asks = false;
    for (const Address& address : known.addresses) {
        const bool asked = std::ranges::any_of(known.questions, [&](const Question& question) {
            return question.open && question.to == address.link.mac;
        });
        if (address.counts || address.link.megabits == 0 || asked) continue;
        asks |= add_question(known, address.link.mac);
    }
    close(known, false);
    if (!asks) return;
    known.tries = 0;
    send_questions(known, now);
}

/// Takes a reply of an address that did not count.
void NodeAddresses::confirm_address(Known& known, const wire::NodeView& view, const Mac& mac,
                                    Nanos now) {
    const bool names_it = std::ranges::any_of(
        view.links, [&](const wire::LinkEntry& entry) { return entry.mac == mac; });
    const bool claims = known.incarnation == 0 || known.provisional;
    const bool fits = claims || known.incarnation == view.incarnation;
    if (!names_it || !fits || !is_free(mac, known) || (claims && !may_claim(view, known))) {
        counters_.add(Counter::drop_links_address);
        return settle(known);
    }
    if (claims) {
        known.provisional = true;
        withdraw(known);
        known.addresses.clear();
        for (const wire::LinkEntry& entry : view.links)
            (void)known.addresses.push_back({{entry.mac, entry.megabits, entry.segment},
                                             entry.mac == mac || entry.mac == known.node});
        known.incarnation = view.incarnation;
        known.number = view.number;
        known.proved = now;
    } else {
        withdraw(known);
        if (Address* address = known.address_of(mac); address != nullptr) address->counts = true;
        ask_once_more(known, mac);
    }
    enter(known);
    give(known);
    settle(known);
}

}  // namespace ulc::jobs
