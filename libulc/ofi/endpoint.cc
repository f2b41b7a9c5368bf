// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/endpoint.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "ofi/fabric.h"
#include "ofi/info.h"
#include "ofi/not_there.h"
#include "ofi/say.h"

namespace ulc::ofi {
namespace {

constexpr NotThere kNotThere;

/// Messages from this length on are sent when a receive has matched. The round trip that this costs
/// is below a hundredth of the time that such a message takes at 10 Gb/s.
constexpr std::uint64_t kRendezvousFrom = 16U << 20;
/// Bytes of unexpected messages of one sender above which it has to do so with all messages.
constexpr std::uint64_t kUnexpectedMax = 64U << 20;

Endpoint& endpoint_of(fid* handle) noexcept { return object_of<Endpoint, fid_ep>(handle); }

int close_endpoint(fid* handle) noexcept {
    Endpoint& endpoint = endpoint_of(handle);
    Domain& domain = endpoint.domain;
    {
        const Guard hold(domain.lock);
        delete &endpoint;
    }
    --domain.users;
    return 0;
}

int bind_object(fid* handle, fid* object, std::uint64_t flags) noexcept try {
    Endpoint& endpoint = endpoint_of(handle);
    const Guard hold(endpoint.domain.lock);
    return endpoint.bind(*object, flags);
} catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
}

int control(fid* handle, int command, void* argument) noexcept try {
    Endpoint& endpoint = endpoint_of(handle);
    const Guard hold(endpoint.domain.lock);
    auto* flags = static_cast<std::uint64_t*>(argument);
    switch (command) {
        case FI_ENABLE:
            return endpoint.enable();
        case FI_GETOPSFLAG:
            *flags = (*flags & FI_RECV) != 0 ? endpoint.receive_flags : endpoint.send_flags;
            return 0;
        case FI_SETOPSFLAG:
            if ((*flags & FI_TRANSMIT) != 0) endpoint.send_flags = *flags & kSendFlags;
            if ((*flags & FI_RECV) != 0) endpoint.receive_flags = *flags & kReceiveFlags;
            return 0;
        default:
            return -FI_ENOSYS;
    }
} catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
}

ssize_t cancel(fid* handle, void* context) noexcept {
    Endpoint& endpoint = endpoint_of(handle);
    const Guard hold(endpoint.domain.lock);
    return endpoint.cancel(context);
}

int get_option(fid* handle, int level, int name, void* value, std::size_t* length) noexcept {
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
    if (*length < sizeof(std::size_t)) return -FI_ETOOSMALL;
    *static_cast<std::size_t*>(value) = endpoint_of(handle).multi_receive_min;
    *length = sizeof(std::size_t);
    return 0;
}

int set_option(fid* handle, int level, int name, const void* value, std::size_t length) noexcept {
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
    if (length != sizeof(std::size_t)) return -FI_EINVAL;
    const Guard hold(endpoint_of(handle).domain.lock);
    endpoint_of(handle).multi_receive_min = *static_cast<const std::size_t*>(value);
    return 0;
}

int get_name(fid* handle, void* address, std::size_t* length) noexcept {
    Endpoint& endpoint = endpoint_of(handle);
    const Guard hold(endpoint.domain.lock);
    if (!endpoint.is_enabled()) return -FI_EOPBADSTATE;
    const Address own = endpoint.peers().own_address();
    const std::size_t room = *length;
    *length = own.size();
    if (address != nullptr) std::memcpy(address, own.data(), std::min(room, own.size()));
    return room < own.size() ? -FI_ETOOSMALL : 0;
}

fi_ops fid_ops = {sizeof(fi_ops), close_endpoint, bind_object, control,
                  kNotThere,      kNotThere,      kNotThere};
fi_ops_ep ep_ops = {
    sizeof(fi_ops_ep),
    cancel,
    get_option,
    set_option,
    kNotThere,  // tx_ctx
    kNotThere,  // rx_ctx
    [](fid_ep*) -> ssize_t { return kQueueSize; },
    [](fid_ep*) -> ssize_t { return kQueueSize; },
};
fi_ops_cm cm_ops = {sizeof(fi_ops_cm), kNotThere, get_name,  kNotThere, kNotThere,
                    kNotThere,         kNotThere, kNotThere, kNotThere, kNotThere};

fi_ops_msg message_ops;
fi_ops_tagged tagged_ops;

bool fill_entries() noexcept {
    set_send_entries(message_ops, tagged_ops);
    set_receive_entries(message_ops, tagged_ops);
    return true;
}

}  // namespace

Endpoint::Endpoint(Domain& in, const fi_info& info) noexcept
    : fid_ep{},
      domain(in),
      send_flags(info.tx_attr->op_flags),
      receive_flags(info.rx_attr->op_flags),
      caps_(info.caps),
      rma_(*this, (info.caps & (FI_RMA | FI_ATOMIC)) != 0 &&
                      (info.caps & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0) {}

Endpoint::~Endpoint() {
    // A message that was sent without a completion may still be on its way out.
    while (Operation* operation = deferred_.first()) {
        deferred_.remove(*operation);
        pool_.release(*operation);
    }
    if (ep_ != nullptr) {
        end_pulls();
        peers_.leave();
        ulc_close(ep_);
        rma_.end();
        dropped_.print_total(peers_.own_rank());
        rma_.print_refused(peers_.own_rank());
    }
    domain.detach(*this);
    if (addresses_ != nullptr) addresses_->detach(*this);
    if (sends_ != nullptr) sends_->detach(*this);
    if (receives_ != nullptr) receives_->detach(*this);
    if (send_counter_ != nullptr) send_counter_->detach(*this);
    if (receive_counter_ != nullptr) receive_counter_->detach(*this);
    rma_.detach_counters();
}

int Endpoint::bind(struct fid& object, std::uint64_t flags) {
    if (is_enabled()) return -FI_EOPBADSTATE;
    switch (object.fclass) {
        case FI_CLASS_AV:
            if (addresses_ != nullptr) return -FI_EINVAL;
            addresses_ = &object_of<AddressVector, fid_av>(&object);
            addresses_->attach(*this);
            return 0;
        case FI_CLASS_CQ: {
            if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0)
                return -FI_EBADFLAGS;
            auto& queue = object_of<CompletionQueue, fid_cq>(&object);
            const bool select = (flags & FI_SELECTIVE_COMPLETION) != 0;
            if (((flags & FI_TRANSMIT) != 0 && sends_ != nullptr) ||
                ((flags & FI_RECV) != 0 && receives_ != nullptr))
                return -FI_EINVAL;
            if ((flags & FI_TRANSMIT) != 0) {
                sends_ = &queue;
                select_sends_ = select;
            }
            if ((flags & FI_RECV) != 0) {
                receives_ = &queue;
                select_receives_ = select;
            }
            queue.attach(*this);
            return 0;
        }
        case FI_CLASS_CNTR: {
            constexpr std::uint64_t kOfRma = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
            if ((flags & ~(FI_SEND | FI_RECV | kOfRma)) != 0) return -FI_ENOSYS;
            auto& counter = object_of<Counter, fid_cntr>(&object);
            if ((flags & FI_SEND) != 0) send_counter_ = &counter;
            if ((flags & FI_RECV) != 0) receive_counter_ = &counter;
            rma_.count_by(counter, flags);
            counter.attach(*this);
            return 0;
        }
        case FI_CLASS_EQ:
            return 0;  // nothing is ever reported there
        default:
            return -FI_EINVAL;
    }
}

int Endpoint::enable() {
    if (is_enabled()) return 0;
    if (addresses_ == nullptr) return -FI_ENOAV;
    if (sends_ == nullptr && receives_ == nullptr && send_counter_ == nullptr &&
        receive_counter_ == nullptr)
        return -FI_ENOCQ;
    if (const int error = ulc_open(nullptr, &ep_); error != ULC_OK) {
        ep_ = nullptr;
        say("the endpoint cannot be enabled: %s", ulc_last_error_text());
        return -fi_error_of(error);
    }
    ulc_set_error_handler(ep_, tell_of_stopped, this);
    int error = -fi_error_of(ulc_set_rendezvous(ep_, kRendezvousFrom, kUnexpectedMax));
    if (error == 0) error = peers_.join(ep_, *addresses_);
    if (error != 0) {
        ulc_close(ep_);
        ep_ = nullptr;
        return error;
    }
    // Requests of peers are received from the moment at which the job has formed.
    error = rma_.defer_slots(deferred_);
    domain.attach(*this);
    return error;
}

void Endpoint::tell_of_stopped(void* context, int error, std::uint16_t source,
                               std::uint64_t count) {
    auto& endpoint = *static_cast<Endpoint*>(context);
    if (error != ULC_ERR_LIMIT || std::exchange(endpoint.reported_stopped_, true)) return;
    say("rank %u takes no more messages of rank %u until some are received: those without a "
        "receive hold %llu MiB. Receive earlier, or set ULC_UNEXPECTED_BYTES to more than 1 GiB.",
        unsigned{endpoint.peers_.own_rank()}, unsigned{source},
        static_cast<unsigned long long>(count >> 20));
}

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** out, void* context) noexcept {
    if (info == nullptr || info->ep_attr == nullptr || info->tx_attr == nullptr ||
        info->rx_attr == nullptr)
        return -FI_EINVAL;
    if (info->ep_attr->type != FI_EP_RDM || info->ep_attr->tx_ctx_cnt > 1 ||
        info->ep_attr->rx_ctx_cnt > 1)
        return -FI_ENOSYS;
    static const bool filled = fill_entries();
    static_cast<void>(filled);
    auto& in = *static_cast<Domain*>(domain);
    auto* endpoint = new (std::nothrow) Endpoint(in, *info);
    if (endpoint == nullptr) return -FI_ENOMEM;
    endpoint->fid = {FI_CLASS_EP, context, &fid_ops};
    endpoint->ops = &ep_ops;
    endpoint->cm = &cm_ops;
    endpoint->msg = &message_ops;
    endpoint->tagged = &tagged_ops;
    endpoint->rma = &rma_entries();
    endpoint->atomic = &atomic_entries();
    ++in.users;
    *out = endpoint;
    return 0;
}

}  // namespace ulc::ofi
