// SPDX-License-Identifier: BSD-3-Clause
// The server thread: takes messages in order of arrival, checks them, and runs their handlers.
#include <cstring>
#include <string>

#include "express/process.h"

namespace ulc::express {

void Process::serve(void* self) {
    auto& own = *static_cast<Process*>(self);
    for (;;)
        if (!own.serve_one()) own.scheduler_->await_work();
}

/// Runs one handler. False: there is no message.
bool Process::serve_one() {
    scheduler_->enter();
    collect();
    const bool has_work = look();
    scheduler_->leave();
    if (deaths_to_handle_ > 0) {
        handle_death();
    } else if (has_work) {
        ++handled_[in_upcall_ ? 1 : 0];
        ulc_show_handler(ep_, ULC_HANDLER_EXPRESS, work_.handler);
        handlers_[work_.handler](work_.source, work_.view, work_.length);
        ulc_show_handler(ep_, ULC_HANDLER_NONE, 0);
        scheduler_->enter();
        ulc_release(ep_, work_.view);
        work_.is_there = false;
        ++finished_[work_.is_odd ? 1 : 0];
        if (syncs_) scheduler_->wake_all(changed_);
        scheduler_->leave();
    }
    return has_work;
}

void Process::handle_death() {
    --deaths_to_handle_;
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
        Peer& peer = peers_[rank];
        if (!peer.is_dead || peer.death_is_handled) continue;
        peer.death_is_handled = true;
        if (on_death_ != nullptr) return on_death_(static_cast<std::uint16_t>(rank));
        const std::string text =
            "process " + std::to_string(rank) + " has died, and no handler is set";
        end_program(text.c_str(), ULC_ERR_PEER_DIED);
    }
}

/// True if the server has work: a message, which it has not released yet, or a death.
bool Process::look() {
    if (deaths_to_handle_ > 0 || work_.is_there) return true;
    for (;;) {
        ulc_status status{};
        const void* view = nullptr;
        const int error = ulc_take(ep_, ULC_RANK_ANY, 0, 0, &view, &status);
        if (error == ULC_OK) {
            if (take_in(view, status)) return true;
        } else if (error != ULC_ERR_AGAIN && error != ULC_ERR_LIMIT) {
            end_program("the engine has ended", error);
        } else if (!drop_first()) {
            return false;
        }
    }
}

/// Drops the first message if it is not whole and never will be, or too long. False: it is not.
bool Process::drop_first() {
    ulc_status status{};
    if (ulc_probe(ep_, ULC_RANK_ANY, 0, 0, &status) != ULC_OK) return false;
    const bool may_become_whole = ulc_peer_state(ep_, status.source) == ULC_OK;
    if (status.length <= EXPRESS_MESSAGE_MAX && may_become_whole) return false;
    ulc_message* message = nullptr;
    if (ulc_claim(ep_, ULC_RANK_ANY, 0, 0, &message, &status) != ULC_OK) return false;
    static_cast<void>(ulc_discard(ep_, message));
    drop(EXPRESS_DROP_LENGTH);
    return true;
}

/// Takes a message of a round of express_sync(). False: it has a wrong length or error, or this
/// process takes none from that one.
bool Process::take_enter(const void* view, const ulc_status& status) {
    if (status.length == 1) {
        const int error = *static_cast<const std::uint8_t*>(view);
        const bool is_known = error == ULC_ERR_PEER_DIED || error == ULC_ERR_PEER_LEFT;
        return is_known && rounds_.take_error(status.source, error);
    }
    std::vector<Be64> words(status.length / sizeof(Be64));
    std::memcpy(words.data(), view, words.size() * sizeof(Be64));
    return rounds_.take(status.source, {words.begin(), words.end()});
}

/// Checks a message that has arrived. True: it is for a handler; all others are done with.
bool Process::take_in(const void* view, const ulc_status& status) {
    Checked checked;
    checked.is_dropped = status.source >= peers_.size() || status.group != 0;
    if (!checked.is_dropped)
        checked = check(status.tag, status.length, static_cast<unsigned>(handlers_.size()),
                        peers_[status.source].is_known);
    if (checked.is_dropped) {
        drop(checked.reason);
        ulc_release(ep_, view);
        return false;
    }
    Peer& peer = peers_[status.source];
    switch (checked.kind) {
        case Kind::kUser:
            work_ = {true, view, status.length, status.source, checked.handler, checked.is_odd};
            return true;
        case Kind::kHello: {
            Hello hello;
            std::memcpy(&hello, view, sizeof hello);
            peer.is_known = hello.id == id_;
            mismatches_ = mismatches_ || !peer.is_known;
            break;
        }
        case Kind::kEnter:
            if (!take_enter(view, status)) drop(EXPRESS_DROP_LENGTH);
            break;
    }
    ulc_release(ep_, view);
    scheduler_->wake_all(changed_);
    return false;
}

}  // namespace ulc::express
