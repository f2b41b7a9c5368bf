// SPDX-License-Identifier: BSD-3-Clause
#include <rdma/fi_errno.h>

#include "ofi/endpoint.h"
#include "ofi/info.h"
#include "ofi/rma/rma.h"

namespace ulc::ofi {
namespace {

std::size_t bytes_of(const iovec* pieces, std::size_t count) noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i)
        bytes += pieces[i].iov_len;
    return bytes;
}

ssize_t start(fid_ep* ep, const RmaCall& call) noexcept {
    auto& endpoint = *static_cast<Endpoint*>(ep);
    const Guard hold(endpoint.domain.lock);
    const std::uint64_t way = call.kind == RmaKind::kRead ? FI_READ : FI_WRITE;
    if (!endpoint.has(FI_RMA) || !endpoint.has(way)) return -FI_EOPNOTSUPP;
    if (call.count > kPiecesMax ||
        ((call.flags & FI_INJECT) != 0 && bytes_of(call.pieces, call.count) > kInjectBytesMax))
        return -FI_EINVAL;
    return endpoint.remote_memory().start(call);
}

/// Starts an operation whose flags are those of the endpoint.
ssize_t start_plain(fid_ep* ep, RmaKind kind, const iovec* pieces, std::size_t count,
                    fi_addr_t peer, std::uint64_t address, std::uint64_t key, void* context,
                    std::uint64_t more = 0, std::uint64_t data = 0,
                    const void* memory = nullptr) noexcept {
    const auto& endpoint = *static_cast<Endpoint*>(ep);
    const std::uint64_t flags = (kind == RmaKind::kRead ? 0 : endpoint.send_flags) | more;
    RmaCall call{kind, pieces,  count, peer, address,
                 key,  context, flags, data, endpoint.reports_send(endpoint.send_flags)};
    call.memory = memory;
    return start(ep, call);
}

/// fi_readmsg and fi_writemsg, whose flags stand in place of the endpoint's.
ssize_t start_message(fid_ep* ep, RmaKind kind, const fi_msg_rma& message,
                      std::uint64_t flags) noexcept {
    if (message.rma_iov_count != 1 || message.iov_count > kPiecesMax) return -FI_EINVAL;
    if (message.rma_iov[0].len != bytes_of(message.msg_iov, message.iov_count)) return -FI_EINVAL;
    RmaCall call{kind,
                 message.msg_iov,
                 message.iov_count,
                 message.addr,
                 message.rma_iov[0].addr,
                 message.rma_iov[0].key,
                 message.context,
                 flags,
                 message.data,
                 static_cast<Endpoint*>(ep)->reports_send(flags)};
    call.memory = memory_of(message.desc, message.iov_count);
    return start(ep, call);
}

ssize_t start_inject(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to,
                     std::uint64_t address, std::uint64_t key, std::uint64_t more = 0,
                     std::uint64_t data = 0) noexcept {
    const iovec piece{const_cast<void*>(buffer), length};
    return start(
        ep, {RmaKind::kWrite, &piece, 1, to, address, key, nullptr, FI_INJECT | more, data, false});
}

ssize_t read(fid_ep* ep, void* buffer, std::size_t length, void* memory, fi_addr_t from,
             std::uint64_t address, std::uint64_t key, void* context) noexcept {
    const iovec piece{buffer, length};
    return start_plain(ep, RmaKind::kRead, &piece, 1, from, address, key, context, 0, 0, memory);
}
ssize_t readv(fid_ep* ep, const iovec* pieces, void** memory, std::size_t count, fi_addr_t from,
              std::uint64_t address, std::uint64_t key, void* context) noexcept {
    return start_plain(ep, RmaKind::kRead, pieces, count, from, address, key, context, 0, 0,
                       memory_of(memory, count));
}
ssize_t readmsg(fid_ep* ep, const fi_msg_rma* message, std::uint64_t flags) noexcept {
    if ((flags & ~(kSendFlags | FI_MORE)) != 0) return -FI_EBADFLAGS;
    return start_message(ep, RmaKind::kRead, *message, flags & ~FI_INJECT);
}
ssize_t write(fid_ep* ep, const void* buffer, std::size_t length, void*, fi_addr_t to,
              std::uint64_t address, std::uint64_t key, void* context) noexcept {
    const iovec piece{const_cast<void*>(buffer), length};
    return start_plain(ep, RmaKind::kWrite, &piece, 1, to, address, key, context);
}
ssize_t writev(fid_ep* ep, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
               std::uint64_t address, std::uint64_t key, void* context) noexcept {
    return start_plain(ep, RmaKind::kWrite, pieces, count, to, address, key, context);
}
ssize_t writemsg(fid_ep* ep, const fi_msg_rma* message, std::uint64_t flags) noexcept {
    if ((flags & ~(kSendFlags | FI_REMOTE_CQ_DATA | FI_MORE)) != 0) return -FI_EBADFLAGS;
    return start_message(ep, RmaKind::kWrite, *message, flags);
}
ssize_t inject(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to,
               std::uint64_t address, std::uint64_t key) noexcept {
    return start_inject(ep, buffer, length, to, address, key);
}
ssize_t writedata(fid_ep* ep, const void* buffer, std::size_t length, void*, std::uint64_t data,
                  fi_addr_t to, std::uint64_t address, std::uint64_t key, void* context) noexcept {
    const iovec piece{const_cast<void*>(buffer), length};
    return start_plain(ep, RmaKind::kWrite, &piece, 1, to, address, key, context, FI_REMOTE_CQ_DATA,
                       data);
}
ssize_t injectdata(fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data,
                   fi_addr_t to, std::uint64_t address, std::uint64_t key) noexcept {
    return start_inject(ep, buffer, length, to, address, key, FI_REMOTE_CQ_DATA, data);
}

fi_ops_rma rma_ops = {sizeof(fi_ops_rma), read,   readv,     readmsg,   write, writev,
                      writemsg,           inject, writedata, injectdata};

}  // namespace

fi_ops_rma& rma_entries() noexcept { return rma_ops; }

}  // namespace ulc::ofi
