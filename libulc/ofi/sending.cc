// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <new>

#include "ofi/endpoint.h"
#include "ofi/info.h"

namespace ulc::ofi {
namespace {

std::size_t bytes_of(const iovec* pieces, std::size_t count) noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i)
        bytes += pieces[i].iov_len;
    return bytes;
}

/// Writes the header and the user's pieces as libulc wants them; returns how many.
unsigned list_pieces(MessageHeader& header, const Outgoing& message, ulc_piece* out) noexcept {
    header = (message.flags & FI_REMOTE_CQ_DATA) != 0 ? MessageHeader::with_data(message.data)
                                                      : MessageHeader::plain();
    out[0] = {&header, sizeof header};
    unsigned count = 1;
    for (std::size_t i = 0; i < message.count; ++i) {
        if (message.pieces[i].iov_len > 0)
            out[count++] = {message.pieces[i].iov_base, message.pieces[i].iov_len};
    }
    return count;
}

/// A message is processed at its destination when the endpoint has it, which may hold it for a
/// later receive (fi_cq(3)). MPICH asks for this level with every send, so a match would make its
/// MPI_Send wait for the receive.
constexpr std::uint64_t kDelivered = FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
/// Levels that an injected message waits for, too.
constexpr std::uint64_t kAwaited = FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;

/// Returns the flag of libulc for a completion level.
unsigned level_of(std::uint64_t flags) noexcept {
    if ((flags & FI_MATCH_COMPLETE) != 0) return ULC_SEND_MATCHED;
    return (flags & kDelivered) != 0 ? unsigned{ULC_SEND_DELIVERED} : 0U;
}

}  // namespace

ssize_t Endpoint::inject(const Outgoing& message, Rank to) noexcept {
    MessageHeader header;
    ulc_piece pieces[ULC_PIECES_MAX];
    const unsigned count = list_pieces(header, message, pieces);
    const int error = ulc_sendv(ep_of(to), number_of(to), message.tag, pieces, count, 0, nullptr);
    if (error != ULC_OK) return -fi_error_of(error);
    if (send_counter_ != nullptr) ++send_counter_->count;
    if (message.report && sends_ != nullptr)
        sends_->add({message.context,
                     FI_SEND | ((message.tag & kTaggedBit) != 0 ? FI_TAGGED : FI_MSG),
                     bytes_of(message.pieces, message.count), nullptr, 0, 0, FI_ADDR_NOTAVAIL});
    return 0;
}

Operation* Endpoint::describe(const Outgoing& message, Rank to) noexcept {
    Operation* operation = pool_.allocate();
    if (operation == nullptr) return nullptr;
    operation->kind = Operation::Kind::kSend;
    operation->report = message.report;
    operation->flags = FI_SEND | ((message.tag & kTaggedBit) != 0 ? FI_TAGGED : FI_MSG);
    operation->capacity = bytes_of(message.pieces, message.count);
    operation->context = message.context;
    operation->peer = to;
    operation->tag = message.tag;
    operation->level = level_of(message.flags);
    operation->count = list_pieces(operation->header, message, operation->pieces);
    if ((message.flags & FI_INJECT) == 0 || operation->capacity == 0) {
        offer(*operation);
        return operation;
    }
    // The caller may change the payload at once.
    operation->copy = new (std::nothrow) unsigned char[operation->capacity];
    if (operation->copy == nullptr) {
        pool_.release(*operation);
        return nullptr;
    }
    unsigned char* to_copy = operation->copy;
    for (unsigned i = 1; i < operation->count; ++i) {
        std::memcpy(to_copy, operation->pieces[i].base, operation->pieces[i].length);
        to_copy += operation->pieces[i].length;
    }
    operation->pieces[1] = {operation->copy, operation->capacity};
    operation->count = 2;
    return operation;
}

ssize_t Endpoint::defer(const Outgoing& message, Rank to) noexcept {
    if (may_defer() != 0) return -FI_EAGAIN;
    Operation* operation = describe(message, to);
    if (operation == nullptr) return -FI_ENOMEM;
    deferred_.append(*operation);
    return 0;
}

ssize_t Endpoint::send(const Outgoing& message) noexcept {
    const int state = ready();
    if (state != 0 && state != -FI_EAGAIN) return state;
    if (message.count > kPiecesMax) return -FI_EINVAL;
    if ((message.flags & FI_INJECT) != 0 &&
        bytes_of(message.pieces, message.count) > kInjectBytesMax)
        return -FI_EINVAL;
    Rank to = ULC_RANK_ANY;
    if (const int error = peers_.rank_of(message.to, to); error != 0) {
        if (error == -FI_EAGAIN) progress();
        return error;
    }
    if (state != 0) return defer(message, to);
    ssize_t error = 0;
    if ((message.flags & (FI_INJECT | kAwaited)) == FI_INJECT) {
        error = inject(message, to);
    } else {
        Operation* operation = describe(message, to);
        if (operation == nullptr) return -FI_ENOMEM;
        error = start(*operation);
    }
    if (error != -FI_EAGAIN) return error;
    progress();  // back-pressure: an application that only tries again must get on
    return -FI_EAGAIN;
}

namespace {

ssize_t start(fid_ep* ep, Outgoing message) noexcept {
    auto& endpoint = *static_cast<Endpoint*>(ep);
    const Guard hold(endpoint.domain.lock);
    return endpoint.send(message);
}

/// Starts a send whose flags are those of the endpoint.
ssize_t start_plain(fid_ep* ep, const iovec* pieces, std::size_t count, fi_addr_t to,
                    std::uint64_t tag, void* context, std::uint64_t data_flag = 0,
                    std::uint64_t data = 0) noexcept {
    auto& endpoint = *static_cast<Endpoint*>(ep);
    return start(ep, {pieces, count, to, tag, context, endpoint.send_flags | data_flag, data,
                      endpoint.reports_send(endpoint.send_flags)});
}

/// Sends and reports nothing.
ssize_t start_inject(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to,
                     std::uint64_t tag, std::uint64_t data_flag = 0,
                     std::uint64_t data = 0) noexcept {
    const iovec piece{const_cast<void*>(buffer), length};
    return start(ep, {&piece, 1, to, tag, nullptr, FI_INJECT | data_flag, data, false});
}

/// fi_sendmsg and fi_tsendmsg, whose flags stand in place of the endpoint's.
template <class Message>
ssize_t start_message(fid_ep* ep, const Message& message, std::uint64_t tag,
                      std::uint64_t flags) noexcept {
    constexpr std::uint64_t kKnown = kSendFlags | FI_REMOTE_CQ_DATA | FI_MORE;
    if ((flags & ~kKnown) != 0) return -FI_EBADFLAGS;
    return start(ep, {message.msg_iov, message.iov_count, message.addr, tag, message.context, flags,
                      message.data, static_cast<Endpoint*>(ep)->reports_send(flags)});
}

ssize_t send(fid_ep* ep, const void* buffer, std::size_t length, void*, fi_addr_t to,
             void* context) noexcept {
    const iovec piece{const_cast<void*>(buffer), length};
    return start_plain(ep, &piece, 1, to, 0, context);
}
ssize_t sendv(fid_ep* ep, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
              void* context) noexcept {
    return start_plain(ep, pieces, count, to, 0, context);
}
ssize_t sendmsg(fid_ep* ep, const fi_msg* message, std::uint64_t flags) noexcept {
    return start_message(ep, *message, 0, flags);
}
ssize_t inject_plain(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to) noexcept {
    return start_inject(ep, buffer, length, to, 0);
}
ssize_t senddata(fid_ep* ep, const void* buffer, std::size_t length, void*, std::uint64_t data,
                 fi_addr_t to, void* context) noexcept {
    const iovec piece{const_cast<void*>(buffer), length};
    return start_plain(ep, &piece, 1, to, 0, context, FI_REMOTE_CQ_DATA, data);
}
ssize_t injectdata(fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data,
                   fi_addr_t to) noexcept {
    return start_inject(ep, buffer, length, to, 0, FI_REMOTE_CQ_DATA, data);
}

std::uint64_t tagged(std::uint64_t tag) noexcept { return kTaggedBit | (tag & kUserTagMask); }

ssize_t tsend(fid_ep* ep, const void* buffer, std::size_t length, void*, fi_addr_t to,
              std::uint64_t tag, void* context) noexcept {
    const iovec piece{const_cast<void*>(buffer), length};
    return start_plain(ep, &piece, 1, to, tagged(tag), context);
}
ssize_t tsendv(fid_ep* ep, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
               std::uint64_t tag, void* context) noexcept {
    return start_plain(ep, pieces, count, to, tagged(tag), context);
}
ssize_t tsendmsg(fid_ep* ep, const fi_msg_tagged* message, std::uint64_t flags) noexcept {
    return start_message(ep, *message, tagged(message->tag), flags);
}
ssize_t tinject(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to,
                std::uint64_t tag) noexcept {
    return start_inject(ep, buffer, length, to, tagged(tag));
}
ssize_t tsenddata(fid_ep* ep, const void* buffer, std::size_t length, void*, std::uint64_t data,
                  fi_addr_t to, std::uint64_t tag, void* context) noexcept {
    const iovec piece{const_cast<void*>(buffer), length};
    return start_plain(ep, &piece, 1, to, tagged(tag), context, FI_REMOTE_CQ_DATA, data);
}
ssize_t tinjectdata(fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data,
                    fi_addr_t to, std::uint64_t tag) noexcept {
    return start_inject(ep, buffer, length, to, tagged(tag), FI_REMOTE_CQ_DATA, data);
}

}  // namespace

void set_send_entries(fi_ops_msg& messages, fi_ops_tagged& tags) noexcept {
    messages.size = sizeof messages;
    messages.send = send;
    messages.sendv = sendv;
    messages.sendmsg = sendmsg;
    messages.inject = inject_plain;
    messages.senddata = senddata;
    messages.injectdata = injectdata;
    tags.size = sizeof tags;
    tags.send = tsend;
    tags.sendv = tsendv;
    tags.sendmsg = tsendmsg;
    tags.inject = tinject;
    tags.senddata = tsenddata;
    tags.injectdata = tinjectdata;
}

}  // namespace ulc::ofi
