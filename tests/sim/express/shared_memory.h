// SPDX-License-Identifier: BSD-3-Clause
// Distributed shared memory on simulated Express processes: the page protocol of bench/apps/dsm,
// with a copy of the memory in each process. Where the real one has the processor raise a fault,
// programs here ask before each access. Counterpart of bench/apps/dsm/memory.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "bench/apps/dsm/locks.h"
#include "bench/apps/dsm/protocol.h"
#include "tests/sim/express/express_run.h"

namespace ulc::sim {

struct MemoryCosts {
    Nanos fault = 0;        ///< the trap of an access that faults
    Nanos protect = 0;      ///< each change of a page's protection
    double copy_octet = 0;  ///< ns a byte of a page that is put into a message, or into place
};

class SharedMemory final : public dsm::Surroundings {
public:
    static constexpr std::size_t kPage = 4096;

    SharedMemory(ExpressProcess& process, std::size_t octets, const MemoryCosts& costs);

    [[nodiscard]] std::byte* data() noexcept { return bytes_.data(); }
    [[nodiscard]] std::uint32_t page_of(const void* at) const noexcept {
        return static_cast<std::uint32_t>(
            static_cast<std::size_t>(static_cast<const std::byte*>(at) - bytes_.data()) / kPage);
    }
    [[nodiscard]] bool allows(const void* at, bool writes) const {
        return node_.allows(page_of(at), writes);
    }
    /// Waits until the page of `at` may be accessed. It stays until release(), or until the next
    /// call.
    void fetch(const void* at, bool writes);
    /// The access is over.
    void release();

    void lock(unsigned number);
    void unlock(unsigned number);

    [[nodiscard]] const dsm::Node& node() const noexcept { return node_; }
    [[nodiscard]] std::span<const std::byte> page(std::uint32_t number) const {
        return std::span(bytes_).subspan(number * kPage, kPage);
    }
    [[nodiscard]] std::uint32_t pages() const noexcept {
        return static_cast<std::uint32_t>(bytes_.size() / kPage);
    }

    // --- effects of the protocol
    void send(std::uint16_t to, const dsm::Message& message) override;
    void protect(std::uint32_t page, dsm::Access access) override;
    void install(std::uint32_t page) override;
    void wake(std::uint32_t page) override;

private:
    void on_packet(std::uint16_t from, std::span<const std::byte> packet);
    void send_number(std::uint16_t to, unsigned handler, std::uint32_t number);
    void charge_copy() { process_.spend(static_cast<Nanos>(costs_.copy_octet * double{kPage})); }

    ExpressProcess& process_;
    MemoryCosts costs_;
    std::vector<std::byte> bytes_;
    std::vector<express::Condition> changed_;  ///< by page
    express::Mutex mutex_;                     ///< guards the node
    std::span<const std::byte> arrived_;
    std::optional<std::uint32_t> held_;  ///< page that came for an access, not made yet
    dsm::Locks locks_;
    express::Mutex lock_mutex_;
    express::Condition lock_changed_;
    std::map<unsigned, unsigned> granted_;  ///< grants that this process has not taken
    unsigned packet_handler_ = 0;
    unsigned grant_handler_ = 0;
    unsigned lock_handler_ = 0;
    unsigned unlock_handler_ = 0;
    dsm::Node node_;
};

}  // namespace ulc::sim
