// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/card_request.h"

#include <utility>

// This is DPDK's only means to learn of a request of the kernel for any driver, and it is still
// experimental.
#define ALLOW_EXPERIMENTAL_API
#include <rte_dev.h>
#include <rte_log.h>

#include "dpdk/log.h"

namespace ulc::dpdk {
namespace {

void on_event(const char* /*device*/, rte_dev_event_type event, void* came) {
    if (event == RTE_DEV_EVENT_REMOVE)
        static_cast<std::atomic<bool>*>(came)->store(true, std::memory_order_relaxed);
}

}  // namespace

CardRequest::CardRequest(std::string address) : address_(std::move(address)) {
    rte_dev_event_callback_register(address_.c_str(), on_event, &came_);
}

CardRequest::~CardRequest() {
    rte_dev_event_callback_unregister(address_.c_str(), on_event, &came_);
}

void CardRequest::give_back() const {
    mute_log(true);  // that the port is closed already
    const int result = rte_eal_hotplug_remove("pci", address_.c_str());
    mute_log(false);
    if (result == 0) {
        rte_log(
            RTE_LOG_ERR, RTE_LOGTYPE_EAL,
            "%s: the kernel asked for the card, which is given back; end this engine, and start "
            "it again when the card is there\n",
            address_.c_str());
    } else {
        rte_log(
            RTE_LOG_ERR, RTE_LOGTYPE_EAL,
            "%s: the kernel asks for the card, which could not be given back; end this engine\n",
            address_.c_str());
    }
}

}  // namespace ulc::dpdk
