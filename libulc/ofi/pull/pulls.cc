// SPDX-License-Identifier: BSD-3-Clause
// Long messages between ranks of one node: the receiver reads them from the sender's memory
// (pull_wire.h). The first half is the sender's, the second the receiver's.
#include <algorithm>
#include <cstring>
#include <new>

#include "client/near/ulc_near.h"
#include "ofi/endpoint.h"
#include "ofi/info.h"
#include "ofi/pull/pull_reader.h"
#include "ofi/queues/completions.h"

namespace ulc::ofi {
namespace {

/// Shortest message that is announced. Below, the answer and the system call cost more than the
/// copies that they save (docs/benchmarks/MPI.md).
constexpr std::size_t kPullFrom = 32U << 10;
/// Bytes that are read before other messages get on.
constexpr std::uint64_t kReadAtOnce = 4U << 20;
/// Time in which a closed endpoint delivers the messages that others were to read.
constexpr Nanos kEndMax = 10 * kSecond;

std::uint64_t address_of(const PullDescriptor& descriptor) noexcept {
    return reinterpret_cast<std::uintptr_t>(&descriptor);
}

/// Copies the first bytes of a buffer in pieces. False: it has fewer.
bool read_head(const ulc_piece* pieces, unsigned count, void* out, std::size_t bytes) noexcept {
    auto* to = static_cast<unsigned char*>(out);
    for (unsigned i = 0; i < count && bytes > 0; ++i) {
        const std::size_t taken = std::min(bytes, pieces[i].length);
        std::memcpy(to, pieces[i].base, taken);
        to += taken;
        bytes -= taken;
    }
    return bytes == 0;
}

}  // namespace

// ---------------------------------------------------------------- the sender

void Endpoint::offer(Operation& operation) noexcept {
    if (operation.capacity < kPullFrom || !peers_.is_near(operation.peer)) return;
    const PullPeer* peer = pull_peers_.find(number_of(operation.peer));
    if (peer != nullptr && peer->never) return;
    auto* pull = new (std::nothrow) Pull{};
    if (pull == nullptr) return;  // the ordinary way then
    pull->stage = Pull::Stage::kAnnounced;
    PullDescriptor& descriptor = pull->descriptor;
    descriptor.length = operation.capacity;
    descriptor.data = operation.header.data;
    descriptor.has_data = operation.header.has_data() ? 1 : 0;
    descriptor.count = operation.count - 1;
    for (unsigned i = 1; i < operation.count; ++i)
        descriptor.pieces[i - 1] = {reinterpret_cast<std::uintptr_t>(operation.pieces[i].base),
                                    operation.pieces[i].length};
    operation.pull = pull;
}

int Endpoint::submit_pull(Operation& operation) noexcept {
    Pull& pull = *operation.pull;
    operation.ep = ep_;
    if (operation.kind != Operation::Kind::kSend)
        return ulc_receivev(ep_, pull.source, whole_message_tag(pull.address), ~std::uint64_t{0},
                            operation.pieces, operation.count, &operation.request);
    const std::uint64_t address = address_of(pull.descriptor);
    if (pull.stage == Pull::Stage::kWhole)
        return ulc_sendv(ep_, number_of(operation.peer), whole_message_tag(address),
                         operation.pieces, operation.count, operation.level, &operation.request);
    const PullPeer* peer = pull_peers_.find(number_of(operation.peer));
    ulc_near_process self;
    ulc_near_process other;
    const bool proven = peer != nullptr && peer->proven &&
                        ulc_near_processes(ep_, number_of(operation.peer), &self, &other) == ULC_OK;
    if (proven) pull.descriptor.seal = seal_of(peer->theirs, self, other);
    MessageHeader header =
        MessageHeader::announcing(address, pull.descriptor.has_data != 0, proven);
    const bool whole = pull.descriptor.count == 1;
    Announcement body{pull.descriptor.length, pull.descriptor.data,
                      whole ? pull.descriptor.pieces[0].address : 0};
    const ulc_piece pieces[] = {{&header, sizeof header}, {&body, sizeof body}};
    const int error =
        ulc_sendv(ep_, number_of(operation.peer), operation.tag, pieces, 2, 0, nullptr);
    if (error != ULC_OK) return error;
    const ulc_piece answer{&pull.answer, sizeof pull.answer};
    return ulc_receivev(ep_, number_of(operation.peer), answer_tag(address), ~std::uint64_t{0},
                        &answer, 1, &operation.request);
}

void Endpoint::send_whole(Operation& operation) noexcept {
    const int error = submit(operation);
    if (error == ULC_OK) {
        keep(operation);
    } else if (error == ULC_ERR_AGAIN) {
        stuck_.append(operation);
    } else {
        fail(operation, fi_error_of(error), error, 0);
        pool_.release(operation);
    }
}

bool Endpoint::take_answer(Operation& operation, const ulc_status& status) noexcept try {
    Pull& pull = *operation.pull;
    const bool arrived = status.error == ULC_OK || status.error == ULC_ERR_TRUNCATED;
    if (pull.stage != Pull::Stage::kAnnounced || !arrived) return true;
    const bool valid = pull.answer.is_valid(status.length);
    if (valid && pull.answer.what == PullAnswer::kTaken) return true;
    PullPeer& peer = pull_peers_.of(number_of(operation.peer));
    if (!valid) dropped_.add(HeaderFault::kAnswer, peers_.own_rank(), number_of(operation.peer));
    if (!valid || pull.answer.what == PullAnswer::kNever) {
        peer.never = true;
    } else if (pull.answer.has_token != 0) {
        peer.proven = true;
        peer.theirs = pull.answer.token;
    }
    pull.stage = Pull::Stage::kWhole;
    send_whole(operation);
    return false;
} catch (const std::bad_alloc&) {
    operation.pull->stage = Pull::Stage::kWhole;
    send_whole(operation);
    return false;
}

// ---------------------------------------------------------------- the receiver

int Endpoint::answer(std::uint16_t to, std::uint64_t descriptor, std::uint8_t what,
                     const PullToken* token) noexcept {
    PullAnswer answer{what, 0, 0, {}};
    if (token != nullptr) {
        answer.has_token = 1;
        answer.token = *token;
    }
    const ulc_piece piece{&answer, sizeof answer};
    return ulc_sendv(ep_, to, answer_tag(descriptor), &piece, 1, 0, nullptr);
}

void Endpoint::start_pull(Operation& operation, const ulc_status& status) noexcept try {
    PullPeer& peer = pull_peers_.of(status.source);
    auto pull = std::make_unique<Pull>();
    pull->source = status.source;
    pull->tag = status.tag;
    pull->address = operation.header.data;
    pull->stage = Pull::Stage::kAnswering;
    ulc_near_process self;
    ulc_near_process other;
    const int near = ulc_near_processes(ep_, status.source, &self, &other);
    if (near != ULC_OK && near != ULC_ERR_AGAIN) peer.refused = true;
    if (near == ULC_OK && !peer.issued && !peer.refused)
        peer.refused = !PullPeers::issue(peer, self, other);
    pull->answer.what = peer.refused ? PullAnswer::kNever : PullAnswer::kSend;
    Announcement body{};
    const bool has_body = read_head(operation.pieces + 1, operation.count - 1, &body, sizeof body);
    if (operation.header.is_proven() && peer.issued && !peer.refused) {
        // The seal is checked with the data at the latest.
        const bool known = has_body && body.piece != 0;
        if (known)
            pull->descriptor = PullDescriptor::of(body, operation.header.has_data(), peer.ours);
        if (!known && !read_descriptor(peer.process, pull->address, peer.ours, pull->descriptor)) {
            peer.refused = true;
            pull->answer.what = PullAnswer::kNever;
        } else if (!pull->descriptor.is_valid(kMessageBytesMax)) {
            dropped_.add(HeaderFault::kDescriptor, peers_.own_rank(), status.source);
            receive_again(operation);
            return;
        } else {
            pull->stage = Pull::Stage::kReading;
        }
    }
    operation.pull = pull.release();
    if (!advance_pull(operation)) pulls_.append(operation);
} catch (const std::bad_alloc&) {
    fail(operation, FI_ENOMEM, ULC_ERR_NO_MEMORY, 0);
    pool_.release(operation);
}

bool Endpoint::advance_pull(Operation& operation) noexcept {
    Pull& pull = *operation.pull;
    const PullPeer& peer = *pull_peers_.find(pull.source);
    if (pull.stage == Pull::Stage::kReading) {
        const std::uint64_t wanted =
            std::min<std::uint64_t>(pull.descriptor.length, operation.capacity);
        const std::uint64_t bytes = std::min(wanted - pull.read, kReadAtOnce);
        if (bytes > 0 && !read_bytes(peer.process, pull.address, pull.descriptor, pull.read, bytes,
                                     operation.pieces + 1, operation.count - 1)) {
            pull.stage = Pull::Stage::kAnswering;
            pull.answer.what = PullAnswer::kNever;
            pull_peers_.of(pull.source).refused = true;  // allocates nothing: it is there
        } else {
            pull.read += bytes;
            if (pull.read < wanted) return false;
            pull.stage = Pull::Stage::kAnswering;
            pull.answer.what = PullAnswer::kTaken;
        }
    }
    // A sender that is gone needs no answer. A message that it sent before is still received.
    if (answer(pull.source, pull.address, pull.answer.what,
               peer.issued ? &peer.ours.token : nullptr) == ULC_ERR_AGAIN)
        return false;
    if (pull.answer.what == PullAnswer::kTaken) {
        const PullDescriptor& read = pull.descriptor;
        operation.header =
            read.has_data != 0 ? MessageHeader::with_data(read.data) : MessageHeader::plain();
        take_message(operation, pull.source, pull.tag, read.length);
        return true;
    }
    pull.stage = Pull::Stage::kWhole;
    if (post(operation)) keep(operation);
    return true;
}

void Endpoint::advance_pulls() noexcept {
    for (std::size_t left = pulls_.size(); left > 0; --left) {
        Operation& operation = *pulls_.first();
        pulls_.remove(operation);
        if (!advance_pull(operation)) pulls_.append(operation);
    }
    for (std::size_t left = stuck_.size(); left > 0; --left) {
        Operation& operation = *stuck_.first();
        stuck_.remove(operation);
        if (operation.kind == Operation::Kind::kSend)
            send_whole(operation);
        else
            rma_.send_again(operation);
    }
}

// ---------------------------------------------------------------- the end

void Endpoint::end_pulls() noexcept {
    const Nanos deadline = now() + kEndMax;
    progress();
    while ((!pulls_.empty() || !stuck_.empty()) && ended_ == 0 && now() < deadline)
        progress();
    for (Operation* one = operations_.first(); one != nullptr;) {
        Operation& operation = *one;
        one = one->next;
        if (operation.kind != Operation::Kind::kSend || operation.pull == nullptr ||
            operation.pull->stage != Pull::Stage::kAnnounced ||
            ulc_cancel(ep_, &operation.request) != ULC_OK)
            continue;
        operations_.remove(operation);
        operation.pull->descriptor.seal.token.fill(0);
        operation.pull->stage = Pull::Stage::kWhole;
        operation.level = 0;
        send_whole(operation);
    }
    while (!stuck_.empty() && ended_ == 0 && now() < deadline)
        progress();
}

}  // namespace ulc::ofi
