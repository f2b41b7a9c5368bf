// SPDX-License-Identifier: BSD-3-Clause
// A machine of QEMU whose processor only halts: its PCI bus, a tulip NIC and its memory, which the
// test accesses through the qtest socket. Memory is a file that both map, so that rings and frames
// are plain pointers here; frames come and go over a unix socket.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "drivers/tulip/bus.h"

namespace ulc::tulip {

class QtestMachine : public Bus {
public:
    /// Returns true if QEMU is installed here.
    [[nodiscard]] static bool available();

    /// Starts QEMU with a tulip of address `mac`, maps its registers and switches on bus mastering.
    /// Throws std::runtime_error with the reason of a failure. Everything ends with the object.
    explicit QtestMachine(const std::string& mac);
    ~QtestMachine() override;
    QtestMachine(const QtestMachine&) = delete;
    QtestMachine& operator=(const QtestMachine&) = delete;

    [[nodiscard]] std::uint32_t read(Csr csr) noexcept override;
    void write(Csr csr, std::uint32_t value) noexcept override;
    /// An access over the socket takes longer than any wait of the driver, except those of 1 ms and
    /// more.
    void wait(Nanos span) noexcept override;

    /// Returns guest-physical memory, which the chip sees. The first MiB belongs to the machine.
    [[nodiscard]] std::byte* at(std::uint32_t bus_address) noexcept {
        return memory_ + bus_address;
    }

    /// Puts a frame onto the wire, towards the NIC.
    void put_frame(std::span<const std::byte> frame);
    /// Returns a frame from the NIC; none if none comes within 2 s.
    [[nodiscard]] std::optional<std::vector<std::byte>> get_frame();

    [[nodiscard]] std::uint16_t vendor() { return static_cast<std::uint16_t>(config_read(0)); }
    [[nodiscard]] std::uint16_t device() {
        return static_cast<std::uint16_t>(config_read(0) >> 16);
    }

private:
    void start(const std::string& mac);
    void map_memory();
    void write_firmware();
    std::string ask(const std::string& command);
    std::uint32_t config_read(std::uint32_t offset);
    void config_write(std::uint32_t offset, std::uint32_t value);

    std::string folder_;
    pid_t child_ = -1;
    int qtest_ = -1;
    int wire_ = -1;
    std::byte* memory_ = nullptr;
};

}  // namespace ulc::tulip
