// SPDX-License-Identifier: BSD-3-Clause
// A machine of QEMU whose processor only halts: its PCI bus, a NIC and its memory, which the test
// accesses through the qtest socket. Memory is a file that both map, so that rings and frames
// are plain pointers here; frames come and go over a unix socket.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"

namespace ulc::nic {

class QtestMachine {
public:
    /// Returns true if QEMU is installed here.
    [[nodiscard]] static bool available();

    /// Starts QEMU with the device `nic` ("tulip") of address `mac`, maps its registers, which are
    /// behind BAR `bar`, and switches on bus mastering. The destructor ends QEMU and removes the
    /// memory and sockets. Throws std::runtime_error with the reason of a failure.
    QtestMachine(const std::string& nic, int bar, const std::string& mac);
    ~QtestMachine();
    QtestMachine(const QtestMachine&) = delete;
    QtestMachine& operator=(const QtestMachine&) = delete;

    /// Accesses a register. Reads return ones if QEMU is gone.
    [[nodiscard]] std::uint32_t read32(std::uint32_t offset) noexcept;
    [[nodiscard]] std::uint16_t read16(std::uint32_t offset) noexcept;
    void write32(std::uint32_t offset, std::uint32_t value) noexcept;
    void write16(std::uint32_t offset, std::uint16_t value) noexcept;
    void write8(std::uint32_t offset, std::uint8_t value) noexcept;
    /// An access over the socket takes longer than any wait of the driver, except those of 1 ms and
    /// more.
    static void wait(Nanos span) noexcept;

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
    void start(const std::string& nic, const std::string& mac);
    void map_memory();
    void write_firmware();
    std::string ask(const std::string& command);
    [[nodiscard]] std::uint32_t read(const char* command, std::uint32_t offset) noexcept;
    void write(const char* command, std::uint32_t offset, std::uint32_t value) noexcept;
    std::uint32_t config_read(std::uint32_t offset);
    void config_write(std::uint32_t offset, std::uint32_t value);

    std::string folder_;
    pid_t child_ = -1;
    int qtest_ = -1;
    int wire_ = -1;
    std::byte* memory_ = nullptr;
};

}  // namespace ulc::nic
