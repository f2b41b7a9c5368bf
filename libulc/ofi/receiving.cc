// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <new>

#include "ofi/endpoint.h"
#include "ofi/info.h"

namespace ulc::ofi {
namespace {

/// The first bytes of a message. Only an announcement has the body.
struct Head {
    MessageHeader header;
    Announcement body;

    /// These are of the message, whether it is here or announced.
    [[nodiscard]] std::uint64_t length(std::uint64_t there) const noexcept {
        return header.announces() ? std::uint64_t{body.length} : there - sizeof header;
    }
    [[nodiscard]] std::uint64_t data() const noexcept {
        if (!header.has_data()) return 0;
        return header.announces() ? body.data : header.data;
    }
    [[nodiscard]] std::uint64_t descriptor() const noexcept {
        return header.announces() ? std::uint64_t{header.data} : 0;
    }
    [[nodiscard]] HeaderFault fault(std::size_t length) const noexcept {
        const HeaderFault fault = header.fault(length);
        const bool too_long = header.announces() && body.length > kMessageBytesMax;
        return fault == HeaderFault::kNone && too_long ? HeaderFault::kAnnouncement : fault;
    }
};
static_assert(sizeof(Head) == sizeof(MessageHeader) + sizeof(Announcement));

/// Returns how many bytes a message takes of a buffer for many messages. Its first `octets` bytes
/// are at `head`.
std::uint64_t bytes_taken(const ulc_status& message, const void* head,
                          std::size_t octets) noexcept {
    Head start{};
    if (message.length < sizeof start.header) return 0;
    const std::uint64_t payload = message.length - sizeof start.header;
    if (octets < sizeof start.header) return payload;
    std::memcpy(&start, head, std::min(octets, sizeof start));
    // A malformed message that comes in chunks is in the buffer until it is dropped.
    if (start.fault(message.length) != HeaderFault::kNone)
        return octets == message.length ? 0 : payload;
    if (!start.header.announces()) return payload;
    return octets < sizeof start ? UINT64_MAX : std::uint64_t{start.body.length};
}

/// Untagged receives take no message of the provider's own.
constexpr std::uint64_t kUntaggedMask = kTaggedBit | kServiceBit;

}  // namespace

int Endpoint::source_of(fi_addr_t from, Rank& out) noexcept {
    out = ULC_RANK_ANY;
    if (from == FI_ADDR_UNSPEC || (caps_ & FI_DIRECTED_RECV) == 0) return 0;
    const int error = peers_.rank_of(from, out);
    if (error == -FI_EAGAIN) progress();
    return error;
}

bool Endpoint::post(Operation& operation) noexcept {
    const int error = submit(operation);
    if (error == ULC_OK) return true;
    fail(operation, fi_error_of(error), error, 0);
    pool_.release(operation);
    return false;
}

ssize_t Endpoint::receive(const Incoming& wanted) noexcept {
    const int state = ready();
    if (state != 0 && state != -FI_EAGAIN) return state;
    const bool many = (wanted.flags & FI_MULTI_RECV) != 0;
    if (wanted.count > kPiecesMax || (many && wanted.count != 1)) return -FI_EINVAL;
    Rank from = ULC_RANK_ANY;
    if (const int error = source_of(wanted.from, from); error != 0) return error;
    if (state != 0 && may_defer() != 0) return -FI_EAGAIN;
    Operation* operation = describe(wanted);
    if (operation == nullptr) return -FI_ENOMEM;
    operation->kind = many ? Operation::Kind::kMultiReceive : Operation::Kind::kReceive;
    operation->flags = FI_RECV | ((wanted.tag & kTaggedBit) != 0 ? FI_TAGGED : FI_MSG);
    operation->peer = from;
    if (many && !make_buffer(*operation, wanted.pieces[0].iov_base)) {
        pool_.release(*operation);
        return -FI_ENOMEM;
    }
    if (state == 0) return start(*operation);
    deferred_.append(*operation);
    return 0;
}

bool Endpoint::make_buffer(Operation& operation, void* base) noexcept {
    // A buffer of no byte still has a place, which completions name.
    void* const place = base != nullptr ? base : &operation.header;
    if (operation.count == 1) operation.pieces[1] = {place, 0};
    operation.many = new (std::nothrow) ManyBuffer{this, pool_.allocate(), 1};
    return operation.many != nullptr && operation.many->spare != nullptr;
}

void Endpoint::give_part(ulc_request* request, const ulc_status* message, const void* head,
                         std::size_t octets, ulc_part* part) noexcept {
    Operation& all = Operation::of(*request);
    ManyBuffer& many = *all.many;
    Endpoint& self = *many.endpoint;
    const auto taken = static_cast<std::size_t>(
        std::min<std::uint64_t>(bytes_taken(*message, head, octets), all.capacity));
    Operation& one = *many.spare;
    one.kind = Operation::Kind::kReceive;
    one.report = all.report;
    one.flags = all.flags;
    one.context = all.context;
    one.peer = all.peer;
    one.ep = all.ep;
    one.tag = all.tag;
    one.mask = all.mask;
    one.capacity = taken;
    one.pieces[0] = {&one.header, sizeof one.header};
    one.pieces[1] = {all.pieces[1].base, taken};
    one.count = 2;
    one.many = &many;
    ++many.users;
    all.pieces[1].base = static_cast<unsigned char*>(all.pieces[1].base) + taken;
    all.capacity -= taken;
    const bool used_up = all.capacity < self.multi_receive_min;
    many.spare = used_up ? nullptr : self.pool_.allocate();
    *part = {&one.request, one.pieces, one.count, many.spare == nullptr ? 1 : 0};
    self.operations_.append(one);
}

Operation* Endpoint::describe(const Incoming& wanted) noexcept {
    Operation* operation = pool_.allocate();
    if (operation == nullptr) return nullptr;
    operation->kind = Operation::Kind::kReceive;
    operation->report = wanted.report;
    operation->flags = FI_RECV | FI_TAGGED;
    operation->context = wanted.context;
    operation->peer = ULC_RANK_ANY;
    operation->tag = wanted.tag;
    operation->mask = wanted.mask;
    operation->pieces[0] = {&operation->header, sizeof operation->header};
    operation->count = 1;
    operation->capacity = 0;
    for (std::size_t i = 0; i < wanted.count; ++i) {
        if (wanted.pieces[i].iov_len == 0) continue;
        operation->pieces[operation->count++] = {wanted.pieces[i].iov_base,
                                                 wanted.pieces[i].iov_len};
        operation->capacity += wanted.pieces[i].iov_len;
    }
    return operation;
}

ssize_t Endpoint::peek(const Incoming& wanted) noexcept try {
    if (ep_ == nullptr) return -FI_EOPBADSTATE;
    Rank from = ULC_RANK_ANY;
    if (const int error = source_of(wanted.from, from); error != 0) return error;
    progress();
    ulc_endpoint* ep = ep_of(from);
    const bool takes = (wanted.flags & (FI_CLAIM | FI_DISCARD)) != 0;
    for (;;) {
        Head head{};
        std::size_t there = sizeof head;
        ulc_status status{};
        const int error =
            ulc_probe_head(ep, number_of(from), wanted.tag, wanted.mask, &head, &there, &status);
        if (error == ULC_ERR_AGAIN && from == ULC_RANK_ANY && ep == ep_ &&
            peers_.strangers().in_use()) {
            ep = peers_.strangers().ep();
            continue;
        }
        const MessageHeader& header = head.header;
        if (error != ULC_OK || there < std::min<std::uint64_t>(sizeof header, status.length) ||
            (header.announces() && there < std::min<std::uint64_t>(sizeof head, status.length))) {
            const bool none_yet =
                error == ULC_OK || error == ULC_ERR_AGAIN || peers_.state() == -FI_EAGAIN;
            fi_cq_err_entry entry{};
            entry.op_context = wanted.context;
            entry.flags = FI_RECV | FI_TAGGED;
            entry.tag = wanted.tag & kUserTagMask;
            entry.err = none_yet ? FI_ENOMSG : fi_error_of(error);
            entry.prov_errno = error;
            if (receives_ != nullptr) receives_->add_error(entry);
            return 0;
        }
        HeaderFault fault = head.fault(status.length);
        if (header.announces() && ep != ep_) fault = HeaderFault::kAnnouncement;
        const bool malformed = fault != HeaderFault::kNone;
        if (!malformed && header.announces() && (wanted.flags & FI_DISCARD) != 0 &&
            answer(status.source, head.descriptor(), PullAnswer::kTaken, nullptr) == ULC_ERR_AGAIN)
            return -FI_EAGAIN;
        ulc_message* message = nullptr;
        if (takes || malformed) {
            const int claimed =
                ulc_claim(ep, number_of(from), wanted.tag, wanted.mask, &message, &status);
            if (claimed != ULC_OK) return -fi_error_of(claimed);
        }
        if (malformed) {
            static_cast<void>(ulc_discard(ep, message));
            dropped_.add(fault, peers_.own_rank(), status.source);
            continue;
        }
        if ((wanted.flags & FI_DISCARD) != 0)
            static_cast<void>(ulc_discard(ep, message));
        else if (takes)
            claimed_[wanted.context] = {ep, message, status.source, head.descriptor()};
        if (wanted.report && receives_ != nullptr)
            receives_->add(
                {wanted.context, FI_RECV | FI_TAGGED | (header.has_data() ? FI_REMOTE_CQ_DATA : 0),
                 head.length(status.length), nullptr, head.data(), status.tag & kUserTagMask,
                 peers_.address_of(source_in(ep, status.source))});
        return 0;
    }
} catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
}

ssize_t Endpoint::finish_claim(const Incoming& wanted) noexcept {
    const auto known = claimed_.find(wanted.context);
    if (known == claimed_.end() || wanted.count > kPiecesMax) return -FI_EINVAL;
    const auto [ep, message, source, descriptor] = known->second;
    if ((wanted.flags & FI_DISCARD) != 0) {
        if (descriptor != 0 &&
            answer(source, descriptor, PullAnswer::kTaken, nullptr) == ULC_ERR_AGAIN) {
            progress();
            return -FI_EAGAIN;
        }
        claimed_.erase(known);
        static_cast<void>(ulc_discard(ep, message));
        if (wanted.report && receives_ != nullptr)
            receives_->add({wanted.context, FI_RECV | FI_TAGGED, 0, nullptr, 0,
                            wanted.tag & kUserTagMask, FI_ADDR_NOTAVAIL});
        return 0;
    }
    Operation* operation = describe(wanted);
    if (operation == nullptr) return -FI_ENOMEM;
    const int error =
        ulc_receive_claimed(ep, message, operation->pieces, operation->count, &operation->request);
    if (error != ULC_OK) {
        pool_.release(*operation);
        return -fi_error_of(error);
    }
    claimed_.erase(known);
    operation->ep = ep;
    operation->taken = true;
    keep(*operation);
    harvest();
    return 0;
}

ssize_t Endpoint::cancel(void* context) noexcept {
    const auto is_it = [context](const Operation& one) {
        return one.context == context && (one.kind == Operation::Kind::kReceive ||
                                          one.kind == Operation::Kind::kMultiReceive);
    };
    const auto end = [this](OperationList& list, Operation& operation) {
        list.remove(operation);
        fail(operation, FI_ECANCELED, ULC_OK, 0);
        pool_.release(operation);
    };
    bool matched = false;
    for (Operation* one = operations_.first(); one != nullptr; one = one->next) {
        if (!is_it(*one)) continue;
        const bool buffer = one->kind == Operation::Kind::kMultiReceive;
        if (buffer ? one->many->users > 1 : one->many != nullptr) {
            matched = true;
            continue;
        }
        // A receive that has matched stays.
        if (!one->waits && (one->pull != nullptr || ulc_cancel(one->ep, &one->request) != ULC_OK))
            return -FI_EAGAIN;
        end(operations_, *one);
        return 0;
    }
    for (Operation* one = pulls_.first(); one != nullptr; one = one->next)
        if (is_it(*one)) return -FI_EAGAIN;
    for (Operation* one = deferred_.first(); one != nullptr; one = one->next) {
        if (!is_it(*one)) continue;
        end(deferred_, *one);
        return 0;
    }
    return matched ? -FI_EAGAIN : -FI_ENOENT;
}

namespace {

ssize_t start(fid_ep* ep, const Incoming& wanted) noexcept {
    auto& endpoint = *static_cast<Endpoint*>(ep);
    const Guard hold(endpoint.domain.lock);
    if ((wanted.flags & FI_PEEK) != 0) return endpoint.peek(wanted);
    if ((wanted.flags & FI_CLAIM) != 0) return endpoint.finish_claim(wanted);
    return endpoint.receive(wanted);
}

/// Starts a receive whose flags are those of the endpoint.
ssize_t start_plain(fid_ep* ep, const iovec* pieces, std::size_t count, fi_addr_t from,
                    std::uint64_t tag, std::uint64_t mask, void* context) noexcept {
    auto& endpoint = *static_cast<Endpoint*>(ep);
    const std::uint64_t flags = endpoint.receive_flags;
    return start(ep, {pieces, count, from, tag, mask, context,
                      (tag & kTaggedBit) != 0 ? flags & ~FI_MULTI_RECV : flags,
                      endpoint.reports_receive(flags)});
}

ssize_t recv(fid_ep* ep, void* buffer, std::size_t length, void*, fi_addr_t from,
             void* context) noexcept {
    const iovec piece{buffer, length};
    return start_plain(ep, &piece, 1, from, 0, kUntaggedMask, context);
}
ssize_t recvv(fid_ep* ep, const iovec* pieces, void**, std::size_t count, fi_addr_t from,
              void* context) noexcept {
    return start_plain(ep, pieces, count, from, 0, kUntaggedMask, context);
}
ssize_t recvmsg(fid_ep* ep, const fi_msg* message, std::uint64_t flags) noexcept {
    if ((flags & ~(kReceiveFlags | FI_MORE)) != 0) return -FI_EBADFLAGS;
    return start(ep, {message->msg_iov, message->iov_count, message->addr, 0, kUntaggedMask,
                      message->context, flags, static_cast<Endpoint*>(ep)->reports_receive(flags)});
}

std::uint64_t tagged(std::uint64_t tag) noexcept { return kTaggedBit | (tag & kUserTagMask); }

ssize_t trecv(fid_ep* ep, void* buffer, std::size_t length, void*, fi_addr_t from,
              std::uint64_t tag, std::uint64_t ignore, void* context) noexcept {
    const iovec piece{buffer, length};
    return start_plain(ep, &piece, 1, from, tagged(tag), tagged(~ignore), context);
}
ssize_t trecvv(fid_ep* ep, const iovec* pieces, void**, std::size_t count, fi_addr_t from,
               std::uint64_t tag, std::uint64_t ignore, void* context) noexcept {
    return start_plain(ep, pieces, count, from, tagged(tag), tagged(~ignore), context);
}
ssize_t trecvmsg(fid_ep* ep, const fi_msg_tagged* message, std::uint64_t flags) noexcept {
    constexpr std::uint64_t kKnown = FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD;
    constexpr std::uint64_t kLook = FI_PEEK | FI_CLAIM;
    if ((flags & ~kKnown) != 0 || ((flags & FI_DISCARD) != 0 && (flags & kLook) == 0))
        return -FI_EBADFLAGS;
    return start(ep, {message->msg_iov, message->iov_count, message->addr, tagged(message->tag),
                      tagged(~message->ignore), message->context, flags,
                      static_cast<Endpoint*>(ep)->reports_receive(flags)});
}

}  // namespace

void set_receive_entries(fi_ops_msg& messages, fi_ops_tagged& tags) noexcept {
    messages.recv = recv;
    messages.recvv = recvv;
    messages.recvmsg = recvmsg;
    tags.recv = trecv;
    tags.recvv = trecvv;
    tags.recvmsg = trecvmsg;
}

}  // namespace ulc::ofi
