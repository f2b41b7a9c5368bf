// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/express/shared_memory.h"

#include <cstring>

#include "base/check.h"

namespace ulc::sim {
namespace {

std::uint32_t number_of(std::span<const std::byte> message) {
    std::uint32_t number = 0;
    ULC_CHECK(message.size() == sizeof number);
    std::memcpy(&number, message.data(), sizeof number);
    return number;
}

bool has_page(const dsm::Message& message) {
    return message.kind == dsm::Kind::kCopy || message.kind == dsm::Kind::kOwnership;
}

}  // namespace

SharedMemory::SharedMemory(ExpressProcess& process, std::size_t octets, const MemoryCosts& costs)
    : process_(process),
      costs_(costs),
      bytes_((octets + kPage - 1) / kPage * kPage),
      changed_(bytes_.size() / kPage),
      node_(process.rank(), pages(), *this) {
    packet_handler_ = process.add_handler(
        [this](std::uint16_t from, std::span<const std::byte> m) { on_packet(from, m); });
    grant_handler_ = process.add_handler([this](std::uint16_t, std::span<const std::byte> message) {
        express::Scheduler& scheduler = process_.scheduler();
        ULC_CHECK(scheduler.lock(lock_mutex_));
        ++granted_[number_of(message)];
        scheduler.broadcast(lock_changed_);
        ULC_CHECK(scheduler.unlock(lock_mutex_));
    });
    lock_handler_ =
        process.add_handler([this](std::uint16_t from, std::span<const std::byte> message) {
            const std::uint32_t number = number_of(message);
            if (locks_.ask(from, number)) send_number(from, grant_handler_, number);
        });
    unlock_handler_ =
        process.add_handler([this](std::uint16_t, std::span<const std::byte> message) {
            const std::uint32_t number = number_of(message);
            if (const auto next = locks_.give_back(number))
                send_number(*next, grant_handler_, number);
        });
}

// ---------------------------------------------------------------- pages

void SharedMemory::send(std::uint16_t to, const dsm::Message& message) {
    std::vector<std::byte> packet(sizeof message + (has_page(message) ? kPage : 0));
    std::memcpy(packet.data(), &message, sizeof message);
    if (has_page(message)) {
        std::memcpy(packet.data() + sizeof message, page(message.page).data(), kPage);
        charge_copy();
    }
    process_.send(to, packet_handler_, packet);
}

void SharedMemory::protect(std::uint32_t /*page*/, dsm::Access /*access*/) {
    process_.spend(costs_.protect);
}

void SharedMemory::install(std::uint32_t page) {
    std::memcpy(bytes_.data() + page * kPage, arrived_.data() + sizeof(dsm::Message), kPage);
    charge_copy();
}

void SharedMemory::wake(std::uint32_t page) { process_.scheduler().broadcast(changed_[page]); }

void SharedMemory::on_packet(std::uint16_t from, std::span<const std::byte> packet) {
    dsm::Message message;
    ULC_CHECK(packet.size() >= sizeof message);
    std::memcpy(&message, packet.data(), sizeof message);
    ULC_CHECK(packet.size() == sizeof message + (has_page(message) ? kPage : 0));
    ULC_CHECK(process_.scheduler().lock(mutex_));
    arrived_ = packet;
    ULC_CHECK(node_.on_message(from, message));
    ULC_CHECK(process_.scheduler().unlock(mutex_));
}

void SharedMemory::fetch(const void* at, bool writes) {
    const std::uint32_t page = page_of(at);
    express::Scheduler& scheduler = process_.scheduler();
    process_.spend(costs_.fault);
    ULC_CHECK(scheduler.lock(mutex_));
    if (held_ && held_ != page) node_.resume(*held_);
    while (!node_.allows(page, writes)) {
        node_.fault(page, writes);
        if (!node_.allows(page, writes)) ULC_CHECK(scheduler.wait(changed_[page], mutex_));
    }
    held_ = page;
    ULC_CHECK(scheduler.unlock(mutex_));
}

void SharedMemory::release() {
    if (!held_) return;
    ULC_CHECK(process_.scheduler().lock(mutex_));
    node_.resume(*held_);
    held_.reset();
    ULC_CHECK(process_.scheduler().unlock(mutex_));
}

// ---------------------------------------------------------------- locks

void SharedMemory::send_number(std::uint16_t to, unsigned handler, std::uint32_t number) {
    process_.send(to, handler, std::as_bytes(std::span(&number, 1)));
}

void SharedMemory::lock(unsigned number) {
    express::Scheduler& scheduler = process_.scheduler();
    send_number(static_cast<std::uint16_t>(number % process_.processes()), lock_handler_, number);
    ULC_CHECK(scheduler.lock(lock_mutex_));
    while (granted_[number] == 0)
        ULC_CHECK(scheduler.wait(lock_changed_, lock_mutex_));
    --granted_[number];
    ULC_CHECK(scheduler.unlock(lock_mutex_));
}

void SharedMemory::unlock(unsigned number) {
    send_number(static_cast<std::uint16_t>(number % process_.processes()), unlock_handler_, number);
}

}  // namespace ulc::sim
