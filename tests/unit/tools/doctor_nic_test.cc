// SPDX-License-Identifier: BSD-3-Clause
// The words of `ulc doctor` on NICs, with folders made like /sys. NICs of bifurcated drivers (mlx4,
// mlx5) stay with the kernel, others are to be bound. No advice raises an MTU. And on the space of
// UDP sockets.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tools/ulc/doctor/doctor.h"

namespace ulc::tools {
namespace {

namespace fs = std::filesystem;

class Doctor : public ::testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/ulc-doctor-test.XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        root_ = name;
    }
    void TearDown() override { fs::remove_all(root_); }

    /// A NIC with that driver; returns its folder.
    fs::path nic(const std::string& driver) {
        fs::path device = root_ / "sys/bus/pci/devices/0000:03:00.0";
        fs::create_directories(device / "net/eth7");
        write(device / "class", "0x020000");
        write(device / "vendor", "0x15b3");
        write(device / "device", "0x1013");
        fs::create_symlink("../../drivers/" + driver, device / "driver");
        return device;
    }
    static void write(const fs::path& path, const std::string& text) {
        std::ofstream(path) << text << '\n';
    }
    Finding look() {
        Findings found;
        check_nics(root_.string(), found);
        EXPECT_EQ(found.size(), 1U);
        return found.empty() ? Finding{} : found[0];
    }

    fs::path root_;
};

TEST_F(Doctor, leaves_a_bifurcated_nic_with_the_kernel) {
    for (const std::string driver : {"mlx4_core", "mlx5_core"}) {
        const fs::path device = nic(driver);
        Finding found = look();
        EXPECT_EQ(found.level, Level::kWarn);
        EXPECT_EQ(found.fix, "sudo modprobe " + driver.substr(0, 4) + "_ib");
        fs::create_directories(device / "infiniband/roce0");
        found = look();
        EXPECT_EQ(found.level, Level::kOk);
        EXPECT_NE(found.text.find("leave it bound"), std::string::npos) << found.text;
        EXPECT_NE(found.text.find("--device verbs,dev=roce0"), std::string::npos) << found.text;
        EXPECT_EQ(found.fix, "") << "no command binds it to another driver";
        // DPDK's driver for mlx4 cannot leave the frames of IP with the kernel.
        EXPECT_EQ(found.text.find("--device 0000:03:00.0") != std::string::npos,
                  driver == "mlx5_core")
            << found.text;
        fs::remove_all(root_);
    }
}

TEST_F(Doctor, tells_to_bind_any_other_nic) {
    nic("e1000e");
    const Finding found = look();
    EXPECT_EQ(found.level, Level::kWarn);
    EXPECT_NE(found.fix.find("dpdk-devbind.py -b uio_pci_generic 0000:03:00.0"), std::string::npos)
        << found.fix;
}

TEST_F(Doctor, names_the_chips_of_our_drivers) {
    const fs::path device = nic("e100");
    for (const std::string id : {"0x1229", "0x1209"}) {
        write(device / "vendor", "0x8086");
        write(device / "device", id);
        EXPECT_NE(look().text.find("Intel 8255x, driver net_i8255x"), std::string::npos) << id;
    }
    write(device / "device", "0x100e");
    EXPECT_EQ(look().text.find("driver net_"), std::string::npos) << look().text;
    write(device / "vendor", "0x1011");
    write(device / "device", "0x0019");
    EXPECT_NE(look().text.find("DEC 21143, driver net_tulip"), std::string::npos);
}

TEST_F(Doctor, gives_no_advice_that_could_break_a_path_with_a_small_mtu) {
    const fs::path interface = root_ / "sys/class/net/eth0";
    fs::create_directories(interface / "device");
    write(interface / "type", "1");
    write(interface / "operstate", "up");
    write(interface / "mtu", "1400");
    Findings found;
    check_interfaces(root_.string(), found);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].level, Level::kOk);
    EXPECT_EQ(found[0].fix, "") << "1400 may be what the path carries";
    EXPECT_NE(found[0].text.find("up, MTU 1400 (below the usual 1500"), std::string::npos)
        << found[0].text;
    write(interface / "operstate", "down");
    found.clear();
    check_interfaces(root_.string(), found);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].fix, "sudo ip link set eth0 up");
}

TEST_F(Doctor, says_how_a_udp_socket_gets_more_space) {
    fs::create_directories(root_ / "proc/sys/net/core");
    Findings found;
    check_udp(root_.string(), found);
    EXPECT_TRUE(found.empty()) << "no such file";
    write(root_ / "proc/sys/net/core/rmem_max", "212992");
    check_udp(root_.string(), found);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].level, Level::kWarn);
    EXPECT_NE(found[0].text.find("208 KiB of the 8192"), std::string::npos) << found[0].text;
    EXPECT_NE(found[0].fix.find("net.core.rmem_max=8388608"), std::string::npos) << found[0].fix;
    write(root_ / "proc/sys/net/core/rmem_max", "8388608");
    check_udp(root_.string(), found);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[1].level, Level::kOk);
}

}  // namespace
}  // namespace ulc::tools
