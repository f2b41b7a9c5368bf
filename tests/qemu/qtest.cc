// SPDX-License-Identifier: BSD-3-Clause
#include "qtest.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace ulc::nic {
namespace {

constexpr std::size_t kMemoryOctets = std::size_t{64} << 20;
constexpr std::size_t kFirmwareOctets = 65'536;
constexpr std::uint32_t kSlot = 4;           ///< slot of the NIC on the PCI bus
constexpr std::uint32_t kBar = 0xe000'0000;  ///< where its registers are mapped
constexpr std::uint32_t kCommandRegister = 0x04;
constexpr std::uint32_t kBarRegisters = 0x10;
constexpr std::uint32_t kNoAnswer = 0xffff'ffff;
constexpr std::uint32_t kMemoryAndMaster = 0x6;
constexpr int kFrameWaitMs = 2000;
constexpr std::size_t kFrameOctetsMax = 2048;
constexpr int kConnectTries = 500;  ///< tries of 10 ms

[[noreturn]] void fail(const std::string& what) {
    throw std::runtime_error(what + ": " + std::strerror(errno));
}

sockaddr_un unix_address(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) throw std::runtime_error("path too long: " + path);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

/// QEMU listens as soon as it is up.
int connect_to(const std::string& path) {
    const sockaddr_un address = unix_address(path);
    for (int i = 0; i < kConnectTries; ++i) {
        const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) fail("socket");
        if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
            return fd;
        close(fd);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    fail("QEMU does not listen on " + path);
}

/// Binds a datagram socket that others reach as `path`: QEMU's end of the wire sends frames to it.
int bind_to(const std::string& path) {
    const sockaddr_un address = unix_address(path);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        fail("bind " + path);
    return fd;
}

void send_all(int fd, const void* data, std::size_t octets) {
    const auto* at = static_cast<const char*>(data);
    while (octets > 0) {
        const ssize_t n = send(fd, at, octets, MSG_NOSIGNAL);
        if (n <= 0) fail("QEMU went away");
        at += n;
        octets -= static_cast<std::size_t>(n);
    }
}

bool receive_all(int fd, void* data, std::size_t octets, int timeout_ms) {
    auto* at = static_cast<char*>(data);
    while (octets > 0) {
        pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
        if (poll(&waiting, 1, timeout_ms) <= 0) return false;
        const ssize_t n = recv(fd, at, octets, 0);
        if (n <= 0) return false;
        at += n;
        octets -= static_cast<std::size_t>(n);
    }
    return true;
}

std::string hex(std::uint32_t value) {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "0x%x", value);
    return text.data();
}

}  // namespace

bool QtestMachine::available() {
    return std::system("command -v qemu-system-x86_64 >/dev/null") == 0;  // NOLINT: a fixed string
}

QtestMachine::QtestMachine(const std::string& nic, int bar, const std::string& mac) {
    std::string name = std::filesystem::temp_directory_path() / "ulc-qtest-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) fail("mkdtemp");
    folder_ = name;
    map_memory();
    write_firmware();
    wire_ = bind_to(folder_ + "/test");
    start(nic, mac);
    qtest_ = connect_to(folder_ + "/q");
    config_write(kBarRegisters + static_cast<std::uint32_t>(bar) * 4, kBar);
    config_write(kCommandRegister, kMemoryAndMaster);
}

QtestMachine::~QtestMachine() {
    if (child_ > 0) {
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }
    if (qtest_ >= 0) close(qtest_);
    if (wire_ >= 0) close(wire_);
    if (memory_ != nullptr) munmap(memory_, kMemoryOctets);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

void QtestMachine::map_memory() {
    const int fd = open((folder_ + "/m").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, kMemoryOctets) != 0) fail("memory file");
    void* at = mmap(nullptr, kMemoryOctets, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED) fail("mmap");
    memory_ = static_cast<std::byte*>(at);
}

/// The machine must run, or QEMU holds frames back; its processor only halts, with interrupts off.
void QtestMachine::write_firmware() {
    std::vector<char> image(kFirmwareOctets, '\0');
    constexpr std::array<unsigned char, 4> kHalt{0xfa, 0xf4, 0xeb,
                                                 0xfd};  // cli; again: hlt; jmp again
    std::memcpy(image.data() + kFirmwareOctets - 16, kHalt.data(), kHalt.size());
    std::ofstream(folder_ + "/f", std::ios::binary)
        .write(image.data(), static_cast<std::streamsize>(image.size()));
}

void QtestMachine::start(const std::string& nic_name, const std::string& mac) {
    const std::string firmware = folder_ + "/f";
    const std::string memory =
        "memory-backend-file,id=m,size=64M,share=on,mem-path=" + folder_ + "/m";
    const std::string qtest = "unix:" + folder_ + "/q,server=on,wait=off";
    const std::string wire = "dgram,id=n0,local.type=unix,local.path=" + folder_ +
                             "/nic,remote.type=unix,remote.path=" + folder_ + "/test";
    const std::string nic = nic_name + ",netdev=n0,addr=" + std::to_string(kSlot) + ",mac=" + mac;
    const char* const arguments[] = {"qemu-system-x86_64",
                                     "-bios",
                                     firmware.c_str(),
                                     "-accel",
                                     "tcg",
                                     "-M",
                                     "pc,memory-backend=m",
                                     "-m",
                                     "64",
                                     "-object",
                                     memory.c_str(),
                                     "-nodefaults",
                                     "-no-user-config",
                                     "-display",
                                     "none",
                                     "-qtest",
                                     qtest.c_str(),
                                     "-qtest-log",
                                     "none",
                                     "-netdev",
                                     wire.c_str(),
                                     "-device",
                                     nic.c_str(),
                                     nullptr};
    child_ = fork();
    if (child_ < 0) fail("fork");
    if (child_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(arguments[0], const_cast<char* const*>(arguments));
        _exit(127);
    }
}

/// Sends a command of qtest; returns the answer without "OK ". Empty if QEMU is gone.
std::string QtestMachine::ask(const std::string& command) {
    send_all(qtest_, command.data(), command.size());
    std::string line;
    char c = 0;
    while (receive_all(qtest_, &c, 1, 5000) && c != '\n')
        line += c;
    return line.starts_with("OK") ? line.substr(std::min<std::size_t>(3, line.size())) : "";
}

std::uint32_t QtestMachine::config_read(std::uint32_t offset) {
    ask("outl 0xcf8 " + hex(0x8000'0000 | kSlot << 11 | offset) + "\n");
    return static_cast<std::uint32_t>(std::strtoul(ask("inl 0xcfc\n").c_str(), nullptr, 0));
}

void QtestMachine::config_write(std::uint32_t offset, std::uint32_t value) {
    ask("outl 0xcf8 " + hex(0x8000'0000 | kSlot << 11 | offset) + "\n");
    ask("outl 0xcfc " + hex(value) + "\n");
}

std::uint32_t QtestMachine::read(const char* command, std::uint32_t offset) noexcept {
    const std::string answer = ask(command + hex(kBar + offset) + "\n");
    return answer.empty() ? kNoAnswer
                          : static_cast<std::uint32_t>(std::strtoul(answer.c_str(), nullptr, 0));
}

void QtestMachine::write(const char* command, std::uint32_t offset, std::uint32_t value) noexcept {
    ask(command + hex(kBar + offset) + " " + hex(value) + "\n");
}

std::uint32_t QtestMachine::read32(std::uint32_t offset) noexcept { return read("readl ", offset); }

std::uint16_t QtestMachine::read16(std::uint32_t offset) noexcept {
    return static_cast<std::uint16_t>(read("readw ", offset));
}

void QtestMachine::write32(std::uint32_t offset, std::uint32_t value) noexcept {
    write("writel ", offset, value);
}

void QtestMachine::write16(std::uint32_t offset, std::uint16_t value) noexcept {
    write("writew ", offset, value);
}

void QtestMachine::write8(std::uint32_t offset, std::uint8_t value) noexcept {
    write("writeb ", offset, value);
}

void QtestMachine::wait(Nanos span) noexcept {
    if (span >= kMillisecond) std::this_thread::sleep_for(std::chrono::nanoseconds(span));
}

void QtestMachine::put_frame(std::span<const std::byte> frame) {
    const sockaddr_un nic = unix_address(folder_ + "/nic");
    if (sendto(wire_, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&nic),
               sizeof nic) < 0)
        fail("sendto");
}

std::optional<std::vector<std::byte>> QtestMachine::get_frame() {
    pollfd waiting{.fd = wire_, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, kFrameWaitMs) <= 0) return std::nullopt;
    std::vector<std::byte> frame(kFrameOctetsMax);
    const ssize_t octets = recv(wire_, frame.data(), frame.size(), 0);
    if (octets < 0) return std::nullopt;
    frame.resize(static_cast<std::size_t>(octets));
    return frame;
}

}  // namespace ulc::nic
