// SPDX-License-Identifier: BSD-3-Clause
#include <rdma/fi_errno.h>

#include <cstring>

#include "ofi/endpoint.h"
#include "ofi/info.h"
#include "ofi/rma/atomics.h"
#include "ofi/rma/rma.h"

namespace ulc::ofi {
namespace {

/// A list of values of libfabric; of fetched values they are written.
struct Values {
    const fi_ioc* lists;
    std::size_t count;

    [[nodiscard]] std::size_t elements() const noexcept {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < count; ++i)
            sum += lists[i].count;
        return sum;
    }
    void copy_to(unsigned char* out, std::size_t bytes_each) const noexcept {
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t bytes = lists[i].count * bytes_each;
            if (bytes > 0) std::memcpy(out, lists[i].addr, bytes);
            out += bytes;
        }
    }
};

/// The target, the kind and the completion of an atomic operation.
struct Goal {
    fi_addr_t peer;
    std::uint64_t address;
    std::uint64_t key;
    fi_datatype datatype;
    fi_op op;
    void* context;
    std::uint64_t flags;
    bool report;
    const void* memory = nullptr;  ///< descriptor of what is filled
};

ssize_t start(fid_ep* ep, RmaKind kind, const Goal& goal, const Values& values,
              const Values& compare, const Values& result) noexcept {
    auto& endpoint = *static_cast<Endpoint*>(ep);
    const Guard hold(endpoint.domain.lock);
    const std::uint64_t way = kind == RmaKind::kAtomic ? FI_WRITE : FI_READ;
    if (!endpoint.has(FI_ATOMIC) || !endpoint.has(way)) return -FI_EOPNOTSUPP;
    std::size_t elements_max = 0;
    if (const int error = query_atomic(kind, goal.datatype, goal.op, &elements_max); error != 0)
        return error;
    const auto datatype = static_cast<std::uint8_t>(goal.datatype);
    const auto op = static_cast<std::uint8_t>(goal.op);
    const std::size_t bytes_each = element_bytes(datatype);
    const bool only_reads = goal.op == FI_ATOMIC_READ;
    const std::size_t elements = only_reads ? result.elements() : values.elements();
    if (elements > elements_max || result.count > kPiecesMax ||
        (kind != RmaKind::kAtomic && result.elements() != elements) ||
        (kind == RmaKind::kCompare && compare.elements() != elements))
        return -FI_EINVAL;
    unsigned char operands[2 * kAtomicBytesMax];
    if (!only_reads) values.copy_to(operands, bytes_each);
    if (kind == RmaKind::kCompare) compare.copy_to(operands + elements * bytes_each, bytes_each);
    iovec pieces[kPiecesMax];
    for (std::size_t i = 0; i < result.count; ++i)
        pieces[i] = {result.lists[i].addr, result.lists[i].count * bytes_each};
    return endpoint.remote_memory().start(
        {kind, pieces, result.count, goal.peer, goal.address, goal.key, goal.context, goal.flags, 0,
         goal.report, datatype, op, elements * bytes_each, operands, goal.memory});
}

constexpr Values kNone{nullptr, 0};

/// Returns the goal of an operation whose flags are those of the endpoint.
Goal plain(fid_ep* ep, fi_addr_t peer, std::uint64_t address, std::uint64_t key,
           fi_datatype datatype, fi_op op, void* context, const void* memory = nullptr) noexcept {
    const auto& endpoint = *static_cast<Endpoint*>(ep);
    return {peer,
            address,
            key,
            datatype,
            op,
            context,
            endpoint.send_flags,
            endpoint.reports_send(endpoint.send_flags),
            memory};
}

/// Sets the goal of fi_atomicmsg and its like, whose flags stand in place of the endpoint's.
int goal_of(fid_ep* ep, const fi_msg_atomic& message, std::uint64_t flags, Goal& out) noexcept {
    if ((flags & ~(kSendFlags | FI_MORE)) != 0) return -FI_EBADFLAGS;
    if (message.rma_iov_count != 1) return -FI_EINVAL;
    out = {message.addr,
           message.rma_iov[0].addr,
           message.rma_iov[0].key,
           message.datatype,
           message.op,
           message.context,
           flags,
           static_cast<Endpoint*>(ep)->reports_send(flags)};
    return 0;
}

ssize_t writev(fid_ep* ep, const fi_ioc* values, void**, std::size_t count, fi_addr_t to,
               std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op op,
               void* context) noexcept {
    return start(ep, RmaKind::kAtomic, plain(ep, to, address, key, datatype, op, context),
                 {values, count}, kNone, kNone);
}
ssize_t write(fid_ep* ep, const void* buffer, std::size_t count, void*, fi_addr_t to,
              std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op op,
              void* context) noexcept {
    const fi_ioc values{const_cast<void*>(buffer), count};
    return writev(ep, &values, nullptr, 1, to, address, key, datatype, op, context);
}
ssize_t writemsg(fid_ep* ep, const fi_msg_atomic* message, std::uint64_t flags) noexcept {
    Goal goal;
    if (const int error = goal_of(ep, *message, flags, goal); error != 0) return error;
    return start(ep, RmaKind::kAtomic, goal, {message->msg_iov, message->iov_count}, kNone, kNone);
}
ssize_t inject(fid_ep* ep, const void* buffer, std::size_t count, fi_addr_t to,
               std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op op) noexcept {
    const fi_ioc values{const_cast<void*>(buffer), count};
    return start(ep, RmaKind::kAtomic, {to, address, key, datatype, op, nullptr, FI_INJECT, false},
                 {&values, 1}, kNone, kNone);
}

ssize_t readwritev(fid_ep* ep, const fi_ioc* values, void**, std::size_t count, fi_ioc* result,
                   void** memory, std::size_t result_count, fi_addr_t to, std::uint64_t address,
                   std::uint64_t key, fi_datatype datatype, fi_op op, void* context) noexcept {
    return start(
        ep, RmaKind::kFetch,
        plain(ep, to, address, key, datatype, op, context, memory_of(memory, result_count)),
        {values, count}, kNone, {result, result_count});
}
ssize_t readwrite(fid_ep* ep, const void* buffer, std::size_t count, void*, void* result,
                  void* memory, fi_addr_t to, std::uint64_t address, std::uint64_t key,
                  fi_datatype datatype, fi_op op, void* context) noexcept {
    const fi_ioc values{const_cast<void*>(buffer), count};
    fi_ioc old{result, count};
    return readwritev(ep, &values, nullptr, 1, &old, &memory, 1, to, address, key, datatype, op,
                      context);
}
ssize_t readwritemsg(fid_ep* ep, const fi_msg_atomic* message, fi_ioc* result, void** memory,
                     std::size_t result_count, std::uint64_t flags) noexcept {
    Goal goal;
    if (const int error = goal_of(ep, *message, flags, goal); error != 0) return error;
    goal.memory = memory_of(memory, result_count);
    return start(ep, RmaKind::kFetch, goal, {message->msg_iov, message->iov_count}, kNone,
                 {result, result_count});
}

ssize_t compwritev(fid_ep* ep, const fi_ioc* values, void**, std::size_t count,
                   const fi_ioc* compare, void**, std::size_t compare_count, fi_ioc* result,
                   void** memory, std::size_t result_count, fi_addr_t to, std::uint64_t address,
                   std::uint64_t key, fi_datatype datatype, fi_op op, void* context) noexcept {
    return start(
        ep, RmaKind::kCompare,
        plain(ep, to, address, key, datatype, op, context, memory_of(memory, result_count)),
        {values, count}, {compare, compare_count}, {result, result_count});
}
ssize_t compwrite(fid_ep* ep, const void* buffer, std::size_t count, void*, const void* compare,
                  void*, void* result, void* memory, fi_addr_t to, std::uint64_t address,
                  std::uint64_t key, fi_datatype datatype, fi_op op, void* context) noexcept {
    const fi_ioc values{const_cast<void*>(buffer), count};
    const fi_ioc compared{const_cast<void*>(compare), count};
    fi_ioc old{result, count};
    return compwritev(ep, &values, nullptr, 1, &compared, nullptr, 1, &old, &memory, 1, to, address,
                      key, datatype, op, context);
}
ssize_t compwritemsg(fid_ep* ep, const fi_msg_atomic* message, const fi_ioc* compare, void**,
                     std::size_t compare_count, fi_ioc* result, void** memory,
                     std::size_t result_count, std::uint64_t flags) noexcept {
    Goal goal;
    if (const int error = goal_of(ep, *message, flags, goal); error != 0) return error;
    goal.memory = memory_of(memory, result_count);
    return start(ep, RmaKind::kCompare, goal, {message->msg_iov, message->iov_count},
                 {compare, compare_count}, {result, result_count});
}

int writevalid(fid_ep*, fi_datatype datatype, fi_op op, std::size_t* count) noexcept {
    return query_atomic(RmaKind::kAtomic, datatype, op, count);
}
int readwritevalid(fid_ep*, fi_datatype datatype, fi_op op, std::size_t* count) noexcept {
    return query_atomic(RmaKind::kFetch, datatype, op, count);
}
int compwritevalid(fid_ep*, fi_datatype datatype, fi_op op, std::size_t* count) noexcept {
    return query_atomic(RmaKind::kCompare, datatype, op, count);
}

fi_ops_atomic atomic_ops = {
    sizeof(fi_ops_atomic),
    write,
    writev,
    writemsg,
    inject,
    readwrite,
    readwritev,
    readwritemsg,
    compwrite,
    compwritev,
    compwritemsg,
    writevalid,
    readwritevalid,
    compwritevalid,
};

}  // namespace

int query_atomic(RmaKind kind, fi_datatype datatype, fi_op op, std::size_t* count) noexcept {
    if (static_cast<unsigned>(datatype) > UINT8_MAX || static_cast<unsigned>(op) > UINT8_MAX ||
        !is_there(kind, static_cast<std::uint8_t>(datatype), static_cast<std::uint8_t>(op)))
        return -FI_EOPNOTSUPP;
    if (count != nullptr)
        *count = kAtomicBytesMax / element_bytes(static_cast<std::uint8_t>(datatype));
    return 0;
}

int query_atomic_of_domain(fid_domain*, fi_datatype datatype, fi_op op, fi_atomic_attr* attr,
                           std::uint64_t flags) noexcept {
    if ((flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) != 0) return -FI_EBADFLAGS;
    const RmaKind kind = (flags & FI_COMPARE_ATOMIC) != 0 ? RmaKind::kCompare
                         : (flags & FI_FETCH_ATOMIC) != 0 ? RmaKind::kFetch
                                                          : RmaKind::kAtomic;
    if (const int error = query_atomic(kind, datatype, op, &attr->count); error != 0) return error;
    attr->size = element_bytes(static_cast<std::uint8_t>(datatype));
    return 0;
}

fi_ops_atomic& atomic_entries() noexcept { return atomic_ops; }

}  // namespace ulc::ofi
