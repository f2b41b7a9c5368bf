// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/info.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "abi/attach.h"
#include "ofi/message_header.h"
#include "ofi/peers/job.h"
#include "ofi/rma/rma_wire.h"
#include "ofi/running_library.h"

namespace ulc::ofi {
namespace {

constexpr std::uint64_t kInitiates = FI_READ | FI_WRITE;
constexpr std::uint64_t kServes = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::uint64_t kRemoteMemory = FI_RMA | FI_ATOMIC;
constexpr std::uint64_t kPrimary =
    FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | kRemoteMemory | kInitiates | kServes;
constexpr std::uint64_t kSecondary =
    FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_RMA_EVENT;
constexpr std::uint64_t kSendCaps =
    FI_MSG | FI_TAGGED | FI_SEND | FI_LOCAL_COMM | FI_REMOTE_COMM | kRemoteMemory | kInitiates;
constexpr std::uint64_t kReceiveCaps =
    FI_MSG | FI_TAGGED | FI_RECV | kSecondary | kRemoteMemory | kServes;
constexpr std::size_t kRegionsMax = 65536;
/// Accesses of up to kRmaInlineMax bytes to memory are applied in their order (rma/rma_wire.h).
/// FI_ORDER_RAR, which has no such bound, is true of atomic operations alone.
constexpr std::uint64_t kOrder = FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW |
                                 FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW |
                                 FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |
                                 FI_ORDER_ATOMIC_WAW;
constexpr std::uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM;
/// Alternating bits from bit 61 down: all 62 are the user's, in one field.
constexpr std::uint64_t kTagFormat = 0xaaaaaaaaaaaaaaaaULL >> 2;

bool within(std::uint64_t wanted, std::uint64_t there) noexcept { return (wanted & ~there) == 0; }

bool is_name(const char* name) noexcept { return name == nullptr || std::strcmp(name, kName) == 0; }

bool fits(const fi_tx_attr& hint) noexcept {
    return within(hint.caps, kSendCaps) && within(hint.op_flags, kSendFlags) &&
           within(hint.msg_order, kOrder) && within(hint.comp_order, kOrderNone) &&
           hint.inject_size <= kInjectBytesMax && hint.size <= kQueueSizeMax &&
           hint.iov_limit <= kPiecesMax && hint.rma_iov_limit <= 1;
}

bool fits(const fi_rx_attr& hint) noexcept {
    return within(hint.caps, kReceiveCaps) && within(hint.op_flags, kReceiveFlags) &&
           within(hint.msg_order, kOrder) && within(hint.comp_order, kOrderNone) &&
           hint.size <= kQueueSizeMax && hint.iov_limit <= kPiecesMax;
}

bool fits(const fi_ep_attr& hint) noexcept {
    return (hint.type == FI_EP_UNSPEC || hint.type == FI_EP_RDM) &&
           (hint.protocol == FI_PROTO_UNSPEC || hint.protocol == kProtocol) &&
           hint.protocol_version <= kProtocolVersion && hint.max_msg_size <= kMessageBytesMax &&
           hint.max_order_raw_size <= kRmaInlineMax && hint.max_order_war_size <= kRmaInlineMax &&
           hint.max_order_waw_size <= kRmaInlineMax && (hint.mem_tag_format & ~kUserTagMask) == 0 &&
           hint.tx_ctx_cnt <= 1 && hint.rx_ctx_cnt <= 1 && hint.auth_key_size == 0;
}

bool fits(const fi_domain_attr& hint) noexcept {
    return is_name(hint.name) && hint.threading <= FI_THREAD_ENDPOINT &&
           hint.control_progress <= FI_PROGRESS_MANUAL &&
           hint.data_progress <= FI_PROGRESS_MANUAL && hint.av_type <= FI_AV_TABLE &&
           hint.cq_data_size <= sizeof(std::uint64_t) && hint.max_ep_tx_ctx <= 1 &&
           hint.max_ep_rx_ctx <= 1 && hint.max_ep_stx_ctx == 0 && hint.max_ep_srx_ctx == 0 &&
           hint.mr_iov_limit <= 1 && hint.mr_cnt <= kRegionsMax &&
           hint.mr_key_size <= sizeof(std::uint64_t) && hint.auth_key_size == 0 &&
           hint.max_err_data == 0 && within(hint.caps, kDomainCaps);
}

bool fits(const fi_info& hints) noexcept {
    return within(hints.caps, kPrimary | kSecondary) &&
           (hints.addr_format == FI_FORMAT_UNSPEC || hints.addr_format == kAddressFormat) &&
           hints.src_addr == nullptr && hints.handle == nullptr &&
           (hints.dest_addr == nullptr || hints.dest_addrlen == kAddressBytes) &&
           (hints.tx_attr == nullptr || fits(*hints.tx_attr)) &&
           (hints.rx_attr == nullptr || fits(*hints.rx_attr)) &&
           (hints.ep_attr == nullptr || fits(*hints.ep_attr)) &&
           (hints.domain_attr == nullptr || fits(*hints.domain_attr)) &&
           (hints.fabric_attr == nullptr || is_name(hints.fabric_attr->name));
}

/// Returns the capabilities of an endpoint for an application that wants these.
std::uint64_t granted(std::uint64_t wanted) noexcept {
    if ((wanted & ~kSecondary) == 0) return kPrimary | kSecondary;
    std::uint64_t caps = wanted | FI_LOCAL_COMM | FI_REMOTE_COMM;
    constexpr std::uint64_t kMessages = FI_MSG | FI_TAGGED;
    constexpr std::uint64_t kWays = FI_SEND | FI_RECV | kInitiates | kServes;
    if ((caps & (kMessages | kRemoteMemory)) == 0) {
        if ((caps & (FI_SEND | FI_RECV)) != 0) caps |= kMessages;
        if ((caps & (kInitiates | kServes)) != 0) caps |= kRemoteMemory;
    }
    // Without a direction it is all directions.
    if ((caps & kMessages) != 0 && (caps & (FI_SEND | FI_RECV)) == 0) caps |= FI_SEND | FI_RECV;
    if ((caps & kRemoteMemory) != 0 && (caps & kWays & ~(FI_SEND | FI_RECV)) == 0)
        caps |= kInitiates | kServes;
    return caps;
}

void describe(fi_info& info, std::uint64_t caps) noexcept {
    info.caps = caps;
    info.addr_format = kAddressFormat;
    info.tx_attr->caps = caps & kSendCaps;
    const std::uint64_t order = (caps & kRemoteMemory) != 0 ? kOrder : FI_ORDER_SAS;
    info.tx_attr->msg_order = order;
    info.tx_attr->inject_size = kInjectBytesMax;
    info.tx_attr->size = kQueueSize;
    info.tx_attr->iov_limit = kPiecesMax;
    info.tx_attr->rma_iov_limit = (caps & kRemoteMemory) != 0 ? 1 : 0;
    info.rx_attr->caps = caps & kReceiveCaps;
    info.rx_attr->msg_order = order;
    info.rx_attr->size = kQueueSize;
    info.rx_attr->iov_limit = kPiecesMax;
    info.ep_attr->type = FI_EP_RDM;
    info.ep_attr->protocol = kProtocol;
    info.ep_attr->protocol_version = kProtocolVersion;
    info.ep_attr->max_msg_size = kMessageBytesMax;
    info.ep_attr->mem_tag_format = kTagFormat;
    info.ep_attr->max_order_raw_size = kRmaInlineMax;
    info.ep_attr->max_order_war_size = kRmaInlineMax;
    info.ep_attr->max_order_waw_size = kRmaInlineMax;
    info.ep_attr->tx_ctx_cnt = 1;
    info.ep_attr->rx_ctx_cnt = 1;
    fi_domain_attr& domain = *info.domain_attr;
    domain.threading = FI_THREAD_SAFE;
    domain.control_progress = FI_PROGRESS_MANUAL;
    domain.data_progress = FI_PROGRESS_MANUAL;
    domain.resource_mgmt = FI_RM_ENABLED;
    domain.av_type = FI_AV_UNSPEC;
    domain.cq_data_size = sizeof(std::uint64_t);
    domain.cq_cnt = 1024;
    domain.ep_cnt = 64;
    domain.tx_ctx_cnt = 64;
    domain.rx_ctx_cnt = 64;
    domain.max_ep_tx_ctx = 1;
    domain.max_ep_rx_ctx = 1;
    domain.cntr_cnt = 1024;
    domain.mr_key_size = sizeof(std::uint64_t);
    domain.mr_iov_limit = 1;
    domain.mr_cnt = kRegionsMax;
    domain.caps = kDomainCaps;
}

/// Sets what the hints chose among the things that are there.
void adopt(fi_info& info, const fi_info& hints) noexcept {
    if (hints.tx_attr != nullptr) {
        info.tx_attr->op_flags = hints.tx_attr->op_flags;
        info.tx_attr->size = std::max(info.tx_attr->size, hints.tx_attr->size);
    }
    if (hints.rx_attr != nullptr) {
        info.rx_attr->op_flags = hints.rx_attr->op_flags;
        info.rx_attr->size = std::max(info.rx_attr->size, hints.rx_attr->size);
    }
    if (hints.domain_attr != nullptr) {
        const fi_domain_attr& hint = *hints.domain_attr;
        if (hint.threading != FI_THREAD_UNSPEC) info.domain_attr->threading = hint.threading;
        if (hint.control_progress != FI_PROGRESS_UNSPEC)
            info.domain_attr->control_progress = hint.control_progress;
        if (hint.data_progress != FI_PROGRESS_UNSPEC)
            info.domain_attr->data_progress = hint.data_progress;
        if (hint.resource_mgmt != FI_RM_UNSPEC)
            info.domain_attr->resource_mgmt = hint.resource_mgmt;
        info.domain_attr->av_type = hint.av_type;
        // None of the modes that are bits is needed.
        const bool old = hint.mr_mode == kMemoryBasic || hint.mr_mode == kMemoryScalable;
        info.domain_attr->mr_mode = old ? hint.mr_mode : 0;
        info.domain_attr->domain = hint.domain;
    }
    if (hints.fabric_attr != nullptr) info.fabric_attr->fabric = hints.fabric_attr->fabric;
    info.handle = nullptr;
}

/// Returns the engine that the environment names, without a net. In a cluster on one machine this
/// is the engine of node 0, which every such cluster has.
std::string engine_name() {
    const char* given = std::getenv("ULC_ENGINE");  // NOLINT(concurrency-mt-unsafe): read only
    std::string name = given == nullptr || *given == '\0' ? abi::kDefaultSocketPath : given;
    for (std::size_t at = name.find("%n"); at != std::string::npos; at = name.find("%n", at))
        name.replace(at, 2, "0");
    if (name.starts_with("embedded:")) return name;
    if (const std::size_t net = name.find('#'); net != std::string::npos) name.resize(net);
    return name;
}

}  // namespace

bool engine_answers() noexcept {
    const std::string name = engine_name();
    if (name.starts_with("embedded:")) return true;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (name.empty() || name.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path, name.data(), name.size());
    socklen_t length = sizeof address;
    if (name[0] == '@') {
        address.sun_path[0] = '\0';
        length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    }
    const int probe = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0) return false;
    // EAGAIN: as many ranks as the engine lets wait are connecting already.
    const bool answers =
        ::connect(probe, reinterpret_cast<const sockaddr*>(&address), length) == 0 ||
        errno == EAGAIN;
    ::close(probe);
    return answers;
}

int get_info(std::uint32_t, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** out) noexcept try {
    // Addresses come from fi_getname(); names of nodes mean nothing here. A service alone that is
    // the own one asks for no particular address.
    if (node != nullptr || (service != nullptr && (flags & FI_SOURCE) == 0)) return -FI_ENODATA;
    if (hints != nullptr && !fits(*hints)) return -FI_ENODATA;
    if (!Job::is_shown() || !engine_answers()) return -FI_ENODATA;
    fi_info* info = allocate_info();
    if (info == nullptr) return -FI_ENOMEM;
    describe(*info, granted(hints != nullptr ? hints->caps : 0));
    if (hints != nullptr) adopt(*info, *hints);
    info->domain_attr->name = ::strdup(kName);
    info->fabric_attr->name = ::strdup(kName);
    bool whole = info->domain_attr->name != nullptr && info->fabric_attr->name != nullptr;
    if (hints != nullptr && hints->dest_addr != nullptr) {
        info->dest_addr = std::malloc(kAddressBytes);
        whole = whole && info->dest_addr != nullptr;
        if (info->dest_addr != nullptr) {
            std::memcpy(info->dest_addr, hints->dest_addr, kAddressBytes);
            info->dest_addrlen = kAddressBytes;
        }
    }
    if (!whole) {
        free_info(info);
        return -FI_ENOMEM;
    }
    *out = info;
    return 0;
} catch (...) {
    return -FI_ENOMEM;
}

}  // namespace ulc::ofi
